r"""Policies that are linear in features phi of the state, with parameters theta in one vector.

discrete actions     pi(a | x) = softmax(W phi)_a,      d log pi(a) / dW = (1_a - pi) phi'
continuous actions   a ~ N(W phi, diag(exp 2 s)),       d log pi(a) / dW = exp(-2s) (a - W phi) phi',
d log pi(a) / ds = exp(-2s) (a - W phi)^2 - 1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.rl._interaction import Interaction

Array = np.ndarray


@dataclass(frozen=True)
class LinearPolicy:
    """Sizes of a policy, and its formulas.

    `n_states` is the number of states where these are numbers, of which each has a feature of its own; else None.
    """

    n_outputs: int
    n_features: int
    discrete: bool
    n_states: int | None
    features: Callable[[Array], Any] | None

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.n_outputs * self.n_features + (0 if self.discrete else self.n_outputs)

    def phi(self, observation: Any) -> Array:
        """Features of a state."""
        return _features(self.features, observation, self.n_states)

    def _parts(self, theta: Array) -> tuple[Array, Array]:
        n = self.n_outputs * self.n_features
        return theta[:n].reshape(self.n_outputs, self.n_features), theta[n:]

    def probabilities(self, theta: Array, phi: Array) -> Array:
        """Those of the discrete actions."""
        z = self._parts(theta)[0] @ phi
        p = np.exp(z - z.max())
        return np.asarray(p / p.sum())

    def best(self, theta: Array, phi: Array) -> Any:
        """The most probable action, or the mean."""
        out = self._parts(theta)[0] @ phi
        return int(out.argmax()) if self.discrete else out

    def draw(self, theta: Array, phi: Array, rng: np.random.Generator) -> Any:
        """An action."""
        if self.discrete:
            below = np.cumsum(self.probabilities(theta, phi)) <= rng.random()
            return min(int(below.sum()), self.n_outputs - 1)
        W, log_sd = self._parts(theta)
        return np.asarray(W @ phi + np.exp(log_sd) * rng.standard_normal(self.n_outputs))

    def score(self, theta: Array, phi: Array, action: Any) -> Array:
        """Gradient of log pi(action | x) by theta."""
        if self.discrete:
            left = -self.probabilities(theta, phi)
            left[action] += 1.0
            return np.outer(left, phi).ravel()
        W, log_sd = self._parts(theta)
        distance, precision = action - W @ phi, np.exp(-2 * log_sd)
        return np.concatenate([np.outer(precision * distance, phi).ravel(), precision * distance**2 - 1])


def linear_policy(world: Interaction, features: Callable[[Array], Any] | None) -> LinearPolicy:
    """The policy for the spaces of an environment; its first observation tells the number of features."""
    n_features = len(_features(features, world.reset(), world.n_states))
    if world.n_actions is not None:
        return LinearPolicy(world.n_actions, n_features, True, world.n_states, features)
    simulator = getattr(world.env, "simulator", None)
    shape = getattr(getattr(world.env, "action_space", None), "shape", None)
    shape = (simulator.n_controls,) if simulator is not None else shape
    if shape is None or len(shape) != 1:
        raise DataError("env.action_space: expected a discrete space, or a box of one dimension")
    return LinearPolicy(int(shape[0]), n_features, False, world.n_states, features)


def _features(features: Callable[[Array], Any] | None, observation: Any, n_states: int | None) -> Array:
    if features is not None:
        phi = np.asarray(features(observation), dtype=np.float64).ravel()
        if not np.isfinite(phi).all():
            raise DataError("features: got NaN or infinity; expected finite numbers")
        return phi
    if n_states is not None:
        phi = np.zeros(n_states)
        phi[int(observation)] = 1.0
        return phi
    return np.append(np.asarray(observation, dtype=np.float64).ravel(), 1.0)
