"""The base of agents with networks: environments, networks, scales, files."""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np

from epicycle.core._exceptions import ConvergenceError, ConvergenceWarning, DataError
from epicycle.core._parameters import (
    SHARED_PARAMETERS,
    AnyOf,
    Boolean,
    Choice,
    Described,
    Domain,
    InstanceOf,
    Integer,
    NoneOr,
    Real,
)
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._threads import single_threaded_blas
from epicycle.nets.training._options import NET_PARAMETERS
from epicycle.nets.training._torch import (
    device_named,
    device_or_cpu,
    memory_errors_named,
    one_thread_each,
    require_torch,
    seeded,
)
from epicycle.rl._agent import Agent
from epicycle.rl._schedules import ExponentialDecay, LinearDecay, Schedule, at_step, numbers_of
from epicycle.rl.deep._moments import RewardScale, RunningMoments
from epicycle.rl.deep._spaces import Spaces
from epicycle.rl.deep._worlds import Step, Worlds, worlds_of

if TYPE_CHECKING:
    from epicycle.rl.deep._networks import Net

Array = np.ndarray
SCHEDULE = AnyOf(Real(0), InstanceOf(LinearDecay, ExponentialDecay))
HIDDEN = Described(
    "a tuple of one or more widths",
    lambda value: (
        isinstance(value, tuple | list) and len(value) > 0 and all(isinstance(n, int) and n > 0 for n in value)
    ),
)
ACTIVATION = Choice("relu", "tanh")


class DeepArguments(TypedDict, total=False):
    """Arguments of the constructors of agents with networks."""

    activation: str
    learning_rate: Schedule
    discount: float
    normalize_observations: bool
    normalize_rewards: bool
    n_envs: int
    episode_limit: int | None
    device: str
    random_state: Seed


DEEP_DEFAULTS: Mapping[str, Any] = {
    "discount": 0.99,
    "normalize_observations": False,
    "normalize_rewards": False,
    "n_envs": 1,
    "episode_limit": None,
    "device": "cpu",
    "random_state": None,
}


