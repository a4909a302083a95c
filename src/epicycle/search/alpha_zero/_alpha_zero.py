r"""`AlphaZero`: a network learns from searches that it guides.

Searches turn probabilities p and values v of the network into better ones: shares of visits :math:`\pi`, and results z
of games that are played by them. The network is fitted to both,

.. math:: \ell = (z - v)^2 - \sum_a \pi_a \log p_a ,

and guides the next games (Silver et al. 2017).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from epicycle.core._parameters import SHARED_PARAMETERS, Domain, Integer, Real, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator import in_catalogue
from epicycle.nets.training._torch import require_torch
from epicycle.search.alpha_zero._network_player import NetworkPlayer, progress
from epicycle.search.alpha_zero._parallel_games import SearchSettings, play_games
from epicycle.search.alpha_zero._updates import fit, positions
from epicycle.search.games._game import Game
from epicycle.search.trees._mcts import Evaluator
from epicycle.search.trees._play_match import elo_difference

Array = np.ndarray


@in_catalogue("search", "G12", certificate="none")
class AlphaZero(NetworkPlayer):
    """Learner of a game by self-play: Monte-Carlo search with a network for policy and value, fitted to its searches.

    An iteration plays `games` games at once with the best network so far, fits a candidate to positions of recent
    games, each seen under a random symmetry, and lets the candidate replace the best one where it scores at least
    `gate` in `gate_games` games against it. Needs the extra `deep` (torch).

    Parameters
    ----------
    channels, blocks : int, default=32, 2
        Width of the network, and its number of residual blocks.
    noise, noise_share : float, default=1.0, 0.25
        Parameter of the Dirichlet noise at the root, and its share of the prior; not in `act`.
    temperature_moves : int, default=8
        Moves at the start of a game that are drawn in proportion to visits.
    games : int, default=64
        Games of an iteration.
    steps, batch_size : int, default=100, 128
        Updates of an iteration, and positions in each.
    buffer_size : int, default=20_000
        Positions that are kept, the most recent ones.
    playout_share : float, default=0
        Weight of a random playout beside the value of the network, as in AlphaGo.
    gate : float, default=0.5
        Score from which on a candidate is accepted.
    gate_games : int, default=0
        Games between candidate and best network; 0 accepts all candidates.
    device : str, default='cpu'
        Where the network computes: 'cpu', 'cuda', 'cuda:1', or 'auto' for a GPU where there is one. With several
        hundred games at once a GPU is well used; the trees grow on all threads of the CPU.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations so far.
    history_ : History
        Of each iteration the losses, moves in a game, score of the candidate, whether it was accepted, Elo relative to
        the first network, positions so far, and seconds.
    certificate_ : Certificate
        There is none: self-play proves nothing; matches measure the strength.

    Examples
    --------
    >>> from epicycle.search import AlphaZero, TicTacToe
    >>> game = TicTacToe()
    >>> learner = AlphaZero(game, simulations=25, games=16, steps=20, random_state=0).learn(2)
    >>> learner.act(game.position([0, 3, 1, 4]))
    2
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **NetworkPlayer._parameters,
        "noise": Real(0, inclusive=False),
        "noise_share": Real(0, 1),
        "temperature_moves": Integer(minimum=0),
        "games": Integer(minimum=1),
        "steps": Integer(minimum=1),
        "buffer_size": Integer(minimum=2),
        "gate": Real(0, 1),
        "gate_games": Integer(minimum=0),
    }
    _columns = ("policy_loss", "value_loss", "moves", "gate_score", "accepted", "elo", "positions", "seconds")
    _no_proof = "self-play proves nothing"

    def __init__(
        self,
        game: Game,
        *,
        channels: int = 32,
        blocks: int = 2,
        simulations: int = 64,
        exploration: float = 1.5,
        noise: float = 1.0,
        noise_share: float = 0.25,
        temperature_moves: int = 8,
        games: int = 64,
        steps: int = 100,
        batch_size: int = 128,
        buffer_size: int = 20_000,
        learning_rate: float = 2e-3,
        weight_decay: float = 1e-4,
        playout_share: float = 0.0,
        gate: float = 0.5,
        gate_games: int = 0,
        device: str = "cpu",
        random_state: Seed = None,
    ) -> None:
        self._store(locals())

    noise: float
    noise_share: float
    temperature_moves: int
    games: int
    steps: int
    buffer_size: int
    gate: float
    gate_games: int

    def __repr__(self) -> str:
        return f"AlphaZero({self.game!r}, {self.n_iter_} iterations)"

    # ------------------------------------------------------------------------------------------- learning

    def learn(
        self, iterations: int, *, checkpoint: str | os.PathLike[str] | None = None, verbose: int = 0
    ) -> AlphaZero:
        """Play and learn; a second call goes on, with the same bits as one long call.

        What was learnt in finished iterations stays when a call is interrupted.

        Parameters
        ----------
        iterations : int
            Number of iterations.
        checkpoint : str or path, optional
            File to which the learner is written after each iteration; ``ep.load(file).learn(...)`` goes on from there.
        """
        check_parameter("AlphaZero.learn", "iterations", iterations, Integer(minimum=1))
        check_parameter("AlphaZero.learn", "verbose", verbose, SHARED_PARAMETERS["verbose"])
        self._begin()
        with progress("AlphaZero", int(iterations), verbose) as line:
            for number in range(iterations):
                self._iterate()
                line(number + 1, f"losses {self._rows[-1][0]:.3g} and {self._rows[-1][1]:.3g}")
                if checkpoint is not None:
                    self.save(checkpoint)
        return self

    def _begin(self) -> None:
        if self.n_iter_ > 0:
            return
        require_torch("AlphaZero")
        self._seed = seed_of(self.random_state)
        self._best, self._candidate = (self._network(self.learning_rate, self.weight_decay) for _ in range(2))
        self._buffer: tuple[Array, Array, Array] = (
            np.empty((0, *self._planes()), np.float32),
            np.empty((0, self.game.n_actions), np.float32),
            np.empty(0, np.float32),
        )

    def _iterate(self) -> None:
        began = perf_counter()
        number = self.n_iter_
        best = self._best.evaluate
        records = play_games(self.game, [(best, best)] * self.games, self._settings(), self._seed, ("self", number))
        planes, policies, results = (
            np.concatenate([old, new])[-self.buffer_size :]
            for old, new in zip(self._buffer, positions(records), strict=True)
        )
        buffer = planes, policies, results
        before = self._candidate.weights(), self._candidate.memory()
        try:
            random = stream(self._seed, "fit", number)
            losses = fit(self._candidate, self.game, buffer, self.steps, self.batch_size, random)
            score = self._gate_score(number)
        except BaseException:  # an interrupted iteration leaves no trace
            self._candidate.load(before[0])
            self._candidate.remember(before[1])
            raise
        accepted = self.gate_games == 0 or score >= self.gate
        elo = self._rows[-1][5] if self._rows else 0.0
        if accepted:
            elo += 0.0 if self.gate_games == 0 else elo_difference(score, self.gate_games)
            self._best.load(self._candidate.weights())
        moves = float(np.mean([len(record.moves) for record in records]))
        played = (self._rows[-1][6] if self._rows else 0.0) + sum(len(record.moves) for record in records)
        self._buffer = buffer
        self._rows.append((*losses, moves, score, float(accepted), elo, played, perf_counter() - began))
        self.n_iter_ += 1
        self._conclude()

    @property
    def _evaluator(self) -> Evaluator:
        return self._best.evaluate

    def _settings(self, *, arena: bool = False) -> SearchSettings:
        return SearchSettings(
            simulations=int(self.simulations),
            exploration=float(self.exploration),
            noise=float(self.noise),
            noise_share=0.0 if arena else float(self.noise_share),
            temperature_moves=min(4, int(self.temperature_moves)) if arena else int(self.temperature_moves),
            playout_share=float(self.playout_share),
        )

    def _gate_score(self, number: int) -> float:
        """Score of the candidate against the best network, which take turns to begin."""
        if self.gate_games == 0:
            return math.nan
        new, old = self._candidate.evaluate, self._best.evaluate
        return self._games_in_turn(new, old, self.gate_games, self._settings(arena=True), ("gate", number)).score

    # ------------------------------------------------------------------------------------------- files

    def _learnt(self) -> dict[str, Any]:
        return {
            # Planes of these games are zeros and ones.
            "buffer": [np.packbits(self._buffer[0] > 0), *self._buffer[1:]],
            "best": self._best.weights(),
            "candidate": self._candidate.weights(),
            "optimizer": self._candidate.memory(),
        }

    def _restore_learnt(self, state: dict[str, Any]) -> None:
        self._best.load(state["best"])
        self._candidate.load(state["candidate"])
        self._candidate.remember(state["optimizer"])
        bits, policies, results = state["buffer"]
        shape = (len(results), *np.shape(self._buffer[0])[1:])
        planes = np.unpackbits(bits, count=math.prod(shape)).reshape(shape).astype(np.float32)
        self._buffer = planes, policies, results
