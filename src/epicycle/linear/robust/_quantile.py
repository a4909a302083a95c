"""Quantile regression:  minimise  sum_i s_i rho_tau(y_i - b - w'x_i) / sum_i s_i + alpha |w|_1,

with the pinball loss rho_tau(r) = tau max(r, 0) + (1 - tau) max(-r, 0); tau = 1/2 gives half the least absolute
deviations. A linear programme: the minimum lies at a hyperplane through as many rows as it has parameters, and is
proven by dual variables d_i in [s_i (tau - 1), s_i tau] with |X'd|_j <= alpha sum s and 1'd = 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import mean_pinball_loss

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ParameterError
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Choice, Domain, InstanceOf, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import Data
from epicycle.data._dask_data import is_dask
from epicycle.linear._scikit_learn import QUANTILE_SOLVERS
from epicycle.linear._storage import stored_type
from epicycle.linear.robust._quantile_inference import COVARIANCES, covariances
from epicycle.linear.robust._quantile_solver import QuantileSolver, Solved, quantile_solver
from epicycle.optim import Solution
from epicycle.stats._class_scores import linear_prediction
from epicycle.stats._summary import Summary, wald_summary


class QuantileRegressor(RegressorMixin, Estimator):  # type: ignore[misc]
    r"""Linear regression of a quantile, of several, or of the median (least absolute deviations), solved exactly.

    .. math:: \min_{w, b} \; \frac{1}{\sum_i s_i} \sum_i s_i \, \rho_\tau(y_i - b - w'x_i) + \alpha \|w\|_1 ,
              \qquad \rho_\tau(r) = \max(\tau r, (\tau - 1) r) .

    Parameters
    ----------
    quantile : float or sequence of floats, default=0.5
        tau, between 0 and 1. With a sequence, one model for each is fitted and predicted side by side.
    alpha : float, default=1.0
        Strength of the L1 penalty, as in scikit-learn. 0 is plain quantile regression, with standard errors.
    solver : {"auto", "interior-point", "simplex"}, default="auto"
        All end at the same vertex of the linear programme. "interior-point" follows the central path on all rows and
        pivots from where it ends; "simplex" pivots from the rows nearest to the least-squares fit, as Barrodale and
        Roberts do; "auto" first settles the signs of most residuals from the fit to a draw of the rows. The names of
        scikit-learn's solvers stand for those of :ref:`this table <solver-names>`.
    solver_options : dict, optional
        Accepted for compatibility: options of the linear programmes of SciPy, which is not used; `tol` and `max_iter`
        say how far the solvers go, and the solution does not depend on them.
    non_crossing : bool, default=False
        Whether predictions of several quantiles are put in order in each row (monotone rearrangement), where the
        fitted hyperplanes cross.
    tol : float, default=1e-10
        Duality gap, relative to the loss of a constant at the centre of y, that the certificate asserts.
    max_iter : int, default=1000
        Interior-point iterations at most; pivots at most, but for as many as 50 a parameter.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_quantiles, n_features)
    intercept_ : float or ndarray of shape (n_quantiles,)
    objective_ : float or ndarray of shape (n_quantiles,)
        The minimum.
    solver_ : str
        The solver that ran.
    certificate_ : Certificate
        Duality gap of the linear programme; for several quantiles the largest.
    history_ : History
        Objective, gap, rows and pivots of every step; on part of the rows, the objective is a lower bound or a guide.

    Notes
    -----
    Where several hyperplanes are optimal, the one that is lowest at the mean of the features is given. Columns that
    depend on others get the coefficient zero.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import QuantileRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = QuantileRegressor(quantile=[0.1, 0.5, 0.9], alpha=0).fit(X, y)
    >>> model.certificate_.holds
    True
    >>> (y[:, None] < model.predict(X) - 1e-6).mean(axis=0).round(2)  # 11 rows lie on each of the hyperplanes
    array([0.09, 0.49, 0.89])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "quantile": AnyOf(Real(0, 1, inclusive=False), ArrayLike()),
        "alpha": Real(minimum=0),
        "solver": Choice("auto", "interior-point", "simplex", *QUANTILE_SOLVERS),
        "solver_options": NoneOr(InstanceOf(dict)),
        "non_crossing": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A8",), engines=("memory", "files", "dask"), certificate="duality gap"
    )
    _takes_sparse: ClassVar[bool] = True

    @stores_arguments(fit_intercept=True, tol=1e-10, max_iter=1000, n_jobs=None, verbose=0)
    def __init__(
        self,
        *,
        quantile: float | Sequence[float] = 0.5,
        alpha: float = 1.0,
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        non_crossing: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def _quantiles(self) -> np.ndarray:
        try:
            taus = np.asarray(self.quantile, dtype=np.float64)
        except (TypeError, ValueError):
            taus = np.array([np.nan])
        if taus.ndim > 1 or taus.size == 0 or not ((taus > 0) & (taus < 1)).all():
            raise ParameterError(
                f"QuantileRegressor: quantile={self.quantile!r}; expected a number, or a sequence of numbers, "
                "strictly between 0 and 1"
            )
        return np.atleast_1d(taus)

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y."""
        taus = self._quantiles()
        self.solver_ = QUANTILE_SOLVERS.get(self.solver, self.solver)
        data = self._fit_data(X, y, sample_weight, target="numeric", check_finite=is_dask(X))
        solver = quantile_solver(
            data,
            self.alpha,
            intercept=self.fit_intercept,
            solver=self.solver_,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )
        frame = solver.frame
        betas = np.zeros((len(taus), frame.size))
        monitor = self._monitor(None, lambda x: self._attributes(data, solver, x.reshape(betas.shape)))
        solved = self._minimise(solver, taus, betas, monitor)
        for name, value in self._attributes(data, solver, betas).items():
            setattr(self, name, value)
        values = np.array([one.objective * frame.y_scale for one in solved])
        self.objective_ = float(values[0]) if np.ndim(self.quantile) == 0 else values
        if self.alpha == 0 and not any(one.stopped for one in solved):
            self._keep_inference(data, solver, taus, betas)
        self._conclude(self._solution(solved, betas, monitor))
        return self

    def _minimise(self, solver: QuantileSolver, taus: np.ndarray, betas: np.ndarray, monitor: Monitor) -> list[Solved]:
        state = self._resume_state()
        started = -1
        if state is not None:
            started = int(state["quantile"])
            betas[: started + 1] = state["beta"][: started + 1]
        steps = monitor.history().n_iter
        solved = []
        for t, tau in enumerate(taus):

            def report(beta: np.ndarray, objective: float, gap: float, rows: int, pivots: int, t: int = t) -> bool:
                nonlocal steps
                steps += 1
                betas[t] = beta
                columns = {"gap": gap, "rows": rows, "pivots": pivots}
                if len(taus) > 1:
                    columns["quantile"] = taus[t]
                return monitor(
                    steps,
                    betas.ravel(),
                    objective=objective * solver.frame.y_scale,
                    state=lambda: {"beta": betas.copy(), "quantile": t},
                    **columns,
                )

            one = solver.solve(float(tau), betas[t].copy() if t <= started else None, report)
            betas[t] = one.beta
            solved.append(one)
            if one.stopped:
                break
        return solved

    def _solution(self, solved: list[Solved], betas: np.ndarray, monitor: Monitor) -> Solution:
        gaps = [one.gap / one.scale if one.scale > 0 else float(one.gap > 0) for one in solved]
        gap = float(max(gaps))
        meaning = f"the loss is within {gap:.1e} of its minimum, relative to that of a constant at the centre of y"
        certificate = Certificate("duality gap", gap, self.tol, meaning)
        stopped = any(one.stopped for one in solved)
        reason = "stopped" if stopped else "converged" if certificate.holds else "stalled"
        history = monitor.history()
        state = {"beta": betas.copy(), "quantile": len(solved) - 1}
        value = float(sum(one.objective for one in solved))
        x = betas.ravel()
        if not (np.isfinite(self.coef_).all() and np.isfinite(self.intercept_).all()):
            x = np.full(len(x), np.nan)  # never handed out as a model
        return Solution(x, value, history, certificate, history.n_iter, reason, state=state)

    def _attributes(self, data: Data, solver: QuantileSolver, betas: np.ndarray) -> dict[str, Any]:
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused at the end
            pairs = [solver.frame.original(beta) for beta in betas]
        coef = np.array([w for w, _ in pairs])
        intercept = np.array([b if self.fit_intercept else 0.0 for _, b in pairs])
        dtype = stored_type(data.dtype, coef, intercept)
        coef, intercept = coef.astype(dtype), intercept.astype(dtype)
        if np.ndim(self.quantile) == 0:
            return {"coef_": coef[0], "intercept_": intercept[0] if self.fit_intercept else 0.0}
        return {"coef_": coef, "intercept_": intercept}

    # ------------------------------------------------------------------------------------------- prediction

    def predict(self, X: Any) -> Any:
        """The quantile of y for every row: shape (n_samples,), or (n_samples, n_quantiles) for several."""
        values = linear_prediction(self._predict_data(X), self.coef_, self.intercept_, self.n_jobs)
        if self.coef_.ndim == 1 or not self.non_crossing:
            return values
        taus = self._quantiles()
        return np.sort(values, axis=1)[:, np.argsort(np.argsort(taus))]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2 as everywhere in scikit-learn; for several quantiles 1 - (pinball loss / that of the best constant)."""
        if np.ndim(self.quantile) == 0:
            return float(super().score(X, y, sample_weight))
        predicted = self.predict(X)
        loss = best = 0.0
        for t, tau in enumerate(self._quantiles()):
            weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
            constant = np.quantile(y, tau, method="inverted_cdf", weights=weights)
            loss += mean_pinball_loss(y, predicted[:, t], sample_weight=sample_weight, alpha=tau)
            best += mean_pinball_loss(y, np.full(len(predicted), constant), sample_weight=sample_weight, alpha=tau)
        return 1 - loss / best if best > 0 else float(loss == 0)

    # ------------------------------------------------------------------------------------------- statistics

    def _keep_inference(self, data: Data, solver: QuantileSolver, taus: np.ndarray, betas: np.ndarray) -> None:
        held = np.isinf(solver.frame.penalty)
        self._rank_ = int(self.n_features_in_ - held[:-1].sum())
        if self._rank_ < self.n_features_in_ or solver.n_rows <= solver.frame.size:
            return
        kept = [covariances(data, solver, beta, float(tau), self.n_jobs) for tau, beta in zip(taus, betas, strict=True)]
        self._covariances_ = [found for found, _ in kept]
        self._facts_ = [facts for _, facts in kept]

    def summary(self, confidence: float = 0.95, *, covariance: str = "kernel", target: int = 0) -> Summary:
        """Coefficients, standard errors, z, p-values and intervals of a fit without penalty.

        Parameters
        ----------
        confidence : float, default=0.95
            Coverage of the intervals.
        covariance : {"kernel", "iid", "robust"}, default="kernel"
            "kernel" lets the density of the residuals depend on x (Powell's sandwich); "iid" takes one density for
            all; "robust" is what statsmodels and Stata call so, with one density and the squares of the scores. All
            take their bandwidth from Hall and Sheather.
        target : int, default=0
            Which quantile, if there are several.
        """
        self._check_fitted()
        taus = self._quantiles()
        if isinstance(target, bool) or not 0 <= target < len(taus):
            raise ParameterError(f"target={target!r}; expected an integer from 0 to {len(taus) - 1}")
        if covariance not in COVARIANCES:
            raise ParameterError(f"covariance={covariance!r}; expected one of {', '.join(map(repr, COVARIANCES))}")
        title = f"Quantile regression, quantile {taus[target]:g}, {self._penalty_line()}"
        coef = np.atleast_2d(self.coef_)[target]
        intercept = float(np.atleast_1d(self.intercept_)[target]) if self.fit_intercept else None
        found = getattr(self, "_covariances_", [None] * len(taus))[target]
        if found is None:
            if self.alpha > 0:
                why = (
                    f"penalised ({self._penalty_line()}): naive standard errors do not hold; use alpha=0 for inference"
                )
            elif getattr(self, "_rank_", 0) < self.n_features_in_:
                why = "the features depend on each other: standard errors do not exist"
            else:
                why = "there are too few rows for this quantile to estimate the density of the residuals"
            b = None if intercept is None else np.array([intercept])
            return Summary.of_coefficients(self._names(), coef[None, :], b, ["y"], title, why)
        matrix = found[covariance] if self.fit_intercept else found[covariance][:-1, :-1]
        facts = {"loss": float(np.atleast_1d(self.objective_)[target]), **self._facts_[target]}
        return wald_summary(
            self._names(),
            coef,
            intercept,
            matrix,
            confidence=confidence,
            title=f"{title}, {covariance} standard errors",
            facts=facts,
        )

    def _penalty_line(self) -> str:
        return f"L1 penalty {self.alpha:g} |w|_1" if self.alpha > 0 else "no penalty"
