"""Linear support vector classification:  minimise  (|w|^2 + u^2) / 2 + C sum_i v_i max(0, 1 - y_i (w'x_i + b))^q,

with q = 1 (hinge) or 2 (squared hinge), y_i = -1 or 1, and the intercept b = s u. Rows with y_i (w'x_i + b) < 1
violate the margin; only rows that do not exceed it have a say in the solution, which is proven by dual variables
0 <= a_i <= C v_i with  w = sum_i a_i y_i x_i.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, NoneOr
from epicycle.core._random import seed_of
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Data
from epicycle.optim import Solution
from epicycle.stats._class_scores import class_batch, linear_predictor
from epicycle.stats._labels import class_weights, encode_labels
from epicycle.svm._crammer_singer import joint_descent, joint_optimum
from epicycle.svm.linear._base import LINEAR_PARAMETERS, LinearMachine
from epicycle.svm.linear._l1 import gap_certificate
from epicycle.svm.linear._problem import MarginProblem


class LinearSVC(ClassifierMixin, LinearMachine):  # type: ignore[misc]  # untyped mixin
    r"""Linear support vector classification, with the duality gap as its certificate.

    Two classes :math:`y_i \in \{-1, 1\}` minimise

    .. math:: P(w, b) = \tfrac{1}{2} \|w\|^2 + \tfrac{1}{2} (b / s)^2 + C \sum_i v_i \max(0, 1 - y_i (w'x_i + b))^q

    with sample weights :math:`v_i`, :math:`q` = 1 for the hinge and 2 for the squared hinge, and :math:`s` =
    `intercept_scaling`: the objective of liblinear, in which the intercept is the weight of a constant feature s. More
    than two classes are separated one against the rest.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        Of the weights: half their square, or :math:`\|w\|_1 + |b / s|`, which makes many of them zero. The latter needs
        the squared hinge, and is minimised by proximal Newton whatever the `solver`.
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
        q = 1 or 2.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        More than two classes are separated one against the rest; or together, by K score functions :math:`z_k` that
        minimise :math:`\tfrac{1}{2} \sum_k \|(w_k, b_k / s)\|^2 + C \sum_i v_i \max_k ([k \ne y_i] + z_{ik} -
        z_{i y_i})`. The latter needs rows in memory, and an iteration of it is 20 passes; `penalty`, `loss`, `dual` and
        `solver` have no effect on it.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        A sparse matrix after `sparsify`.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    objective_ : ndarray of shape (1,) or (n_classes,)
        P of every problem.
    dual_objective_ : ndarray of shape (1,) or (n_classes,)
        The proven lower bound on P.

    See Also
    --------
    LinearSVR : the same for numbers.
    LogisticRegression : with probabilities.

    Notes
    -----
    `class_weight` multiplies the weights of rows by their own class, also one against the rest (liblinear applies only
    the factor of the one).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from epicycle import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(loss="hinge", C=0.1).fit(scale(X), y)
    >>> round(model.score(scale(X), y), 3)
    0.986
    >>> model.certificate_.holds
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "penalty": Choice("l2", "l1"),
        "multi_class": Choice("ovr", "crammer_singer"),
        "loss": Choice("hinge", "squared_hinge"),
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced"))),
        **LINEAR_PARAMETERS,
    }

    classes_: np.ndarray

    @stores_arguments(tol=1e-5, fit_intercept=True, max_iter=1000, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: bool | str = "auto",
        multi_class: str = "ovr",
        C: float = 1.0,
        intercept_scaling: float = 1.0,
        class_weight: Mapping[Any, float] | str | None = None,
        solver: str = "auto",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with labels y."""
        squared, joint = self.loss == "squared_hinge", self.multi_class == "crammer_singer"
        if not joint:
            self._check_dual(self.penalty, squared)
        data = self._fit_data(X, y, sample_weight, target="labels")
        self.classes_, totals, data = encode_labels(data, type(self).__name__, self.n_jobs)
        factors = class_weights(self.class_weight, self.classes_, totals)
        K = len(self.classes_)
        form = {"regression": False, "epsilon": 0.0, "class_weight": factors}
        if joint:
            self._conclude(self._solve_jointly(data, self._problem(data, K, squared=False, **form)))
            return self
        problem = self._problem(data, 1 if K == 2 else K, squared=squared, l1=self.penalty == "l1", **form)
        self._conclude(self._solve_l1(data, problem) if problem.l1 else self._solve(data, problem, 1.0))
        return self

    def _solve_jointly(self, data: Data, problem: MarginProblem) -> Solution:
        """Minimise over the score functions of all classes together."""
        if not isinstance(data, ArrayData):
            raise DataError(
                f"{type(self).__name__}: multi_class='crammer_singer' visits rows in random order and needs X in "
                "memory; multi_class='ovr' takes files and Dask collections"
            )
        shape = problem.n_problems, problem.n_features + 1
        monitor = self._monitor(self.max_iter, lambda x: self._attributes(problem, x.reshape(shape), data.dtype))
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "state": self._resume_state() or None}
        limits["seed"] = seed_of(self.random_state)
        found, reason, kept = joint_descent(data, problem, monitor=monitor, **limits)
        if data.dtype != np.float64:  # the gap of the weights as they are stored
            theta = found.theta if len(found.theta) > 2 else found.theta[1:] - found.theta[:1]
            theta[:, :-1] = theta[:, :-1].astype(data.dtype)
            if problem.scale > 0:
                theta[:, -1] = (problem.scale * theta[:, -1]).astype(data.dtype) / problem.scale
            theta = theta if len(theta) > 1 else np.vstack([-theta / 2, theta / 2])
            found = joint_optimum(data, problem, theta, found.primal - found.gap)
        for name, value in self._attributes(problem, found.theta, data.dtype).items():
            setattr(self, name, value)
        self._keep_values(np.array([found.primal]), np.array([found.primal - found.gap]))
        certificate, history = gap_certificate([found], self.tol), monitor.history()
        return Solution(found.theta.ravel(), found.primal, history, certificate, history.n_iter, reason, state=kept)

    def _attributes(self, problem: Any, theta: np.ndarray, dtype: Any) -> dict[str, Any]:
        if len(theta) == 2:  # two classes fitted together differ by one score
            theta = theta[1:] - theta[:1]
        return {**super()._attributes(problem, theta, dtype), "classes_": self.classes_}

    # ------------------------------------------------------------------------------------------- prediction

    def decision_function(self, X: Any) -> Any:
        """Scores b + W x: one a row for two classes (positive favours ``classes_[1]``), else one for each class."""
        data = self._predict_data(X)
        scores = linear_predictor(data, self._weights(), self.intercept_, self.n_jobs)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """The class of every row: on whose side it lies, or for more than two that of the largest score."""
        data = self._predict_data(X)
        return engine.map(class_batch, data, self._weights(), self.intercept_, self.classes_, n_jobs=self.n_jobs)
