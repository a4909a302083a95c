"""`SelfPlay`: players learn by playing against each other.

*Fictitious play* takes the best reply to the mean of what the others did so far (Brown 1951). *Regret matching* plays
an action in proportion to what it would have gained so far (Hart and Mas-Colell 2000). *Independent* learners keep
values of their own actions and take the others for a part of the world; a *centralised* learner keeps values of joint
actions, for players with a common interest (Claus and Boutilier 1998).
"""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceWarning, NotFittedError, ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import SHARED_PARAMETERS, Choice, Integer, Real, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._saved import Saved, attributes_of
from epicycle.core.estimator import in_catalogue
from epicycle.optim import matrix_game
from epicycle.search.equilibrium._cfr import CFR
from epicycle.search.equilibrium._normal_form import NormalForm, as_normal_form
from epicycle.search.games._game import Game

Array = np.ndarray
_REGRETS = {"cfr": "vanilla", "cfr+": "cfr+", "linear_cfr": "linear", "discounted_cfr": "discounted"}
_LEARNERS = ("independent", "centralised")
METHODS = ("regret_matching", "regret_matching+", "fictitious_play", "linear_program", *_LEARNERS, *_REGRETS)
_CHECKS = 100
#: What a file keeps where payoff tables were given.
_LEARNT = ("strategies_", "joint_", "values_", "value_", "gains_", "exploitability_", "history_", "certificate_")
_DOMAINS = {
    "method": Choice(*METHODS),
    "learning_rate": Real(0, 1, inclusive=(False, True)),
    "exploration": Real(0, 1),
    "tol": SHARED_PARAMETERS["tol"],
    "random_state": SHARED_PARAMETERS["random_state"],
}


