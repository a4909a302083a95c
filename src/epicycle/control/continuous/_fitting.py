"""Common parts of fitted iterations: regressors that are cloned, the loop with its history, the certificate."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from epicycle.control.continuous._action_policy import ActionPolicy
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterTypeError
from epicycle.core._history import History
from epicycle.core._parameters import SHARED_PARAMETERS, Integer, Real
from epicycle.core._saved import Saved
from epicycle.tree.forest._regressor import ExtraTreesRegressor

Array = np.ndarray
DOMAINS = {
    "discount": Real(0, 1),
    "max_iter": Integer(minimum=1),
    "tol": Real(0),
    "n_samples": Integer(minimum=1),
    "random_state": SHARED_PARAMETERS["random_state"],
}
#: Arguments that fitted iterations share.
ARGUMENTS = ("regressor", "discount", "max_iter", "tol", "random_state")
FITTED_DOCS: dict[str, str] = {
    "regressor": "regressor : estimator, optional\n"
    "    Any regressor with ``fit`` and ``predict``; it is cloned. By default 50 extremely randomised trees with at\n"
    "    least 3 rows in a leaf.",
    "discount": "discount : float, default={default}\n    Discount.",
    "max_iter": "max_iter : int, default={default}\n    Largest number of iterations.",
    "tol": "tol : float, default={default}\n"
    "    Change of the values, as the root of its mean square relative to their spread, at which to stop.",
}


class FittedPolicy(ActionPolicy, Saved):
    """Policy by values that were fitted, with what the iterations left behind."""

    _docs = FITTED_DOCS
    history_: History
    certificate_: Certificate
    n_iter_: int

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["parameters"])  # type: ignore[misc]  # an object that was only allocated
        for name, value in state["fitted"].items():
            setattr(self, name, value)


def regressor_of(given: Any, seed: int) -> Any:
    """A clone of the user's regressor, or the default one."""
    if given is None:
        return ExtraTreesRegressor(n_estimators=50, min_samples_leaf=3, random_state=seed % 2**31)
    if isinstance(given, type) or not (hasattr(given, "fit") and hasattr(given, "predict")):
        raise ParameterTypeError(f"regressor={given!r:.60}: expected an object with fit and predict")
    return clone(given)


def predictions(regressor: Any, X: Array) -> Array:
    """Predictions as a vector of finite numbers."""
    out = np.asarray(regressor.predict(X), dtype=np.float64).reshape(-1)
    if len(out) != len(X) or not np.isfinite(out).all():
        raise DataError(f"regressor: {type(regressor).__name__} predicted values that are not {len(X)} finite numbers")
    return out


def spread(values: Array) -> float:
    """Standard deviation of values; one where they are all equal."""
    return float(np.std(values)) or 1.0


def fitted_rounds(
    targets: Callable[[], Array], fit: Callable[[Array], Array], max_iter: int, tol: float
) -> tuple[History, Certificate, int]:
    """Repeat: targets from the fitted values, fit to the targets. `fit` gives the fitted values at the rows.

    The change is that of the fitted values; the residual is what the regressor leaves of the targets of that round.
    """
    rows: dict[str, list[float]] = {"change": [], "residual": [], "seconds": []}
    began, before = perf_counter(), None
    for n_iter in range(1, max_iter + 1):  # noqa: B007
        y = targets()
        fitted = fit(y)
        size = spread(y)
        change = np.inf if before is None else float(np.sqrt(np.mean((fitted - before) ** 2)) / size)
        rows["change"].append(change)
        rows["residual"].append(float(np.sqrt(np.mean((fitted - y) ** 2)) / size))
        rows["seconds"].append(perf_counter() - began)
        before = fitted
        if change <= tol:
            break
    y = targets()  # of the final values: the residual of Bellman's equation itself
    residual = float(np.sqrt(np.mean((before - y) ** 2)) / spread(y))
    meaning = (
        f"on the rows of the sample the fitted values satisfy Bellman's equation to {residual:.1e} of their spread; "
        "nothing is proven for other states, nor about the policy"
    )
    return History(**rows), Certificate("Bellman residual", residual, 0.1, meaning), n_iter
