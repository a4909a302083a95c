"""C-support vector classification:  minimise  1/2 |w|^2 + sum_i C_i xi_i,   y_i (w'phi(x_i) + b) >= 1 - xi_i.

In the dual, max over 0 <= a_i <= C_i with sum a_i y_i = 0 of sum a_i - 1/2 sum a_i a_j y_i y_j k(x_i, x_j), the rows
with a_i > 0 make the function; a row with a_i < C_i has margin at least 1, one with a_i > 0 at most 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, NoneOr, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.kernels._inner_products import Linear
from epicycle.svm._base import Fit
from epicycle.svm._base_classifier import (
    CLASSIFIER_DEFAULTS,
    CLASSIFIER_PARAMETERS,
    ClassifierArguments,
    SupportVectorClassifier,
)
from epicycle.svm._subproblems import hard_margin, soft_margin

Array = np.ndarray


@dataclass(frozen=True)
class HullPoints:
    r"""The nearest points :math:`\sum_i c_i \phi(x_i)` of the (reduced) convex hulls of two classes.

    Attributes
    ----------
    positive, negative : ndarray
        Which rows of the fit have a share in the point of either class.
    positive_shares, negative_shares : ndarray
        Their shares c, which add up to 1.
    distance : float
        Between the two points, in the space of the kernel.
    margin : float
        The geometric margin 1 / |w|. On separable data with ``C=inf`` the distance is twice the margin.
    largest_share : float
        No share may be larger: 1 for the convex hulls themselves, less for hulls that are reduced until they are apart,
        as they are in the soft case.
    positive_point, negative_point : ndarray or None
        The points as vectors, for a linear kernel.
    """

    positive: np.ndarray
    negative: np.ndarray
    positive_shares: np.ndarray
    negative_shares: np.ndarray
    distance: float
    margin: float
    largest_share: float
    positive_point: np.ndarray | None = None
    negative_point: np.ndarray | None = None


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
    slack : {"l1", "l2"}, default="l1"
        Whether slack counts as such or squared and halved.
    class_weight : dict, "balanced" or None, default=None
        Factors on C for the classes.
    solver : {"smo", "dual-cd"}, default="smo"
        Sequential minimal optimisation; or dual coordinate descent for a function without intercept.
    random_state : int, Generator, RandomState or None, default=0
        Order of the rows for "dual-cd", folds for `probability`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

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
        **CLASSIFIER_PARAMETERS,
        "slack": Choice("l1", "l2"),
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced"))),
        "solver": Choice("smo", "dual-cd"),
    }

    @stores_arguments(**CLASSIFIER_DEFAULTS)
    def __init__(
        self,
        *,
        C: float = 1.0,
        slack: str = "l1",
        class_weight: Mapping[Any, float] | str | None = None,
        solver: str = "smo",
        **shared: Unpack[ClassifierArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with labels y."""
        if np.isinf(self.C) and self.solver == "dual-cd":
            raise ParameterError("C=inf: the hard margin needs solver='smo'; expected a finite C with solver='dual-cd'")
        calibrated = self.probability != "deprecated" and self._wants_probabilities()
        rows, coded, weight, kept = self._labelled(X, y, sample_weight)
        problems = []
        for split in self._splits(coded):
            if np.isinf(self.C):
                problems.append(hard_margin(split))
            else:
                C = self.C * weight[split.rows]
                problems.append(soft_margin(split, C, squared=self.slack == "l2", constant=self.solver == "smo"))
        self._fit_problems(Fit(rows, kept, problems, coded))
        if calibrated:
            self._calibrate(rows, coded, weight)
        return self

    def nearest_hull_points(self) -> HullPoints:
        r"""The nearest points of the convex hulls of the two classes, in the space of the kernel.

        The shares of the rows in them are their dual coefficients, divided by the sum over a class. For a hard margin
        the distance of the points is twice the geometric margin; with slack the hulls are reduced: no row may have a
        larger share than C divided by that sum, and it is these hulls whose nearest points w connects.
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
        shares = (b[up] / total, b[down] / b[down].sum())
        largest = 1.0 if np.isinf(self.C) else min(1.0, float(self.C) / total)
        distance, margin = float(self.weight_norm_[0]) / total, float(self.geometric_margin_[0])
        return HullPoints(self.support_[up], self.support_[down], *shares, distance, margin, largest, *points)
