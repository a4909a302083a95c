"""Working sets for the lasso: solve over a few columns, look at all, screen, choose again; until the gap is small.

Each round reads the correlations that may have come near their bound, takes the duality gap over all columns, screens
by the gap-safe sphere, and minimises over a working set: the support and the columns whose dual constraints are nearest
to being active (Massias, Gramfort and Salmon 2018). A solver keeps its state from one penalty to the next, so that a
path is warm-started.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from epicycle import _native
from epicycle.linear.lasso._design import WORK_PER_CALL, Columns, DenseColumns, Response, SparseColumns
from epicycle.linear.lasso._duality import smallest_alpha_of_zero
from epicycle.linear.lasso._gram import GramProblem, WorkingGram, minimise_on_gram
from epicycle.optim._penalties import ElasticNet
from epicycle.stats._moments import Moments

__all__ = ["MAX_FINISHED_ON_PATH", "ColumnSolver", "LassoSolver", "MomentSolver", "Outcome"]

EPS = float(np.finfo(np.float64).eps)
#: Epochs over one working set before all columns are looked at again.
EPOCHS_PER_ROUND = 200
FIRST_WORKING_SET, GROWTH = 100, 200
#: Gap over the working set that ends a round, relative to that over all columns; less where rounds gain too little.
INNER_ACCURACY = 0.03
#: Once a round is to end at a gap of this share of |y|^2 / 2, a support of at most so many columns is finished exactly.
FINE, MAX_FINISHED, MAX_FINISHED_ON_PATH = 1e-4, 1000, 200

#: (round, w, objective, gap, columns in the last working set, columns not screened) -> whether to stop.
Report = Callable[[int, np.ndarray, float, float, int, int], bool]


@dataclass(frozen=True)
class Outcome:
    """Where a minimisation ended: the gap is that between `objective` and the best dual value found."""

    w: np.ndarray
    objective: float
    gap: float
    n_rounds: int
    reason: str


class LassoSolver(ABC):
    """One response. `w` is the current point, `c` the correlations with its residual, exact where `slack` is zero."""

    def __init__(self, p: int, square: np.ndarray, xy: np.ndarray, yy: float) -> None:
        self.p, self.yy, self.xy = p, max(yy, 0.0), xy
        self.square, self.norm = square, np.sqrt(square)
        self.w, self.c, self.slack = np.zeros(p), xy.copy(), np.zeros(p)
        self.rr = self.yy
        self.finish_up_to = MAX_FINISHED
        self._inverse: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def total(self) -> float:
        """Half the mean square of y: the objective at w = 0."""
        return self.yy / 2

    def start_at(self, w: np.ndarray) -> None:
        """Go on from w."""
        self.w[:] = np.where(self.square > 0, w, 0.0)
        self._look_again()

    def alpha_of_zero(self, l1_ratio: float, factors: np.ndarray, positive: bool) -> float:
        """The smallest alpha at which every penalised coefficient is zero; leaves w there."""
        self.start_at(np.zeros(self.p))
        self.c = self.xy.copy()
        free = np.flatnonzero((factors == 0) & (self.square > 0))
        if len(free):
            self._free(free)
            self.c = self._correlation(np.arange(self.p))
        return smallest_alpha_of_zero(np.where(self.square > 0, self.c, 0.0), l1_ratio, factors, positive)

    def minimise(self, penalty: ElasticNet, tol: float, max_rounds: int, report: Report | None = None) -> Outcome:
        """Minimise until the gap is at most tol * total."""
        alive = (self.square > 0).astype(np.uint8)
        self.w[(penalty.l1 > 0) & penalty.positive & (self.w < 0)] = 0.0
        free = penalty.unpenalised[alive[penalty.unpenalised] > 0]
        score = np.empty(self.p)
        lower, gap, objective, last = -np.inf, np.inf, np.inf, np.inf
        size, worked_on, stalled, accuracy = 0, 0, 0, INNER_ACCURACY
        for done in range(max_rounds + 1):
            if len(free):
                self._free(free)
            self._refresh(penalty, alive)
            objective, dual, scale = _native.linear.lasso_dual_point(
                self.c, self.slack, self.w, penalty.l1, penalty.l2, penalty.positive, alive, self.rr
            )
            lower = max(lower, dual)
            gap = max(objective - lower, 0.0)
            left = _native.linear.lasso_screen(
                self.c, self.slack, self.w, self.norm, penalty.l1, penalty.l2, penalty.positive, scale,
                float(np.sqrt(2 * max(objective - dual, 0.0))), alive, score,
            )  # fmt: skip
            stop = report is not None and report(done, self.w, objective, gap, worked_on, left)
            stalled = stalled + 1 if gap >= last * (1 - 1e-3) else 0
            reason = (
                "converged" if gap <= tol * self.total
                else "stopped" if stop
                else "max_iter" if done == max_rounds
                else "stalled" if stalled >= 20
                else ""
            )  # fmt: skip
            if reason:
                break
            slow = gap > 0.5 * last
            accuracy = max(accuracy * 0.1, 1e-8) if slow else INNER_ACCURACY
            size = self._next_size(size, left, slow=slow)
            last = min(gap, last)
            working_set = _lowest(score, size, left)
            worked_on = len(working_set)
            # The gap over a working set leaves unpenalised columns out of account: with them, the next rounds decide.
            needed = 0.0 if len(free) else 0.3 * tol * self.total
            self._minimise_over(working_set, penalty, max(accuracy * gap, needed))
        return Outcome(self.w.copy(), objective, gap, done, reason)

    def _next_size(self, size: int, left: int, *, slow: bool) -> int:
        support = int(np.count_nonzero(self.w))
        size = max(support + min(max(support, FIRST_WORKING_SET), GROWTH), 2 * size if slow and size else 0)
        return min(size, left)

    def _finishes(self, target: float) -> bool:
        return target <= FINE * self.total and int(np.count_nonzero(self.w)) <= self.finish_up_to

    def _free(self, free: np.ndarray) -> None:
        """The exact least-squares step in the unpenalised columns: afterwards they are orthogonal to the residual."""
        if self._inverse is None or not np.array_equal(self._inverse[0], free):
            self._inverse = free, np.linalg.pinv(self._gram(free), hermitian=True)
        step = self._inverse[1] @ self._correlation(free)
        self.w[free] += step
        self._moved(free, step)

    @abstractmethod
    def _refresh(self, penalty: ElasticNet, alive: np.ndarray) -> None:
        """Bring c and slack up to date where they may matter; always on the support."""

    @abstractmethod
    def _minimise_over(self, working_set: np.ndarray, penalty: ElasticNet, target: float) -> None:
        """Lower the objective over these columns until their duality gap is at most `target`."""

    @abstractmethod
    def _look_again(self) -> None:
        """Compute residual and correlations from w."""

    @abstractmethod
    def _moved(self, columns: np.ndarray, step: np.ndarray) -> None:
        """Follow a step in w."""

    @abstractmethod
    def _gram(self, columns: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _correlation(self, columns: np.ndarray) -> np.ndarray: ...


def _lowest(score: np.ndarray, size: int, left: int) -> np.ndarray:
    """Indices of the `size` smallest finite scores, in order of index."""
    present = np.flatnonzero(score < np.inf)
    if size >= left:
        return present
    return np.sort(present[np.argpartition(score[present], size)[:size]])


class ColumnSolver(LassoSolver):
    """The columns are in memory: residuals are exact, Gram matrices only ever those of working sets.

    A correlation that was computed for an earlier residual r' is kept with slack |x_j| times the length of the way from
    r' to r, and computed again only where that reaches the bound.
    """

    def __init__(self, design: Columns, response: Response) -> None:
        super().__init__(design.p, design.square, response.xy, response.yy)
        self.design, self.y = design, response.y
        self.r = response.y.copy()
        self._way, self._seen = 0.0, np.zeros(design.p)
        self._gram_of_set: WorkingGram | None = None
        if isinstance(design, DenseColumns):
            # Copies stay below the promise of half the input; small ones are not counted.
            self._gram_of_set = WorkingGram(design, max(64e6, 0.35 * design.X.nbytes))

    def _look_again(self) -> None:
        before = self.r
        self.r = self.y.copy()
        support = np.flatnonzero(self.w)
        if len(support):
            self.design.subtract(support, self.w[support], self.r)
        u = self.design.weighted(self.r)
        self.rr = float(u @ self.r)
        difference = self.r - before
        self._way += float(np.sqrt(self.design.weighted(difference) @ difference))

    def _refresh(self, penalty: ElasticNet, alive: np.ndarray) -> None:
        np.subtract(self._way, self._seen, out=self.slack)
        self.slack *= self.norm
        size = self.c if penalty.positive else np.abs(self.c)
        need = (size + self.slack > penalty.l1) | (self.w != 0)
        need &= (self._seen < self._way) & (alive > 0)
        columns = np.flatnonzero(need)
        if len(columns) == 0:
            return
        u = self.design.weighted(self.r)
        self.design.correlations(u, None if len(columns) == self.p else columns, self.c)
        self._seen[columns] = self._way
        self.slack[columns] = 0.0

    def _minimise_over(self, working_set: np.ndarray, penalty: ElasticNet, target: float) -> None:
        w = self.w[working_set]
        part = penalty.on(working_set)
        gram = self._gram_of_set
        if gram is not None and gram.fits(len(working_set)):
            gram.hold(working_set)
            q = self._correlate_held(gram)
            problem = GramProblem(gram.gram, gram.slot[working_set], self.xy[gram.columns], self.yy, part, w, q)
            minimise_on_gram(problem, target, max_epochs=EPOCHS_PER_ROUND, finish=self._finishes(target))
            self.w[working_set] = w
        else:
            self._sweep(working_set, part, w, target)
            self.w[working_set] = w
            if self._finishes(target):
                self._look_again()
                self._finish_support(penalty, target)
        self._look_again()

    def _correlate_held(self, gram: WorkingGram) -> np.ndarray:
        """Correlations of all columns that the Gram matrix holds: read from it where they are out of date."""
        support = np.flatnonzero(self.w)
        q = self.xy[gram.columns]
        _native.linear.gram_lasso_move(gram.gram, gram.slot[support], self.w[support], q)
        fresh = self._seen[gram.columns] >= self._way
        q[fresh] = self.c[gram.columns[fresh]]
        return q

    def _sweep(self, working_set: np.ndarray, penalty: ElasticNet, w: np.ndarray, target: float) -> None:
        """Coordinate descent with residuals instead of a Gram matrix."""
        design = self.design
        mean, square = design.mean[working_set], design.square[working_set]
        r = self.r.copy()
        if isinstance(design, SparseColumns):
            before = w.copy()
            epochs = 0
            while epochs < EPOCHS_PER_ROUND:
                done, gap, _ = _native.linear.csc_lasso_descend(
                    *design.parts, design.v, working_set, mean, square, penalty.l1, penalty.l2, penalty.positive,
                    w, r, max_epochs=EPOCHS_PER_ROUND - epochs, target=target, max_work=WORK_PER_CALL,
                )  # fmt: skip
                epochs += done
                if gap <= target or done == 0 or epochs >= EPOCHS_PER_ROUND:
                    return
                design.subtract(working_set, w - before, r)
                before = w.copy()
            return
        X, columns = design.X, working_set
        if isinstance(design, DenseColumns) and not design.column_major:
            X, columns = np.asfortranarray(design.X[:, working_set]), np.arange(len(working_set))
        u, epochs = design.weighted(r), 0
        while epochs < EPOCHS_PER_ROUND:
            done, gap, _ = _native.linear.lasso_descend(
                X, design.v, columns, mean, square, penalty.l1, penalty.l2, penalty.positive, w, u,
                max_epochs=EPOCHS_PER_ROUND - epochs, target=target, max_work=WORK_PER_CALL,
            )  # fmt: skip
            epochs += done
            if gap <= target or done == 0:
                return

    def _finish_support(self, penalty: ElasticNet, target: float) -> None:
        """Newton's method on the support, where it is small enough for a Gram matrix of its own."""
        S = np.flatnonzero(self.w)
        if not 0 < len(S) <= self.finish_up_to:
            return
        G = np.ascontiguousarray(self.design.gram(S))
        part = penalty.on(S)
        w = self.w[S]
        problem = GramProblem(
            G, np.arange(len(S)), self.xy[S], self.yy, part, w, np.ascontiguousarray(self._correlation(S))
        )
        minimise_on_gram(problem, target, max_epochs=20, finish=True)
        self.w[S] = w

    def _moved(self, columns: np.ndarray, step: np.ndarray) -> None:
        self._look_again()

    def _gram(self, columns: np.ndarray) -> np.ndarray:
        return self.design.gram(columns)

    def _correlation(self, columns: np.ndarray) -> np.ndarray:
        out = np.empty(self.p)
        self.design.correlations(self.design.weighted(self.r), columns, out)
        return out[columns]


