"""Solvers of the lasso and the elastic net on working sets: from columns in memory, or from second moments.

The loop is that of :mod:`epicycle.optim._working_set`, the mathematics that of :mod:`epicycle.linear.lasso._duality`.
A solver keeps its state from one penalty to the next, so that a path is warm-started.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from epicycle import _native
from epicycle.linear.lasso._design import WORK_PER_CALL, Columns, DenseColumns, Response, SparseColumns
from epicycle.linear.lasso._duality import smallest_alpha_of_zero
from epicycle.linear.lasso._gram import GramProblem, WorkingGram, minimise_on_gram
from epicycle.optim._losses import Squared
from epicycle.optim._penalties import ElasticNet
from epicycle.optim._working_set import Look, Outcome, Report, Sizes, minimise_by_working_sets
from epicycle.stats._moments import Moments

EPS = float(np.finfo(np.float64).eps)
#: Epochs over one working set before all columns are looked at again: more are spent on columns that will leave.
EPOCHS_PER_ROUND = 200
#: Columns of the first working set, and beyond the support of later ones; of sparse columns four times the support
#: where more than this share of the new ones came into use: with a small penalty there are many to find.
FIRST_WORKING_SET, GROWTH, SATURATION = 100, 200, 0.3
#: Once a round is to end at a gap of this share of |y|^2 / 2, Newton's method finishes the support exactly ...
FINISHING_GAP = 1e-4
#: ... if it has no more columns than this: one factorisation then costs less than the epochs that it saves. Along a
#: path, where every solution is only the start of the next, that is true of fewer columns.
MAX_FINISHED, MAX_FINISHED_ON_PATH = 1000, 200
#: Rounds after the gap holds in which columns that miss the conditions of optimality by more than this share of
#: |x_j| |y| are solved for again: the answer is then the minimum but for rounding, however the columns are stored.
SETTLING_ROUNDS, SETTLED, SETTLING_EPOCHS = 4, 1e-13, 60
#: Their Gram matrix may cost as much as so many looks at all columns, or so many multiply-adds.
SETTLING_LOOKS, SETTLING_WORK = 20, 2e7
#: D is strongly concave with constant 1 / smoothness, so the dual optimum is within sqrt(2 smoothness gap).
SMOOTHNESS = Squared.smoothness


class LassoSolver(ABC):
    """One response. `w` is the current point, `c` the correlations with its residual, exact where `slack` is zero.

    total : half the mean square of y, the objective at w = 0.
    rr : |y - Xw|^2.
    """

    unit, rounding = 1.0, 0.0
    penalty: ElasticNet

    def __init__(self, p: int, square: np.ndarray, xy: np.ndarray, yy: float, sizes: Sizes) -> None:
        self.p, self.yy, self.xy, self.sizes = p, max(yy, 0.0), xy, sizes
        self.square, self.norm = square, np.sqrt(square)
        self.w, self.c, self.slack = np.zeros_like(xy), xy.copy(), np.zeros(p)
        self.rr, self.total = self.yy, self.yy / 2
        self.finish_up_to = MAX_FINISHED
        self.score, self.alive = np.empty(p), np.empty(0, dtype=np.uint8)
        self.free = np.empty(0, dtype=np.intp)
        self._inverse: tuple[np.ndarray, np.ndarray] | None = None

    def prepare_for_path(self) -> None:
        """Expect many penalties, each solution the start of the next: supports grow little by little."""
        self.finish_up_to = MAX_FINISHED_ON_PATH
        self.sizes = replace(self.sizes, saturation=None)

    def start_at(self, w: np.ndarray) -> None:
        """Go on from w."""
        self.w[:] = w
        self.w[self.square == 0] = 0.0
        self.update()

    def alpha_of_zero(self, l1_ratio: float, factors: np.ndarray, positive: bool) -> float:
        """The smallest alpha at which every penalised coefficient is zero; leaves w there."""
        self.start_at(np.zeros_like(self.w))
        self.c = self.xy.copy()
        free = np.flatnonzero((factors == 0) & (self.square > 0))
        if len(free):
            self.fit_unpenalised(free)
            self.c = self.correlation(np.arange(self.p))
        c = np.where(self.square > 0, self._sizes(self.c), 0.0)
        return smallest_alpha_of_zero(c, l1_ratio, factors, positive)

    def _sizes(self, c: np.ndarray) -> np.ndarray:
        """The correlations that the penalty is compared with: one number for each column."""
        return c

    def minimise(self, penalty: ElasticNet, tol: float, max_rounds: int, report: Report | None = None) -> Outcome:
        """Minimise until the gap is at most tol * total."""
        self.penalty, self.alive = penalty, (self.square > 0).astype(np.uint8)
        if penalty.positive:
            self.w[(penalty.l1 > 0) & (self.w < 0)] = 0.0
        self.free = np.flatnonzero((penalty.l1 == 0) & (penalty.l2 == 0) & (self.square > 0))
        # The gap over a working set leaves unpenalised columns out of account: with them, the next rounds decide.
        self.inner_gap_counts = len(self.free) == 0
        outcome = minimise_by_working_sets(self, self.sizes, tol=tol, max_rounds=max_rounds, report=report)
        return self._settled(outcome) if outcome.reason == "converged" else outcome

    def _settled(self, outcome: Outcome) -> Outcome:
        """The same at the exact minimum, where the columns that decide are few enough to be solved for."""
        lower, limit = outcome.objective - outcome.gap, SETTLED * self.norm * float(np.sqrt(self.yy))
        for _ in range(SETTLING_ROUNDS):
            missed = (self._excess() > limit) & (self.alive > 0)
            columns = np.flatnonzero(missed | (self._sizes(self.w) != 0))
            if not missed.any() or not self._can_settle(len(columns)):
                break
            self._settle(columns, 16 * EPS * self.total)
            look = self.look()
            outcome = replace(
                outcome, x=look.point.copy(), objective=look.objective, gap=max(look.objective - lower, 0.0)
            )
        return outcome

    def _excess(self) -> np.ndarray:
        """By how much every column misses the conditions of optimality, after a look."""
        size = np.maximum(self.c, 0.0) if self.penalty.positive else np.abs(self.c)
        used = self.c - self.penalty.l1 * np.sign(self.w) - self.penalty.l2 * self.w
        return np.asarray(np.where(self.w != 0, np.abs(used), size - self.penalty.l1))

    def _can_settle(self, count: int) -> bool:
        """Whether so many columns may be solved for."""
        return count <= self.finish_up_to

    def _settle(self, columns: np.ndarray, target: float) -> None:
        """Minimise over a few columns, to the last digit, from a Gram matrix of their own."""
        G, q = np.ascontiguousarray(self.gram(columns)), np.ascontiguousarray(self.correlation(columns))
        w, part = self.w[columns], self.penalty.on(columns)
        problem = GramProblem(G, np.arange(len(columns)), self.xy[columns], self.yy, part, w, q)
        minimise_on_gram(problem, target, max_epochs=SETTLING_EPOCHS, finish=True)
        self.w[columns] = w
        self.update()

    def look(self) -> Look:
        """The objective, the dual value and the columns that are left at the present w."""
        if len(self.free):
            self.fit_unpenalised(self.free)
        self.refresh()
        penalty = _native.linear.Penalty(self.penalty.l1, self.penalty.l2, self.penalty.positive)
        objective, dual, scale = _native.linear.lasso_dual_point(
            self.c, self.slack, self.w, penalty, self.alive, self.rr
        )
        gap = max(objective - dual, 0.0)
        radius = float(np.sqrt(2 * SMOOTHNESS * gap))
        left = _native.linear.lasso_screen(
            self.c, self.slack, self.w, self.norm, penalty, scale, radius, self.alive, self.score
        )
        return Look(self.w, objective, gap, dual, self.total, self.score, left, int(np.count_nonzero(self.w)))

    def fit_unpenalised(self, free: np.ndarray) -> None:
        """The exact least-squares step in the unpenalised columns: afterwards they are orthogonal to the residual."""
        if self._inverse is None or not np.array_equal(self._inverse[0], free):
            self._inverse = free, np.linalg.pinv(self.gram(free), hermitian=True)
        self.w[free] += self._inverse[1] @ self.correlation(free)
        self.update()

    def finishes(self, target: float) -> bool:
        """Whether a round that ends at this gap ends with Newton's method on the support."""
        return target <= FINISHING_GAP * self.total and int(np.count_nonzero(self.w)) <= self.finish_up_to

    @abstractmethod
    def refresh(self) -> None:
        """Bring c and slack up to date where they may matter; always on the support."""

    @abstractmethod
    def minimise_over(self, columns: np.ndarray, target: float) -> None:
        """Lower the objective over these columns until their duality gap is at most `target`."""

    @abstractmethod
    def update(self) -> None:
        """Compute residual and correlations from w."""

    @abstractmethod
    def gram(self, columns: np.ndarray) -> np.ndarray:
        """<x_i, x_j> of some columns."""

    @abstractmethod
    def correlation(self, columns: np.ndarray) -> np.ndarray:
        """<x_j, r> of some columns."""


