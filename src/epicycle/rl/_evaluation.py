"""`Evaluation`: the mean return of a policy, with an interval."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from epicycle.core._exceptions import ConvergenceWarning
from epicycle.rl._interaction import Interaction
from epicycle.stats._summary import central_quantile

Array = np.ndarray


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
    """What can be evaluated."""

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