class MomentSolver(LassoSolver):
    """Only the second moments are known, G = X'VX and X'Vy: data from files or a cluster, or few columns.

    Correlations xy - Gw carry the rounding of G; the slack bounds it, so that the gap remains a certificate.
    """

    def __init__(self, moments: Moments, target: int, *, centre: bool) -> None:
        p = moments.p
        S = (moments.about_mean() if centre else moments.about_zero()) / moments.weight
        square = np.diagonal(S)[:p].copy()
        spread = np.diagonal(moments.M)[:p] / moments.weight
        flat = (square <= 32 * EPS * spread) | (square <= (8 * EPS * moments.mean[:p]) ** 2)
        square[flat] = 0.0
        super().__init__(p, square, np.where(flat, 0.0, S[:p, p + target]), float(S[p + target, p + target]))
        self.G = np.ascontiguousarray(S[:p, :p])
        self.G[flat], self.G[:, flat] = 0.0, 0.0

    def _look_again(self) -> None:
        self.c = self.xy - self.G @ self.w
        self.rr = max(self.yy - float(self.w @ (self.xy + self.c)), 0.0)

    def _refresh(self, penalty: ElasticNet, alive: np.ndarray) -> None:
        length = float(self.norm @ np.abs(self.w)) + float(np.sqrt(self.yy))
        self.slack = np.where(self.w == 0, 8 * EPS * length * self.norm, 0.0)

    def _next_size(self, size: int, left: int, *, slow: bool) -> int:
        return left

    def _minimise_over(self, working_set: np.ndarray, penalty: ElasticNet, target: float) -> None:
        w, q = self.w[working_set], self.c.copy()
        part = penalty.on(working_set)
        problem = GramProblem(self.G, working_set, self.xy, self.yy, part, w, q)
        minimise_on_gram(problem, target, max_epochs=EPOCHS_PER_ROUND, finish=self._finishes(target))
        self.w[working_set] = w
        self._look_again()

    def _moved(self, columns: np.ndarray, step: np.ndarray) -> None:
        self._look_again()

    def _gram(self, columns: np.ndarray) -> np.ndarray:
        return self.G[np.ix_(columns, columns)]

    def _correlation(self, columns: np.ndarray) -> np.ndarray:
        return self.c[columns]
