"""The lasso and the elastic net for one alpha. The mathematics is in :mod:`epicycle.linear.lasso._duality`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._monitor import Monitor
from epicycle.core._parameters import Domain, NoneOr, Real
from epicycle.core.estimator._estimator import MethodCard
from epicycle.linear.lasso._base import PenalisedRegressor
from epicycle.linear.lasso._constrained import BoundOutcome, minimise_within
from epicycle.linear.lasso._duality import penalty_of
from epicycle.linear.lasso._problem import LassoProblem
from epicycle.linear.lasso._solver import Outcome
from epicycle.optim import ElasticNet as Penalty

__all__ = ["ElasticNet", "Lasso"]

_CARD = MethodCard(family="linear", catalogue=("A7",), engines=("memory", "files", "dask"), certificate="duality gap")


class Lasso(PenalisedRegressor):
    r"""Least squares with an L1 penalty, which sets coefficients to zero.

    .. math:: \min_{w, b} \; \frac{1}{2 \sum_i v_i} \sum_i v_i \, (y_i - b - w'x_i)^2 + \alpha \sum_j f_j |w_j|

    with sample weights :math:`v_i` and penalty weights :math:`f_j` (ones by default), or the same with a bound
    :math:`\sum_j f_j |w_j| \le t` in place of the penalty. Coordinate descent on working sets, with columns screened
    out by the gap-safe rule and the support finished by Newton's method or Anderson extrapolation; it stops on the
    duality gap.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty. From ``max_j |x_j'(y - mean(y))| / n`` on (x about its mean) all coefficients are zero.
    bound : float, optional
        The bound t of the L1 norm. Where it is given, `alpha` is not used: the one that has the same solution is found.
    penalty_weights : array-like of shape (n_features,), optional
        Factors of alpha (or in the norm) for each feature; 0 leaves a feature unpenalised.
    fit_intercept : bool, default=True
        Whether b is fitted or 0.
    positive : bool, default=False
        Whether coefficients have to be non-negative.
    tol : float, default=1e-8
        Largest duality gap, relative to half the (weighted) mean square of y about its mean.
    max_iter : int, default=1000
        Rounds at most; each chooses a working set and goes over it up to 200 times.
    warm_start : bool, default=False
        Whether a fit starts from the coefficients of the earlier one.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every round.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    sparse_coef_ : csr_array of shape (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    alpha_ : float or ndarray of shape (n_targets,)
        The penalty: `alpha`, or what corresponds to `bound` (0 where the bound does not bind).
    bound_ : float or ndarray of shape (n_targets,)
        The L1 norm of the coefficients, with penalty weights: the bound at which the solution is the same.
    dual_gap_ : float or ndarray of shape (n_targets,)
        Proven distance of the objective from its minimum.
    certificate_ : Certificate
        The duality gap, relative; the largest over targets.
    history_ : History
        Objective, gap, size of the working set and number of columns not screened out, for every round; with `bound`
        objective, gap, alpha and norm for every alpha tried.
    n_iter_ : int
        Rounds; the largest over targets.
    converged_ : bool

    See Also
    --------
    LassoCV : chooses alpha by cross-validation.
    lasso_path : solutions for many alphas.
    ElasticNet : with an L2 penalty too.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import Lasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Lasso(alpha=0.5).fit(X, y)
    >>> (model.coef_ != 0).nonzero()[0]
    array([2, 3, 6, 8])
    >>> model.certificate_.holds
    True
    >>> bounded = Lasso(bound=model.bound_).fit(X, y)
    >>> round(bounded.alpha_, 6)
    0.5
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **PenalisedRegressor._parameters,
        "bound": NoneOr(Real(minimum=0)),
    }
    _card: ClassVar[MethodCard] = _CARD

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        bound: float | None = None,
        penalty_weights: Any = None,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-8,
        max_iter: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.bound = bound
        self.penalty_weights = penalty_weights
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _l1_ratio(self) -> float:
        return 1.0

    def _penalty(self, factors: np.ndarray) -> Penalty:
        if self.bound is None:
            return super()._penalty(factors)
        return penalty_of(1.0, 1.0, factors, self.positive)

    def _minimise(self, problem: LassoProblem, penalty: Penalty, W: np.ndarray, monitor: Monitor) -> list[Outcome]:
        if self.bound is None:
            return super()._minimise(problem, penalty, W, monitor)
        outcomes: list[Outcome] = []
        solved = 0
        for t, solver in enumerate(problem.solvers):
            if W[t].any():
                solver.start_at(W[t])

            def report(
                done: int, w: np.ndarray, objective: float, gap: float, alpha: float, norm: float,
                t: int = t, before: int = solved,
            ) -> bool:  # fmt: skip
                W[t] = w
                columns = {"gap": gap, "alpha": alpha, "norm": norm}
                if len(problem.solvers) > 1:
                    columns["target"] = t
                return monitor(
                    before + done, W.ravel(), objective=objective, state=lambda: {"coef": W.copy()}, **columns
                )

            outcome = minimise_within(solver, self.bound, penalty.l1, self.positive, self.tol, self.max_iter, report)
            W[t] = outcome.w
            outcomes.append(outcome)
            solved += outcome.n_rounds
        return outcomes

    def _keep_outcomes(self, outcomes: list[Outcome], penalty: Penalty, *, vector: bool) -> None:
        alphas = np.array([o.alpha if isinstance(o, BoundOutcome) else float(self.alpha) for o in outcomes])
        factors = np.ones(len(penalty.l1)) if self.penalty_weights is None else np.asarray(self.penalty_weights)
        bounds = np.array([float(factors @ np.abs(outcome.w)) for outcome in outcomes])
        self.alpha_ = float(alphas[0]) if vector else alphas
        self.bound_ = float(bounds[0]) if vector else bounds

    def _penalty_line(self) -> str:
        if self.bound is None:
            return super()._penalty_line()
        extra = ", with a factor for each feature" if self.penalty_weights is not None else ""
        return f"|w|_1 <= {self.bound:g}{extra}{', w >= 0' if self.positive else ''}"


class ElasticNet(PenalisedRegressor):
    r"""Least squares with an L1 and an L2 penalty: sparse like the lasso, and kind to groups of correlated features.

    .. math::
        \min_{w, b} \; \frac{1}{2 \sum_i v_i} \sum_i v_i \, (y_i - b - w'x_i)^2
        + \alpha \sum_j f_j \left( \rho |w_j| + \tfrac{1 - \rho}{2} w_j^2 \right)

    with sample weights :math:`v_i`, penalty weights :math:`f_j` (ones by default) and :math:`\rho` = `l1_ratio`.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty.
    l1_ratio : float, default=0.5
        Share of the L1 term, between 0 (ridge) and 1 (lasso).
    penalty_weights : array-like of shape (n_features,), optional
        Factors of alpha for each feature; 0 leaves a feature unpenalised.
    fit_intercept : bool, default=True
        Whether b is fitted or 0.
    positive : bool, default=False
        Whether coefficients have to be non-negative.
    tol : float, default=1e-8
        Largest duality gap, relative to half the (weighted) mean square of y about its mean.
    max_iter : int, default=1000
        Rounds at most; each chooses a working set and goes over it up to 200 times.
    warm_start : bool, default=False
        Whether a fit starts from the coefficients of the earlier one.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every round.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    sparse_coef_ : csr_array of shape (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    dual_gap_ : float or ndarray of shape (n_targets,)
        Proven distance of the objective from its minimum.
    certificate_ : Certificate
        The duality gap, relative; the largest over targets.
    history_ : History
        Objective, gap, size of the working set and number of columns not screened out, for every round.
    n_iter_ : int
        Rounds; the largest over targets.
    converged_ : bool

    See Also
    --------
    ElasticNetCV : chooses alpha and l1_ratio by cross-validation.
    enet_path : solutions for many alphas.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import ElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNet(alpha=0.01, l1_ratio=0.9).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.491
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **PenalisedRegressor._parameters,
        "l1_ratio": Real(minimum=0, maximum=1),
    }
    _card: ClassVar[MethodCard] = _CARD

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        penalty_weights: Any = None,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-8,
        max_iter: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.penalty_weights = penalty_weights
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _l1_ratio(self) -> float:
        return self.l1_ratio
