"""Arms to pull: rewards of several problems at once, one in each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._checks import count, number
from epicycle.core._exceptions import DataError

Array = np.ndarray


class NormalArms:
    """Arms with normal rewards.

    Parameters
    ----------
    means : array (k,) or (problems, k)
        Expected rewards; one problem in each row.
    sd : float, default=1
        Standard deviation of a reward.
    """

    def __init__(self, means: Any, sd: float = 1.0) -> None:
        self.means, self.sd = _means(means), number("sd", sd, low=0)

    def draw(self, problem: Array, arm: Array, rng: np.random.Generator) -> Array:
        """Rewards of one arm for each problem."""
        return np.asarray(self.means[problem, arm] + self.sd * rng.standard_normal(len(problem)))


class BernoulliArms:
    """Arms that pay 1 or nothing.

    Parameters
    ----------
    means : array (k,) or (problems, k)
        Probabilities of a reward; one problem in each row.
    """

    def __init__(self, means: Any) -> None:
        self.means = _means(means)
        if (self.means < 0).any() or (self.means > 1).any():
            raise DataError("means: expected probabilities in [0, 1]")

    def draw(self, problem: Array, arm: Array, rng: np.random.Generator) -> Array:
        """Rewards of one arm for each problem."""
        return np.asarray(rng.random(len(problem)) < self.means[problem, arm], dtype=np.float64)


class LinearArms:
    r"""Arms with features, whose expected reward is :math:`x_a'\theta`, in a new context at each step.

    Parameters
    ----------
    theta : array (d,)
        Weights of the features.
    n_arms : int, default=10
        Number of arms; their features are drawn on the unit sphere at each step.
    sd : float, default=0.1
        Standard deviation of a reward.
    """

    def __init__(self, theta: Any, n_arms: int = 10, sd: float = 0.1) -> None:
        self.theta = np.asarray(theta, dtype=np.float64)
        if self.theta.ndim != 1 or not np.isfinite(self.theta).all() or not self.theta.size:
            raise DataError(f"theta: expected finite numbers (d,), got shape {self.theta.shape}")
        self.n_arms, self.sd = count("n_arms", n_arms, low=2), number("sd", sd, low=0)

    def context(self, rng: np.random.Generator) -> Array:
        """Features (n_arms, d) of a step."""
        X = rng.standard_normal((self.n_arms, len(self.theta)))
        return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def _means(given: Any) -> Array:
    means = np.atleast_2d(np.asarray(given, dtype=np.float64))
    if means.ndim != 2 or means.shape[1] < 2 or not np.isfinite(means).all():
        raise DataError(f"means: expected finite numbers (k,) or (problems, k) with k >= 2, got {np.shape(given)}")
    return means
