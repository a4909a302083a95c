r"""`CFR`: counterfactual regret minimisation.

The regret of an action in an information set I is what it would have gained over the strategy, weighted by the
probability with which chance and the other player lead there,

.. math:: R^T(I, a) = \sum_{t \le T} \sum_{h \in I} \pi_{-i}^t(h) \left( u_i^t(h a) - u_i^t(h) \right) .

Each iteration plays every action in proportion to its positive regret; the mean of the strategies, weighted by the
probability that the player comes to I, approaches an equilibrium of a zero-sum game.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from time import perf_counter
from typing import Any

import numpy as np

from epicycle._native import search as native
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceWarning, DataError, NotFittedError
from epicycle.core._history import History
from epicycle.core._parameters import SHARED_PARAMETERS, Choice, InstanceOf, Integer, check_parameter
from epicycle.core._saved import Saved
from epicycle.core.estimator import in_catalogue
from epicycle.search.equilibrium._extensive_tree import ExtensiveTree, lay_out
from epicycle.search.games._game import Game
from epicycle.search.games._saved_games import restored_game, same_rules, saved_game

Array = np.ndarray
#: Powers of the discounts of positive and negative regrets and of earlier strategies, and whether regrets are clipped.
VARIANTS = {
    "vanilla": (np.inf, np.inf, 0.0, False),
    "cfr+": (np.inf, np.inf, 1.0, True),
    "linear": (1.0, 1.0, 1.0, False),
    "discounted": (1.5, 0.0, 2.0, False),
}
_CHECKS = 50  # measurements of the exploitability in a call of learn


@in_catalogue("search", "G13", certificate="exploitability", docs={})
class CFR(Saved):
    """Counterfactual regret minimisation for games with hidden information and chance.

    The game is laid out as a tree in memory; iterations run compiled, and players take turns. A second call of `learn`
    goes on where the first one ended.

    Parameters
    ----------
    variant : {"cfr+", "vanilla", "linear", "discounted"}, default="cfr+"
        "vanilla" adds regrets up (Zinkevich et al. 2007); "cfr+" forgets negative ones and weights strategies by t
        (Tammelin 2014); "linear" weights regrets and strategies by t; "discounted" forgets positive regrets with
        t^1.5 / (t^1.5 + 1), negative ones by a half, and weights strategies by t² (Brown and Sandholm 2019).
    tol : float, default=1e-3
        Exploitability, relative to the range of the payoffs, at which learning ends. Ctrl-C ends it early, and what was
        learnt is kept.

    Attributes
    ----------
    strategy_ : dict
        (player, information set) to a dictionary of moves and probabilities.
    value_ : float
        Middle of the bounds of the value for player 0.
    bounds_ : tuple of float
        What the strategies guarantee to player 0, and what they concede at most.
    exploitability_ : float
        Half of what both players together could gain by best replies.
    n_iter_ : int
        Number of iterations so far.
    history_ : History
        Exploitability, bounds and seconds, where they were measured.
    certificate_ : Certificate
        Exploitability, relative to the range of the payoffs.

    Examples
    --------
    >>> from epicycle.search import CFR, KuhnPoker
    >>> cfr = CFR().learn(KuhnPoker(), 2000)
    >>> cfr.certificate_.holds, abs(cfr.value_ + 1 / 18) < 1e-3
    (True, True)
    """

    strategy_: dict[tuple[int, Hashable], dict[int, float]]
    value_: float
    bounds_: tuple[float, float]
    exploitability_: float
    history_: History
    certificate_: Certificate

    def __init__(self, variant: str = "cfr+", *, tol: float = 1e-3) -> None:
        check_parameter("CFR", "variant", variant, Choice(*VARIANTS))
        check_parameter("CFR", "tol", tol, SHARED_PARAMETERS["tol"])
        self.variant, self.tol = variant, float(tol)
        self.n_iter_ = 0
        self._game: Game | None = None
        self._rows: list[tuple[float, ...]] = []

    def __repr__(self) -> str:
        return f"CFR({self.variant!r}, {self.n_iter_} iterations)"

    def learn(self, game: Game, iterations: int = 1000) -> CFR:
        """Minimise regrets until the exploitability is at most `tol`, or for a number of iterations.

        Parameters
        ----------
        game : Game
            The rules; another game than in the call before begins anew.
        iterations : int, default=1000
            Largest number of iterations of this call.
        """
        check_parameter("CFR.learn", "game", game, InstanceOf(Game))
        check_parameter("CFR.learn", "iterations", iterations, Integer(minimum=1))
        if not same_rules(self._game, game):
            self._tree: ExtensiveTree = lay_out(game)
            self._game, self.n_iter_, self._rows = game, 0, []
            self._regret, self._total = np.zeros(self._tree.n_actions), np.zeros(self._tree.n_actions)
        began = perf_counter() - (self._rows[-1][-1] if self._rows else 0.0)
        ends = np.unique(np.ceil(np.geomspace(1, iterations, _CHECKS)).astype(int))
        done, interrupted = 0, False
        for end in ends:
            before = self._regret.copy(), self._total.copy()
            try:
                self._minimize(int(end - done))
            except KeyboardInterrupt:  # a part of these iterations leaves no trace
                self._regret, self._total = before
                if not self._rows:
                    raise
                interrupted = True
                break
            self.n_iter_, done = self.n_iter_ + int(end - done), int(end)
            gap, low, high = self._tree.exploitability(self._average())
            self._rows.append((self.n_iter_, gap, low, high, perf_counter() - began))
            if gap <= self.tol * self._range():
                break
        self._conclude()
        if interrupted or not self.certificate_.holds:
            why = f"interrupted after {done} of {iterations} iterations, learn goes on; " if interrupted else ""
            warnings.warn(f"CFR: {why}{self.certificate_}; raise iterations", ConvergenceWarning, stacklevel=2)
        return self

    def _minimize(self, iterations: int) -> None:
        positive, negative, average, clip = VARIANTS[self.variant]
        native.minimize_regret(
            self._tree.native,
            regret=self._regret,
            total=self._total,
            done=self.n_iter_,
            iterations=iterations,
            positive=positive,
            negative=negative,
            average=average,
            clip=clip,
        )

    def _average(self) -> Array:
        return self._tree.normalized(self._total)

    def _range(self) -> float:
        payoffs = self._tree.payoff[self._tree.player == 3]
        return float(np.ptp(payoffs)) or 1.0

    def _conclude(self) -> None:
        average = self._average()
        names = ("iteration", "exploitability", "lower", "upper", "seconds")
        self.history_ = History(**dict(zip(names, np.array(self._rows).T, strict=True)))
        _, gap, low, high, _ = self._rows[-1]
        self.exploitability_, self.bounds_, self.value_ = gap, (low, high), (low + high) / 2
        tree = self._tree
        self.strategy_ = {
            key: dict(zip(moves, average[a : a + len(moves)].tolist(), strict=True))
            for key, moves, a in zip(tree.keys, tree.moves, tree.first_action[:-1], strict=True)
        }
        self.certificate_ = exploitability_certificate(gap, self._range(), self.tol)

    def policy(self, state: Any) -> Array:
        """Probability of each move in a state of a player.

        Parameters
        ----------
        state : object
            State in which a player moves.

        Returns
        -------
        array (n_actions,)
        """
        if self._game is None:
            raise NotFittedError("CFR has not learnt yet; call learn(game)")
        key = (self._game.player(state), self._game.information_set(state))
        if self._game.is_over(state) or key not in self.strategy_:
            raise DataError(f"state={state!r:.60}; expected one in which a player moves")
        found = np.zeros(self._game.n_actions)
        for move, p in self.strategy_[key].items():
            found[move] = p
        return found

    # ------------------------------------------------------------------------------------------- files

    def __epi_state__(self) -> dict[str, Any]:
        if self._game is None:
            raise NotFittedError("CFR has not learnt yet; call learn(game)")
        return {
            "variant": self.variant,
            "tol": self.tol,
            "game": saved_game("CFR", self._game),
            "regret": self._regret,
            "total": self._total,
            "rows": np.array(self._rows),
        }

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(state["variant"], tol=state["tol"])  # type: ignore[misc]
        self._game = restored_game(state["game"])
        self._tree = lay_out(self._game)
        self._regret, self._total = (np.array(state[name], dtype=np.float64) for name in ("regret", "total"))
        if self._regret.shape != (self._tree.n_actions,) or self._total.shape != (self._tree.n_actions,):
            raise DataError(f"regret: got {self._regret.shape}; expected ({self._tree.n_actions},), the game's actions")
        self._rows = [(int(row[0]), *(float(x) for x in row[1:])) for row in state["rows"]]
        self.n_iter_ = int(self._rows[-1][0])
        self._conclude()


def exploitability_certificate(gap: float, spread: float, tol: float) -> Certificate:
    """The certificate of strategies in a zero-sum game."""
    meaning = (
        f"by best replies both players together gain at most {2 * gap / spread:.1e} of the range of the payoffs, and "
        "the value is known to as much"
    )
    return Certificate("exploitability", gap / spread, tol, meaning)
