"""The base of learners whose searches are guided by networks: acting, matches, and the game in a file."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import NotFittedError, ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import SHARED_PARAMETERS, Domain, InstanceOf, Integer, Real, check_parameter
from epicycle.core._random import Seed
from epicycle.core._saved import Saved, attributes_of
from epicycle.core.estimator._progress import ProgressLine
from epicycle.nets.training._options import NET_PARAMETERS
from epicycle.nets.training._torch import device_or_cpu
from epicycle.search.alpha_zero._parallel_games import Player, Playouts, SearchSettings, play_games
from epicycle.search.games._game import Game
from epicycle.search.games._saved_games import restored_game, saved_game
from epicycle.search.trees._mcts import MCTS, Evaluator, MCTSResult
from epicycle.search.trees._play_match import MatchResult

if TYPE_CHECKING:
    from epicycle.search.alpha_zero._policy_value_net import Network

Array = np.ndarray


class NetworkPlayer(Saved, ABC):
    """A player by searches with the priors and values of networks (`_evaluator`).

    A subclass names the domains of its own arguments in `_parameters` and begins in `_begin`. All that it learns is in
    `_rows`, of which each is a row of the history, and in what `_learnt` returns.
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "game": InstanceOf(Game),
        "channels": Integer(minimum=1),
        "blocks": Integer(minimum=0),
        "batch_size": Integer(minimum=2),
        "learning_rate": Real(0, inclusive=False),
        "weight_decay": Real(0),
        "simulations": Integer(minimum=2),
        "exploration": Real(0, inclusive=False),
        "playout_share": Real(0, 1),
        "device": NET_PARAMETERS["device"],
        "random_state": SHARED_PARAMETERS["random_state"],
    }
    _docs: ClassVar[dict[str, str]] = {
        "game": "game : Game\n    Rules, with `encode`.",
        "learning_rate": "learning_rate, weight_decay : float, default=2e-3, 1e-4\n    Of AdamW.",
        "simulations": "simulations : int, default={default}\n    Simulations of each search.",
        "exploration": "exploration : float, default={default}\n    The constant of PUCT.",
        "learn_verbose": "verbose : int, default=0\n"
        "    1 shows progress when learning takes more than about two seconds.",
    }
    _columns: ClassVar[tuple[str, ...]]
    _no_proof: ClassVar[str]

    game: Game
    channels: int
    blocks: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    simulations: int
    exploration: float
    playout_share: float
    device: str
    random_state: Seed
    n_iter_: int
    history_: History
    certificate_: Certificate
    _rows: list[tuple[float, ...]]
    _seed: int

    def _store(self, given: Mapping[str, Any]) -> None:
        """Check the arguments of the constructor, and keep them."""
        for name in self._arguments:
            check_parameter(type(self).__name__, name, given[name], self._parameters[name])
            setattr(self, name, given[name])
        self._rows = []
        self.n_iter_ = 0

    @abstractmethod
    def _begin(self) -> None:
        """Make the networks, before anything is learnt or read from a file."""

    def _network(self, learning_rate: float, weight_decay: float) -> Network:
        """A new network for the board of the game."""
        from epicycle.search.alpha_zero._policy_value_net import Network

        shape = {
            "planes": tuple(int(n) for n in self._planes()),
            "n_actions": int(self.game.n_actions),
            "channels": int(self.channels),
            "blocks": int(self.blocks),
        }
        return Network(shape, self._seed, float(learning_rate), float(weight_decay), self.device)

    def _planes(self) -> tuple[int, ...]:
        """Shape of a position for the network."""
        return np.asarray(self.game.encode(self.game.initial_state())).shape

    def _conclude(self) -> None:
        self.history_ = History(**dict(zip(self._columns, np.array(self._rows).T, strict=True)))
        meaning = f"{self._no_proof}; play_match measures the strength"
        self.certificate_ = Certificate("none", math.nan, 0.0, meaning)

    @property
    @abstractmethod
    def _evaluator(self) -> Evaluator:
        """Planes and legal moves of positions to priors and values."""

    @abstractmethod
    def _settings(self, *, arena: bool = False) -> SearchSettings:
        """Of the searches of many games at once, while learning or in matches."""

    # ------------------------------------------------------------------------------------------- acting

    def evaluate(self, state: Any) -> tuple[Array, float]:
        """Probabilities of the moves and value for the player who moves, by the network alone.

        Parameters
        ----------
        state : object
            State in which a player moves.

        Returns
        -------
        policy : array (n_actions,)
        value : float
        """
        self._check_learnt()
        legal = np.zeros((1, self.game.n_actions), dtype=bool)
        legal[0, self.game.legal_moves(state)] = True
        policy, value = self._evaluator(self.game.encode(state)[None], legal)
        return policy[0], float(value[0])

    def search(self, state: Any = None, *, simulations: int | None = None) -> MCTSResult:
        """Search guided by the network, without noise.

        Parameters
        ----------
        state : optional
            Where to search from; by default the start.
        simulations : int, optional
            By default those of the learner.

        Returns
        -------
        MCTSResult
        """
        self._check_learnt()
        return MCTS(
            self.game,
            simulations=self.simulations if simulations is None else simulations,
            exploration=self.exploration,
            evaluator=self._evaluator,
            playout_share=self.playout_share,
            random_state=self._seed,
        ).search(state)

    def act(self, state: Any = None) -> int:
        """Move of a search.

        Parameters
        ----------
        state : optional
            Where to move; by default at the start.

        Returns
        -------
        int
        """
        return self.search(state).action

    # ------------------------------------------------------------------------------------------- matches

    def arena(
        self, opponent: NetworkPlayer | MCTS, n_games: int = 100, *, simulations: int | None = None
    ) -> MatchResult:
        """Play games at once against another learner, or against searches with random playouts.

        Both take turns to begin and play without noise, by the best move that they find; so two learners repeat
        themselves unless `temperature_moves` lets the first moves be drawn, of which four at most are here.

        Parameters
        ----------
        opponent : AlphaZero, AlphaGo or MCTS
            The other player, of the same game; of an MCTS without `evaluator`, which plays with its simulations and
            exploration.
        n_games : int, default=100
            Number of games.
        simulations : int, optional
            Of each search of this learner, and of another learner, whose searches have the settings of this one; by
            default those of this one.

        Returns
        -------
        MatchResult
        """
        self._check_learnt()
        owner = f"{type(self).__name__}.arena"
        check_parameter(owner, "n_games", n_games, Integer(minimum=1))
        other: Player
        if isinstance(opponent, NetworkPlayer) and opponent.game == self.game:
            opponent._check_learnt()
            other = opponent._evaluator
        elif isinstance(opponent, MCTS) and opponent.evaluator is None and opponent.game == self.game:
            c = math.sqrt(2) if opponent.exploration is None else float(opponent.exploration)
            other = Playouts(opponent.simulations, c)
        else:
            raise ParameterError(
                f"{owner}: opponent={opponent!r:.80}; expected an AlphaZero, an AlphaGo or an MCTS without evaluator, "
                f"of {self.game!r}"
            )
        settings = self._settings(arena=True)
        if simulations is not None:
            check_parameter(owner, "simulations", simulations, Integer(minimum=2))
            settings = replace(settings, simulations=int(simulations))
        if isinstance(other, Playouts):  # whose seeds make the games different
            settings = replace(settings, temperature_moves=0)
        return self._games_in_turn(self._evaluator, other, n_games, settings, ("arena",))

    def _games_in_turn(
        self, first: Player, second: Player, n_games: int, settings: SearchSettings, keys: tuple[Any, ...]
    ) -> MatchResult:
        """Games of two players at once, who take turns to begin."""
        pairs = [(first, second) if i % 2 == 0 else (second, first) for i in range(n_games)]
        records = play_games(self.game, pairs, settings, self._seed, keys)
        return match_of([record.result for record in records], [tuple(record.moves) for record in records])

    def _check_learnt(self) -> None:
        if self.n_iter_ == 0:
            raise NotFittedError(f"{type(self).__name__} has not learnt yet; call learn")

    # ------------------------------------------------------------------------------------------- files

    @abstractmethod
    def _learnt(self) -> dict[str, Any]:
        """Entries of a file beside the arguments and the history."""

    @abstractmethod
    def _restore_learnt(self, state: dict[str, Any]) -> None:
        """Take what `_learnt` gave."""

    def __epi_state__(self) -> dict[str, Any]:
        self._check_learnt()
        kept = [name for name in self._arguments if name not in ("game", "random_state")]
        return {
            "game": saved_game(type(self).__name__, self.game),
            "parameters": attributes_of(self, tuple(kept)),
            "seed": self._seed,
            "rows": np.array(self._rows),
            **self._learnt(),
        }

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        given = {**state["parameters"], "game": restored_game(state["game"]), "random_state": state["seed"]}
        self.__init__(**given)  # type: ignore[misc]  # an object that was only allocated
        self.device = device_or_cpu(self.device)
        self._begin()
        self._restore_learnt(state)
        self._rows = [tuple(float(x) for x in row) for row in state["rows"]]
        self.n_iter_ = len(self._rows)
        self._conclude()


@contextmanager
def progress(name: str, total: int, verbose: int) -> Iterator[Callable[[int, str], None]]:
    """A function of the number of finished parts and a note, which shows them where `verbose` asks for it."""
    line = ProgressLine(name, total) if verbose else None

    def show(done: int, note: str) -> None:
        if line is not None:
            line.update(done, note=note)

    try:
        yield show
    finally:
        if line is not None:
            line.close()


def match_of(results: list[float], games: list[tuple[int, ...]]) -> MatchResult:
    """Games of two players who take turns to begin, from results for player 0."""
    signs = [int(np.sign(result)) * (1 if i % 2 == 0 else -1) for i, result in enumerate(results)]
    return MatchResult(signs.count(1), signs.count(0), signs.count(-1), games)
