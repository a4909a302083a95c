"""`BehaviorCloning`: the policy of an expert as a matter of prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.core._parameters import (
    SHARED_PARAMETERS,
    Callable as CallableDomain,
    Domain,
    NoneOr,
    Real,
    check_parameters,
)
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._saved import Saved
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._episodes import Episodes
from epicycle.rl._evaluation import NO_PROOF, Evaluates
from epicycle.rl.imitation._action_model import (
    DOCS,
    ActionModel,
    fitted_model,
    numbered_states,
    rows_of,
    takes_numbers,
)

Array = np.ndarray


class Imitator(Evaluates):
    """The base of agents that act by an `ActionModel`."""

    _docs: ClassVar[dict[str, str]] = DOCS

    features: Callable[[Any], Any] | None
    random_state: Seed
    _model: ActionModel

    def act(self, observation: Any, deterministic: bool = True) -> Any:
        """Action in a state.

        Parameters
        ----------
        observation : int or array
            The state.
        deterministic : bool, default=True
            Whether to take the predicted action; otherwise one is drawn by the probabilities of the classifier.

        Returns
        -------
        int or array
        """
        self._require_learnt()
        model = self._model
        if deterministic or model.actions is None:
            action = self._predicted(observation)
            return int(action) if model.actions is not None else action
        X = self._row(np.asarray(observation))
        return int(self._drawing().choice(model.actions, p=model.probabilities(X)[0]))

    def _predicted(self, observation: Any) -> Array:
        model, x = self._model, np.asarray(observation)
        if model.width and self.features is None and x.ndim == 0 and x.dtype.kind in "iu":
            state = int(x)
            return np.asarray(model.table[state if 0 <= state < model.width else model.width])
        return np.asarray(model.predict(self._row(x))[0])

    def _row(self, x: Array) -> Array:
        """Features of a state (1, d)."""
        if self.features is None and x.dtype.kind not in "iufb":
            raise DataError(f"observation={x!r:.60}: expected numbers")
        return self._model.check(rows_of(self.features, x[None], self._model.width))

    @property
    def estimators_(self) -> list[Any]:
        """The fitted estimators: one, or one for each column of continuous actions."""
        self._require_learnt()
        return self._model.estimators


@in_catalogue("rl", "G12", certificate="none")
class BehaviorCloning(Imitator, Saved):
    r"""Policy of an expert, learnt from what the expert did by any classifier or regressor.

    A classifier learns :math:`\pi(a \mid s)` by maximum likelihood over the recorded steps, a regressor the mean of
    continuous actions. No environment and no rewards are needed. A share of the episodes is held out to see how often
    the policy would have acted otherwise than the expert; then all of them are learnt from.

    Small errors lead to states that the expert never saw, where there is nothing to copy: what is lost over T steps may
    grow as :math:`\varepsilon T^2` with the rate of errors :math:`\varepsilon`, against :math:`\varepsilon T` for
    :class:`DAgger`, which asks the expert there.

    Parameters
    ----------
    held_out : float, default=0.2
        Share of the episodes, or of rows without episodes, that are held out at first; 0 for none.
    random_state : int, Generator, RandomState or None, default=None
        Of the episodes that are held out, of an estimator without a seed of its own, and of actions that are drawn.

    Attributes
    ----------
    estimators_ : list of estimators
        The fitted estimator, or one for each column of continuous actions.
    history_ : History
        One row: number of steps, and errors on those that were learnt from and on those that were held out: the share
        of actions that differ, or for continuous actions the mean square relative to the variance.
    certificate_ : Certificate
        That there is no proof, with the error on the steps that were held out.

    See Also
    --------
    DAgger : Asks the expert in the states where the policy leads.
    InverseRL : Learns what the expert is after.

    Examples
    --------
    >>> from epicycle import LogisticRegression
    >>> from epicycle.control import MDPEnvironment, policy_iteration, worlds
    >>> from epicycle.rl import BehaviorCloning, record_episodes
    >>> grid = worlds.russell_norvig_grid()
    >>> expert = policy_iteration(grid).q_values().argmax(axis=1)
    >>> seen = record_episodes(expert, MDPEnvironment(grid), 100, seed=0)
    >>> policy = BehaviorCloning(LogisticRegression(C=100.0), random_state=0).fit(seen)
    >>> policy.evaluate(MDPEnvironment(grid), 100, seed=1).mean > 0.7
    True
    """

    _how_to_learn = "fit(episodes)"
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "features": NoneOr(CallableDomain()),
        "held_out": Real(0, 1, inclusive=(True, False)),
        "random_state": SHARED_PARAMETERS["random_state"],
    }

    history_: History
    certificate_: Certificate

    estimator: Any
    held_out: float

    @stores_arguments
    def __init__(
        self,
        estimator: Any = None,
        *,
        features: Callable[[Any], Any] | None = None,
        held_out: float = 0.2,
        random_state: Seed = None,
    ) -> None: ...

    def fit(self, episodes: Any, actions: Any = None, *, sample_weight: Any = None) -> BehaviorCloning:
        """Learn from recorded steps.

        Parameters
        ----------
        episodes : Episodes or array (n, ...)
            What was recorded, or the states alone.
        actions : array (n,) or (n, m), optional
            The actions, where only states are given: whole numbers, or controls.
        sample_weight : array (n,), optional
            Weights of the steps.

        Returns
        -------
        BehaviorCloning
            The object itself.
        """
        check_parameters(self, self._parameters)
        x, a, group = _steps(episodes, actions)
        weight = _weights(sample_weight, len(x))
        if weight is not None and not weight.all():  # a weight of 0 is a step that is not there
            x, a, group, weight = (column[weight > 0] for column in (x, a, group, weight))
            group = np.unique(group, return_inverse=True)[1]
        width = numbered_states(self.features, x)
        X, seed = rows_of(self.features, x, width), seed_of(self.random_state)
        takes_numbers(self.estimator, a)
        out = self._outside(group, seed)
        apart = np.nan
        if out.any() and not out.all():
            part = None if weight is None else weight[~out]
            model = fitted_model(self.estimator, X[~out], a[~out], part, width, seed)
            apart = disagreement(model, X[out], a[out], None if weight is None else weight[out])
        self._model = fitted_model(self.estimator, X, a, weight, width, seed)
        own = disagreement(self._model, X, a, weight)
        self.history_ = History(steps=[len(X)], error=[own], held_out_error=[apart])
        what = "share of other actions than the expert's" if self._model.actions is not None else "error of the actions"
        where = "on steps that were held out" if np.isfinite(apart) else "on the steps that were learnt from"
        shown = apart if np.isfinite(apart) else own
        meaning = f"{NO_PROOF}; {what} {where}: {shown:.3g}, in the states where the expert was"
        self.certificate_ = Certificate("none", np.nan, 0.0, meaning)
        return self

    def _outside(self, group: Array, seed: int) -> Array:
        """Mask of the rows that are held out, whole episodes of them."""
        n = int(group.max()) + 1
        size = min(round(float(self.held_out) * n), n - 1)
        return np.isin(group, stream(seed, "held out").permutation(n)[:size])

    def __epi_state__(self) -> dict[str, Any]:
        self._require_learnt()
        seed = None if isinstance(self.random_state, np.random.Generator | np.random.RandomState) else self.random_state
        return {
            "parameters": {"estimator": self.estimator, "held_out": self.held_out, "random_state": seed},
            "model": self._model.state(),
            "history": self.history_,
            "certificate": self.certificate_,
        }

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["parameters"])  # type: ignore[misc]  # an object that was only allocated
        self._model = ActionModel(**state["model"])
        self.history_, self.certificate_ = state["history"], state["certificate"]

    def __repr__(self) -> str:
        return f"BehaviorCloning(estimator={self.estimator!r})"


def disagreement(model: ActionModel, X: Array, actions: Array, weight: Array | None = None) -> float:
    """Share of actions that differ, or mean square of their differences relative to the variance."""
    found = model.predict(X)
    if model.actions is not None:
        return float(np.average(found != actions, weights=weight))
    Y = actions.reshape(len(X), -1)
    spread = float(np.average(((Y - np.average(Y, axis=0, weights=weight)) ** 2).sum(axis=1), weights=weight))
    return float(np.average(((found - Y) ** 2).sum(axis=1), weights=weight)) / (spread or 1.0)


def _steps(episodes: Any, actions: Any) -> tuple[Array, Array, Array]:
    """States, actions, and the number of the episode of each step."""
    if isinstance(episodes, Episodes):
        if actions is not None:
            raise DataError("actions: given together with episodes, which have actions; expected None")
        group = np.repeat(np.arange(episodes.n_episodes), episodes.lengths)
        return episodes.observations, episodes.actions, group
    if actions is None:
        raise DataError("actions: expected the expert's actions, or episodes that have them")
    x, a = np.asarray(episodes), np.asarray(actions)
    if x.ndim == 0 or not len(x) or x.dtype.kind not in "iufb" or not np.isfinite(x).all():
        raise DataError(f"episodes: got states of shape {x.shape}; expected Episodes, or finite numbers (n, ...)")
    if a.ndim not in (1, 2) or len(a) != len(x) or a.dtype.kind not in "iufb" or not np.isfinite(a).all():
        raise DataError(f"actions: got shape {a.shape}; expected finite numbers, one row for each of {len(x)} states")
    return x, a, np.arange(len(x))


def _weights(given: Any, n: int) -> Array | None:
    if given is None:
        return None
    weight = np.asarray(given, dtype=np.float64)
    if weight.shape != (n,) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise DataError(f"sample_weight: expected {n} finite numbers, none below 0 and not all 0")
    return weight
