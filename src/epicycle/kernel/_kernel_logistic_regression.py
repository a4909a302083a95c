"""Kernel logistic regression:  minimise  sum_i v_i loss(f(x_i) + b, y_i) + |f|^2 / 2C  over the space of the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.kernel._logistic_newton import LogisticProblem, minimise
from epicycle.kernels._machine import KERNEL_PARAMETERS, KernelClassifier
from epicycle.stats._class_scores import log_probabilities, probabilities


class KernelLogisticRegression(KernelClassifier):
    r"""Logistic and softmax regression in the feature space of a kernel.

    .. math:: \min_{f, b} \sum_i v_i \bigl[\log(1 + e^{z_i}) - y_i z_i\bigr] + \frac{1}{2C} \|f\|^2,
              \qquad z_i = f(x_i) + b, \qquad f(x) = \sum_j c_j k(x_j, x)

    and for more than two classes the sum of :math:`\log \sum_k e^{z_{ik}} - z_{i y_i}` in the same way. At the optimum
    :math:`c_j = C v_j (y_j - p_j)`. A fitted object keeps the training rows: prediction needs them.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.
    fit_intercept : bool, default=True
        Whether b is fitted, without a penalty.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the classes.
    tol : float, default=1e-12
        Relative duality gap at which the fit ends.
    max_iter : int, default=100
        Maximum number of Newton steps.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The coefficients c of the rows.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    %(X_fit_)s
    %(kernel_)s
    certificate_ : Certificate
        The relative duality gap.
    history_ : History
        Objective, gap and steps of conjugate gradients of every Newton step.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import KernelLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = (X[:, 0] ** 2 + X[:, 1] ** 2 > 1).astype(int)  # a circle
    >>> model = KernelLogisticRegression(C=10.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.certificate_.holds
    (True, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "C": Real(minimum=0, inclusive=False),
        **KERNEL_PARAMETERS,
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced"))),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C1", "C2"), engines=("memory",), certificate="duality gap", keeps_rows=True
    )

    @stores_arguments(fit_intercept=True, tol=1e-12, max_iter=100, n_jobs=None, verbose=0)
    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        class_weight: Mapping[Any, float] | str | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with labels y."""
        rows, codes, weight, kept = self._labelled(X, y, sample_weight)
        self._require(len(kept), 2.0)
        self._keep(rows, kept)
        K = self._gram(self.kernel_.prepare(rows))
        self._require_mercer(K)
        means = K.mean(axis=0) if self.fit_intercept else np.zeros(len(K))
        labels = codes[:, None] == (np.array([1]) if len(self.classes_) == 2 else np.arange(len(self.classes_)))
        problem = LogisticProblem(
            K, labels.astype(np.float64), weight, 1 / self.C, intercept=bool(self.fit_intercept), n_jobs=self.n_jobs
        )

        shape = labels.shape

        def attributes(x: np.ndarray) -> dict[str, Any]:
            self._assign(x[: labels.size].reshape(shape), x[labels.size :], means)
            return self._learnt_attributes()

        state = self._resume_state() or {}
        solution, best = minimise(
            problem,
            tol=self.tol,
            max_iter=self.max_iter,
            monitor=self._monitor(self.max_iter, attributes),
            start=np.asarray(state["C"]) if state else None,
            start_b=np.asarray(state["b"]) if state else None,
            done=min(int(state.get("done", 0)), self.max_iter - 1),
        )
        self._assign(best.C, best.b, means)
        self._conclude(solution)
        return self

    def _assign(self, C: np.ndarray, b: np.ndarray, means: np.ndarray) -> None:
        # Scores of the centred kernel differ from those of the kernel by a constant, which b takes up.
        self.dual_coef_ = C[:, 0] if C.shape[1] == 1 else C
        self.intercept_ = b - means @ C

    def _scores(self, X: Any) -> Any:
        self._check_fitted()
        C = self.dual_coef_[:, None] if self.dual_coef_.ndim == 1 else self.dual_coef_
        return self._combine(X, C, self.intercept_)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities, exact also where they underflow."""
        return log_probabilities(np.asarray(self._scores(X)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of `classes_`."""
        return probabilities(np.asarray(self._scores(X)))
