"""One-class support vector machine:  minimise  1/2 |w|^2 - nu rho sum_i v_i + sum_i v_i max(rho - w'phi(x_i), 0).

The plane w'phi(x) = rho that lies farthest from the origin with at most a share nu of the rows on the near side: rows
there are unlike the others. With a Gaussian kernel it is a contour of a density, estimated by few of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin

from epicycle.core._parameters import Boolean, Domain, Real
from epicycle.core.estimator._estimator import MethodCard, fitting
from epicycle.kernels._machine import select_rows
from epicycle.svm._base import MACHINE_PARAMETERS, SupportVectorMachine
from epicycle.svm._dual_problem import DualProblem
from epicycle.svm._subproblems import Solved, Subproblem, filled

__all__ = ["OneClassSVM"]


class OneClassSVM(OutlierMixin, SupportVectorMachine):
    r"""One-class support vector machine: the region where most of the rows are.

    .. math:: \min_{w, \rho} \tfrac12 \|w\|^2 - \nu \rho \sum_i v_i + \sum_i v_i \max(\rho - w^\top \phi(x_i), 0)

    At most a share :math:`\nu` of the rows lies outside, and at least that share are support vectors. A fitted object
    keeps the training rows that are support vectors.

    Parameters
    ----------
    nu : float, default=0.5
        Between 0 and 1.
    kernel : str, Kernel or callable, default="rbf"
        "linear", "poly", "rbf", "laplacian", "sigmoid", "cosine", "chi2", "histogram_intersection", "precomputed", a
        kernel of :mod:`epicycle.kernel` (strings among them), or a function f(X, Z) that gives the matrix.
    degree : int, default=3
        Of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        For kernels by name: 1 / (n_features times the variance of X), 1 / n_features, or a number.
    coef0 : float, default=0.0
        Of the kernels "poly" and "sigmoid".
    tol : float, default=1e-3
        Both the worst violation and the relative duality gap are at most this at the end.
    cache_size : float, default=200
        Megabytes for kernel values.
    shrinking : bool, default=True
        Whether a round works on the variables that violate the conditions most, and not on all of them at once where
        their matrix fits into the cache. It changes the time, not the solution.
    max_iter : int, default=-1
        Steps at most; -1 for a limit that grows with the number of rows.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every round.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Which rows of the fit are support vectors.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
        They themselves; empty for a precomputed kernel.
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_support)
    offset_ : float
        rho: ``decision_function`` is ``score_samples`` less this.
    intercept_ : ndarray of shape (1,)
        Minus the offset.
    coef_ : ndarray of shape (1, n_features)
        The weights of the features, for a linear kernel.
    weight_norm_ : ndarray of shape (1,)
        \|w\| in the space of the kernel.
    dual_objective_ : ndarray of shape (1,)
    duality_gap_ : ndarray of shape (1,)
        Relative.
    kkt_violation_ : ndarray of shape (1,)
        By how much the worst pair of coefficients breaks the optimality conditions.
    kernel_ : Kernel
        The kernel as an object.
    certificate_ : Certificate
        The larger of gap and violation.
    history_ : History
        Objective, violation, steps and support vectors of every round.
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = OneClassSVM(nu=0.05).fit(X)
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "nu": Real(minimum=0, maximum=1, inclusive=(False, True)),
        **MACHINE_PARAMETERS,
        "shrinking": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C3",), engines=("memory",), certificate="duality gap and KKT violation",
        keeps_rows=True,
    )  # fmt: skip

    _has_constant = False

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float = 200,
        shrinking: bool = True,
        max_iter: int = -1,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.shrinking = shrinking
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X.

        Parameters
        ----------
        X : array, sparse matrix, data frame of shape (n_samples, n_features), or sequence of strings
            For a precomputed kernel the matrix of shape (n_samples, n_samples).
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight v counts as v rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        data, rows = self._intake(X, None, sample_weight, target="none")
        weight = np.ones(data.X.shape[0]) if data.weight is None else data.weight
        kept = np.flatnonzero(weight > 0)
        if len(kept) < len(weight):
            rows, weight = select_rows(rows, self.kernel_, kept), weight[kept]
        n = len(kept)
        everything, total = np.arange(n), float(self.nu * weight.sum())
        start = filled(weight, total)
        problem = DualProblem(np.zeros(n), np.zeros(n), weight, start=start)

        def assign(done: Sequence[Solved | None]) -> None:
            found = done[0]
            b = start if found is None else found.coefficients
            support = np.flatnonzero(b)
            constant = 0.0 if found is None else found.intercept
            self._keep_support(rows, kept, support, b[support, None], np.array([constant]))
            self.dual_coef_ = b[None, support]
            self.n_support_ = np.array([len(support)], dtype=np.int32)
            self.offset_ = -constant
            self.weight_norm_ = np.array([0.0 if found is None else found.norm])

        self._solve(rows, [Subproblem(everything, problem)], [(everything,)], assign)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """w'phi(x) - rho: positive inside the region, negative outside; zero on the boundary, to rounding."""
        values = self._raw_scores(X)[:, 0]
        return np.where(np.abs(values) <= 1e-9 * abs(self.offset_), 0.0, values).astype(values.dtype)

    def score_samples(self, X: Any) -> np.ndarray:
        """w'phi(x)."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows inside the region, -1 for those outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
