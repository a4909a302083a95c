"""Many games at once, so that a network values one position of each in one call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np

from epicycle.core._random import stream
from epicycle.search.games._game import Game
from epicycle.search.trees._forest import Forest
from epicycle.search.trees._mcts import Evaluator
from epicycle.search.trees._tree import RootStatistics

Array = np.ndarray


@dataclass(frozen=True)
class SearchSettings:
    """Of the searches in such games.

    temperature_moves : moves at the start of a game that are drawn in proportion to visits; later the best is taken.
    """

    simulations: int
    exploration: float
    noise: float
    noise_share: float
    temperature_moves: int
    playout_share: float


@dataclass(frozen=True)
class Playouts:
    """A player whose searches end in random playouts (UCT), beside those that ask an evaluator."""

    simulations: int
    exploration: float


Player: TypeAlias = Evaluator | Playouts
P = TypeVar("P")


@dataclass
class Record:
    """One game: for each move the planes, the policy of the search and the player; the result for player 0."""

    planes: list[Array] = field(default_factory=list)
    policies: list[Array] = field(default_factory=list)
    players: list[int] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    result: float = 0.0


def play_games(
    game: Game,
    pairs: Sequence[tuple[Player, Player]],
    settings: SearchSettings,
    seed: int,
    keys: tuple[Any, ...],
) -> list[Record]:
    """Play one game for each pair of players 0 and 1; the games do not depend on each other."""
    states = [game.initial_state() for _ in pairs]
    records = [Record() for _ in pairs]
    randoms = [stream(seed, *keys, "game", i) for i in range(len(pairs))]
    for player, numbers in turns(game, states, pairs):
        forest = Forest(game, [states[i] for i in numbers], [int(randoms[i].integers(2**62)) for i in numbers])
        _grow(forest, player, settings, [randoms[i] for i in numbers])
        for i, found in zip(numbers, forest.statistics(), strict=True):
            record = records[i]
            move, policy = _choose(found, game.n_actions, settings, len(record.moves), randoms[i])
            record.planes.append(np.asarray(game.encode(states[i]), dtype=np.float32))
            record.policies.append(policy)
            record.players.append(game.player(states[i]))
            record.moves.append(move)
            states[i] = game.apply(states[i], move)
            if game.is_over(states[i]):
                record.result = game.result(states[i])
    return records


def turns(game: Game, states: Sequence[Any], pairs: Sequence[tuple[P, P]]) -> Iterator[tuple[P, list[int]]]:
    """Who moves next, and in which games, until all are over: a player moves in all games where it is the turn at once.

    Whoever asks for them makes the moves in `states`.
    """
    running = list(range(len(pairs)))
    while running:
        by_player: dict[int, tuple[P, list[int]]] = {}
        for i in running:
            player = pairs[i][game.player(states[i])]
            by_player.setdefault(id(player), (player, []))[1].append(i)
        yield from by_player.values()
        running = [i for i in running if not game.is_over(states[i])]


def _grow(forest: Forest, player: Player, settings: SearchSettings, randoms: list[Any]) -> None:
    """Simulations in all trees."""
    if isinstance(player, Playouts):
        forest.simulate(player.simulations, player.exploration)
        return
    for number in range(settings.simulations):
        planes, legal = forest.select(settings.exploration)
        if len(planes):
            forest.back_up(*player(planes, legal), settings.playout_share)
        elif all(not math.isnan(found.root_proven) for found in forest.statistics()):
            return
        if number == 0 and settings.noise_share > 0:
            for tree, random in zip(forest.trees, randoms, strict=True):
                n = len(tree.statistics().moves)
                if n:
                    tree.mix_root(random.dirichlet(np.full(n, settings.noise)), settings.noise_share)


def _choose(
    found: RootStatistics, n_actions: int, settings: SearchSettings, done: int, random: Any
) -> tuple[int, Array]:
    """A move, and the policy that the network is to learn: shares of visits, of proven moves where there are any."""
    weights = found.visits.astype(np.float64)
    if not math.isnan(found.root_proven):
        weights = np.where(found.proven == found.root_proven, weights + 1.0, 0.0)
    elif (found.proven != -1).any():
        weights = np.where(found.proven == -1, 0.0, weights)
    if not weights.sum() > 0:
        weights = np.ones(len(weights))
    policy = np.zeros(n_actions, dtype=np.float32)
    policy[found.moves] = weights / weights.sum()
    if done < settings.temperature_moves:
        move = int(random.choice(found.moves, p=weights / weights.sum()))
    else:
        move = int(found.moves[np.argmax(weights)])
    return move, policy
