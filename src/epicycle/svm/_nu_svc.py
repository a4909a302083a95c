"""Nu-support vector classification:  minimise  1/2 |w|^2 - nu rho sum_i v_i + sum_i v_i xi_i,

subject to y_i (w'phi(x_i) + b) >= rho - xi_i. At most a share nu of the weight lies inside the margin, and at least
that share are support vectors. Divided by rho it is the machine of the same rows with C = 1 / rho.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Domain, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.svm._base import Fit
from epicycle.svm._base_classifier import (
    CLASSIFIER_DEFAULTS,
    CLASSIFIER_PARAMETERS,
    ClassifierArguments,
    SupportVectorClassifier,
)
from epicycle.svm._subproblems import Split, nu_machine


class NuSVC(SupportVectorClassifier):
    r"""Support vector machine for classification with a bound on the share of margin violations.

    .. math:: \min_{w, b, \rho, \xi} \tfrac12 \|w\|^2 - \nu \rho \sum_i v_i + \sum_i v_i \xi_i,
              \qquad y_i (w^\top \phi(x_i) + b) \ge \rho - \xi_i, \quad \xi_i, \rho \ge 0

    At most a share :math:`\nu` of the rows violates the margin, and at least that share are support vectors. The
    function is divided by :math:`\rho`, so that the margin is at 1 as in :class:`SVC`. Half of that share comes from
    either class, so that weights of classes would change nothing but which nu is feasible; there are none
    (scikit-learn takes `class_weight` and ignores it).
    A fitted object keeps the training rows that are support vectors.

    Parameters
    ----------
    nu : float, default=0.5
        Between 0 and 1, feasible up to twice the share of the smaller class. More is an error for two classes; of
        several, each pair takes at most what is feasible for it, as `nu_` shows.
    random_state : int, Generator, RandomState or None, default=0
        Folds for `probability`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    nu_ : ndarray of shape (n_functions,)
        The nu of each function.

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
        **CLASSIFIER_PARAMETERS,
    }

    @stores_arguments(**CLASSIFIER_DEFAULTS)
    def __init__(self, *, nu: float = 0.5, **shared: Unpack[ClassifierArguments]) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with labels y."""
        calibrated = self.probability != "deprecated" and self._wants_probabilities()
        rows, coded, weight, kept = self._labelled(X, y, sample_weight)
        problems, nus = [], []
        for split in self._splits(coded):
            nus.append(self._feasible_nu(split, weight[split.rows]))
            problems.append(nu_machine(split, weight[split.rows], nus[-1]))
        self.nu_ = np.array(nus)
        self._fit_problems(Fit(rows, kept, problems, coded))
        if calibrated:
            self._calibrate(rows, coded, weight)
        return self

    def _feasible_nu(self, split: Split, weight: np.ndarray) -> float:
        """The argument `nu`, or the largest that is feasible for one of several pairs."""
        smaller = min(float(weight[split.sign > 0].sum()), float(weight[split.sign < 0].sum()))
        largest = 2 * smaller / float(weight.sum())
        if self.nu > largest * (1 + 1e-12) and len(self.classes_) == 2:
            raise ParameterError(
                f"specified nu is infeasible: nu={self.nu!r} for {split.labels[0]!r} against {split.labels[1]!r}; "
                f"expected at most {largest:.6g}, twice the share of the smaller class"
            )
        return min(float(self.nu), largest)