class DeepAgent(Agent):
    """Learns networks from steps in one or several environments.

    A subclass makes its networks (`_make_nets`), draws actions (`_explore`), and learns in `_advance`. Whatever is
    random is drawn from one generator of NumPy, whose state is in the file.
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "hidden": HIDDEN,
        "activation": ACTIVATION,
        "learning_rate": SCHEDULE,
        "discount": Real(0, 1),
        "n_envs": Integer(minimum=1),
        "normalize_observations": Boolean(),
        "normalize_rewards": Boolean(),
        "episode_limit": NoneOr(Integer(minimum=1)),
        "device": NET_PARAMETERS["device"],
        "random_state": SHARED_PARAMETERS["random_state"],
    }
    _docs: ClassVar[dict[str, str]] = {
        "hidden": "hidden : tuple of int, default={default}\n    Widths of the layers of each network. Images go "
        "through convolutions before.",
        "activation": 'activation : {{"relu", "tanh"}}, default={default}\n    What follows each layer.',
        "learning_rate": "learning_rate : float, LinearDecay or ExponentialDecay, default={default}\n"
        "    Length of a step of Adam; a schedule counts steps in the environments.",
        "n_envs": "n_envs : int, default={default}\n    Copies of a single environment that are stepped in turn. A "
        "list of environments, or a vector environment of\n    Gymnasium, has its own number.",
        "normalize_observations": "normalize_observations : bool, default={default}\n    Whether observations are "
        "brought to mean 0 and variance 1 by their running moments.",
        "normalize_rewards": "normalize_rewards : bool, default={default}\n    Whether rewards are divided by the "
        "running standard deviation of their discounted sums. The history has them as\n    they are.",
        "episode_limit": "episode_limit : int, optional\n    Steps after which an episode is cut off; by default the "
        "environment says when.",
        "device": "device : str, default={default}\n    Where the networks are: 'cpu', 'cuda', or 'auto' for a GPU "
        "where there is one.",
    }

    hidden: tuple[int, ...]
    activation: str
    learning_rate: Schedule
    discount: float
    n_envs: int
    normalize_observations: bool
    normalize_rewards: bool
    episode_limit: int | None
    device: str
    _nets: dict[str, Net]
    _spaces: Spaces
    _reward_scale: RewardScale
    _worlds: Worlds

    # ------------------------------------------------------------------------------------------------ learning

    def _meet(self, env: Any, seed: int, episode: int) -> Worlds:
        require_torch(type(self).__name__)
        return worlds_of(env, self.n_envs, seed, episode)

    @contextmanager
    def _one_thread(self) -> Iterator[None]:
        with single_threaded_blas(), one_thread_each(), memory_errors_named(type(self).__name__):
            yield

    def _surroundings(self) -> AbstractContextManager[None]:
        return self._one_thread()

    def _enter(self, world: Any) -> Worlds:
        spaces = world.spaces()
        if not hasattr(self, "_nets"):
            self._check_spaces(spaces)
            self._spaces, seed = spaces, world.seed
            self._build(seed)
        elif not self._spaces.same(spaces):
            raise DataError(f"env: has {spaces}; expected {self._spaces}, as in the first call")
        if not hasattr(self, "_reward_scale") or len(self._reward_scale.sums) != world.n:
            moments = self._reward_scale.moments if hasattr(self, "_reward_scale") else None
            self._reward_scale = RewardScale(world.n, self.discount)
            self._reward_scale.moments = moments or self._reward_scale.moments
        self._worlds = world
        at = getattr(self, "_progress", {"made": 0, "goal": 0, "seed": None})
        running, losses = vars(self).pop("_running", None), vars(self).pop("_losses_before", {})
        if at["made"] >= at["goal"] or at["seed"] != world.seed:
            running, losses = None, {}
        self._loss_sums: dict[str, list[float]] = losses
        made = at["made"]
        self._prepare(world.n)
        again = world.start(
            self._spaces,
            made=made,
            discount=self.discount,
            episode_limit=self.episode_limit,
            value_of=lambda x: self._values_of(self._normalized(x)),
            running=running,
        )
        if not again:
            warnings.warn(
                f"{type(self).__name__}.resume: running episodes did not come out as they were when their actions were "
                "played again; new ones begin, and what is learnt will not be the same to the last bit",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self._worlds

    def _build(self, seed: int) -> None:
        """The networks, with weights drawn from the seed."""
        self._torch_device = device_named(self.device)
        with seeded(seed_of(stream(seed, "weights"))):
            self._nets = self._make_nets(self._spaces)
        self._moments = RunningMoments(self._spaces.shape)
        self._connect()

    def _begin(self, seed: int) -> None:
        self._rng = stream(seed, "agent", self._progress["made"])

    def _settled(self, world: Worlds) -> bool:
        return world.exact

    def _break_off(self) -> None:
        self._progress["made"] = max(self._progress["made"], self._worlds.made)
        self._progress["episode"] = self._worlds.episode
        self._record()
        vars(self).pop("_worlds", None)

    def _conclude(self, world: Worlds) -> None:
        if hasattr(self, "_worlds") and self._progress["made"] < self._progress["goal"]:
            self._running, self._losses_before = world.state(), self._loss_sums
        vars(self).pop("_worlds", None)

    # what follows is for subclasses

    def _check_spaces(self, spaces: Spaces) -> None:
        """Refuse environments that the agent is not for."""

    @abstractmethod
    def _make_nets(self, spaces: Spaces) -> dict[str, Net]:
        """New networks by name."""

    @abstractmethod
    def _connect(self) -> None:
        """Set what acting needs from the networks, as after a file was read."""

    def _prepare(self, n: int) -> None:
        """Make what is needed for so many environments."""

    @abstractmethod
    def _values_of(self, x: Array) -> Array:
        """Values of states, of observations as the networks take them."""

    @abstractmethod
    def _explore(self, x: Array, rng: np.random.Generator) -> Array:
        """Actions while learning: numbers, or scaled to [-1, 1]."""

    @abstractmethod
    def _best(self, x: Array) -> Array:
        """The actions that are thought best."""

    @property
    def _exploration(self) -> float:
        """The column of the history."""
        return float("nan")

    # ------------------------------------------------------------------------------------------------ steps

    def _normalized(self, x: Array) -> Array:
        return self._moments.normalize(x) if self.normalize_observations and x.dtype != np.uint8 else x

    def _scaled(self, rewards: Array) -> Array:
        """Rewards as they are learnt from."""
        return self._reward_scale.scaled(rewards) if self.normalize_rewards else rewards

    def _to_environment(self, actions: Array) -> Array:
        return actions if self._spaces.discrete else self._spaces.action(actions)

    def _step(self, worlds: Worlds, actions: Array) -> Step:
        """Act in all environments."""
        step = worlds.step(self._to_environment(actions))
        if self.normalize_rewards:
            self._reward_scale.update(step.rewards, step.over)
        return step

    @property
    def _now(self) -> int:
        """Steps so far."""
        return self._worlds.made if "_worlds" in vars(self) else int(self._progress["made"])

    def _rate(self, name: str = "learning_rate") -> float:
        """A schedule at the present step."""
        given = getattr(self, name)
        if isinstance(given, int | float):
            return float(given)
        return at_step(numbers_of(name, given), self._now, 1)

    def _tensor(self, x: Array) -> Any:
        import torch

        if x.dtype == np.float64:
            with np.errstate(over="ignore"):  # an infinite loss is said by `_note_losses`
                x = x.astype(np.float32)
        return torch.from_numpy(x).to(self._torch_device)

    def _note_losses(self, **losses: float) -> None:
        """Keep losses for the history; an update whose loss is no number ends the run."""
        for name, value in losses.items():
            if not np.isfinite(value):
                raise ConvergenceError(
                    f"{type(self).__name__}: {name} is {value} after {self._worlds.made:,} steps; lower learning_rate, "
                    "or set normalize_rewards or normalize_observations"
                )
            self._loss_sums.setdefault(name, []).append(value)

    def _record(self) -> None:
        """Episodes that came to their end go to the log, with the means of losses since the last ones."""
        worlds = self._worlds
        self._progress["episode"] = worlds.episode
        if not worlds.finished:
            return
        names = self._columns[6:]
        means = [float(np.mean(self._loss_sums[name])) if self._loss_sums.get(name) else np.nan for name in names]
        self._log.extend(np.array([[*row, self._exploration, *means] for row in worlds.finished]))
        worlds.finished.clear()
        self._loss_sums.clear()

    # ------------------------------------------------------------------------------------------------ afterwards

    def act(self, observation: Any, deterministic: bool = True) -> Any:
        """Action in a state."""
        self._require_learnt()
        x = self._normalized(self._spaces.checked(observation)[None])
        found = self._best(x) if deterministic else self._explore(x, self._drawing())
        return int(found[0]) if self._spaces.discrete else self._to_environment(found)[0]

    def evaluate(self, env: Any, *args: Any, **kwargs: Any) -> Any:
        with single_threaded_blas(), one_thread_each():
            return super().evaluate(env, *args, **kwargs)

    def value(self, observation: Any) -> float:
        """Estimated value of a state: the discounted rewards to come.

        Parameters
        ----------
        observation : int or array
            The state, as the environment returns it.

        Returns
        -------
        float
            With `normalize_rewards` in units of the rewards' scale.
        """
        self._require_learnt()
        return float(self._values_of(self._normalized(self._spaces.checked(observation)[None]))[0])

    # ------------------------------------------------------------------------------------------------ files

    def _learnt(self) -> dict[str, Any]:
        on = self._progress["made"] < self._progress["goal"]
        found: dict[str, Any] = {
            "spaces": self._spaces.state(),
            "nets": {name: net.state() for name, net in self._nets.items()},
            "moments": self._moments.state(),
            "reward_scale": self._reward_scale.state(),
            "rng": json.dumps(self._rng.bit_generator.state, default=_plain),
            "memory": self._memory() if on else {},
            "running": {},
        }
        if on and hasattr(self, "_worlds"):
            found["running"], losses = self._worlds.state(), self._loss_sums
        elif on and hasattr(self, "_running"):
            found["running"], losses = self._running, self._losses_before
        else:
            losses = {}
        return found | {"losses": {name: np.array(values) for name, values in losses.items()}}

    def _restore_learnt(self, state: dict[str, Any]) -> None:
        require_torch(type(self).__name__)
        self.device = device_or_cpu(self.device)
        self._spaces = Spaces.from_state(state["spaces"])
        self._build(0)
        for name, net in self._nets.items():
            net.restore(state["nets"][name])
        self._moments.restore(state["moments"])
        self._reward_scale = RewardScale(len(state["reward_scale"]["sums"]), self.discount)
        self._reward_scale.restore(state["reward_scale"])
        self._rng = stream(0, "agent")
        self._rng.bit_generator.state = _unplain(json.loads(state["rng"]))
        if state["memory"]:
            self._restore_memory(state["memory"])
        if state["running"]:
            self._running = state["running"]
            self._losses_before = {name: list(values) for name, values in state["losses"].items()}

    def _memory(self) -> dict[str, Any]:
        """The part of the steps that is needed to go on to the same bits, while learning is not finished."""
        return {}

    def _restore_memory(self, state: dict[str, Any]) -> None:
        """Take what `_memory` gave."""


def _plain(value: Any) -> Any:
    return {"array": value.tolist(), "dtype": str(value.dtype)} if isinstance(value, np.ndarray) else int(value)


def _unplain(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"array", "dtype"}:
            return np.array(value["array"], dtype=value["dtype"])
        return {name: _unplain(part) for name, part in value.items()}
    return value


def choose(logits: Array, rng: np.random.Generator) -> Array:
    """Numbers drawn with probabilities softmax(logits), one in each row."""
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    up = np.cumsum(p, axis=1)
    below = up <= rng.random(len(p), dtype=np.float32)[:, None] * up[:, -1:]
    return np.asarray(np.minimum(below.sum(axis=1), p.shape[1] - 1))
