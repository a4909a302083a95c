"""C-support vector classification:  minimise  1/2 |w|^2 + sum_i C_i xi_i,   y_i (w'phi(x_i) + b) >= 1 - xi_i.

In the dual, max over 0 <= a_i <= C_i with sum a_i y_i = 0 of sum a_i - 1/2 sum a_i a_j y_i y_j k(x_i, x_j), the rows
with a_i > 0 make the function; a row with a_i < C_i has margin at least 1, one with a_i > 0 at most 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, InstanceOf, NoneOr, RandomState, Real
from epicycle.core.estimator._estimator import MethodCard, fitting
from epicycle.kernels._inner_products import Linear
from epicycle.svm._base import MACHINE_PARAMETERS
from epicycle.svm._base_classifier import SupportVectorClassifier
from epicycle.svm._hulls import HullPoints
from epicycle.svm._subproblems import Subproblem, hard_margin, soft_margin

__all__ = ["SVC"]

Array = np.ndarray


class SVC(SupportVectorClassifier):
    r"""Support vector machine for classification, with hard or soft margin and any kernel.

    .. math:: \min_{w, b, \xi} \tfrac12 \|w\|^2 + \sum_i C_i \xi_i
              \quad\text{or}\quad \tfrac12 \|w\|^2 + \tfrac12 \sum_i C_i \xi_i^2,
              \qquad y_i (w^\top \phi(x_i) + b) \ge 1 - \xi_i, \quad \xi_i \ge 0

    with :math:`C_i` the product of `C`, the weight of the row and that of its class. The dual problem is solved by
    decomposition with second-order pairs, kernel rows in a bounded cache; its duality gap and worst violation of the
    optimality conditions are computed from exact kernel values and certified. More than two classes are separated in
    pairs. A fitted object keeps the training rows that are support vectors.

    Parameters
    ----------
    C : float, default=1.0
        Price of slack; ``inf`` is the hard margin, which exists for separable classes only.
    kernel : str, Kernel or callable, default="rbf"
        "linear", "poly", "rbf", "laplacian", "sigmoid", "cosine", "chi2", "histogram_intersection", "precomputed", a
        kernel of :mod:`epicycle.kernel` (strings among them), or a function f(X, Z) that gives the matrix.
    degree : int, default=3
        Of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        For kernels by name: 1 / (n_features times the variance of X), 1 / n_features, or a number.
    coef0 : float, default=0.0
        Of the kernels "poly" and "sigmoid".
    slack : {"l1", "l2"}, default="l1"
        Whether slack counts as such or squared and halved.
    tol : float, default=1e-3
        Both the worst violation and the relative duality gap are at most this at the end.
    cache_size : float, default=200
        Megabytes for kernel values.
    class_weight : dict, "balanced" or None, default=None
        Factors on C for the classes.
    probability : {False, True, "platt", "isotonic"}, default=False
        Whether `predict_proba` is wanted, and by which calibration of cross-validated decision values; True is "platt".
    multi_class : {"ovo", "ovr"}, default="ovo"
        One function for each pair of classes, or one for each class against the others.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether `decision_function` gives a column for each class or for each pair.
    break_ties : bool, default=False
        Whether equal votes are decided by the sums of the functions, otherwise for the first class.
    solver : {"smo", "dual-cd"}, default="smo"
        Sequential minimal optimisation; or dual coordinate descent for a function without intercept.
    shrinking : bool, default=True
        Whether a round works on the variables that violate the conditions most, and not on all of them at once where
        their matrix fits into the cache. It changes the time, not the solution.
    max_iter : int, default=-1
        Steps at most for each function; -1 for a limit that grows with the number of rows.
    random_state : int, Generator, RandomState or None, default=0
        Order of the rows for "dual-cd", folds for `probability`.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every round.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_support,)
        Which rows of the fit are support vectors, class after class.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
        They themselves; empty for a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,)
        How many each class has.
    dual_coef_ : ndarray of shape (n_classes - 1, n_support) or (n_classes, n_support)
        Signed coefficients of the support vectors: of the pairs that their class is in, or of every class ("ovr").
    intercept_ : ndarray of shape (n_functions,)
    coef_ : ndarray of shape (n_functions, n_features)
        The weights of the features, for a linear kernel.
    weight_norm_ : ndarray of shape (n_functions,)
        \|w\| in the space of the kernel.
    geometric_margin_ : ndarray of shape (n_functions,)
        1 / \|w\|, half the width of the street between the classes.
    dual_objective_ : ndarray of shape (n_functions,)
    duality_gap_ : ndarray of shape (n_functions,)
        Relative.
    kkt_violation_ : ndarray of shape (n_functions,)
        By how much the worst pair of coefficients breaks the optimality conditions.
    kernel_ : Kernel
        The kernel as an object.
    certificate_ : Certificate
        The larger of gap and violation, over all functions.
    history_ : History
        Objective, violation, steps and support vectors of every round; for more than two classes of every function.
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import SVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> model = SVC(C=np.inf, kernel="linear").fit(X, [0, 0, 1, 1])
    >>> model.support_
    array([0, 2], dtype=int32)
    >>> hulls = model.nearest_hull_points()
    >>> round(float(hulls.distance), 6), round(2 * float(model.geometric_margin_[0]), 6)
    (2.828427, 2.828427)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "C": Real(minimum=0, inclusive=(False, True), allow_inf=True),
        **MACHINE_PARAMETERS,
        "slack": Choice("l1", "l2"),
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced"))),
        "probability": AnyOf(Boolean(), Choice("platt", "isotonic")),
        "multi_class": Choice("ovo", "ovr"),
        "decision_function_shape": Choice("ovr", "ovo"),
        "break_ties": Boolean(),
        "solver": Choice("smo", "dual-cd"),
        "shrinking": Boolean(),
        "random_state": RandomState(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C3",), engines=("memory",), certificate="duality gap and KKT violation",
        keeps_rows=True,
    )  # fmt: skip

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        slack: str = "l1",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool | str = False,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        solver: str = "smo",
        shrinking: bool = True,
        max_iter: int = -1,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.slack = slack
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.probability = probability
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.solver = solver
        self.shrinking = shrinking
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with labels y.

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
        if np.isinf(self.C) and self.solver == "dual-cd":
            raise ParameterError("C=inf: the hard margin needs solver='smo'; expected a finite C with solver='dual-cd'")
        self._fit_classes(X, y, sample_weight)
        return self

    def _problem(self, rows: Array, sign: Array, weight: Array, classes: tuple[Any, Any]) -> Subproblem:
        if np.isinf(self.C):
            return hard_margin(rows, sign)
        return soft_margin(rows, sign, self.C * weight, squared=self.slack == "l2", constant=self.solver == "smo")

    def nearest_hull_points(self) -> HullPoints:
        r"""The nearest points of the convex hulls of the two classes, in the space of the kernel.

        The shares of the rows in them are their dual coefficients, divided by the sum over a class. For a hard margin
        the distance of the points is twice the geometric margin; with slack the hulls are reduced: no row may have a
        larger share than C divided by that sum, and it is these hulls whose nearest points w connects.

        Returns
        -------
        HullPoints
        """
        self._check_fitted()
        if len(self.classes_) != 2:
            raise DataError(f"y: nearest_hull_points is for two classes; the fit had {len(self.classes_)}")
        if self.solver == "dual-cd" or self.slack == "l2":
            raise ParameterError(
                f"solver={self.solver!r}, slack={self.slack!r}: nearest_hull_points is for solver='smo', slack='l1'"
            )
        b = self._columns_[:, 0]
        up, down = b > 0, b < 0
        total = float(b[up].sum())
        points: list[Array | None] = [None, None]
        if isinstance(self.kernel_, Linear):
            points = [np.asarray(b[side] @ self.support_vectors_[side]) / b[side].sum() for side in (up, down)]
        return HullPoints(
            self.support_[up], self.support_[down], b[up] / total, b[down] / b[down].sum(),
            distance=float(self.weight_norm_[0]) / total, margin=float(self.geometric_margin_[0]),
            largest_share=1.0 if np.isinf(self.C) else min(1.0, float(self.C) / total),
            positive_point=points[0], negative_point=points[1],
        )  # fmt: skip