@in_catalogue("search", "G13", certificate="exploitability", docs={})
class SelfPlay(Saved):
    """Players that learn by playing against each other, in matrix games and in games with hidden information.

    Parameters
    ----------
    method : str, default="regret_matching+"
        For payoff tables:

        - "regret_matching", "regret_matching+": in proportion to positive regrets; the second forgets negative ones,
          lets the players take turns and weights strategies by time;
        - "fictitious_play": best replies to the mean of the past;
        - "linear_program": the exact equilibrium of a zero-sum game of two, see :func:`epicycle.optim.matrix_game`;
        - "independent": each player learns values of the own actions from what it gets, with random exploration;
        - "centralised": one learner with values of joint actions, for the sum of the payoffs.

        For a :class:`Game`: "cfr", "cfr+", "linear_cfr" or "discounted_cfr", see :class:`CFR`.
    learning_rate : float, default=0.1
        Step of "independent" and "centralised".
    exploration : float, default=0.2
        Probability of a random action of the same two, at the start; it falls to zero linearly.
    tol : float, default=1e-3
        Tolerance of the certificate, relative to the range of the payoffs; methods that see the payoff tables end
        where it is reached.

    Attributes
    ----------
    strategies_ : list of arrays, or dict
        Probabilities of the actions of each player; of a :class:`Game` as `CFR.strategy_`.
    joint_ : array (a_1, ..., a_n)
        How often joint actions were played by "regret_matching", on average; else the product of the strategies.
    values_ : array (n,)
        Mean payoffs of the players.
    value_ : float
        The first of them.
    gains_ : array (n,)
        What each player could gain by a best reply to the strategies of the others.
    exploitability_ : float
        Mean of the gains.
    history_ : History
        Exploitability and seconds by iteration, where it was measured.
    certificate_ : Certificate
        Mean gain, relative to the range of payoffs. For "regret_matching" with another than a zero-sum game of two
        the gain by fixed actions against `joint_` (a coarse correlated equilibrium), for "centralised" the loss
        against the best joint action.

    Examples
    --------
    Rock, paper, scissors:

    >>> from epicycle.search import SelfPlay
    >>> learner = SelfPlay().learn([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    >>> learner.certificate_.holds, learner.strategies_[0].round(2).tolist()
    (True, [0.33, 0.33, 0.33])
    """

    strategies_: Any
    joint_: Array
    values_: Array
    gains_: Array
    value_: float
    exploitability_: float
    history_: History
    certificate_: Certificate
    _cfr: CFR | None

    def __init__(
        self,
        method: str = "regret_matching+",
        *,
        learning_rate: float = 0.1,
        exploration: float = 0.2,
        tol: float = 1e-3,
        random_state: Seed = None,
    ) -> None:
        self.method, self.learning_rate, self.exploration, self.tol = method, learning_rate, exploration, tol
        self.random_state = random_state
        for name, domain in _DOMAINS.items():
            check_parameter("SelfPlay", name, getattr(self, name), domain)

    def __repr__(self) -> str:
        return f"SelfPlay({self.method!r})"

    def learn(self, game: Any, iterations: int = 10_000) -> SelfPlay:
        """Play and learn, from the start.

        Parameters
        ----------
        game : Game or array
            Rules; or a matrix of what the second player pays to the first; or one payoff table for each player.
        iterations : int, default=10_000
            Largest number of rounds.
        """
        check_parameter("SelfPlay.learn", "iterations", iterations, Integer(minimum=1))
        if isinstance(game, Game) != (self.method in _REGRETS):
            of_tables = [method for method in METHODS if method not in _REGRETS]
            kinds = "a Game" if self.method in _REGRETS else "payoff tables"
            raise ParameterError(
                f"SelfPlay: method={self.method!r} learns from {kinds}, got {type(game).__name__}; expected one of "
                f"{', '.join(_REGRETS)} for a Game and of {', '.join(of_tables)} for tables"
            )
        if isinstance(game, Game):
            self._learn_rules(game, iterations)
        else:
            self._learn_tables(as_normal_form(game), iterations)
        if not self.certificate_.holds:
            warnings.warn(f"SelfPlay: {self.certificate_}; raise iterations", ConvergenceWarning, stacklevel=2)
        return self

    def _learn_rules(self, game: Game, iterations: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said once, by learn
            found = CFR(_REGRETS[self.method], tol=self.tol).learn(game, iterations)
        self._take_rules(found)

    def _take_rules(self, found: CFR) -> None:
        self._cfr = found
        self.strategies_, self.value_, self.exploitability_ = found.strategy_, found.value_, found.exploitability_
        self.values_ = np.array([found.value_, -found.value_])
        self.gains_ = np.array([found.bounds_[1] - found.value_, found.value_ - found.bounds_[0]])
        self.history_, self.certificate_ = found.history_, found.certificate_

    def _learn_tables(self, game: NormalForm, iterations: int) -> None:
        self._game, self._clock, self._cfr = game, perf_counter(), None
        self._rows: list[tuple[float, ...]] = []
        if self.method == "linear_program":
            if not game.is_zero_sum:
                raise ParameterError("SelfPlay: method='linear_program' is for zero-sum games of two players")
            solution = matrix_game(game.payoffs[0])
            self._conclude([solution.row_strategy, solution.column_strategy], None, 1)
        elif self.method == "fictitious_play":
            self._fictitious_play(iterations)
        elif self.method in _LEARNERS:
            self._learn_values(iterations)
        else:
            self._match_regrets(iterations)

    # ------------------------------------------------------------------------------------------- with known tables

    def _fictitious_play(self, iterations: int) -> None:
        game = self._game
        means = [np.full(size, 1 / size) for size in game.sizes]
        checks = _checks(iterations)
        for t in range(1, iterations + 1):
            replies = [int(np.argmax(game.action_values(i, means))) for i in range(game.n_players)]
            for mean, reply in zip(means, replies, strict=True):
                mean *= 1 - 1 / t
                mean[reply] += 1 / t
            if t in checks and self._measured(means, t):
                break
        self._conclude(means, None, t)

    def _match_regrets(self, iterations: int) -> None:
        game, plus = self._game, self.method == "regret_matching+"
        regrets = [np.zeros(size) for size in game.sizes]
        totals = [np.zeros(size) for size in game.sizes]
        joint = np.zeros(game.sizes)
        checks = _checks(iterations)
        for t in range(1, iterations + 1):
            now = [_matched(r) for r in regrets]
            for i in range(game.n_players):
                values = game.action_values(i, now)
                regrets[i] += values - values @ now[i]
                totals[i] += now[i] * (t if plus else 1)
                if plus:
                    np.maximum(regrets[i], 0, out=regrets[i])
                    now[i] = _matched(regrets[i])  # the next player sees it already
            if not plus:
                joint += _product(now)
            means = [total / total.sum() for total in totals]
            if t in checks and self._measured(means, t, None if plus else joint / t):
                break
        self._conclude(means, None if plus else joint / t, t)

    # ------------------------------------------------------------------------------------------- with rewards alone

    def _learn_values(self, iterations: int) -> None:
        game, rng = self._game, stream(seed_of(self.random_state), "self-play")
        central = self.method == "centralised"
        own = [np.zeros(size) for size in game.sizes]
        common = np.zeros(game.sizes)
        checks = _checks(iterations)
        for t in range(1, iterations + 1):
            best = _place(common) if central else tuple(int(np.argmax(q)) for q in own)
            explores = rng.random(game.n_players) < self.exploration * (1 - (t - 1) / iterations)
            played = tuple(
                int(rng.integers(k)) if e else int(b) for k, e, b in zip(game.sizes, explores, best, strict=True)
            )
            rewards = game.payoffs.reshape(game.n_players, -1)[:, np.ravel_multi_index(played, game.sizes)]
            if central:
                common[played] += self.learning_rate * (rewards.sum() - common[played])
            else:
                for q, action, reward in zip(own, played, rewards, strict=True):
                    q[action] += self.learning_rate * (reward - q[action])
            if t in checks:
                self._measured(self._greedy(own, common), t)
        self._conclude(self._greedy(own, common), None, iterations)

    def _greedy(self, own: list[Array], common: Array) -> list[Array]:
        central = self.method == "centralised"
        best = _place(common) if central else tuple(int(np.argmax(q)) for q in own)
        return [np.eye(k)[b] for k, b in zip(self._game.sizes, best, strict=True)]

    # ------------------------------------------------------------------------------------------- evidence

    def _loss(self, strategies: list[Array], joint: Array | None) -> float:
        """The value of the certificate, before it is put in relation to the payoffs."""
        game = self._game
        if self.method == "centralised":
            sums = game.payoffs.sum(axis=0)
            return float(sums.max() - (sums * _product(strategies)).sum())
        if joint is not None and not game.is_zero_sum:
            return max(float(game.joint_gains(joint).max()), 0.0)
        return float(game.gains(strategies).mean())

    def _scale(self) -> float:
        central = self.method == "centralised"
        return (float(np.ptp(self._game.payoffs.sum(axis=0))) or 1.0) if central else self._game.spread

    def _measured(self, strategies: list[Array], t: int, joint: Array | None = None) -> bool:
        """Note the loss; whether it is small enough."""
        loss = self._loss(strategies, joint)
        self._rows.append((t, loss, perf_counter() - self._clock))
        return loss <= self.tol * self._scale()

    def _conclude(self, strategies: list[Array], joint: Array | None, t: int) -> None:
        game = self._game
        if not self._rows or self._rows[-1][0] != t:
            self._measured(strategies, t, joint)
        names = ("iteration", "exploitability", "seconds")
        self.history_ = History(**dict(zip(names, np.array(self._rows, dtype=np.float64).T, strict=True)))
        self.strategies_, self.joint_ = strategies, _product(strategies) if joint is None else joint
        self.values_, self.gains_ = game.values(strategies), game.gains(strategies)
        self.value_, self.exploitability_ = float(self.values_[0]), float(self.gains_.mean())
        loss = self._loss(strategies, joint) / self._scale()
        kind, meaning = "exploitability", f"best replies gain {loss:.1e} of the range of the payoffs, on average"
        if self.method == "centralised":
            kind, meaning = "loss against the best joint action", f"no joint action gives more by over {loss:.1e}"
        elif joint is not None and not game.is_zero_sum:
            kind = "gain by a fixed action"
            meaning = f"joint_ is a coarse correlated equilibrium up to {loss:.1e} of the range of the payoffs"
        self.certificate_ = Certificate(kind, loss, self.tol, meaning)

    # ------------------------------------------------------------------------------------------- files

    def __epi_state__(self) -> dict[str, Any]:
        if not hasattr(self, "certificate_"):
            raise NotFittedError("SelfPlay has not learnt yet; call learn(game)")
        seed = self.random_state if isinstance(self.random_state, int | np.integer) else None
        arguments = attributes_of(self, ("method", "learning_rate", "exploration", "tol")) | {"random_state": seed}
        learnt = {"cfr": self._cfr.__epi_state__()} if self._cfr is not None else attributes_of(self, _LEARNT)
        return {"arguments": arguments, "learnt": learnt}

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["arguments"])  # type: ignore[misc]
        self._cfr, learnt = None, dict(state["learnt"])
        if "cfr" in learnt:
            found: CFR = object.__new__(CFR)
            found.__epi_restore__(learnt["cfr"])
            self._take_rules(found)
        else:
            for name in _LEARNT:
                setattr(self, name, learnt[name])


def _checks(iterations: int) -> set[int]:
    return {int(t) for t in np.ceil(np.geomspace(1, iterations, _CHECKS))}


def _matched(regret: Array) -> Array:
    positive = np.maximum(regret, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(regret), 1 / len(regret))


def _product(strategies: list[Array]) -> Array:
    joint = np.ones(())
    for strategy in strategies:
        joint = np.multiply.outer(joint, strategy)
    return joint


def _place(table: Array) -> tuple[int, ...]:
    """Indices of the largest entry."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(table)), table.shape))
