"""From what users give to the pairs of an `MDP`: checks that name state and action, and the sparse rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError

Array = np.ndarray
#: How far probabilities may miss one: those of printed tables are divided by their sum.
SUM_TOLERANCE = 1e-6
_LARGEST = 1e200  # reward whose sums over 1 / (1 - discount) steps are still floating-point numbers


def transition_matrices(transitions: Any) -> list[sp.csr_array]:
    """One sparse matrix of probabilities for each action."""
    if sp.issparse(transitions):
        raise DataError("transitions: got one sparse matrix; expected an array (S, A, S) or a matrix for each action")
    if isinstance(transitions, Sequence) and any(sp.issparse(P) for P in transitions):
        # Copies: entries that are given twice are added up below, in place.
        matrices = [sp.csr_array(P, dtype=np.float64, copy=True) for P in transitions]
    else:
        P = _floats("transitions", transitions)
        if P.ndim == 3 and isinstance(transitions, Sequence) and isinstance(transitions[0], np.ndarray):
            P = P.transpose(1, 0, 2)  # matrices of actions
        if P.ndim != 3 or P.shape[0] != P.shape[2] or P.size == 0:
            raise DataError(f"transitions: got shape {P.shape}; expected (S, A, S), or A matrices of shape (S, S)")
        matrices = [sp.csr_array(P[:, a]) for a in range(P.shape[1])]
    n = matrices[0].shape[0]
    for a, P in enumerate(matrices):
        if P.shape != (n, n) or n == 0:
            raise DataError(f"transitions: the matrix of action {a} has shape {P.shape}; expected ({n}, {n})")
        P.sum_duplicates()
    return matrices


def labels(name: str, given: Sequence[Hashable] | None, n: int) -> Array:
    """Labels of states or actions, all different."""
    if given is None:
        return np.arange(n)
    try:
        out = np.asarray(given)
        distinct = len(set(given)) == n
    except (TypeError, ValueError):
        out, distinct = np.empty(0), False
    if out.ndim != 1:  # labels such as tuples stay what they are
        out = np.empty(n, dtype=object)
        out[:] = list(given) if len(given) == n else None
    if len(given) != n or not distinct:
        raise DataError(f"{name}: got {len(given)} labels; expected {n} different ones")
    return out


def shown(given: Array, i: int | np.integer) -> str:
    """A label as a user would write it."""
    label = given[i]
    return repr(label.item() if isinstance(label, np.generic) else label)


def state_mask(name: str, given: Any, n: int, states: Array) -> Array:
    """Mask of the states that are given as a mask, as indices or as labels."""
    mask = np.zeros(n, dtype=bool)
    if given is None:
        return mask
    entries = np.asarray(given)
    if entries.dtype == bool:
        if entries.shape != (n,):
            raise DataError(f"{name}: got a mask of shape {entries.shape}; expected ({n},)")
        return entries.copy()
    place = {label: i for i, label in enumerate(states.tolist())}
    for label in list(given) if not np.isscalar(given) else [given]:
        key = label.item() if isinstance(label, np.generic) else label
        if key not in place:
            raise DataError(f"{name}: {label!r} is none of the states")
        mask[place[key]] = True
    return mask


def pairs_of(
    matrices: list[sp.csr_array], ends: Array, states: Array, actions: Array
) -> tuple[sp.csr_array, Array, Array]:
    """Rows of probabilities by pair, where the pairs of a state begin, and their actions."""
    n, m = len(ends), len(matrices)
    stacked = sp.csr_array(sp.vstack(matrices, format="csr"))  # by action, then state
    check_probabilities(
        stacked, lambda row: f"state {shown(states, row % n)}, action {shown(actions, row // n)}", unused=ends
    )
    row = np.arange(n)[:, None] + n * np.arange(m)  # state, then action
    kept = (np.diff(stacked.indptr)[row] > 0) & ~ends[:, None]
    if not (ends | kept.any(axis=1)).all():
        s = shown(states, np.argmin(ends | kept.any(axis=1)))
        raise DataError(f"transitions: state {s} has no action with probabilities; name it in `terminal` if it ends")
    P = sp.csr_array(stacked[row[kept]])
    P.data /= np.repeat(np.asarray(P.sum(axis=1)).ravel(), np.diff(P.indptr))
    start = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64)
    return P, start, np.nonzero(kept)[1]


def check_probabilities(P: sp.csr_array, name_of: Callable[[int], str], unused: Array | None = None) -> None:
    """Probabilities are finite, none negative, and add up to one or, for actions that are not available, to zero."""
    row_of = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
    bad = ~np.isfinite(P.data) | (P.data < 0)
    if bad.any():
        e = int(np.argmax(bad))
        raise DataError(f"transitions: {name_of(row_of[e])} has probability {P.data[e]:g}; expected none below 0")
    total = np.asarray(P.sum(axis=1)).ravel()
    wrong = (np.abs(total - 1) > SUM_TOLERANCE) & (np.diff(P.indptr) > 0)
    if unused is not None:
        wrong &= ~np.tile(unused, P.shape[0] // len(unused))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"transitions: the probabilities of {name_of(row)} add up to {total[row]:.9g}; expected 1 "
            f"({int(wrong.sum())} such rows)"
        )


def pair_rewards(
    rewards: Any, P: sp.csr_array, start: Array, action: Array, ends: Array, m: int
) -> tuple[Array, Array]:
    """Expected reward of each pair, and the values of terminal states."""
    n = len(ends)
    state = np.repeat(np.arange(n), np.diff(start))
    final = np.zeros(n)
    if isinstance(rewards, Sequence) and any(sp.issparse(R) for R in rewards):
        if len(rewards) != m or any(R.shape != (n, n) for R in rewards):
            raise DataError(f"rewards: expected {m} matrices of shape ({n}, {n})")
        stacked = sp.csr_array(sp.vstack([sp.csr_array(R) for R in rewards], format="csr"))
        _finite("rewards", stacked.data)
        return np.asarray((P * stacked[action * n + state]).sum(axis=1)).ravel(), final
    R = _floats("rewards", rewards)
    if R.ndim == 3 and isinstance(rewards, Sequence) and isinstance(rewards[0], np.ndarray):
        R = R.transpose(1, 0, 2)
    _finite("rewards", R)
    if R.shape == (n,):
        final[ends] = R[ends]
        return R[state], final
    if R.shape == (n, m):
        return R[state, action], final
    if R.shape == (n, m, n):
        entries = P.tocoo()
        values = entries.data * R[state[entries.row], action[entries.row], entries.col]
        return np.bincount(entries.row, weights=values, minlength=P.shape[0]), final
    raise DataError(f"rewards: got shape {R.shape}; expected ({n},), ({n}, {m}) or ({n}, {m}, {n})")


def pairs_of_function(
    transitions: Callable[[Any, Any], Iterable[Sequence[Any]]],
    states: Iterable[Hashable],
    actions: Iterable[Hashable] | Callable[[Any], Iterable[Hashable]],
    explore: bool,
) -> tuple[sp.csr_array, Array, Array, Array, Array, Array, Array]:
    """The pairs of a function of states and actions; with `explore` also of all states that it leads to."""
    place = {s: i for i, s in enumerate(states)}
    order = list(place)
    if not order:
        raise DataError("states: got none; expected at least one")
    if callable(actions):
        actions_of, action_place = actions, {}
    else:
        listed = list(actions)
        actions_of, action_place = (lambda _: listed), {a: i for i, a in enumerate(listed)}
    data, columns, row_ends, rewards, taken, start = [], [], [0], [], [], [0]
    for s in order:  # grows while it is read
        for a in actions_of(s):
            reward = total = 0.0
            for entry in transitions(s, a):
                if len(entry) not in (3, 4):
                    raise DataError(
                        f"transitions({s!r}, {a!r}): got {entry!r:.80}; expected (probability, state, reward)"
                    )
                p, after, r, done = (*entry, False)[:4]
                if not (np.isfinite(p) and p >= 0 and np.isfinite(r) and abs(r) <= _LARGEST):
                    raise DataError(f"transitions({s!r}, {a!r}): got probability {p!r} and reward {r!r}")
                reward, total = reward + p * r, total + p
                if done or p == 0:
                    continue
                if after not in place:
                    if not explore:
                        raise DataError(f"transitions({s!r}, {a!r}): {after!r} is none of the states")
                    place[after] = len(order)
                    order.append(after)
                data.append(p)
                columns.append(place[after])
            if abs(total - 1) > SUM_TOLERANCE:
                raise DataError(
                    f"transitions: the probabilities of state {s!r}, action {a!r} add up to {total:.9g}; expected 1"
                )
            row_ends.append(len(data))
            rewards.append(reward)
            taken.append(action_place.setdefault(a, len(action_place)))
        start.append(len(rewards))
    P = sp.csr_array((data, columns, row_ends), shape=(len(rewards), len(order)), dtype=np.float64)
    P.sum_duplicates()
    return (
        P,
        np.array(rewards, dtype=np.float64),
        np.array(start, dtype=np.int64),
        np.array(taken, dtype=np.int64),
        np.zeros(len(order)),
        labels("states", order, len(order)),
        labels("actions", list(action_place) or [0], max(len(action_place), 1)),
    )


def cannot_end(P: sp.csr_array, owner: Array, ends: Array, stops: Array) -> Array:
    """States from which no sequence of actions ends the process."""
    can = ends.copy()
    can[owner[stops]] = True
    leads = sp.csr_array(P.T)
    frontier = np.flatnonzero(can)
    while frontier.size:
        pairs = leads[frontier].indices
        new = np.unique(owner[pairs])
        frontier = new[~can[new]]
        can[frontier] = True
    return ~can


def _floats(name: str, values: Any) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name}: expected numbers in an array, got {type(values).__name__}") from None


def _finite(name: str, values: Array) -> None:
    if not np.isfinite(values).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise DataError(f"{name}: entry {place} is {values[place]}; expected finite numbers")
    if np.abs(values).max(initial=0.0) > _LARGEST:
        raise DataError(f"{name}: has an entry of size {np.abs(values).max():g}; expected none above {_LARGEST:g}")
