r"""LinUCB: arms with features x and expected rewards x'theta (Li, Chu, Langford and Schapire).

With A = ridge I + sum x x' and b = sum r x over the pulls, theta = A^-1 b, and the next arm is

    argmax_a  x_a'theta + width sqrt(x_a' A^-1 x_a) .

A^-1 is kept by Sherman and Morrison's formula: A^-1 -= (A^-1 x)(A^-1 x)' / (1 + x'A^-1 x).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._checks import count
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import SHARED_PARAMETERS, Domain, Integer, Real, check_parameters
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._saved import Saved
from epicycle.core.estimator import in_catalogue
from epicycle.rl.bandits._arms import LinearArms
from epicycle.rl.bandits._result import BanditResult

Array = np.ndarray


@in_catalogue("rl", "G9", certificate="none")
class LinUCB(Saved):
    r"""Bandit whose arms have features: the largest upper bound of a linear model of the reward.

    .. math:: a_t = \arg\max_a \; x_a'\hat\theta + c \sqrt{x_a' A^{-1} x_a}, \qquad
              A = \lambda I + \sum_s x_s x_s', \quad \hat\theta = A^{-1} \sum_s r_s x_s

    Parameters
    ----------
    n_features : int
        Number of features of an arm.
    width : float, default=1
        c.
    ridge : float, default=1
        :math:`\lambda`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of `simulate`.

    Attributes
    ----------
    coef_ : array (d,)
        :math:`\hat\theta`.

    Examples
    --------
    >>> from epicycle.rl import LinearArms, LinUCB
    >>> result = LinUCB(3, random_state=0).simulate(LinearArms([0.5, -0.5, 0.7]), steps=500)
    >>> bool(result.regret[0, -1] - result.regret[0, -100] < result.regret[0, 99])
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_features": Integer(minimum=1),
        "width": Real(0),
        "ridge": Real(0, inclusive=False),
        "random_state": SHARED_PARAMETERS["random_state"],
    }

    def __init__(self, n_features: int, *, width: float = 1.0, ridge: float = 1.0, random_state: Seed = None) -> None:
        self.n_features, self.width, self.ridge, self.random_state = n_features, width, ridge, random_state
        check_parameters(self, self._parameters)
        self._inverse, self._sum = np.eye(n_features) / ridge, np.zeros(n_features)

    @property
    def coef_(self) -> Array:
        """Weights of the features."""
        return np.asarray(self._inverse @ self._sum)

    def choose(self, X: Any) -> int:
        """Arm to pull.

        Parameters
        ----------
        X : array (k, d)
            Features of the arms.

        Returns
        -------
        int
        """
        X = self._features(X)
        spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", X, self._inverse, X), 0))
        return int((X @ self.coef_ + self.width * spread).argmax())

    def update(self, x: Any, reward: float) -> LinUCB:
        """Take the reward of an arm.

        Parameters
        ----------
        x : array (d,)
            Features of the arm that was pulled.
        reward : float
            Its reward.

        Returns
        -------
        LinUCB
            The strategy itself.
        """
        x = self._features(np.atleast_2d(x))[0]
        if not np.isfinite(reward):
            raise DataError(f"reward={reward!r}; expected a finite number")
        Ax = self._inverse @ x
        self._inverse -= np.outer(Ax, Ax) / (1 + x @ Ax)
        self._sum += float(reward) * x
        return self

    def _features(self, X: Any) -> Array:
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_features or not np.isfinite(X).all() or not len(X):
            raise DataError(f"X: got shape {X.shape}; expected finite numbers (arms, {self.n_features})")
        return np.asarray(X)

    def simulate(self, arms: LinearArms, steps: int, runs: int = 1, *, seed: int | None = None) -> BanditResult:
        """Play against known arms, each run from the beginning.

        Parameters
        ----------
        arms : LinearArms
            The arms.
        steps : int
            Number of pulls of a run.
        runs : int, default=1
            Number of runs.
        seed : int, optional
            Seed; by default from `random_state`.

        Returns
        -------
        BanditResult
        """
        steps, runs = count("steps", steps, low=1), count("runs", runs, low=1)
        if len(arms.theta) != self.n_features:
            raise DataError(f"arms: got {len(arms.theta)} features; expected {self.n_features}")
        given = seed_of(self.random_state) if seed is None else seed_of(seed)
        rewards, lost = np.zeros((runs, steps)), np.zeros((runs, steps))
        for run in range(runs):
            rng = stream(given, "simulate", run)
            player = LinUCB(self.n_features, width=self.width, ridge=self.ridge)
            for t in range(steps):
                X = arms.context(rng)
                means = X @ arms.theta
                a = player.choose(X)
                rewards[run, t] = means[a] + arms.sd * rng.standard_normal()
                lost[run, t] = means.max() - means[a]
                player.update(X[a], rewards[run, t])
        return BanditResult(rewards, np.cumsum(lost, axis=1), (lost == 0).mean(axis=0))

    def __epi_state__(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in self._arguments}
        if not isinstance(self.random_state, int | None):
            given["random_state"] = None
        return {"parameters": given, "inverse": self._inverse, "sum": self._sum}

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["parameters"])  # type: ignore[misc]  # an object that was only allocated
        self._inverse, self._sum = np.array(state["inverse"]), np.array(state["sum"])
