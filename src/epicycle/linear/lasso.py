"""The lasso and the elastic net for one alpha. The mathematics is in :mod:`epicycle.linear.lasso_duality`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from epicycle.base import MethodCard
from epicycle.linear.lasso_estimator import PenalisedRegressor
from epicycle.parameters import Domain, Real

__all__ = ["ElasticNet", "Lasso"]

_CARD = MethodCard(family="linear", catalogue=("A7",), engines=("memory", "files", "dask"), certificate="duality gap")


class Lasso(PenalisedRegressor):
    r"""Least squares with an L1 penalty, which sets coefficients to zero.

    .. math:: \min_{w, b} \; \frac{1}{2 \sum_i v_i} \sum_i v_i \, (y_i - b - w'x_i)^2 + \alpha \sum_j f_j |w_j|

    with sample weights :math:`v_i` and penalty weights :math:`f_j` (ones by default). Coordinate descent on working
    sets, with columns screened out by the gap-safe rule and the support finished by Newton's method or Anderson
    extrapolation; it stops on the duality gap.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty. From ``max_j |x_j'(y - mean(y))| / n`` on (x about its mean) all coefficients are zero.
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
    """

    _card: ClassVar[MethodCard] = _CARD

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        penalty_weights: Any = None,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-8,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.penalty_weights = penalty_weights
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _l1_ratio(self) -> float:
        return 1.0


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
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _l1_ratio(self) -> float:
        return self.l1_ratio
