"""A perceptron in the space of a kernel as it learns: coefficients, scores, mistakes, bounds on the margin, votes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle import _native
from epicycle.data import Batch
from epicycle.kernels._gram import block_rows
from epicycle.kernels._kernel import Kernel


@dataclass(frozen=True)
class MarginBounds:
    """The largest margin there is lies between these; `lower` is 0 where nothing is known to separate."""

    lower: float
    upper: float


@dataclass
class KernelLearner:
    """One perceptron: coefficients, scores on the rows, |w|^2, and every mistake (row, share, time)."""

    sign: np.ndarray
    counts: np.ndarray
    scores: np.ndarray
    mercer: bool = True
    square: float = 0.0
    clean: bool = False
    rows: list[np.ndarray] = field(default_factory=list)
    shares: list[np.ndarray] = field(default_factory=list)
    times: list[np.ndarray] = field(default_factory=list)

    def show(self, K: np.ndarray, order: np.ndarray, share: np.ndarray | None, began: float) -> float:
        """One pass over the rows in this order, from time `began`; gives the weight of the mistakes."""
        at, self.square = _native.kernel.perceptron_pass(
            K, order, share, 0, self.sign, self.scores, self.counts, self.square
        )
        shares = np.ones(len(at)) if share is None else share[at]
        times = at.astype(np.float64) if share is None else np.cumsum(share)[at] - shares
        self.rows.append(order[at])
        self.shares.append(shares)
        self.times.append(began + times)
        self.clean = len(at) == 0
        return float(shares.sum())

    @property
    def margin_above(self) -> float:
        """No margin is larger."""
        total = float(self.counts.sum()) if self.mercer else 0.0
        return float(np.sqrt(max(self.square, 0.0))) / total if total > 0 else np.inf

    def sequence(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, shares and times of all mistakes, in order."""
        empty = np.empty(0)
        return (
            np.concatenate([*self.rows, empty.astype(np.int64)]),
            np.concatenate([*self.shares, empty]),
            np.concatenate([*self.times, empty]),
        )

    def compressed(self, support: np.ndarray, place: np.ndarray) -> dict[str, Any]:
        """State from which a stream goes on, of the rows `support`, which stand at `place` from now on."""
        rows, shares, times = self.sequence()
        state = {"sign": self.sign[support], "counts": self.counts[support], "square": self.square}
        return {**state, "rows": place[rows], "shares": shares, "times": times}

    def after(self, old: Mapping[str, Any]) -> KernelLearner:
        """The learner as it would be had it also learnt what `old` did before."""
        n, (rows, shares, times) = len(old["counts"]), self.sequence()
        return KernelLearner(
            np.append(old["sign"], self.sign),
            np.append(old["counts"], self.counts),
            np.empty(0),
            self.mercer,
            self.square,
            self.clean,
            [old["rows"], rows + n],
            [old["shares"], shares],
            [old["times"], times],
        )

    def settle(self, K: np.ndarray) -> None:
        """Scores and |w|^2 again from the coefficients, without the rounding of many steps."""
        w = self.counts * self.sign
        self.scores = K @ w
        self.square = float(w @ self.scores)
        self.clean = self.clean and bool((self.sign * self.scores > 0).all())

    def bounds(self, K: np.ndarray, passes: int, want: float = 1e-3) -> MarginBounds:
        """Bounds on the largest margin, closer by coordinate ascent on its dual from the coefficients at hand."""
        if not self.mercer:
            return MarginBounds(0.0, np.inf)
        a, scores, square = self.counts.copy(), self.scores.copy(), self.square
        rounding = 4 * np.finfo(np.float64).eps * len(K) * float(np.abs(np.diagonal(K)).max())
        lower, upper = 0.0, np.inf
        least = float((self.sign * scores).min())
        if least > 0:  # to the scale at which the least functional margin is one
            a, scores, square = a / least, scores / least, square / least**2
        for number in range(passes + 1):
            norm, total = float(np.sqrt(max(square, 0.0))), float(a.sum())
            if norm > 0:
                lower = max(lower, float((self.sign * scores).min()) / norm - rounding / norm * total)
            if total > 0:
                upper = min(upper, norm / total)
            if lower > 0 and upper - lower <= want * lower:
                break
            if number < passes:
                square = _native.kernel.margin_pass(K, self.sign, scores, a, square)
        return MarginBounds(max(lower, 0.0), max(upper, lower))


def averaged_coefficients(learner: KernelLearner, total: float) -> np.ndarray:
    """Coefficients of the mean over all rows shown: a mistake at time s counts from there on."""
    rows, shares, times = learner.sequence()
    mean = np.bincount(rows, weights=shares * (total - times), minlength=len(learner.counts))
    return np.asarray(mean * learner.sign / max(total, 1.0))


def survival_votes(learner: KernelLearner, place: np.ndarray, total: float) -> dict[str, Any]:
    rows, shares, times = learner.sequence()
    survived = np.diff(np.append(times, total))
    return {"row": place[rows], "step": shares * learner.sign[rows], "survived": survived, "total": total}


def saved_learners(learners: list[KernelLearner], done: int, seed: int) -> dict[str, Any]:
    state: dict[str, Any] = {"done": done, "seed": seed}
    for k, learner in enumerate(learners):
        rows, shares, times = learner.sequence()
        state |= {f"counts{k}": learner.counts.copy(), f"scores{k}": learner.scores.copy()}
        state |= {f"square{k}": learner.square, f"rows{k}": rows, f"shares{k}": shares, f"times{k}": times}
    return state


def restored_learner(sign: np.ndarray, state: Mapping[str, Any], k: int, *, mercer: bool) -> KernelLearner:
    parts = {name: np.array(state[f"{name}{k}"]) for name in ("counts", "scores", "rows", "shares", "times")}
    mistakes = ([parts["rows"]], [parts["shares"]], [parts["times"]])
    square = float(state[f"square{k}"])
    return KernelLearner(sign, parts["counts"], parts["scores"], mercer, square, False, *mistakes)


def vote_batch(batch: Batch, kernel: Kernel, B: Any, all_votes: list[dict[str, Any]], constant: float) -> np.ndarray:
    """The share of the votes for every row of a batch."""
    return cast_votes(kernel, kernel.prepare(batch.X, like=B), B, all_votes, constant)


def cast_votes(kernel: Kernel, A: Any, B: Any, all_votes: list[dict[str, Any]], constant: float) -> np.ndarray:
    """sum over functions of sign f(x), each with as many votes as rows it survived, over all rows shown."""
    step = block_rows(max(B.n_rows, *(len(votes["row"]) for votes in all_votes)))
    out = np.empty((A.n_rows, len(all_votes)))
    for start in range(0, A.n_rows, step):
        K = kernel.block(A.take(slice(start, min(start + step, A.n_rows))), B)
        K += constant
        for k, votes in enumerate(all_votes):
            values = np.cumsum(K[:, votes["row"]] * votes["step"], axis=1)
            out[start : start + step, k] = np.sign(values) @ votes["survived"] / max(votes["total"], 1.0)
    return out
