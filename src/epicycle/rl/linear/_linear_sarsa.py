r"""Values that are linear in features of the state:  q(x, a) = w_a' phi(x),  learnt by temporal differences.

    delta = r + discount B - w_a' phi(x),   e = discount lambda e + phi(x) at a,   w += rate / scale delta e

with B = q(x', a') (SARSA) or max_b q(x', b) (Q-learning). `scale` is the sum of the squares of the features, so that a
rate of 1 moves the value of a state to its target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._exceptions import DataError, ParameterTypeError
from epicycle.core._parameters import SHARED_PARAMETERS, Domain, Real
from epicycle.core._random import Seed, stream
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._agent import Agent
from epicycle.rl._interaction import Interaction
from epicycle.rl._schedules import Schedule, at_step, numbers_of
from epicycle.rl.linear._fourier_basis import FourierBasis
from epicycle.rl.linear._tile_coding import TileCoding

Array = np.ndarray


class LinearAgent(Agent):
    """Learns weights of features for each action, one episode at a time.

    An episode has a random stream of its own, so that nothing but the weights is needed to go on after it.
    """

    _target: ClassVar[str]
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "discount": Real(0, 1),
        "trace_decay": Real(0, 1),
        "random_state": SHARED_PARAMETERS["random_state"],
    }
    _docs: ClassVar[dict[str, str]] = {
        "act_returns": "int",
        "features": "features : TileCoding or FourierBasis\n    Features of the states.",
        "learning_rate": "learning_rate : float, LinearDecay or ExponentialDecay, default={default}\n"
        "    Share of the way to its target that the value of a state goes.",
        "epsilon": "epsilon : float, LinearDecay or ExponentialDecay, default={default}\n"
        "    Probability of any action while learning.",
        "trace_decay": "trace_decay : float, default={default}\n"
        "    :math:`\\lambda` in [0, 1]: how much of a temporal difference earlier steps get; 0 is without traces.",
        "coef_": "coef_ : array (A, n_features)\n    Weights of the features for each action.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("coef_",)

    coef_: Array

    features: TileCoding | FourierBasis
    learning_rate: Schedule
    epsilon: Schedule
    discount: float
    trace_decay: float

    @stores_arguments
    def __init__(
        self,
        features: TileCoding | FourierBasis,
        *,
        learning_rate: Schedule = 0.3,
        epsilon: Schedule = 0.1,
        discount: float = 0.99,
        trace_decay: float = 0.0,
        random_state: Seed = None,
    ) -> None: ...

    def _enter(self, world: Interaction) -> Interaction:
        name = type(self).__name__
        if not isinstance(self.features, TileCoding | FourierBasis):
            raise ParameterTypeError(f"{name}: features={self.features!r:.60}; expected TileCoding or FourierBasis")
        self._rate = numbers_of(f"{name}: learning_rate", self.learning_rate)
        self._chance = numbers_of(f"{name}: epsilon", self.epsilon, high=1.0)
        if world.n_actions is None:
            raise DataError("env.action_space: expected a discrete space with a number n of actions")
        if not hasattr(self, "coef_"):
            self.coef_ = np.zeros((world.n_actions, self.features.n_features))
        if len(self.coef_) != world.n_actions:
            raise DataError(f"env: got {world.n_actions} actions; expected {len(self.coef_)}, as in the first call")
        return world

    def _values(self, active: tuple[Array, Array | None]) -> Array:
        index, value = active
        chosen = self.coef_[:, index]
        return np.asarray(chosen.sum(axis=1) if value is None else chosen @ value)

    def _advance(self, world: Interaction, most: int) -> int:
        at, rng = self._progress, stream(self._progress["seed"], "agent", self._progress["episode"])
        w, fade = self.coef_, self.discount * self.trace_decay
        before = w.copy()
        trace = np.zeros_like(w) if self.trace_decay > 0 else None
        now = self.features.active(world.reset())
        q = self._values(now)
        begun, total, discounted, factor, steps = float(q.max()), 0.0, 0.0, 1.0, 0
        action = self._choose(q, at["made"], rng)
        over = False
        while not over and steps < most:
            observation, reward, terminated, truncated = world.step(action)
            total, discounted, factor = total + reward, discounted + factor * reward, factor * self.discount
            time = at["made"] + steps
            self._made = time + 1
            delta = reward - q[action]
            after, explored, next_q = now, 0, q
            if not terminated:
                after = self.features.active(observation)
                next_q = self._values(after)
                explored = self._choose(next_q, time + 1, rng)
                delta += self.discount * float(next_q[explored] if self._target == "sarsa" else next_q.max())
            rate = at_step(self._rate, time, 1) / self.features.scale
            index, value = now
            if trace is None:
                w[action, index] += rate * delta * (1.0 if value is None else value)
            else:
                trace *= fade
                if value is None:
                    trace[action, index] = 1.0  # a tile that is visited again is not counted twice
                else:
                    trace[action, index] += value
                w += rate * delta * trace
                if self._target == "q_learning" and next_q[explored] < next_q.max():
                    trace[:] = 0.0
            steps += 1
            over = terminated or truncated
            now, action = after, explored
            q = self._values(now)
            if not np.isfinite(q).all():
                w[:] = before
                raise DataError(
                    f"{type(self).__name__}: the weights ran away, those of the episode before are kept; expected a "
                    f"smaller learning_rate than {self.learning_rate!r}"
                )
        if over:
            chance = at_step(self._chance, at["made"] + steps, 1)
            self._log.extend(np.array([[at["made"] + steps, total, steps, discounted, begun, chance]]))
        at["episode"] = world.episode
        return steps

    def _choose(self, q: Array, step: int, rng: np.random.Generator) -> int:
        if rng.random() < at_step(self._chance, step, 1):
            return int(rng.integers(len(q)))
        best = np.flatnonzero(q == q.max())
        if not len(best):
            return 0  # values that ran away, which the episode notices
        return int(best[0] if len(best) == 1 else best[rng.integers(len(best))])

    def _break_off(self) -> None:
        self._progress["made"] = getattr(self, "_made", self._progress["made"])
        self._progress["episode"] += 1

    def action_values(self, observation: Any) -> Array:
        """Values of all actions in a state.

        Parameters
        ----------
        observation : array (d,)
            The state.

        Returns
        -------
        array (A,)
        """
        self._require_learnt()
        x = np.asarray(observation, dtype=np.float64)
        if x.shape != self.features.low.shape or not np.isfinite(x).all():
            raise DataError(f"observation: got shape {x.shape}; expected finite numbers {self.features.low.shape}")
        return self._values(self.features.active(x))

    def act(self, observation: Any, deterministic: bool = True) -> int:
        """Action in a state."""
        q = self.action_values(observation)
        if deterministic:
            return int(q.argmax())
        self._chance = numbers_of("epsilon", self.epsilon, high=1.0)
        return self._choose(q, self._progress["made"], self._drawing())

    def _learnt(self) -> dict[str, Any]:
        return {"coef": self.coef_}

    def _restore_learnt(self, state: dict[str, Any]) -> None:
        self.coef_ = np.array(state["coef"])


@in_catalogue("rl", "G9", certificate="none")
class LinearSARSA(LinearAgent):
    r"""SARSA for continuous states: values that are linear in features, :math:`q(x, a) = w_a'\phi(x)`.

    .. math:: w_a \leftarrow w_a + \tfrac{\alpha}{\|\phi\|^2} \big(r + \gamma\, q(x', a') - q(x, a)\big)\, e_a, \qquad
              e \leftarrow \gamma \lambda e + \phi(x)

    With `trace_decay` this is the semi-gradient SARSA(:math:`\lambda`) of Sutton and Barto, chapter 12, with replacing
    traces on tiles.

    Examples
    --------
    >>> from epicycle.control import MountainCar
    >>> from epicycle.rl import LinearSARSA, TileCoding
    >>> tiles = TileCoding([-1.2, -0.07], [0.6, 0.07])
    >>> agent = LinearSARSA(tiles, epsilon=0.0, discount=1.0, random_state=0)
    >>> agent.learn(MountainCar().environment(max_steps=1000), 3000).coef_.shape
    (3, 648)
    """

    _target = "sarsa"


@in_catalogue("rl", "G9", certificate="none")
class LinearQLearning(LinearAgent):
    r"""Q-learning for continuous states: values that are linear in features, :math:`q(x, a) = w_a'\phi(x)`.

    .. math:: w_a \leftarrow w_a + \tfrac{\alpha}{\|\phi\|^2} \big(r + \gamma \max_b q(x', b) - q(x, a)\big)\, e_a

    Off the policy and with features nothing is known to converge; in practice it mostly does with tiles. Traces end
    where an action is not greedy.

    Examples
    --------
    >>> from epicycle.control import MountainCar
    >>> from epicycle.rl import FourierBasis, LinearQLearning
    >>> basis = FourierBasis([-1.2, -0.07], [0.6, 0.07], order=3)
    >>> agent = LinearQLearning(basis, learning_rate=0.1, random_state=0)
    >>> agent.learn(MountainCar().environment(max_steps=1000), 2000).coef_.shape
    (3, 16)
    """

    _target = "q_learning"