class ColumnSolver(LassoSolver):
    """The columns are in memory: residuals are exact, Gram matrices only ever those of working sets.

    A correlation that was computed for an earlier residual r' is kept with slack |x_j| times the length of the way from
    r' to r, and computed again only where that reaches the bound.
    """

    def __init__(self, design: Columns, response: Response) -> None:
        # Columns of a dense array enter a Gram matrix, which is dear; a sparse one is quicker to walk through.
        sizes = Sizes(FIRST_WORKING_SET, GROWTH, SATURATION if isinstance(design, SparseColumns) else None)
        super().__init__(design.p, design.square, response.xy, response.yy, sizes)
        self.design, self.y = design, response.y
        self.r = response.y.copy()
        self._way, self._seen = 0.0, np.zeros(design.p)
        self._gram_of_set: WorkingGram | None = None
        if isinstance(design, DenseColumns):
            # Copies stay below the promise of half the input; small ones are not counted.
            self._gram_of_set = WorkingGram(design, max(64e6, 0.35 * design.X.nbytes))

    def update(self) -> None:
        before = self.r
        self.r = self.y.copy()
        support = np.flatnonzero(self.w)
        if len(support):
            self.design.subtract(support, self.w[support], self.r)
        u = self.design.weighted(self.r)
        self.rr = float(u @ self.r)
        difference = self.r - before
        self._way += float(np.sqrt(self.design.weighted(difference) @ difference))

    def refresh(self) -> None:
        np.subtract(self._way, self._seen, out=self.slack)
        self.slack *= self.norm
        size = self.c if self.penalty.positive else np.abs(self.c)
        need = (size + self.slack > self.penalty.l1) | (self.w != 0)
        need &= (self._seen < self._way) & (self.alive > 0)
        columns = np.flatnonzero(need)
        if len(columns) == 0:
            return
        u = self.design.weighted(self.r)
        self.design.correlations(u, None if len(columns) == self.p else columns, self.c)
        self._seen[columns] = self._way
        self.slack[columns] = 0.0

    def minimise_over(self, columns: np.ndarray, target: float) -> None:
        w = self.w[columns]
        part = self.penalty.on(columns)
        gram = self._gram_of_set
        if gram is not None and gram.fits(len(columns)):
            gram.hold(columns)
            q = self._correlate_held(gram)
            problem = GramProblem(gram.gram, gram.slot[columns], self.xy[gram.columns], self.yy, part, w, q)
            minimise_on_gram(problem, target, max_epochs=EPOCHS_PER_ROUND, finish=self.finishes(target))
            self.w[columns] = w
        else:
            self._sweep(columns, part, w, target)
            self.w[columns] = w
            self.update()
            support = np.flatnonzero(self.w)
            if len(support) and self.finishes(target):
                self._settle(support, target)
            return
        self.update()

    def _can_settle(self, count: int) -> bool:
        looks, work = SETTLING_LOOKS * self.p, SETTLING_WORK / self.design.cost
        return super()._can_settle(count) and count**2 <= max(looks, work)

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
        weights = _native.linear.Penalty(penalty.l1, penalty.l2, penalty.positive)
        r = self.r.copy()
        if isinstance(design, SparseColumns):
            before = w.copy()
            epochs = 0
            while epochs < EPOCHS_PER_ROUND:
                budget = _native.linear.Budget(rounds=EPOCHS_PER_ROUND - epochs, target=target, work=WORK_PER_CALL)
                done, gap, _ = _native.linear.csc_lasso_descend(
                    design.X, design.v, working_set, mean, square, weights, w, r, budget
                )
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
            budget = _native.linear.Budget(rounds=EPOCHS_PER_ROUND - epochs, target=target, work=WORK_PER_CALL)
            done, gap, _ = _native.linear.lasso_descend(X, design.v, columns, mean, square, weights, w, u, budget)
            epochs += done
            if gap <= target or done == 0:
                return

    def gram(self, columns: np.ndarray) -> np.ndarray:
        return self.design.gram(columns)

    def correlation(self, columns: np.ndarray) -> np.ndarray:
        out = np.empty(self.p)
        self.design.correlations(self.design.weighted(self.r), columns, out)
        return np.asarray(out[columns])


