"""`Agent`, the contract of everything that learns by acting."""

from __future__ import annotations

import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, ClassVar

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._docs import complete_docstrings
from epicycle.core._exceptions import ConvergenceWarning
from epicycle.core._history import History
from epicycle.core._parameters import (
    SHARED_PARAMETERS,
    Domain,
    Integer,
    NoneOr,
    Real,
    check_parameter,
    check_parameters,
)
from epicycle.core._plot_style import Axes, axes_of, styled
from epicycle.core._random import Seed, seed_of
from epicycle.core._saved import Saved
from epicycle.core.estimator._progress import ProgressLine
from epicycle.rl._episode_log import EpisodeLog
from epicycle.rl._evaluation import NO_PROOF, Evaluates
from epicycle.rl._interaction import Interaction

Array = np.ndarray
COLUMNS = ("steps", "return", "length", "discounted_return", "value", "exploration")


class Agent(Evaluates, Saved, ABC):
    """Base class of agents.

    A subclass stores the arguments of its constructor, and says how an environment is entered (`_enter`), how some
    steps are learnt from (`_advance`) and what follows at the end (`_conclude`). The domains of its arguments in
    `_parameters` are added to those of its bases. All that learning changes is in `_progress` and in what `_learnt`
    returns, so that a file of it can go on.
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {}
    _columns: ClassVar[tuple[str, ...]] = COLUMNS
    _docs: ClassVar[dict[str, str]] = {
        "discount": "discount : float, default={default}\n    Discount of later rewards, in [0, 1].",
        "random_state": "random_state : int, Generator, RandomState or None, default={default}\n"
        "    Seed of `learn`; the same seed gives the same bits.",
        "act_observation": "observation : int or array\n    The state, as the environment returns it.",
        "act_deterministic": "deterministic : bool, default={default}\n"
        "    Whether to take the best action; otherwise one as while learning.",
        "act_returns": "int or array",
        "time_limit": "time_limit : float, optional\n    Seconds after which the call ends, with a warning.",
        "resume_checkpoint": "checkpoint : str or path, optional\n    File to which the agent is written now and then.",
        "checkpoint_every": "checkpoint_every : int, default=100000\n    Steps between two writes, at least.",
        "history_": "history_ : History\n    One row for an episode, or for several of them where there are many: "
        "steps at its end, return, length,\n    discounted return, value of its first state when it began, exploration "
        "at its end.",
        "certificate_": "certificate_ : Certificate\n    Where the process behind the environment is known: how much "
        "the policy loses against the best one.\n    Otherwise that there is no proof; `evaluate` gives an interval.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("history_", "certificate_")

    random_state: Seed
    history_: History
    certificate_: Certificate

    def __init_subclass__(cls, **kwargs: Any) -> None:
        tables = [vars(base).get("_parameters", {}) for base in reversed(cls.__mro__)]
        cls._parameters = {name: domain for table in tables for name, domain in table.items()}
        complete_docstrings(cls)
        super().__init_subclass__(**kwargs)

    # ------------------------------------------------------------------------------------------------ learning

    def learn(
        self,
        env: Any,
        steps: int,
        *,
        seed: int | None = None,
        time_limit: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 100_000,
        verbose: int = 0,
    ) -> Any:
        """Act in an environment and learn from it; a second call goes on with what is known.

        Ctrl-C ends the call early and keeps what was learnt, and so does an error of the environment, which is then
        raised; `resume` makes the steps that are missing.

        Parameters
        ----------
        env : MDP or environment
            A decision process, or an environment with Gymnasium's ``reset`` and ``step``, for which Gymnasium itself
            is not needed. An episode that is cut off (``truncated``) is not one that ended. Where
            ``info["action_mask"]`` is given, it marks the actions that are available.
        steps : int
            Number of steps.
        seed : int, optional
            Seed of this call; by default from `random_state`.
        checkpoint : str or path, optional
            File to which the agent is written now and then; ``ep.load(file).resume(env)`` goes on from there to the
            same bits.
        verbose : int, default=0
            1 shows progress when learning takes more than about two seconds.

        Returns
        -------
        self
        """
        owner = f"{type(self).__name__}.learn"
        check_parameter(owner, "steps", steps, Integer(minimum=1))
        check_parameters(self, self._parameters)
        run_seed = seed_of(self.random_state) if seed is None else seed_of(seed)
        before = getattr(self, "_progress", None)
        made = 0 if before is None else before["made"]
        episodes = 0 if before is None else before["episode"]
        world = self._enter(self._meet(env, run_seed, episodes))
        self._progress = {"made": made, "goal": made + int(steps), "seed": run_seed, "episode": episodes}
        if before is None:
            self._log = EpisodeLog(self._columns)
        self._begin(run_seed)
        return self._run(world, owner, time_limit, checkpoint, checkpoint_every, verbose)

    def resume(
        self,
        env: Any,
        *,
        time_limit: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 100_000,
        verbose: int = 0,
    ) -> Any:
        """Make the steps that are missing of an interrupted `learn`.

        Parameters
        ----------
        env : MDP or environment
            The environment, the same as in `learn`.
        verbose : int, default=0
            1 shows progress.

        Returns
        -------
        self
        """
        self._require_learnt()
        world = self._enter(self._meet(env, self._progress["seed"], self._progress["episode"]))
        owner = f"{type(self).__name__}.resume"
        return self._run(world, owner, time_limit, checkpoint, checkpoint_every, verbose)

    def _run(
        self,
        world: Any,
        owner: str,
        time_limit: float | None,
        checkpoint: str | os.PathLike[str] | None,
        checkpoint_every: int,
        verbose: int,
    ) -> Any:
        check_parameter(owner, "time_limit", time_limit, NoneOr(Real(0, inclusive=False)))
        check_parameter(owner, "checkpoint_every", checkpoint_every, Integer(minimum=1))
        check_parameter(owner, "verbose", verbose, SHARED_PARAMETERS["verbose"])
        at = self._progress
        line = ProgressLine(type(self).__name__, at["goal"]) if verbose else None
        began, written, why = time.monotonic(), at["made"], ""
        around = ExitStack()
        try:
            around.enter_context(self._surroundings())
            while at["made"] < at["goal"]:
                at["made"] += self._advance(world, at["goal"] - at["made"])
                if line is not None:
                    line.update(at["made"], note=self._note())
                waited = at["made"] - written
                # Inside an episode of an environment that cannot be saved, a file goes on with a new episode.
                due = waited >= checkpoint_every and (self._settled(world) or waited >= 10 * checkpoint_every)
                if checkpoint is not None and due:
                    self._write(checkpoint)
                    written = at["made"]
                if time_limit is not None and time.monotonic() - began >= time_limit and at["made"] < at["goal"]:
                    why = f"the time limit of {time_limit:g} s ran out"
                    break
        except KeyboardInterrupt:
            why = "interrupted"
            self._break_off()
        except BaseException:
            self._break_off()
            self._finish(world)
            raise
        finally:
            around.close()
            if line is not None:
                line.close()
        self._finish(world)
        if checkpoint is not None:
            self.save(checkpoint)
        if why:
            warnings.warn(
                f"{owner}: {why} after {at['made']:,} of {at['goal']:,} steps; what was learnt is kept, and "
                "resume(env) goes on",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _finish(self, world: Any) -> None:
        self.history_ = self._log.history()
        self.certificate_ = Certificate("none", np.nan, 0.0, NO_PROOF)
        self._conclude(world)

    def _write(self, path: str | os.PathLike[str]) -> None:
        self.history_ = self._log.history()
        if not hasattr(self, "certificate_"):
            self.certificate_ = Certificate("none", np.nan, 0.0, NO_PROOF)
        self.save(path)

    def _note(self) -> str:
        rows = self._log.rows if len(self._log.rows) else self._log.waiting
        return f"return {rows[-10:, 1].mean():.4g}" if len(rows) else ""

    def _meet(self, env: Any, seed: int, episode: int) -> Any:
        """The environment as agents meet it; some take several at once."""
        return Interaction(env, seed, episode)

    def _surroundings(self) -> AbstractContextManager[None]:
        """Settings that hold while an agent learns, such as a number of threads."""
        return nullcontext()

    @abstractmethod
    def _enter(self, world: Interaction) -> Any:
        """Check an environment, and make the tables for it before the first step; what `_advance` is given."""

    def _begin(self, seed: int) -> None:
        """Begin a call of `learn`, where the random streams are not those of episodes."""

    @abstractmethod
    def _advance(self, world: Any, most: int) -> int:
        """Make some steps, learn from them and record the episodes; the number of steps, at least one."""

    def _settled(self, world: Any) -> bool:
        """Whether a file that is written now goes on to the same bits."""
        return True

    def _break_off(self) -> None:
        """Forget the episode that is going on."""

    def _conclude(self, world: Any) -> None:
        """Set what is known of the process after a call of `learn`."""

    # ------------------------------------------------------------------------------------------------ afterwards

    @abstractmethod
    def act(self, observation: Any, deterministic: bool = True) -> Any:
        """Action in a state."""

    @styled
    def plot(self, column: str = "return", *, smooth: int = 1, ax: Axes | None = None, **line: Any) -> Axes:
        """Draw a column of the history against the steps.

        Parameters
        ----------
        column : str, default="return"
            The column.
        smooth : int, default=1
            Rows whose mean is drawn.
        **line
            Passed on to matplotlib.
        """
        self._require_learnt()
        check_parameter(f"{type(self).__name__}.plot", "smooth", smooth, Integer(minimum=1))
        ax = axes_of(ax)
        x, y = self.history_["steps"], self.history_[column]
        if smooth > 1 and len(y) >= smooth:
            y, x = np.convolve(y, np.full(smooth, 1 / smooth), "valid"), x[smooth - 1 :]
        line.setdefault("label", type(self).__name__)
        ax.plot(x, y, **line)
        ax.set_xlabel("step")
        ax.set_ylabel(f"{column.replace('_', ' ')} of an episode" if column == "return" else column.replace("_", " "))
        return ax

    # ------------------------------------------------------------------------------------------------ files

    @abstractmethod
    def _learnt(self) -> dict[str, Any]:
        """The state that `_restore_learnt` needs to go on, in types that a file can hold."""

    @abstractmethod
    def _restore_learnt(self, state: dict[str, Any]) -> None:
        """Take what `_learnt` gave."""

    def __epi_state__(self) -> dict[str, Any]:
        self._require_learnt()
        return {
            "parameters": {name: self._saved_argument(name) for name in self._arguments},
            "progress": dict(self._progress),
            "log": self._log.state(),
            "certificate": self.certificate_,
            "learnt": self._learnt(),
        }

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["parameters"])  # type: ignore[misc]  # an object that was only allocated
        self._progress = dict(state["progress"])
        self._log = EpisodeLog(self._columns)
        self._log.restore(state["log"])
        self.history_, self.certificate_ = self._log.history(), state["certificate"]
        self._restore_learnt(state["learnt"])

    def _saved_argument(self, name: str) -> Any:
        value = getattr(self, name)
        return None if isinstance(value, np.random.Generator | np.random.RandomState) else value

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._arguments if name != "random_state")
        return f"{type(self).__name__}({given})"
