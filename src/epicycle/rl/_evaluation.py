"""`Evaluation`: the mean return of a policy, with an interval."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._docs import documented
from epicycle.core._exceptions import ConvergenceWarning, DataError, NotFittedError
from epicycle.core._parameters import Boolean, Integer, Real, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.rl._interaction import Interaction
from epicycle.rl._video import VIDEO_DOCS, record_video
from epicycle.stats._summary import central_quantile

Array = np.ndarray
NO_PROOF = "no proof of optimality"


@dataclass(frozen=True)
class Evaluation:
    """Returns of a policy that does not learn.

    Attributes
    ----------
    mean : float
        Mean of the returns, not discounted.
    low, high : float
        Interval that holds the expected return with probability `confidence`, by Student's t.
    returns, lengths : arrays (episodes,)
        Return and number of steps of each episode.
    n_truncated : int
        Episodes that were cut off before their end.
    confidence : float
        Probability of the interval.
    """

    mean: float
    low: float
    high: float
    returns: Array = field(repr=False)
    lengths: Array = field(repr=False)
    n_truncated: int
    confidence: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}] over {len(self.returns)} episodes"


class Acts(Protocol):
    """Anything with a method `act`."""

    def act(self, observation: Any, deterministic: bool = True) -> Any:
        """The action in a state."""


def evaluate(
    agent: Acts,
    world: Interaction,
    episodes: int,
    *,
    deterministic: bool,
    max_steps: int,
    confidence: float,
) -> Evaluation:
    """Let an agent act for some episodes."""
    returns, lengths, truncated = np.zeros(episodes), np.zeros(episodes, dtype=np.int64), 0
    too_long = 0
    for i in range(episodes):
        observation = world.reset()
        over = False
        while not over:
            observation, reward, terminated, cut = world.step(agent.act(observation, deterministic))
            returns[i] += reward
            lengths[i] += 1
            long = lengths[i] >= max_steps and not (terminated or cut)
            over = terminated or cut or long
            too_long += long
            truncated += over and not terminated
    if too_long:
        warnings.warn(
            f"evaluate: {too_long} of {episodes} episodes did not end within max_steps={max_steps}; their returns stop "
            "there",
            ConvergenceWarning,
            stacklevel=3,
        )
    mean = float(returns.mean())
    around = np.inf  # one episode says nothing of the spread
    if episodes > 1:
        around = central_quantile(confidence, episodes - 1) * float(returns.std(ddof=1) / np.sqrt(episodes))
    return Evaluation(mean, mean - around, mean + around, returns, lengths, int(truncated), confidence)


def state_number(observation: Any, n: int) -> int:
    """An observation that is the number of one of n states."""
    if not isinstance(observation, int | np.integer) or not 0 <= observation < n:
        raise DataError(f"observation={observation!r:.60}; expected a number of a state, from 0 to {n - 1}")
    return int(observation)


class Evaluates(ABC):
    """Gives `evaluate` to what acts and has learnt."""

    random_state: Seed
    certificate_: Certificate

    _how_to_learn: ClassVar[str] = "learn(env, steps)"

    @abstractmethod
    def act(self, observation: Any, deterministic: bool = True) -> Any:
        """Action in a state."""

    def _require_learnt(self) -> None:
        if not hasattr(self, "certificate_"):
            raise NotFittedError(f"{type(self).__name__} has not learnt yet; call {self._how_to_learn}")

    def _drawing(self) -> np.random.Generator:
        """The random numbers of actions after learning, from the seed of the agent."""
        if not hasattr(self, "_acting"):
            self._acting = stream(self.random_state, "act")
        return self._acting

    def _drawn(self, probabilities: Array) -> int:
        return int(self._drawing().choice(len(probabilities), p=probabilities))

    def evaluate(
        self,
        env: Any,
        episodes: int = 100,
        *,
        seed: int | None = None,
        deterministic: bool = True,
        max_steps: int = 100_000,
        confidence: float = 0.95,
    ) -> Evaluation:
        """Mean return over episodes, not discounted, with an interval; nothing is learnt.

        Parameters
        ----------
        env : MDP or environment
            As in `learn`.
        episodes : int, default=100
            Number of episodes.
        seed : int, optional
            Seed of the environment; by default from `random_state`.
        deterministic : bool, default=True
            Whether to take the best actions, or those of learning.
        max_steps : int, default=100000
            Steps after which an episode is cut off, with a warning, if it has not ended.
        confidence : float, default=0.95
            Probability with which the interval holds the expected return.

        Returns
        -------
        Evaluation
        """
        self._require_learnt()
        owner = f"{type(self).__name__}.evaluate"
        check_parameter(owner, "episodes", episodes, Integer(minimum=1))
        check_parameter(owner, "deterministic", deterministic, Boolean())
        check_parameter(owner, "max_steps", max_steps, Integer(minimum=1))
        check_parameter(owner, "confidence", confidence, Real(0, 1, inclusive=False))
        world = Interaction(env, seed_of(self.random_state) if seed is None else seed_of(seed))
        result = evaluate(
            self, world, episodes, deterministic=deterministic, max_steps=max_steps, confidence=confidence
        )
        if self.certificate_.kind == "none":
            self.certificate_ = Certificate("none", np.nan, 0.0, f"{NO_PROOF}; evaluation: {result}")
        return result

    @documented(VIDEO_DOCS)
    def record(
        self,
        env: Any,
        path: str | os.PathLike[str],
        *,
        seed: int | None = None,
        deterministic: bool = True,
        max_steps: int = 1000,
        max_frames: int | None = 300,
        width: int | None = None,
        fps: float | None = None,
    ) -> Path:
        """Write the pictures of an episode, as a GIF or as a file for each.

        Parameters
        ----------
        env : environment
            One that draws itself, made with ``render_mode="rgb_array"``.
        seed : int, optional
            Seed of the episode; by default from `random_state`.
        """
        self._require_learnt()
        return record_video(
            self,
            env,
            path,
            seed=seed_of(self.random_state) if seed is None else seed,
            deterministic=deterministic,
            max_steps=max_steps,
            max_frames=max_frames,
            width=width,
            fps=fps,
        )
