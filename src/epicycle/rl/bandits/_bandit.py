r"""Bandits: which of k arms to pull next, when each pull shows the reward of one arm only.

With n_a pulls of arm a and their mean Q_a after t steps the strategies pull

- ``epsilon_greedy``  any arm with probability epsilon, otherwise the best mean;
- ``ucb``             argmax Q_a + c sqrt(log t / n_a);
- ``thompson``        the best of means drawn from their posterior: Beta(1 + sum, 1 + n - sum) for rewards in [0, 1],
                      Normal(sum / (1/v + n), 1 / (1/v + n)) for rewards of unit variance with prior variance v;
- ``exp3``            arm a with p_a = (1 - c) w_a / sum w + c / k, then w_a *= exp(c (r / p_a) / k), for any rewards in
                      [0, 1], also those of an adversary;
- ``gradient``        a softmax of preferences H: H_a += rate (r - mean) (1[a pulled] - p_a).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._checks import count
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import SHARED_PARAMETERS, Choice, Domain, Integer, NoneOr, Real, check_parameters
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._saved import Saved
from epicycle.core.estimator import in_catalogue
from epicycle.rl.bandits._arms import BernoulliArms, NormalArms
from epicycle.rl.bandits._result import BanditResult

Array = np.ndarray
_WIDTHS = {"epsilon_greedy": 0.1, "ucb": 2.0, "thompson": 1.0, "exp3": 0.1, "gradient": 0.1}
_UNIT = ("exp3",)  # strategies for rewards in [0, 1]


@in_catalogue("rl", "G9", certificate="none")
class Bandit(Saved):
    r"""Strategy for one decision that is made again and again: which of k arms to pull.

    ``choose`` names an arm, ``update`` takes its reward; ``simulate`` does both against known arms, many runs at once,
    and measures the regret :math:`\sum_t \max_a \mu_a - \mu_{a_t}`.

    Parameters
    ----------
    n_arms : int
        Number of arms.
    strategy : {"epsilon_greedy", "ucb", "thompson", "exp3", "gradient"}, default="ucb"
        How arms are chosen: any arm now and then; the largest upper confidence bound; a draw from the posterior;
        exponential weights, which hold against any sequence of rewards in [0, 1]; or a softmax of preferences that
        climb the expected reward.
    amount : float, optional
        Epsilon (0.1); the width of the bound (2), whose square is the factor of log t; the prior standard deviation of
        means with normal rewards (1); the share of uniform draws (0.1); the step of the preferences (0.1).
    likelihood : {"normal", "bernoulli"}, default="normal"
        Rewards for the posterior: of unit variance, or in [0, 1].
    learning_rate : float, optional
        Share of the way to a reward that a mean goes; by default 1/n, so that it is a mean. A constant forgets.
    initial_value : float, default=0
        Means before the first pull, which a constant learning rate remembers for a while.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Attributes
    ----------
    counts_ : array (k,)
        Number of pulls of each arm.
    values_ : array (k,)
        Mean reward of each arm; preferences and logarithms of weights where these are what is learnt.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.rl import Bandit, BernoulliArms
    >>> bandit = Bandit(3, strategy="thompson", likelihood="bernoulli", random_state=0)
    >>> arm = bandit.choose()
    >>> bandit.update(arm, 1.0).counts_[arm]
    np.int64(1)
    >>> result = bandit.simulate(BernoulliArms([0.2, 0.5, 0.6]), steps=2000, runs=20)
    >>> bool(result.optimal[-100:].mean() > 0.8)
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_arms": Integer(minimum=2),
        "strategy": Choice(*_WIDTHS),
        "amount": NoneOr(Real(0)),
        "likelihood": Choice("normal", "bernoulli"),
        "learning_rate": NoneOr(Real(0, 1, inclusive=(False, True))),
        "initial_value": Real(),
        "random_state": SHARED_PARAMETERS["random_state"],
    }

    def __init__(
        self,
        n_arms: int,
        *,
        strategy: str = "ucb",
        amount: float | None = None,
        likelihood: str = "normal",
        learning_rate: float | None = None,
        initial_value: float = 0.0,
        random_state: Seed = None,
    ) -> None:
        self.n_arms, self.strategy, self.amount, self.likelihood = n_arms, strategy, amount, likelihood
        self.learning_rate, self.initial_value, self.random_state = learning_rate, initial_value, random_state
        check_parameters(self, self._parameters)
        self._width = _WIDTHS[strategy] if amount is None else float(amount)
        self._rng = stream(random_state, "bandit")
        self._set_state(self._fresh(1))

    def _set_state(self, state: tuple[Array, Array, Array]) -> None:
        self._state = state
        self.counts_, self.values_ = state[0][0], state[1][0]

    def _fresh(self, runs: int) -> tuple[Array, Array, Array]:
        """Pulls (runs, k), values (runs, k) and mean of all rewards (runs,)."""
        shape = (runs, self.n_arms)
        return np.zeros(shape, dtype=np.int64), np.full(shape, float(self.initial_value)), np.zeros(runs)

    # ------------------------------------------------------------------------------------------------ steps

    def _probabilities(self, values: Array) -> Array:
        """Those of the strategies that draw an arm from exponential weights."""
        w = np.exp(values - values.max(axis=1, keepdims=True))
        p = w / w.sum(axis=1, keepdims=True)
        return np.asarray(p if self.strategy == "gradient" else (1 - self._width) * p + self._width / self.n_arms)

    def _choose(self, state: tuple[Array, Array, Array], rng: np.random.Generator) -> Array:
        n, values, _ = state
        if self.strategy in ("exp3", "gradient"):
            u = rng.random((len(n), 1))
            below = (np.cumsum(self._probabilities(values), axis=1) <= u).sum(axis=1)
            return np.asarray(np.minimum(below, self.n_arms - 1))
        if self.strategy == "thompson":
            if self.likelihood == "bernoulli":
                won = n * values
                return np.asarray(rng.beta(1 + won, 1 + n - won).argmax(axis=1))
            precision = n + 1 / max(self._width, 1e-150) ** 2
            return np.asarray(
                (n * values / precision + rng.standard_normal(n.shape) / np.sqrt(precision)).argmax(axis=1)
            )
        if self.strategy == "ucb":
            t = np.maximum(n.sum(axis=1, keepdims=True), 1)
            values = np.where(n == 0, np.inf, values + self._width * np.sqrt(np.log(t) / np.maximum(n, 1)))
        best = values == values.max(axis=1, keepdims=True)
        arm = np.where(best, rng.random(n.shape), -1.0).argmax(axis=1)
        if self.strategy == "epsilon_greedy":
            anything = rng.random(len(n)) < self._width
            arm = np.where(anything, rng.integers(self.n_arms, size=len(n)), arm)
        return np.asarray(arm)

    def _update(self, state: tuple[Array, Array, Array], arm: Array, reward: Array) -> None:
        n, values, mean = state
        rows = np.arange(len(n))
        if self.strategy == "exp3":
            p = self._probabilities(values)[rows, arm]
            values[rows, arm] += self._width * reward / p / self.n_arms
        elif self.strategy == "gradient":
            p = self._probabilities(values)
            mean += (reward - mean) / (n.sum(axis=1) + 1)
            step = self._width * (reward - mean)
            values -= step[:, None] * p
            values[rows, arm] += step
        else:
            rate = 1 / (n[rows, arm] + 1) if self.learning_rate is None else self.learning_rate
            values[rows, arm] += rate * (reward - values[rows, arm])
        n[rows, arm] += 1

    def choose(self) -> int:
        """Arm to pull next.

        Returns
        -------
        int
        """
        return int(self._choose(self._state, self._rng)[0])

    def update(self, arm: int, reward: float) -> Bandit:
        """Take the reward of an arm.

        Parameters
        ----------
        arm : int
            The arm.
        reward : float
            Its reward.

        Returns
        -------
        Bandit
            The strategy itself.
        """
        if not isinstance(arm, int | np.integer) or not 0 <= arm < self.n_arms:
            raise DataError(f"arm={arm!r}; expected a number from 0 to {self.n_arms - 1}")
        self._update(self._state, np.array([arm]), self._checked(np.array([reward], dtype=np.float64)))
        return self

    def _checked(self, reward: Array) -> Array:
        unit = self.strategy in _UNIT or (self.strategy == "thompson" and self.likelihood == "bernoulli")
        low, high = (0.0, 1.0) if unit else (-np.inf, np.inf)
        if not (np.isfinite(reward).all() and (reward >= low).all() and (reward <= high).all()):
            bad = reward[~(np.isfinite(reward) & (reward >= low) & (reward <= high))][0]
            raise DataError(f"reward={bad:g}; expected a finite number" + (" in [0, 1]" if unit else ""))
        return reward

    def simulate(
        self, arms: NormalArms | BernoulliArms, steps: int, runs: int | None = None, *, seed: int | None = None
    ) -> BanditResult:
        """Play against known arms, many runs at once, each from the beginning.

        Parameters
        ----------
        arms : NormalArms or BernoulliArms
            The arms; with several problems each run has the next one.
        steps : int
            Number of pulls of a run.
        runs : int, optional
            Number of runs; by default one for each problem.
        seed : int, optional
            Seed; by default from `random_state`.

        Returns
        -------
        BanditResult
        """
        problems, k = arms.means.shape
        if k != self.n_arms:
            raise DataError(f"arms: got {k} arms; expected {self.n_arms}")
        steps, rows = count("steps", steps, low=1), count("runs", problems if runs is None else runs, low=1)
        rng = stream(seed_of(self.random_state) if seed is None else seed_of(seed), "simulate")
        problem = np.arange(rows) % problems
        best = arms.means.max(axis=1)[problem]
        state, rewards, lost = self._fresh(rows), np.zeros((rows, steps)), np.zeros((rows, steps))
        for t in range(steps):
            arm = self._choose(state, rng)
            rewards[:, t] = self._checked(arms.draw(problem, arm, rng))
            lost[:, t] = best - arms.means[problem, arm]
            self._update(state, arm, rewards[:, t])
        return BanditResult(rewards, np.cumsum(lost, axis=1), (lost == 0).mean(axis=0))

    # ------------------------------------------------------------------------------------------------ files

    def __epi_state__(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in self._arguments}
        if not isinstance(self.random_state, int | None):
            given["random_state"] = None
        return {"parameters": given, "state": list(self._state), "drawn": self._rng.bit_generator.state}

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["parameters"])  # type: ignore[misc]  # an object that was only allocated
        self._set_state(tuple(np.array(part) for part in state["state"]))  # type: ignore[arg-type]
        self._rng.bit_generator.state = state["drawn"]

    def __repr__(self) -> str:
        return f"Bandit({self.n_arms}, strategy={self.strategy!r}, {int(self.counts_.sum())} pulls)"
