"""Running means and variances, by which observations and rewards are brought to one scale."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray
_TINY, _LARGEST = 1e-8, 10.0


class RunningMoments:
    """Mean and variance of all rows so far (Chan et al.).

    Parameters
    ----------
    shape : tuple of int
        Shape of a row.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count, self.mean, self.squares = 0.0, np.zeros(shape), np.zeros(shape)

    def update(self, rows: Array) -> None:
        """Take more rows."""
        n = len(rows)
        if n == 0:
            return
        mean = rows.mean(axis=0, dtype=np.float64)
        total, away = self.count + n, mean - self.mean
        self.squares += ((rows - mean) ** 2).sum(axis=0) + away**2 * (self.count * n / total)
        self.mean += away * (n / total)
        self.count = total

    @property
    def sd(self) -> Array:
        """Standard deviation; one before there are two rows."""
        return np.sqrt(self.squares / self.count + _TINY) if self.count > 1 else np.ones_like(self.mean)

    def normalize(self, rows: Array) -> Array:
        """Rows with mean 0 and variance 1, cut at 10."""
        scaled = (rows - self.mean) / self.sd
        return np.asarray(np.clip(scaled, -_LARGEST, _LARGEST), dtype=np.float32)

    def state(self) -> dict[str, Any]:
        """The content of a file."""
        return {"count": self.count, "mean": self.mean, "squares": self.squares}

    def restore(self, state: dict[str, Any]) -> None:
        """Take the content of a file."""
        self.count = float(state["count"])
        self.mean, self.squares = np.array(state["mean"]), np.array(state["squares"])


class RewardScale:
    """Standard deviation of the discounted sum of rewards so far, by which rewards are divided."""

    def __init__(self, n: int, discount: float) -> None:
        self.sums, self.discount, self.moments = np.zeros(n), discount, RunningMoments(())

    def update(self, rewards: Array, over: Array) -> None:
        """Take the rewards of a step."""
        self.sums = self.discount * self.sums + rewards
        self.moments.update(self.sums)
        self.sums = np.where(over, 0.0, self.sums)

    def scaled(self, rewards: Array) -> Array:
        """Rewards in units of the standard deviation, cut at 10."""
        return np.asarray(np.clip(rewards / self.moments.sd, -_LARGEST, _LARGEST))

    def state(self) -> dict[str, Any]:
        """The content of a file."""
        return {"sums": self.sums, "moments": self.moments.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take the content of a file."""
        self.sums = np.array(state["sums"])
        self.moments.restore(state["moments"])