class MomentSolver(LassoSolver):
    """Only the second moments are known, G = X'VX and X'Vy: data from files or a cluster, or few columns.

    Correlations xy - Gw carry the rounding of G; the slack bounds it, so that the gap remains a certificate.
    """

    def __init__(self, G: np.ndarray, xy: np.ndarray, yy: float) -> None:
        p = len(G)
        # All of G is there: a working set is all columns that are left.
        super().__init__(p, np.diagonal(G).copy(), xy, yy, Sizes(p, p))
        self.G = G

    def update(self) -> None:
        self.c = self.xy - self.G @ self.w
        self.rr = max(self.yy - float(self.w @ (self.xy + self.c)), 0.0)

    def refresh(self) -> None:
        length = float(self.norm @ np.abs(self.w)) + float(np.sqrt(self.yy))
        self.slack = np.where(self.w == 0, 8 * EPS * length * self.norm, 0.0)

    def minimise_over(self, columns: np.ndarray, target: float) -> None:
        w, q = self.w[columns], self.c.copy()
        part = self.penalty.on(columns)
        problem = GramProblem(self.G, columns, self.xy, self.yy, part, w, q)
        minimise_on_gram(problem, target, max_epochs=EPOCHS_PER_ROUND, finish=self.finishes(target))
        self.w[columns] = w
        self.update()

    def gram(self, columns: np.ndarray) -> np.ndarray:
        return np.asarray(self.G[np.ix_(columns, columns)])

    def correlation(self, columns: np.ndarray) -> np.ndarray:
        return np.asarray(self.c[columns])


def moment_solvers(moments: Moments, *, centre: bool) -> list[MomentSolver]:
    """A solver for each target; they share G, in which columns that are constant but for rounding are zero."""
    p = moments.p
    S = (moments.about_mean() if centre else moments.about_zero()) / moments.weight
    square, spread = np.diagonal(S)[:p], np.diagonal(moments.M)[:p] / moments.weight
    flat = (square <= 32 * EPS * spread) | (square <= (8 * EPS * moments.mean[:p]) ** 2)
    S[:p][flat] = 0.0
    S[:, :p][:, flat] = 0.0
    G = np.ascontiguousarray(S[:p, :p])
    return [MomentSolver(G, np.ascontiguousarray(S[:p, t]), float(S[t, t])) for t in range(p, len(S))]
