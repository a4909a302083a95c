"""Kernels: rules of games, alpha-beta, Monte-Carlo tree search, counterfactual regrets."""

from typing import Any

import numpy as np

Array = np.ndarray

def position(game: int, option: int, moves: Array) -> tuple[Array, Array, int, bool, int, int]: ...
def perft(game: int, option: int, moves: Array, depth: int, ended_too: bool) -> int: ...
def playouts(game: int, option: int, moves: Array, count: int, seed: int) -> tuple[int, int, int, int]: ...
def alpha_beta(
    game: int, option: int, moves: Array, depth: int, nodes: int, seconds: float, table_bits: int
) -> tuple[int, bool, int, int, Array, Array]: ...
def new_tree(game: int, option: int, moves: Array, seed: int, solver: bool, most_nodes: int) -> Any: ...
def simulate(trees: list[Any], simulations: int, c: float, seconds: float, threads: int) -> None: ...
def select_leaves(tree: Any, c: float, planes: Array, legal: Array) -> int: ...
def back_up(tree: Any, priors: Array, values: Array, playout_share: float) -> None: ...
def select_each(trees: list[Any], c: float, planes: Array, legal: Array, found: Array, threads: int) -> None: ...
def back_up_each(
    trees: list[Any], found: Array, priors: Array, values: Array, playout_share: float, threads: int
) -> None: ...
def mix_root(tree: Any, noise: Array, share: float) -> None: ...
def advance(tree: Any, move: int) -> None: ...
def statistics(tree: Any) -> tuple[Array, Array, Array, Array, Array, int, int, float, int]: ...
def minimize_regret(
    player: Array,
    first: Array,
    count: Array,
    set: Array,
    chance: Array,
    payoff: Array,
    first_action: Array,
    regret: Array,
    total: Array,
    done: int,
    iterations: int,
    positive: float,
    negative: float,
    average: float,
    clip: bool,
) -> None: ...
def best_reply(
    player: Array,
    first: Array,
    count: Array,
    set: Array,
    chance: Array,
    payoff: Array,
    first_action: Array,
    strategy: Array,
    me: int,
) -> tuple[float, Array]: ...
