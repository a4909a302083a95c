r"""`evaluate_offline`: what a policy is worth, from episodes that another one made.

With rho_t the product of pi(a_k | s_k) / b(a_k | s_k) up to and with step t, and w = rho_T of the whole episode:

    ordinary          mean of  w G
    weighted          sum of w G / sum of w
    per_decision      mean of  sum_t discount^t rho_t r_t
    doubly_robust     mean of  V(s_0) + sum_t discount^t rho_t (r_t + discount V(s_t+1) - Q(s_t, a_t))
    fitted_q          mean of  V(s_0)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from epicycle.core._exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.core._parameters import Choice, Integer, NoneOr, Real, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator import in_catalogue
from epicycle.rl._episodes import Episodes, policy_table
from epicycle.rl.offline._action_values import fitted_values, values_of_table
from epicycle.rl.offline._offline_evaluation import OfflineEvaluation
from epicycle.stats._summary import central_quantile

Array = np.ndarray
METHODS = ("ordinary", "weighted", "per_decision", "doubly_robust", "fitted_q")
_FOLDS = 2  # parts of the episodes, each valued by tables that were fitted to the other
_FEW = 50  # effective episodes below which intervals are too short: at 25, three in four held instead of 19 in 20


@in_catalogue("rl", "G9", certificate="interval")
def evaluate_offline(
    policy: Any,
    episodes: Episodes,
    *,
    method: str = "doubly_robust",
    discount: float = 0.99,
    n_actions: int | None = None,
    regressor: Any = None,
    rounds: int = 50,
    n_bootstrap: int = 100,
    confidence: float = 0.95,
    random_state: Seed = None,
) -> OfflineEvaluation:
    r"""Expected discounted return of a policy, from episodes that were recorded under another one.

    Importance sampling weighs each episode by how much more often the policy would have made it,
    :math:`w = \prod_t \pi(a_t \mid s_t) / b(a_t \mid s_t)`. By ``method``:

    - "ordinary": the mean of :math:`w G`, unbiased, with a variance that grows fast with the length of episodes.
    - "weighted": divided by the sum of the weights: a small bias for much less variance.
    - "per_decision": each reward is weighed by the steps before it alone, unbiased.
    - "doubly_robust": values fitted to the recorded steps, and what they miss by importance sampling. Unbiased whatever
      the values are, since those of an episode come from other episodes; the better they are, the less variance.
    - "fitted_q": the values alone. Needs no probabilities; biased where the values are wrong, and where the policy does
      what was never tried.

    Of an episode that was cut off, importance sampling sees the return up to the cut; the two last methods add the
    value of what follows.

    Parameters
    ----------
    policy : array (S,) or (S, A), or callable
        Numbers of actions, probabilities, or a function that gives probabilities (rows, A) for states (rows, ...).
    episodes : Episodes
        What was recorded, with ``probabilities`` except for fitted Q; actions are numbered.
    method : {"doubly_robust", "ordinary", "weighted", "per_decision", "fitted_q"}, default="doubly_robust"
        See above.
    discount : float, default=0.99
        Discount.
    n_actions : int, optional
        Number of actions, where `policy` is an array of their numbers; by default the largest one that occurs plus one.
    regressor : estimator, optional
        Any regressor for the values of states that are not numbered; by default extremely randomised trees.
    rounds : int, default=50
        Fits of the regressor.
    n_bootstrap : int, default=100
        Draws of episodes for the interval of fitted Q.
    confidence : float, default=0.95
        Probability of the interval.
    random_state : int, Generator, RandomState or None, default=None
        Of the parts into which episodes are divided, of the regressor and of draws.

    Returns
    -------
    OfflineEvaluation

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import MDPEnvironment, policy_iteration, worlds
    >>> from epicycle.rl import evaluate_offline, record_episodes
    >>> grid = worlds.russell_norvig_grid()
    >>> best = policy_iteration(grid)
    >>> new = best.q_values().argmax(axis=1)
    >>> tried = 0.8 * np.eye(4)[new] + 0.2 / 4
    >>> seen = record_episodes(tried, MDPEnvironment(grid, start=(2, 0)), 500, seed=0)
    >>> found = evaluate_offline(new, seen, random_state=0)
    >>> bool(found.low <= best.values[7] <= found.high)
    True
    """
    owner = "evaluate_offline"
    check_parameter(owner, "method", method, Choice(*METHODS))
    check_parameter(owner, "discount", discount, Real(0, 1))
    check_parameter(owner, "n_actions", n_actions, NoneOr(Integer(minimum=1)))
    check_parameter(owner, "rounds", rounds, Integer(minimum=1))
    check_parameter(owner, "n_bootstrap", n_bootstrap, Integer(minimum=2))
    check_parameter(owner, "confidence", confidence, Real(0, 1, inclusive=False))
    if not isinstance(episodes, Episodes):
        raise DataError(f"episodes={episodes!r:.60}: expected Episodes, such as record_episodes returns")
    work = _Work(policy, episodes, float(discount), n_actions, regressor, rounds, seed_of(random_state))
    if method == "fitted_q":
        return work.fitted(n_bootstrap, confidence)
    if episodes.probabilities is None:
        raise ParameterError(
            f"method={method!r}: needs the probabilities with which the recorded actions were taken, and episodes have "
            "none; method='fitted_q' does not"
        )
    return work.sampled(method, confidence)


class _Work:
    """The recorded steps, and the policy in their states."""

    def __init__(
        self,
        policy: Any,
        steps: Episodes,
        discount: float,
        n_actions: int | None,
        regressor: Any,
        rounds: int,
        seed: int,
    ) -> None:
        self.steps, self.discount, self.regressor = steps, discount, regressor
        self.rounds, self.seed = rounds, seed
        a = steps.actions
        if a.ndim != 1 or a.dtype.kind not in "iu" or a.min() < 0:
            raise DataError(f"episodes.actions: got shape {a.shape} of {a.dtype}; expected numbers of actions (n,)")
        x, after = steps.observations, steps.next_observations
        self.table: Array | None = None
        if callable(policy):
            self.policy: Callable[[Array], Array] = lambda states: _checked(policy(states), len(states))
            if x.ndim == 1 and x.dtype.kind in "iu":
                self.table = self.policy(np.arange(max(x.max(), after.max()) + 1))
        else:
            given = np.asarray(policy)
            most = given.shape[1] if given.ndim == 2 else n_actions or int(max(a.max(), given.max(initial=0))) + 1
            self.table = policy_table(given, len(given) if given.ndim else None, most)
            if x.ndim != 1 or x.dtype.kind not in "iu" or x.min() < 0 or max(x.max(), after.max()) >= len(self.table):
                raise DataError(f"episodes.observations: expected numbers of states from 0 to {len(self.table) - 1}")
            self.policy = self.table.__getitem__
        own = self.policy(x)
        if a.max() >= own.shape[1]:
            raise DataError(
                f"episodes.actions: has action {int(a.max())}; expected numbers from 0 to {own.shape[1] - 1}"
            )
        self.taken = own[np.arange(len(a)), a]

    def q_of(self, rows: Array, weight: Array | None = None) -> Callable[[Array], Array]:
        """Values of actions in states, from some of the steps."""
        s = self.steps
        x, a, r, after, ended = (
            c[rows] for c in (s.observations, s.actions, s.rewards, s.next_observations, s.terminated)
        )
        if self.table is not None:
            return values_of_table(x, a, r, after, ended, self.table, self.discount, weight).__getitem__
        return fitted_values(self.regressor, x, a, r, after, ended, self.policy, self.discount, self.rounds, self.seed)

    def value(self, q: Callable[[Array], Array], states: Array) -> Array:
        """Values of states."""
        return np.asarray((self.policy(states) * q(states)).sum(axis=1))

    def sampled(self, method: str, confidence: float) -> OfflineEvaluation:
        """By importance sampling."""
        steps, first = self.steps, self.steps.starts[:-1]
        fade = self.discount**steps.times
        rho = _products(self.taken / steps.probabilities, steps.starts)
        w = rho[steps.starts[1:] - 1]
        if method in ("ordinary", "weighted"):
            values = w * np.add.reduceat(fade * steps.rewards, first)
        elif method == "per_decision":
            values = np.add.reduceat(fade * rho * steps.rewards, first)
        else:
            values = self._robust(fade * rho, first)
        if method == "weighted":
            # With W the mean of the weights, the error is the mean of w (G - estimate) / W, to first order.
            mean = float(values.sum() / w.sum()) if w.any() else np.nan
            values = mean + (values - w * mean) / w.mean() if w.any() else np.full(len(w), np.nan)
        effective = float(w.sum() ** 2 / (w @ w)) if w.any() else 0.0
        if effective < _FEW:
            warnings.warn(
                f"evaluate_offline: the weights of {len(w)} episodes are worth {effective:.3g} of the policy's own; "
                "the interval is likely to be too short, since what would matter was seldom done",
                ConvergenceWarning,
                stacklevel=3,
            )
        return _interval(values, w, effective, method, confidence)

    def _robust(self, factor: Array, first: Array) -> Array:
        """Doubly robust: values of each part of the episodes come from the others."""
        s, n = self.steps, self.steps.n_episodes
        part = stream(self.seed, "folds").permutation(n) % min(_FOLDS, n)
        of_step = np.repeat(part, s.lengths)
        values = np.zeros(n)
        for k in range(int(part.max()) + 1):
            outside = of_step != k if part.max() else np.ones(len(s), dtype=bool)
            q, mine = self.q_of(np.flatnonzero(outside)), np.flatnonzero(of_step == k)
            own = q(s.observations[mine])[np.arange(len(mine)), s.actions[mine]]
            future = np.where(s.terminated[mine], 0.0, self.value(q, s.next_observations[mine]))
            missed = np.zeros(len(s))
            missed[mine] = factor[mine] * (s.rewards[mine] + self.discount * future - own)
            these = part == k
            values[these] = self.value(q, s.observations[first[these]]) + np.add.reduceat(missed, first)[these]
        return values

    def fitted(self, n_bootstrap: int, confidence: float) -> OfflineEvaluation:
        """By the values alone, with an interval from episodes drawn again."""
        s, n = self.steps, self.steps.n_episodes
        begin = s.observations[s.starts[:-1]]
        values = self.value(self.q_of(np.arange(len(s))), begin)
        rng, means = stream(self.seed, "bootstrap"), []
        for _ in range(n_bootstrap):
            drawn = np.bincount(rng.integers(n, size=n), minlength=n)
            if self.table is not None:
                rows = np.flatnonzero(np.repeat(drawn, s.lengths) > 0)
                q = self.q_of(rows, np.repeat(drawn, s.lengths)[rows].astype(float))
            else:
                q = self.q_of(np.repeat(np.arange(len(s)), np.repeat(drawn, s.lengths)))
            means.append(float(np.average(self.value(q, begin), weights=drawn)))
        around = (1 - confidence) / 2
        mean = float(values.mean())
        # The basic interval: errors of the draws around the estimate stand for its own around the truth.
        low, high = 2 * mean - np.quantile(means, [1 - around, around])
        return OfflineEvaluation(mean, float(low), float(high), values, np.ones(n), float(n), "fitted_q", confidence)


def _products(ratio: Array, starts: Array) -> Array:
    """Products of the ratios of an episode up to each step."""
    out = np.empty_like(ratio)
    for a, b in pairwise(starts):
        out[a:b] = np.cumprod(ratio[a:b])
    return out


def _interval(values: Array, w: Array, effective: float, method: str, confidence: float) -> OfflineEvaluation:
    n, mean = len(values), float(values.mean())
    around = np.inf
    if n > 1:
        around = central_quantile(confidence, n - 1) * float(values.std(ddof=1) / np.sqrt(n))
    return OfflineEvaluation(mean, mean - around, mean + around, values, w, effective, method, confidence)


def _checked(given: Any, rows: int) -> Array:
    p = np.asarray(given, dtype=np.float64)
    good = p.ndim == 2 and len(p) == rows and np.isfinite(p).all() and (p >= 0).all()
    if not good or not np.allclose(p.sum(axis=1), 1, atol=1e-9):
        raise DataError(f"policy: returned shape {p.shape}; expected probabilities ({rows}, A) that add up to 1")
    return p
