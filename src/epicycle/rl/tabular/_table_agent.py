"""The base of all agents with a table of values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, TypedDict

import numpy as np

from epicycle._native import rl as native
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import SHARED_PARAMETERS, Domain, Real
from epicycle.core._random import Seed, stream
from epicycle.rl._agent import Agent
from epicycle.rl._evaluation import state_number
from epicycle.rl._interaction import Interaction
from epicycle.rl._schedules import Exploration, Schedule, at_step, exploration_of, numbers_of
from epicycle.rl.tabular._table_certificate import loss_of_greedy_policy
from epicycle.rl.tabular._table_world import TableWorld, table_world

Array = np.ndarray
TARGETS = {"q_learning": 0, "sarsa": 1, "expected_sarsa": 2, "double_q_learning": 3, "state_values": 4}
GIVEN_POLICY = 3  # its number among the ways to explore
_CHUNK = 1 << 18  # steps of a table between two looks at the clock
_ROWS = 1 << 16  # episodes of a table between two looks
_CALLS = 10_000  # the same of other environments
_MOST = 100_000_000  # entries of a table of values
# Places in the kernel's position; its head file says what they are.
_WHOLE, _REAL, _STEPS, _RUNNING, _LENGTH, _WAITING, _ACTIVE = 12, 4, 4, 5, 8, 10, 11


class TableArguments(TypedDict, total=False):
    """Arguments of the constructors of agents with a table."""

    learning_rate: Schedule
    exploration: Exploration
    discount: float
    initial_value: float
    random_state: Seed


TABLE_DEFAULTS: Mapping[str, Any] = {
    "learning_rate": 0.1,
    "exploration": 0.1,
    "discount": 0.99,
    "initial_value": 0.0,
    "random_state": None,
}


class TableAgent(Agent):
    """Values of states and actions in a table, learnt by a kernel.

    A subclass names its target and calls the kernel in `_learn_steps`.
    """

    _target: ClassVar[str]
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "discount": Real(0, 1),
        "initial_value": Real(),
        "random_state": SHARED_PARAMETERS["random_state"],
    }
    _docs: ClassVar[dict[str, str]] = {
        "learning_rate": "learning_rate : float, LinearDecay, ExponentialDecay or VisitDecay, default={default}\n"
        "    Share of the way to its target that a value goes.",
        "exploration": "exploration : float, EpsilonGreedy, Softmax or UCB, default={default}\n"
        "    How actions are chosen while learning; a number is the probability of any action at all.",
        "initial_value": "initial_value : float, default={default}\n"
        "    Value of all actions at first; one above all that can be earned makes the agent try everything.",
        "act_observation": "observation : int\n    Number of the state.",
        "act_returns": "int",
        "q_": "q_ : array (S, A)\n    Values of actions; NaN where an action is not available.",
        "policy_": "policy_ : array (S,)\n    Number of the best action in each state, the first of equals.",
        "values_": "values_ : array (S,)\n    Values of the states under `policy_`.",
        "visits_": "visits_ : array (S, A)\n    Number of updates of each value.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("q_", "policy_", "values_", "visits_")

    learning_rate: Schedule
    exploration: Exploration
    discount: float
    initial_value: float
    q_: Array
    policy_: Array
    values_: Array
    visits_: Array

    # ------------------------------------------------------------------------------------------------ learning

    def _enter(self, world: Interaction) -> TableWorld:
        n, m = world.n_states, world.n_actions
        if n is None or m is None:
            space = "observation_space" if n is None else "action_space"
            raise DataError(
                f"env.{space}={getattr(world.env, space, None)!r:.80}: expected a discrete space with a number n; "
                "control.discretize makes one of a continuous system"
            )
        if n * m > _MOST:
            raise DataError(f"env: {n:,} states and {m:,} actions; expected at most {_MOST:,} pairs for a table")
        self._settings()  # the arguments are checked before the first step
        if not hasattr(self, "_tables"):
            self._tables = self._new_tables(n, m)
        if self._allowed.shape != (n, m):
            raise DataError(
                f"env: got {n} states and {m} actions; expected {self._allowed.shape[0]} and "
                f"{self._allowed.shape[1]}, as in the first call of learn"
            )
        entered = table_world(world, self._allowed)
        if not entered.by_table and self._tables["whole"][_RUNNING]:
            self._forget_episode()  # of an environment that is gone
        self._prepare_tables()
        return entered

    def _new_tables(self, n_states: int, n_actions: int) -> dict[str, Array]:
        keys = n_states if self._by_state else n_states * n_actions
        return {
            "q": np.full(keys, float(self.initial_value)),
            "second": np.zeros(0),
            "visits": np.zeros(keys, dtype=np.int64),
            "allowed": np.ones((n_states, n_actions), dtype=np.uint8),
            "whole": np.zeros(_WHOLE, dtype=np.int64),
            "real": np.zeros(_REAL),
        }

    @property
    def _by_state(self) -> bool:
        return self._target == "state_values"

    @property
    def _allowed(self) -> Array:
        return self._tables["allowed"]

    def _prepare_tables(self) -> None:
        """Make what depends on the actions that are available."""

    def _begin(self, seed: int) -> None:
        whole = self._tables["whole"]
        whole[:4] = stream(seed, "agent").integers(2**64, size=4, dtype=np.uint64).view(np.int64)
        self._forget_episode()

    def _settings(self) -> tuple[Any, ...]:
        """Discount, target, exploration and schedules as the kernels take them."""
        ways = exploration_of(f"{type(self).__name__}: exploration", self.exploration)
        rate = numbers_of(f"{type(self).__name__}: learning_rate", self.learning_rate, high=1.0)
        return float(self.discount), TARGETS[self._target], ways._number, rate, numbers_of("exploration", ways._amount)

    def _at_work(self) -> tuple[native.Learner, native.Position]:
        """The learner as the kernels take it, and where it stands."""
        t = self._tables
        discount, target, way, rate, explore = self._settings()
        learner = native.Learner(
            q=t["q"],
            second=t["second"],
            visits=t["visits"],
            allowed=t["allowed"].ravel(),
            policy=t.get("policy"),
            discount=discount,
            target=target,
            exploration=way,
            rate=rate,
            explore=explore,
        )
        return learner, native.Position(t["whole"], t["real"])

    def _advance(self, world: TableWorld, most: int) -> int:
        rows = np.empty((min(_ROWS, most) if world.by_table else 1, len(self._columns)))
        chunk = min(most, _CHUNK if world.by_table else _CALLS)
        made, episodes = self._learn_steps(world.kernel, chunk, most, rows)
        self._log.extend(rows[:episodes])
        self._progress["episode"] = world.interaction.episode
        return made

    @abstractmethod
    def _learn_steps(self, kernel: Any, steps: int, most: int, rows: Array) -> tuple[int, int]:
        """Learn from so many steps, `most` of which are left of this call of `learn`: numbers of steps and episodes."""

    def _settled(self, world: TableWorld) -> bool:
        return world.by_table or not self._tables["whole"][_RUNNING]

    def _break_off(self) -> None:
        self._progress["made"] = int(self._tables["whole"][_STEPS])
        self._forget_episode()

    def _forget_episode(self) -> None:
        whole = self._tables["whole"]
        whole[[_RUNNING, _WAITING, _ACTIVE, _LENGTH]] = 0
        if "trace" in self._tables:
            self._tables["trace"][:] = 0.0

    def _conclude(self, world: TableWorld) -> None:
        self._read_tables()
        found = loss_of_greedy_policy(world.interaction.env, self.discount, self.q_, self.policy_, self.visits_)
        if found is not None:
            self.certificate_ = found

    def _table(self) -> Array:
        """Values of states and actions."""
        return self._tables["q"].reshape(self._allowed.shape)

    def _read_tables(self) -> None:
        allowed = self._allowed > 0
        self.q_ = np.where(allowed, self._table(), np.nan)
        best = np.where(allowed, self._table(), -np.inf)
        self.policy_, self.values_ = best.argmax(axis=1), best.max(axis=1)
        self.visits_ = self._tables["visits"].reshape(allowed.shape).copy()

    # ------------------------------------------------------------------------------------------------ afterwards

    def act(self, observation: Any, deterministic: bool = True) -> int:
        """Action in a state."""
        self._require_learnt()
        state = state_number(observation, len(self._allowed))
        return int(self.policy_[state]) if deterministic else self._drawn(self._probabilities(state))

    def _probabilities(self, state: int) -> Array:
        """With which each action is taken in a state while learning."""
        way = exploration_of("exploration", self.exploration)
        visits, allowed = self.visits_[state], self._allowed[state] > 0
        amount = at_step(numbers_of("exploration", way._amount), int(self._tables["whole"][_STEPS]), visits.sum() + 1)
        q = np.where(allowed, self._table()[state], -np.inf)
        if way._number == 1:
            p = np.exp((q - q.max()) / amount)
            return np.asarray(p / p.sum())
        if way._number == 2:
            bonus = amount * np.sqrt(np.log(max(visits.sum(), 1)) / np.maximum(visits, 1))
            q, amount = np.where(allowed & (visits == 0), np.inf, q + bonus), 0.0
        best = q == q.max()
        return np.asarray(amount * allowed / allowed.sum() + (1 - amount) * best / best.sum())

    # ------------------------------------------------------------------------------------------------ files

    def _learnt(self) -> dict[str, Any]:
        return {name: table for name, table in self._tables.items() if name != "policy"}

    def _restore_learnt(self, state: dict[str, Any]) -> None:
        self._tables = {name: np.array(table) for name, table in state.items()}
        self._read_tables()
