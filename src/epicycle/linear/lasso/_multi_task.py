"""The lasso and the elastic net for several tasks that share their features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

from sklearn.base import MultiOutputMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import Domain, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.linear.lasso._base import DESCENT_PARAMETERS, SparseLinearModel
from epicycle.linear.lasso._lasso import fit_penalised

_PARAMETERS: dict[str, Domain] = {
    "alpha": Real(minimum=0),
    "tol": Real(minimum=0),  # 0 asks for all that rounding leaves
    "copy_X": DESCENT_PARAMETERS["copy_X"],
    "selection": DESCENT_PARAMETERS["selection"],
}
_DOCS = {
    "max_iter": "max_iter : int, default={default}\n"
    "    Maximum number of rounds; each chooses a working set and goes over it up to 200 times.",
    "fit_y": "y : array-like of shape (n_samples, n_tasks)\n    A scan brings its own. A vector is one task.",
    "tasks": "coef_ : ndarray of shape (n_tasks, n_features)\n"
    "sparse_coef_ : csr_array of shape (n_tasks, n_features)\n"
    "intercept_ : ndarray of shape (n_tasks,)\n"
    "dual_gap_ : float\n    Proven distance of the objective from its minimum.\n"
    "certificate_ : Certificate\n"
    "    The duality gap, relative to half the mean square of y about its mean, summed over tasks.\n"
    "history_ : History\n"
    "    Objective, gap, size of the working set and number of columns not screened out, for every round.\n"
    "n_iter_ : int\n    Rounds.\nconverged_ : bool",
}


class MultiTaskLasso(MultiOutputMixin, SparseLinearModel):  # type: ignore[misc]  # scikit-learn has no types
    r"""The lasso for several tasks at once: a feature is used for all of them or for none.

    .. math:: \min_{W, b} \; \frac{1}{2n} \sum_i \|y_i - b - W'x_i\|^2 + \alpha \sum_j \|W_j\|_2

    where :math:`W_j` holds the coefficients of feature j in all tasks. Block coordinate descent on working sets, with
    columns screened out by the gap-safe rule; it stops on the duality gap.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty. From ``max_j |x_j'(y - mean(y))| / n`` on (a length over tasks, x about its mean) all
        coefficients are zero.

    Attributes
    ----------
    %(tasks)s

    See Also
    --------
    MultiTaskLassoCV : chooses alpha by cross-validation.
    MultiTaskElasticNet : with an L2 penalty too.
    Lasso : one target, or several with features of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MultiTaskLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> Y = X[:, :2] @ [[1.0, 2.0, 0.5], [-1.0, 0.2, 1.0]] + 0.1 * rng.normal(size=(100, 3))
    >>> model = MultiTaskLasso(alpha=0.2).fit(X, Y)
    >>> model.coef_.any(axis=0).nonzero()[0]
    array([0, 1])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = _PARAMETERS
    _docs: ClassVar[Mapping[str, str]] = _DOCS
    _keeps_targets: ClassVar[bool] = True

    @stores_arguments(
        fit_intercept=True, max_iter=1000, tol=1e-8, warm_start=False, random_state=None, n_jobs=None, verbose=0
    )
    def __init__(
        self, alpha: float = 1.0, *, copy_X: bool = True, selection: str = "cyclic", **shared: Unpack[SharedArguments]
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, coef_init: Any = None) -> Self:
        """Fit to rows X with the targets y of all tasks."""
        fit_penalised(self, X, y, sample_weight, coef_init, l1_ratio=1.0, together=True)
        return self

    def _penalty_line(self) -> str:
        return f"{self.alpha:g} sum_j |W_j|"


class MultiTaskElasticNet(MultiOutputMixin, SparseLinearModel):  # type: ignore[misc]  # scikit-learn has no types
    r"""The elastic net for several tasks at once: a feature is used for all of them or for none.

    .. math:: \min_{W, b} \; \frac{1}{2n} \sum_i \|y_i - b - W'x_i\|^2
              + \alpha \sum_j \left( \rho \|W_j\|_2 + \tfrac{1 - \rho}{2} \|W_j\|_2^2 \right)

    where :math:`W_j` holds the coefficients of feature j in all tasks, and :math:`\rho` = `l1_ratio`.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty.
    l1_ratio : float, default=0.5
        Share of the first term, between 0 (ridge) and 1 (:class:`MultiTaskLasso`).

    Attributes
    ----------
    %(tasks)s

    See Also
    --------
    MultiTaskElasticNetCV : chooses alpha and l1_ratio by cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MultiTaskElasticNet
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    >>> model = MultiTaskElasticNet(alpha=0.1).fit(X, X)
    >>> model.coef_.round(3)
    array([[0.456, 0.456],
           [0.456, 0.456]])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**_PARAMETERS, "l1_ratio": Real(minimum=0, maximum=1)}
    _docs: ClassVar[Mapping[str, str]] = _DOCS
    _keeps_targets: ClassVar[bool] = True

    @stores_arguments(
        fit_intercept=True, max_iter=1000, tol=1e-8, warm_start=False, random_state=None, n_jobs=None, verbose=0
    )
    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        copy_X: bool = True,
        selection: str = "cyclic",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, coef_init: Any = None) -> Self:
        """Fit to rows X with the targets y of all tasks."""
        fit_penalised(self, X, y, sample_weight, coef_init, l1_ratio=self.l1_ratio, together=True)
        return self

    def _penalty_line(self) -> str:
        return f"{self.alpha:g} sum_j ({self.l1_ratio:g} |W_j| + {(1 - self.l1_ratio) / 2:g} |W_j|^2)"
