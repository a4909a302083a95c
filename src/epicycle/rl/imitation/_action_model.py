"""`ActionModel`: a policy that any classifier or regressor has learnt from rows of states and actions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from epicycle.core._exceptions import DataError, ParameterTypeError
from epicycle.tree.forest._classifier import ExtraTreesClassifier
from epicycle.tree.forest._regressor import ExtraTreesRegressor

Array = np.ndarray
DOCS = {
    "estimator": "estimator : classifier or regressor, optional\n"
    "    Anything with ``fit`` and ``predict``, of which clones are fitted: a classifier for numbered actions, a "
    "regressor for\n    continuous ones. By default 100 extremely randomised trees.",
    "features": "features : callable, optional\n    Features (d,) of a state; by default the state itself, and for "
    "numbered states one feature for each. A file does\n    not keep it: give it to the policy that was loaded by "
    "``policy.features = ...``.",
}


class ActionModel:
    """Estimators that give the action in a state.

    `actions` has the numbers of the actions that were seen, None where actions are continuous; `width` the number of
    states where these are numbered, otherwise 0.
    """

    def __init__(self, estimators: list[Any], actions: Array | None, width: int) -> None:
        self.estimators, self.actions, self.width = estimators, actions, width

    @cached_property
    def table(self) -> Array:
        """Actions in the numbered states, the last row in one that was never seen: asked for at every step."""
        return self.predict(np.eye(self.width + 1, self.width))

    def predict(self, X: Array) -> Array:
        """Actions (rows,) or (rows, m)."""
        if self.actions is None:
            columns = [np.asarray(one.predict(X), dtype=np.float64).reshape(len(X)) for one in self.estimators]
            return np.stack(columns, axis=1)
        if not self.estimators:  # the expert did one thing only
            return np.full(len(X), self.actions[0])
        return np.asarray(self.estimators[0].predict(X))

    def probabilities(self, X: Array) -> Array:
        """Probabilities of the actions that were seen (rows, len(actions)); 0 and 1 of estimators without any."""
        if self.actions is None:
            raise DataError("policy: its actions are continuous and have no probabilities")
        if self.estimators and hasattr(self.estimators[0], "predict_proba"):
            return np.asarray(self.estimators[0].predict_proba(X))
        return np.asarray((self.predict(X)[:, None] == self.actions).astype(float))

    def check(self, X: Array) -> Array:
        """The rows, if there are as many features as were learnt from."""
        expected = getattr(self.estimators[0], "n_features_in_", X.shape[1]) if self.estimators else X.shape[1]
        if X.shape[1] != expected:
            raise DataError(f"observation: gives {X.shape[1]} features; expected {expected}, as while learning")
        return X

    def state(self) -> dict[str, Any]:
        """The content of a file."""
        return {"estimators": self.estimators, "actions": self.actions, "width": self.width}


def fitted_model(estimator: Any, X: Array, actions: Array, weight: Array | None, width: int, seed: int) -> ActionModel:
    """Fit clones of an estimator, one for each column of continuous actions."""
    given = {} if weight is None else {"sample_weight": weight}
    if takes_numbers(estimator, actions):
        kinds = np.unique(actions)
        if len(kinds) == 1:
            return ActionModel([], kinds, width)
        return ActionModel([_cloned(estimator, ExtraTreesClassifier, seed).fit(X, actions, **given)], kinds, width)
    Y = actions.reshape(len(X), -1).astype(np.float64)
    return ActionModel([_cloned(estimator, ExtraTreesRegressor, seed).fit(X, y, **given) for y in Y.T], None, width)


def takes_numbers(estimator: Any, actions: Array) -> bool:
    """Whether actions are numbers of a few; checks that this suits the estimator."""
    numbered = actions.ndim == 1 and actions.dtype.kind in "iu"
    if estimator is None:
        return numbered
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise ParameterTypeError(f"estimator={estimator!r:.60}: expected an object with fit and predict")
    if is_classifier(estimator) != numbered:
        expected = "floats, or a classifier" if numbered else "numbers of actions (n,), or a regressor"
        kind = "regressor" if numbered else "classifier"
        raise DataError(
            f"actions: got shape {actions.shape} of {actions.dtype} for the {kind} {type(estimator).__name__}; "
            f"expected {expected}"
        )
    return numbered


def _cloned(estimator: Any, default: Any, seed: int) -> Any:
    if estimator is None:
        return default(n_estimators=100, random_state=seed % 2**31)
    one = clone(estimator)
    if "random_state" in one.get_params(deep=False) and one.random_state is None:
        one.set_params(random_state=seed % 2**31)  # the same seed gives the same bits
    return one


def rows_of(features: Callable[[Any], Any] | None, observations: Any, width: int) -> Array:
    """Features of states (rows, d); numbered ones become indicators of `width` columns."""
    given = np.asarray(observations)
    if features is not None:
        try:
            X = np.array([np.asarray(features(x), dtype=np.float64).ravel() for x in given])
        except (TypeError, ValueError) as error:
            raise DataError(f"features: expected finite numbers, as many for every state ({error})") from error
    elif given.ndim == 1 and given.dtype.kind in "iu":
        X = (given[:, None] == np.arange(width)).astype(np.float64)
    else:
        X = given.reshape(len(given), -1).astype(np.float64)
    if X.ndim != 2 or not np.isfinite(X).all():
        raise DataError("features: expected finite numbers, as many for every state")
    return X


def numbered_states(features: Callable[[Any], Any] | None, observations: Array) -> int:
    """Number of columns that indicators of states need; 0 where states are no numbers."""
    numbered = features is None and observations.ndim == 1 and observations.dtype.kind in "iu"
    return int(observations.max()) + 1 if numbered else 0
