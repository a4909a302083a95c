"""Forward stagewise regression (epsilon-boosting). The moves are in :mod:`epicycle.linear.lars._stagewise_moves`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Choice, Domain, NoneOr, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import Data
from epicycle.linear.lars._angles import lars_problem
from epicycle.linear.lars._stagewise_moves import StagewiseRun
from epicycle.linear.lasso._base import SparseLinearModel
from epicycle.linear.lasso._constrained import minimise_within
from epicycle.linear.lasso._path_plot import Against, draw_path
from epicycle.linear.lasso._problem import LassoProblem
from epicycle.optim import Solution
from epicycle.stats._class_scores import linear_predictor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Points that a drawn path has at most.
POINTS = 400


class Stagewise(SparseLinearModel):
    r"""Forward stagewise regression: boosting with single features and very small steps.

    Every move looks for the feature most correlated with the residuals, :math:`j = \arg\max |x_j'r|`, and changes its
    coefficient a little,

    .. math:: w_j \leftarrow w_j + \varepsilon\, \mathrm{sign}(x_j'r), \qquad r \leftarrow r - \varepsilon\,
       \mathrm{sign}(x_j'r)\, x_j .

    As :math:`\varepsilon` goes to zero the coefficients follow the path of the lasso for as long as none of them turns
    back. Ending early regularises.

    Parameters
    ----------
    step : float, optional
        The size :math:`\varepsilon` of a move; by default a thousandth of the least-squares coefficient of the first
        feature alone. With ``increment="correlation"`` a share between 0 and 1, by default 0.01.
    increment : {"sign", "correlation"}, default="sign"
        Moves of equal size, or of :math:`\varepsilon\, x_j'r / |x_j|^2`: that share of the way to the best coefficient.
    alpha : float, default=0.0
        The largest correlation with the residuals, :math:`|x_j'r| / n`, at which to end; the same scale as alpha of
        :class:`Lasso`. At 0 it ends where a move of this size gains nothing.
    max_iter : int, default=100000
        Moves at most.
    tol : float, default=1e-3
        Tolerance of the certificate.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    n_moves_ : int
        Moves made.
    step_ : float
        The step of the fit.
    alpha_ : float
        The largest correlation with the residuals at the end.
    bound_ : float
        The L1 norm of the coefficients.
    active_ : ndarray
        Features that were moved, in the order of their first moves.
    moves_ : ndarray of shape (n_moves,)
        Every move: the number of the feature, from 1, negative where its coefficient fell.
    move_sizes_ : ndarray of shape (n_moves,)
        By how much, where moves differ in size; empty otherwise.
    certificate_ : Certificate
        Duality gap: the mean square of the residuals above a lower bound of what any coefficients of the same L1 norm
        reach, the lasso's, relative to the mean square of y.
    history_ : History
        A row for every leg, the moves up to one of a feature in a direction in which it has not moved before: that
        feature (`entered`, or `turned` where it has moved the other way), `alpha`, the L1 `norm`, the number of `moves`
        so far and the objective, half the mean square of the residuals.
    n_iter_ : int
        Legs.

    See Also
    --------
    Lars : the limit of small steps, computed exactly.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import Stagewise
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Stagewise(step=1.0, alpha=0.5).fit(X, y)
    >>> model.active_
    array([2, 8, 3, 6])
    >>> model.n_moves_
    1075
    >>> model.certificate_.holds
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "step": NoneOr(Real(minimum=0, inclusive=False)),
        "increment": Choice("sign", "correlation"),
        "alpha": Real(minimum=0),
    }

    @stores_arguments(max_iter=100_000, fit_intercept=True, tol=1e-3, n_jobs=None, verbose=0)
    def __init__(
        self,
        step: float | None = None,
        *,
        increment: Literal["sign", "correlation"] = "sign",
        alpha: float = 0.0,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y.

        Parameters
        ----------
        %(read_once)s
        """
        proportional = self.increment == "correlation"
        if proportional and self.step is not None and self.step > 1:
            raise ParameterError(f"step={self.step:g}; with increment='correlation' expected a share of at most 1")
        data = self._fit_data(X, y, sample_weight, target="numeric", check_finite=False)
        problem = lars_problem(data, centre=self.fit_intercept, n_jobs=self.n_jobs)
        run = StagewiseRun(problem.solvers[0], step=self.step, proportional=proportional, alpha=self.alpha)
        _resume(run, self._resume_state())
        monitor = self._monitor(None, lambda x: self._attributes(data, problem, x[None]))
        earlier = self._run.resume_history
        legs, finished, reason = 0 if earlier is None else earlier.n_iter, False, "converged"
        while not finished and run.moves.n < self.max_iter:
            leg = run.leg(self.max_iter - run.moves.n)
            finished, legs = leg.finished, legs + 1
            stop = monitor(
                legs,
                run.w,
                objective=run.half_square,
                state=lambda: _state(run),
                alpha=run.largest,
                norm=float(np.abs(run.w).sum()),
                moves=run.moves.n,
                entered=leg.feature if leg.new else np.nan,
                turned=leg.feature if leg.feature >= 0 and not leg.new else np.nan,
            )
            if stop:
                reason = "stopped"
                break
        self._keep(data, problem, run)
        history = monitor.history()
        certificate = _certify(run, self.tol)
        self._conclude(
            Solution(
                run.w,
                run.half_square,
                history,
                certificate,
                max(1, history.n_iter),
                reason,
                message=""
                if reason == "stopped"
                else "steps are too large, or coefficients turn back on the way, for "
                "the fit to be near the lasso; lower step",
                state=_state(run),
            )
        )
        return self

    def _keep(self, data: Data, problem: LassoProblem, run: StagewiseRun) -> None:
        for name, value in self._attributes(data, problem, run.w[None]).items():
            setattr(self, name, value)
        self.moves_, self.move_sizes_ = run.moves.joined()
        self.n_moves_, self.step_ = len(self.moves_), run.step
        run.solver.start_at(run.w)
        c = np.where(run.solver.square > 0, run.solver.correlation(np.arange(run.solver.p)), 0.0)
        self.alpha_, self.bound_ = float(np.abs(c).max(initial=0.0)), float(np.abs(run.w).sum())
        features = np.abs(self.moves_).astype(np.int64) - 1
        _, first = np.unique(features, return_index=True)
        self.active_ = features[np.sort(first)]
        self._mean_ = np.append(problem.x_mean, problem.y_mean[0]) if self.fit_intercept else np.empty(0)

    def at(self, n_moves: int) -> tuple[np.ndarray, float]:
        """Coefficients and intercept after so many moves.

        Parameters
        ----------
        n_moves : int
            Between 0 and `n_moves_`.

        Returns
        -------
        coef : ndarray of shape (n_features,)
        intercept : float
        """
        self._check_fitted()
        if not 0 <= n_moves <= self.n_moves_:
            raise ParameterError(f"n_moves={n_moves!r}; expected an integer between 0 and {self.n_moves_}")
        W, intercepts = self._stages(np.array([n_moves]))
        return W[0], float(intercepts[0])

    def staged_predict(self, X: Any, n_stages: int = 100) -> Iterator[np.ndarray]:
        """Predictions at evenly spaced points of the way, the last of them at its end.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        n_stages : int, default=100
            How many.

        Yields
        ------
        ndarray of shape (n_samples,)
        """
        data = self._predict_data(X)
        for n_moves in np.linspace(0, self.n_moves_, n_stages + 1).astype(np.int64)[1:]:
            coef, intercept = self.at(int(n_moves))
            yield linear_predictor(data, coef[None], np.array([intercept]), self.n_jobs)[:, 0]

    def _stages(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients, one row each, and intercepts after the given numbers of moves, which increase."""
        features = np.abs(self.moves_).astype(np.int64) - 1
        sizes = self.move_sizes_ if len(self.move_sizes_) else np.sign(self.moves_) * self.step_
        W, w, done = np.empty((len(points), self.n_features_in_)), np.zeros(self.n_features_in_), 0
        for i, point in enumerate(points):
            w = w + np.bincount(features[done:point], sizes[done:point], self.n_features_in_)
            W[i], done = w, point
        x_mean, y_mean = (self._mean_[:-1], self._mean_[-1]) if self.fit_intercept else (np.zeros(W.shape[1]), 0.0)
        return W, y_mean - W @ x_mean

    def plot(self, against: Against = "norm", *, labels: int = 10, ax: Axes | None = None) -> Axes:
        """Draw the coefficients along the way.

        Parameters
        ----------
        against : {"norm", "fraction"}
            The horizontal axis: the L1 norm of the coefficients, or that norm as a share of its largest value.
        labels : int, default=10
            How many of the largest coefficients are named at the end.
        """
        self._check_fitted()
        if against not in ("norm", "fraction"):
            raise ParameterError(f"against={against!r}; expected 'norm' or 'fraction'")
        points = np.unique(np.linspace(0, self.n_moves_, POINTS).astype(np.int64))
        W, _ = self._stages(points)
        return draw_path(np.empty(0), W.T, against, names=self._names(), labels=labels, ax=ax)


def _state(run: StagewiseRun) -> dict[str, Any]:
    codes, sizes = run.moves.joined()
    return {
        "coef": run.w.copy(),
        "q": run.q.copy(),
        "ways": run.ways.copy(),
        "codes": codes,
        "sizes": sizes,
        "half_square": run.half_square,
        "step": run.step,
    }


def _resume(run: StagewiseRun, state: Mapping[str, Any] | None) -> None:
    if state is None:
        return
    run.w[:], run.q[:], run.ways[:] = state["coef"], state["q"], state["ways"]
    run.moves.codes.append(np.asarray(state["codes"], dtype=np.int32))
    run.moves.sizes.append(np.asarray(state["sizes"], dtype=np.float64))
    run.half_square, run.step = float(state["half_square"]), float(state["step"])


def _certify(run: StagewiseRun, tol: float) -> Certificate:
    """The loss above what the lasso of the same L1 norm proves to be the least."""
    solver = run.solver
    solver.start_at(run.w)
    loss = solver.rr / 2
    bound = float(np.abs(run.w).sum())
    best = minimise_within(solver, bound, np.ones(solver.p), False, min(1e-2 * tol, 1e-6), 100)
    excess = max(loss - max(best.objective - best.gap, 0.0), 0.0)
    relative = 0.0 if excess == 0 else excess / solver.total if solver.total > 0 else np.inf
    meaning = (
        f"no coefficients of the same L1 norm have a mean square of residuals smaller by more than {relative:.1e} of "
        "that of y"
    )
    return Certificate("duality gap", relative, tol, meaning)
