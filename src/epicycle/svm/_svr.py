"""Support vector regression:  minimise  1/2 |w|^2 + sum_i C_i max(|y_i - w'phi(x_i) - b| - epsilon, 0).

Rows inside the tube of half-width epsilon cost nothing and have no coefficient. In the dual with b_i in [-C_i, C_i] the
tube is the penalty epsilon |b|_1, which the solver takes as it is, without doubling the variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from epicycle.core._parameters import Boolean, Domain, Real
from epicycle.core.estimator._estimator import MethodCard, fitting
from epicycle.kernels._machine import select_rows
from epicycle.svm._base import MACHINE_PARAMETERS, SupportVectorMachine
from epicycle.svm._dual_problem import DualProblem
from epicycle.svm._subproblems import Solved, Subproblem

__all__ = ["SVR"]


class SVR(RegressorMixin, SupportVectorMachine):
    r"""Support vector regression: errors count beyond a tube of width epsilon only.

    .. math:: \min_{w, b} \tfrac12 \|w\|^2 + \sum_i C_i \max(|y_i - w^\top \phi(x_i) - b| - \varepsilon, 0)

    with :math:`C_i` the product of `C` and the weight of the row. A fitted object keeps the training rows that are
    support vectors: those on or outside the tube.

    Parameters
    ----------
    C : float, default=1.0
        Price of errors beyond the tube.
    epsilon : float, default=0.1
        Half the width of the tube.
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
    intercept_ : ndarray of shape (1,)
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
    >>> from epicycle import SVR
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> model = SVR(C=100.0, epsilon=0.01, gamma=1.0).fit(x, np.sin(x[:, 0]))
    >>> bool(np.abs(model.predict(x) - np.sin(x[:, 0])).max() < 0.011), len(model.support_) < 20
    (True, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "C": Real(minimum=0, inclusive=False),
        "epsilon": Real(minimum=0),
        **MACHINE_PARAMETERS,
        "shrinking": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C3",), engines=("memory",), certificate="duality gap and KKT violation",
        keeps_rows=True,
    )  # fmt: skip

    def __init__(
        self,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
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
        self.C = C
        self.epsilon = epsilon
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
        """Fit to rows X with targets y.

        Parameters
        ----------
        X : array, sparse matrix, data frame of shape (n_samples, n_features), or sequence of strings
            For a precomputed kernel the matrix of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C for the rows: a row of weight v counts as v rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        data, rows = self._intake(X, y, sample_weight, target="numeric")
        target = np.asarray(data.y, dtype=np.float64)
        kept = np.arange(len(target))
        top = np.full(len(target), float(self.C))
        if data.weight is not None:
            kept = np.flatnonzero(data.weight > 0)
            top, target = self.C * data.weight[kept], target[kept]
            rows = rows if len(kept) == len(data.weight) else select_rows(rows, self.kernel_, kept)
        everything = np.arange(len(kept))
        # A shift of y is taken up by the intercept: about its middle y has the fewest digits to lose.
        shift = float(np.median(target))
        problem = DualProblem(target - shift, -top, top, epsilon=float(self.epsilon))
        sub = Subproblem(everything, problem)

        def assign(done: Sequence[Solved | None]) -> None:
            found = done[0]
            b = np.zeros(len(kept)) if found is None else found.coefficients
            support = np.flatnonzero(b)
            constant = 0.0 if found is None else found.intercept
            self._keep_support(rows, kept, support, b[support, None], np.array([constant + shift]))
            self.dual_coef_ = b[None, support]
            self.n_support_ = np.array([len(support)], dtype=np.int32)
            self.weight_norm_ = np.array([0.0 if found is None else found.norm])

        self._solve(rows, [sub], [(everything,)], assign)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The function at every row of X."""
        return self._raw_scores(X)[:, 0]
