"""Passive-aggressive learning:  w <- argmin_u |u - w|^2 / 2 + C xi  subject to  l(u; x_i, y_i) <= xi,  row by row.

The solution is a step w + tau_i s_i x_i, with s_i the label, or the sign of the residual y_i - w'x_i - b, and

    PA-I    tau_i = min(C, l_i / |x_i|^2)             PA-II  tau_i = l_i / (|x_i|^2 + 1 / (2 C))       (xi^2 for xi)

(Crammer, Dekel, Keshet, Shalev-Shwartz and Singer, 2006). Both are dual ascent, a row at a time, on the support vector
machine  |u|^2 / 2 + C sum_i v_i l(u; x_i, y_i)  (l^2 for PA-II): the tau_i, averaged over the passes, are a point of
its dual, which bounds how far w is from its minimum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from sklearn.base import RegressorMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, Integer, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.linear.online._base_classifier import OnlineClassifier
from epicycle.linear.online._base_regressor import OnlineRegressor
from epicycle.linear.online._learner import Rule
from epicycle.linear.online._parameters import CLASS_WEIGHT, POSITIVE, SHARED_PARAMETERS

_SHARED: Mapping[str, Domain] = {**SHARED_PARAMETERS, "C": POSITIVE, "average": AnyOf(Boolean(), Integer(0))}
_DOCS: Mapping[str, str] = {
    "C": """C : float, default={default}
    Aggressiveness: the longest step of PA-I; for PA-II steps shrink with 1 / (2 C). Small for noisy rows.""",
    "passive_notes": """A row of weight v counts as v rows, each with a step of its own, and a last, shorter one for the
fraction that is left. The certificate bounds the distance from the minimum of the support vector machine with this C,
which the steps approach and need not reach.""",
}


def _steps(model: Any) -> Rule:
    return Rule(
        model._passive_loss,
        "pa2" if model.loss.startswith("squared") else "pa1",
        epsilon=float(model.epsilon),
        eta0=float(model.C),
        intercept=bool(model.fit_intercept),
        intercept_rate=None,
        average_from=int(model.average),
    )


def _machine(model: Any, rule: Rule, total: float) -> Rule:
    """The support vector machine whose dual the steps climb, over rows that count for `total`."""
    return replace(rule, loss=model.loss, l2=1.0 / (float(model.C) * total))


class PassiveAggressiveClassifier(OnlineClassifier):
    r"""Linear classifier that moves just as far as each row asks for.

    .. math:: w \leftarrow w + \tau_i y_i x_i, \qquad \tau_i = \min\Bigl(C, \frac{l_i}{\|x_i\|^2}\Bigr)
              \quad\text{or}\quad \tau_i = \frac{l_i}{\|x_i\|^2 + 1 / (2 C)}, \qquad l_i = \max(1 - y_i (w'x_i + b), 0)

    A row with a margin of one does nothing. More than two classes are learnt one against the rest; `partial_fit` learns
    from a stream. It is ``SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1" or "pa2", eta0=C)``.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The first step above (PA-I), or the second (PA-II).

    Notes
    -----
    %(passive_notes)s

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import PassiveAggressiveClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> PassiveAggressiveClassifier(random_state=0).fit(X, y == 0).score(X, y == 0)
    1.0
    """

    _docs: ClassVar[Mapping[str, str]] = _DOCS
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **_SHARED,
        "loss": Choice("hinge", "squared_hinge"),
        "class_weight": CLASS_WEIGHT,
    }
    _rule = _steps
    _certified_rule = _machine

    C: float

    @stores_arguments(
        fit_intercept=True, max_iter=1000, tol=1e-3, verbose=0, n_jobs=None, random_state=None, warm_start=False
    )
    def __init__(
        self,
        *,
        C: float = 1.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        loss: str = "hinge",
        class_weight: Mapping[Any, float] | str | None = None,
        average: bool | int = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...


class PassiveAggressiveRegressor(RegressorMixin, OnlineRegressor):  # type: ignore[misc]  # untyped mixin
    r"""Linear regression that moves just as far as each row asks for.

    .. math:: w \leftarrow w + \tau_i \, \mathrm{sign}(y_i - w'x_i - b) \, x_i, \qquad
              \tau_i = \min\Bigl(C, \frac{l_i}{\|x_i\|^2}\Bigr)
              \quad\text{or}\quad \tau_i = \frac{l_i}{\|x_i\|^2 + 1 / (2 C)}

    with :math:`l_i = \max(|y_i - w'x_i - b| - \epsilon, 0)`: a row that is predicted up to epsilon does nothing.
    `partial_fit` learns from a stream.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The first step above (PA-I), or the second (PA-II).
    epsilon : float, default=0.1
        The error that is left alone.

    Notes
    -----
    %(passive_notes)s

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import PassiveAggressiveRegressor
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> PassiveAggressiveRegressor(epsilon=0.01, random_state=0).fit(X, X @ [1.0, -2.0, 0.0]).coef_.round(1) + 0.0
    array([ 1., -2.,  0.])
    """

    _docs: ClassVar[Mapping[str, str]] = _DOCS
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **_SHARED,
        "loss": Choice("epsilon_insensitive", "squared_epsilon_insensitive"),
        "epsilon": Real(0),
    }
    _rule = _steps
    _certified_rule = _machine

    C: float

    @stores_arguments(fit_intercept=True, max_iter=1000, tol=1e-3, verbose=0, random_state=None, warm_start=False)
    def __init__(
        self,
        *,
        C: float = 1.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.1,
        average: bool | int = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...
