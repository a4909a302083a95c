r"""`AlphaGo`: the policy of an expert, made stronger by playing, and the value of its games, in one search.

Four stages (Silver et al. 2016): clone a policy from the moves of an expert, improve a copy of it by the policy
gradient in games against earlier copies, fit a value network to the results of its games, and search,

.. math:: \min_p -\mathrm{E} \log p_c(a \mid s), \quad \max_p \mathrm{E}\, (z - b) \log p_r(a \mid s), \quad
          \min_v \mathrm{E}\, (z - v(s))^2 ,

with priors :math:`p_c` and leaves that are worth :math:`(1 - \lambda) v + \lambda z` of a random playout.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import SHARED_PARAMETERS, Choice, Domain, Integer, Real, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator import in_catalogue
from epicycle.nets.training._torch import require_torch
from epicycle.search.alpha_zero._network_player import NetworkPlayer, match_of, progress
from epicycle.search.alpha_zero._parallel_games import SearchSettings
from epicycle.search.alpha_zero._policy_games import Policy, PolicyGame, play_by_policies, replayed
from epicycle.search.alpha_zero._updates import fit
from epicycle.search.games._game import Game
from epicycle.search.trees._mcts import Evaluator
from epicycle.search.trees._play_match import MatchResult

if TYPE_CHECKING:
    from epicycle.search.alpha_zero._policy_value_net import Network

Array = np.ndarray
_POOL_EVERY = 5  # rounds after which the policy joins its opponents
_HELD_OUT = 10  # one game in so many is not learnt from
_POLICIES = ("cloned", "reinforced")


@in_catalogue("search", "G12", certificate="none")
class AlphaGo(NetworkPlayer):
    """Learner of a game from games of an expert, and then from its own: policies, a value network, and a search.

    A policy is cloned from the expert's moves. A copy of it plays against earlier copies and climbs the policy
    gradient. A value network is fitted to one position of each of many games of that copy. A search then takes the
    cloned policy as prior, which is more varied, and mixes values with random playouts. Needs the extra `deep`
    (torch).

    Parameters
    ----------
    channels, blocks : int, default=32, 2
        Width of the networks, and their number of residual blocks.
    clone_steps : int, default=300
        Updates of the cloned policy.
    rounds, round_games : int, default=30, 64
        Updates of the reinforced policy, and games that it plays for each.
    round_rate : float, default=1e-3
        Learning rate of these.
    value_games, value_steps : int, default=1000, 300
        Games of the reinforced policy against itself for the value network, and updates of that.
    batch_size : int, default=128
        Positions in an update of the cloned policy and of the value network.
    playout_share : float, default=0.5
        Weight of a random playout beside the value of the network.
    device : str, default='cpu'
        Where the networks compute: 'cpu', 'cuda', 'cuda:1', or 'auto' for a GPU where there is one.

    Attributes
    ----------
    n_iter_ : int
        Number of finished parts: one for the clone, one for each round, one for the value network.
    history_ : History
        Of each part the stage (0 clone, 1 reinforced policy, 2 value network), the loss, how often the most probable
        move is that of the expert in games that were held out (stage 0), the score against an earlier copy (1), the
        squared error of the value network in games that were held out (2), and seconds.
    certificate_ : Certificate
        There is none: matches measure the strength.

    Examples
    --------
    >>> from epicycle.search import MCTS, AlphaGo, TicTacToe, play_match
    >>> game = TicTacToe()
    >>> expert = MCTS(game, simulations=100, random_state=0)
    >>> games = play_match(game, expert, expert, 40, opening_moves=2, random_state=0).games
    >>> options = {"channels": 8, "clone_steps": 60, "rounds": 3, "round_games": 16, "value_games": 60}
    >>> learner = AlphaGo(game, **options, value_steps=60, random_state=0).learn(games, opening_moves=2)
    >>> learner.act(game.position([0, 3, 1, 4]))
    2
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **NetworkPlayer._parameters,
        "clone_steps": Integer(minimum=1),
        "rounds": Integer(minimum=0),
        "round_games": Integer(minimum=2),
        "round_rate": Real(0, inclusive=False),
        "value_games": Integer(minimum=_HELD_OUT),
        "value_steps": Integer(minimum=1),
    }
    _columns = ("stage", "loss", "agreement", "score", "value_error", "seconds")
    _no_proof = "games prove nothing"

    def __init__(
        self,
        game: Game,
        *,
        channels: int = 32,
        blocks: int = 2,
        clone_steps: int = 300,
        rounds: int = 30,
        round_games: int = 64,
        round_rate: float = 1e-3,
        value_games: int = 1000,
        value_steps: int = 300,
        batch_size: int = 128,
        learning_rate: float = 2e-3,
        weight_decay: float = 1e-4,
        simulations: int = 64,
        exploration: float = 1.5,
        playout_share: float = 0.5,
        device: str = "cpu",
        random_state: Seed = None,
    ) -> None:
        self._store(locals())

    clone_steps: int
    rounds: int
    round_games: int
    round_rate: float
    value_games: int
    value_steps: int
    _nets: dict[str, Network]
    _pool: list[dict[str, Array]]

    def __repr__(self) -> str:
        return f"AlphaGo({self.game!r}, {self.n_iter_} of {self._n_parts} parts)"

    @property
    def _n_parts(self) -> int:
        return int(self.rounds) + 2

    # ------------------------------------------------------------------------------------------- learning

    def learn(
        self,
        games: Sequence[Sequence[int]],
        *,
        opening_moves: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        verbose: int = 0,
    ) -> AlphaGo:
        """Learn from games of an expert, then by playing.

        What was learnt in finished parts stays when a call is interrupted, and the next call goes on after them, with
        the same bits as an uninterrupted one; a call after the last part begins anew.

        Parameters
        ----------
        games : list of lists of int
            Moves of games that the expert played, at least ten of them, such as those of :func:`play_match`.
        opening_moves : int, default=0
            Moves at the start of each game that the expert did not choose.
        checkpoint : str or path, optional
            File to which the learner is written after each part; ``ep.load(file).learn(...)`` goes on from there.
        """
        owner = "AlphaGo.learn"
        check_parameter(owner, "opening_moves", opening_moves, Integer(minimum=0))
        check_parameter(owner, "verbose", verbose, SHARED_PARAMETERS["verbose"])
        if self.n_iter_ >= self._n_parts:
            self._rows, self.n_iter_ = [], 0
        if self.n_iter_ == 0:
            expert = self._expert_games(games, int(opening_moves))
            self._begin()
        with progress("AlphaGo", self._n_parts, verbose) as line:
            while self.n_iter_ < self._n_parts:
                began, part = perf_counter(), self.n_iter_
                before = {name: (net.weights(), net.memory()) for name, net in self._nets.items()}
                pool = list(self._pool)
                try:
                    if part == 0:
                        row = self._clone(expert)
                    else:
                        row = self._reinforce(part) if part <= self.rounds else self._value()
                except BaseException:  # an interrupted part leaves no trace
                    for name, (weights, memory) in before.items():
                        self._nets[name].load(weights)
                        self._nets[name].remember(memory)
                    self._pool = pool
                    raise
                self._rows.append((*row, perf_counter() - began))
                self.n_iter_ += 1
                self._conclude()
                line(self.n_iter_, ("clone", "policy gradient", "values")[int(row[0])])
                if checkpoint is not None:
                    self.save(checkpoint)
        return self

    def _expert_games(self, games: Sequence[Sequence[int]], opening_moves: int) -> list[PolicyGame]:
        try:
            given = [[int(move) for move in moves] for moves in games]
        except (TypeError, ValueError):
            raise DataError("games: expected a list of games, each a list of the numbers of its moves") from None
        found = []
        for number, moves in enumerate(given):
            played = replayed(self.game, moves, f"games[{number}]")
            for kept in (played.planes, played.legal, played.players, played.moves):
                del kept[:opening_moves]
            if played.moves:
                found.append(played)
        if len(found) < _HELD_OUT:
            raise DataError(
                f"games: got {len(found)} games with moves after opening_moves={opening_moves}; expected at least "
                f"{_HELD_OUT}"
            )
        return found

    def _begin(self) -> None:
        require_torch("AlphaGo")
        self._seed = seed_of(self.random_state)
        rates = {"cloned": self.learning_rate, "reinforced": self.round_rate, "value": self.learning_rate}
        self._nets = {name: self._network(rate, self.weight_decay) for name, rate in rates.items()}
        self._earlier = self._network(1.0, 0.0)  # an opponent, which does not learn
        self._pool = []

    def _clone(self, expert: list[PolicyGame]) -> tuple[float, ...]:
        """The policy that does what the expert did; how often it would have, in games that were held out."""
        held, learnt = expert[::_HELD_OUT], [g for i, g in enumerate(expert) if i % _HELD_OUT]
        moves = np.concatenate([g.moves for g in learnt]).astype(np.int64)
        data = np.concatenate([g.planes for g in learnt]), _one_hot(moves, self.game.n_actions), None
        net = self._nets["cloned"]
        loss, _ = fit(net, self.game, data, self.clone_steps, self.batch_size, stream(self._seed, "clone"))
        p, _ = net.evaluate(np.concatenate([g.planes for g in held]), np.concatenate([g.legal for g in held]))
        agreement = float(np.mean(p.argmax(axis=1) == np.concatenate([g.moves for g in held])))
        self._nets["reinforced"].load(net.weights())
        self._pool = [net.weights()]
        return 0.0, loss, agreement, math.nan, math.nan

    def _reinforce(self, part: int) -> tuple[float, ...]:
        """One step up the policy gradient, in games against an earlier copy."""
        net = self._nets["reinforced"]
        chosen = int(stream(self._seed, "opponent", part).integers(len(self._pool)))
        self._earlier.load(self._pool[chosen])
        mine, other = self._policy("reinforced"), _policy_of(self._earlier)
        pairs = [(mine, other) if i % 2 == 0 else (other, mine) for i in range(self.round_games)]
        played = play_by_policies(self.game, pairs, self._seed, ("reinforce", part))
        results = np.array([g.result * (1 if i % 2 == 0 else -1) for i, g in enumerate(played)])
        advantage = _above_the_others(results)
        rows = [(i, t) for i, g in enumerate(played) for t, who in enumerate(g.players) if who == i % 2]
        moves = np.array([played[i].moves[t] for i, t in rows])
        target = _one_hot(moves, self.game.n_actions) * advantage[[i for i, _ in rows], None].astype(np.float32)
        planes, legal = (np.stack([getattr(played[i], name)[t] for i, t in rows]) for name in ("planes", "legal"))
        loss, _ = net.step(planes, target, None, legal)
        if part % _POOL_EVERY == 0:
            self._pool.append(net.weights())
        return 1.0, loss, math.nan, float((np.sign(results).mean() + 1) / 2), math.nan

    def _value(self) -> tuple[float, ...]:
        """The value network, on one position of each game, as positions of a game are too much alike."""
        policy = self._policy("reinforced")
        played = play_by_policies(self.game, [(policy, policy)] * self.value_games, self._seed, ("value",))
        draw = stream(self._seed, "positions")
        at = [int(draw.integers(len(g.moves))) for g in played]
        planes = np.stack([g.planes[t] for g, t in zip(played, at, strict=True)])
        z = np.array([g.result * (1 if g.players[t] == 0 else -1) for g, t in zip(played, at, strict=True)], np.float32)
        held = np.arange(len(z)) % _HELD_OUT == 0
        net, data = self._nets["value"], (planes[~held], None, z[~held])
        _, loss = fit(net, self.game, data, self.value_steps, self.batch_size, stream(self._seed, "values"))
        _, v = net.evaluate(planes[held], np.ones((int(held.sum()), self.game.n_actions), dtype=bool))
        return 2.0, loss, math.nan, math.nan, float(np.mean((z[held] - v) ** 2))

    # ------------------------------------------------------------------------------------------- players

    def _policy(self, name: str) -> Policy:
        return _policy_of(self._nets[name])

    @property
    def _evaluator(self) -> Evaluator:
        return self._guide

    def _guide(self, planes: Array, legal: Array) -> tuple[Array, Array]:
        """Priors of the cloned policy, and values."""
        return self._nets["cloned"].evaluate(planes, legal)[0], self._nets["value"].evaluate(planes, legal)[1]

    def _settings(self, *, arena: bool = False) -> SearchSettings:
        return SearchSettings(
            simulations=int(self.simulations),
            exploration=float(self.exploration),
            noise=1.0,
            noise_share=0.0,
            temperature_moves=4,
            playout_share=float(self.playout_share),
        )

    def probabilities(self, state: Any, policy: str = "cloned") -> Array:
        """Probabilities of the moves by one of the policies, without search.

        Parameters
        ----------
        state : object
            State in which a player moves.
        policy : {"cloned", "reinforced"}, default="cloned"
            Which policy.

        Returns
        -------
        array (n_actions,)
        """
        self._check_learnt()
        check_parameter("AlphaGo.probabilities", "policy", policy, Choice(*_POLICIES))
        legal = np.isin(np.arange(self.game.n_actions), self.game.legal_moves(state))
        planes = np.asarray(self.game.encode(state), dtype=np.float32)
        return np.asarray(self._policy(policy)(planes[None], legal[None])[0])

    def policy_match(self, n_games: int = 200) -> MatchResult:
        """Games of the reinforced policy against the cloned one, both without search, in turn.

        Parameters
        ----------
        n_games : int, default=200
            Number of games.

        Returns
        -------
        MatchResult
            Seen from the reinforced policy.
        """
        self._check_learnt()
        check_parameter("AlphaGo.policy_match", "n_games", n_games, Integer(minimum=1))
        new, old = (self._policy(name) for name in reversed(_POLICIES))
        pairs = [(new, old) if i % 2 == 0 else (old, new) for i in range(n_games)]
        played = play_by_policies(self.game, pairs, self._seed, ("policy match",))
        return match_of([g.result for g in played], [tuple(g.moves) for g in played])

    # ------------------------------------------------------------------------------------------- files

    def _learnt(self) -> dict[str, Any]:
        return {
            "nets": {name: net.weights() for name, net in self._nets.items()},
            "optimizer": self._nets["reinforced"].memory(),
            # Opponents are needed while the policy learns.
            "pool": self._pool if self.n_iter_ <= self.rounds else [],
        }

    def _restore_learnt(self, state: dict[str, Any]) -> None:
        if set(state["nets"]) != set(self._nets):
            raise ParameterError(f"nets: got {sorted(state['nets'])}; expected {sorted(self._nets)}")
        for name, weights in state["nets"].items():
            self._nets[name].load(weights)
        self._nets["reinforced"].remember(state["optimizer"])
        self._pool = list(state["pool"])


def _policy_of(net: Network) -> Policy:
    return lambda planes, legal: net.evaluate(planes, legal)[0]


def _one_hot(moves: Array, n: int) -> Array:
    return np.asarray(np.eye(n, dtype=np.float32)[moves])


def _above_the_others(results: Array) -> Array:
    """Results less the mean of the other games with the same seat: a baseline that takes nothing from the mean."""
    found = np.zeros(len(results))
    for seat in (0, 1):
        own = results[seat::2]
        n = len(own)
        found[seat::2] = (own - own.mean()) * (n / (n - 1) if n > 1 else 1.0)
    return found
