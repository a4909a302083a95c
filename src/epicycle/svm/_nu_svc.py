"""Nu-support vector classification:  minimise  1/2 |w|^2 - nu rho sum_i v_i + sum_i v_i xi_i,

subject to y_i (w'phi(x_i) + b) >= rho - xi_i. At most a share nu of the weight lies inside the margin, and at least
that share are support vectors. Divided by rho it is the machine of the same rows with C = 1 / rho.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, RandomState, Real
from epicycle.core.estimator._estimator import MethodCard, fitting
from epicycle.svm._base import MACHINE_PARAMETERS
from epicycle.svm._base_classifier import SupportVectorClassifier
from epicycle.svm._subproblems import Subproblem, nu_machine

__all__ = ["NuSVC"]

Array = np.ndarray


class NuSVC(SupportVectorClassifier):
    r"""Support vector machine for classification with a bound on the share of margin violations.

    .. math:: \min_{w, b, \rho, \xi} \tfrac12 \|w\|^2 - \nu \rho \sum_i v_i + \sum_i v_i \xi_i,
              \qquad y_i (w^\top \phi(x_i) + b) \ge \rho - \xi_i, \quad \xi_i, \rho \ge 0

    At most a share :math:`\nu` of the rows violates the margin, and at least that share are support vectors. The
    function is divided by :math:`\rho`, so that the margin is at 1 as in :class:`SVC`. Half of that share comes from
    either class, so that weights of classes would change nothing but which nu is feasible; there are none. A
    fitted object keeps the training rows that are support vectors.

    Parameters
    ----------
    nu : float, default=0.5
        Between 0 and 1, feasible up to twice the share of the smaller class. More is an error for two classes; of
        several, each pair takes at most what is feasible for it, as `nu_` shows.
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
    probability : {False, True, "platt", "isotonic"}, default=False
        Whether `predict_proba` is wanted, and by which calibration of cross-validated decision values; True is "platt".
    multi_class : {"ovo", "ovr"}, default="ovo"
        One function for each pair of classes, or one for each class against the others.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether `decision_function` gives a column for each class or for each pair.
    break_ties : bool, default=False
        Whether equal votes are decided by the sums of the functions, otherwise for the first class.
    shrinking : bool, default=True
        Whether a round works on the variables that violate the conditions most, and not on all of them at once where
        their matrix fits into the cache. It changes the time, not the solution.
    max_iter : int, default=-1
        Steps at most for each function; -1 for a limit that grows with the number of rows.
    random_state : int, Generator, RandomState or None, default=0
        Folds for `probability`.
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
    nu_ : ndarray of shape (n_functions,)
        The nu of each function.
    weight_norm_ : ndarray of shape (n_functions,)
        \|w\| in the space of the kernel.
    geometric_margin_ : ndarray of shape (n_functions,)
        1 / \|w\|.
    dual_objective_ : ndarray of shape (n_functions,)
        Before the division by rho.
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
    >>> from epicycle import NuSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = (X[:, 0] ** 2 + X[:, 1] ** 2 > 1).astype(int)
    >>> model = NuSVC(nu=0.2).fit(X, y)
    >>> inside = (model.margins(X, y).functional < 0.999).mean()
    >>> bool(inside <= 0.2 <= len(model.support_) / 200)
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "nu": Real(minimum=0, maximum=1, inclusive=(False, True)),
        **MACHINE_PARAMETERS,
        "probability": AnyOf(Boolean(), Choice("platt", "isotonic")),
        "multi_class": Choice("ovo", "ovr"),
        "decision_function_shape": Choice("ovr", "ovo"),
        "break_ties": Boolean(),
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
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float = 200,
        probability: bool | str = False,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        shrinking: bool = True,
        max_iter: int = -1,
        random_state: Any = 0,
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
        self.probability = probability
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
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
            A row of weight v counts as v rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._fit_classes(X, y, sample_weight)
        return self

    def _problem(self, rows: Array, sign: Array, weight: Array, classes: tuple[Any, Any]) -> Subproblem:
        smaller = min(float(weight[sign > 0].sum()), float(weight[sign < 0].sum()))
        largest = 2 * smaller / float(weight.sum())
        if self.nu > largest * (1 + 1e-12) and len(self.classes_) == 2:
            raise ParameterError(
                f"nu={self.nu!r} is infeasible for {classes[0]!r} against {classes[1]!r}: expected at most "
                f"{largest:.6g}, twice the share of the smaller class"
            )
        nu = min(float(self.nu), largest)
        self.nu_ = np.append(getattr(self, "nu_", np.empty(0)), nu)
        return nu_machine(rows, sign, weight, nu)
