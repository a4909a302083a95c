"""Values by search against brute force, known positions, and limits that are kept."""

import numpy as np
import pytest
from slow_rules import SlowTicTacToe, slow_minimax
from test_mcts import scores_of_all_lines

from epicycle.search import ConnectFour, Game, Go, KuhnPoker, Othello, TicTacToe, minimax


def line(text):
    """Columns as players write them, from 1."""
    return [int(c) - 1 for c in text]


def test_tic_tac_toe_is_a_draw_and_the_line_shows_it():
    game = TicTacToe()
    result = minimax(game)
    assert (result.value, result.lower, result.upper) == (0.0, 0.0, 0.0)
    assert result.certificate.holds
    end = game.position(result.line)
    assert game.is_over(end)
    assert game.result(end) == 0


def test_never_loses_tic_tac_toe_over_all_lines():
    game = TicTacToe()
    for me in (0, 1):
        assert all(score >= 0 for score in scores_of_all_lines(game, lambda state: minimax(game, state).action, me))


def test_tic_tac_toe_positions_by_brute_force():
    game, rng = TicTacToe(), np.random.default_rng(0)
    for _ in range(60):
        moves = list(rng.permutation(9)[: rng.integers(2, 7)])
        slow = SlowTicTacToe(moves)
        if any(SlowTicTacToe(moves[:k]).over() for k in range(len(moves) + 1)):
            continue
        expected = slow_minimax(slow, SlowTicTacToe) * (1 if slow.turn == 0 else -1)
        state = game.position(moves)
        assert minimax(game, state).value == expected
        assert minimax(game, state, evaluate=lambda s: 0.3).value == expected  # the search in Python
        if len(moves) > 3:
            assert minimax(game, state, method="plain").value == expected


#: From P. Pons's test sets for solvers: sequences of columns, and whether the player who moves wins.
SOLVED = [
    ("2252576253462244111563365343671351441", -1),
    ("7422341735647741166133573473242566", 1),
    ("23163416124767223154467471272416755633", 0),
]


@pytest.mark.parametrize(("moves", "value"), SOLVED)
def test_known_connect_four_positions(moves, value):
    game = ConnectFour()
    result = minimax(game, game.position(line(moves)))
    assert result.value == value
    assert result.certificate.holds
    end = game.position([*line(moves), *result.line])  # the proof comes with a whole game
    assert game.is_over(end)
    assert game.result(end) == (value if len(moves) % 2 == 0 else -value)


def brute_force(game, state):
    """Value for player 0 by visiting every line of play; the rules are tested by themselves."""
    if game.is_over(state):
        return game.result(state)
    values = [brute_force(game, game.apply(state, move)) for move in game.legal_moves(state)]
    return max(values) if game.player(state) == 0 else min(values)


@pytest.mark.parametrize(("game", "begin"), [(ConnectFour(), 36), (Othello(), 27), (Go(5, komi=0.5), 97)], ids=repr)
def test_endings_by_brute_force(game, begin):
    """Positions of random games shortly before the end; in Go the past decides which moves are legal."""
    rng, values = np.random.default_rng(1), []
    while len(values) < 8:
        state = game.initial_state()
        while not game.is_over(state):
            legal = game.legal_moves(state)
            state = game.apply(state, int(rng.choice(legal[:-1] if isinstance(game, Go) and len(legal) > 1 else legal)))
        if len(state.moves) <= begin + 1:
            continue
        state = game.position(state.moves[:begin])
        if len(game.legal_moves(state)) > 9:
            continue
        expected = brute_force(game, state) * (1 if game.player(state) == 0 else -1)
        result = minimax(game, state)
        assert (result.value, result.certificate.holds) == (expected, True)
        values.append(expected)
    assert len(set(values)) > 1


class RandomTree(Game):
    """A tree of given shape with payoffs of any size; players move in any order."""

    n_actions = 3

    def __init__(self, seed):
        self.seed = seed

    def draw(self, state, what):
        return np.random.default_rng([self.seed, what, *state]).random()

    def initial_state(self):
        return ()

    def player(self, state):
        return int(self.draw(state, 0) < 0.5)

    def legal_moves(self, state):
        return [] if self.is_over(state) else list(range(1 + int(3 * self.draw(state, 1))))

    def apply(self, state, move):
        return (*state, move)

    def is_over(self, state):
        return len(state) >= 3 and (len(state) == 7 or self.draw(state, 2) < 0.2)

    def result(self, state):
        return round(10 * self.draw(state, 3) - 5, 1)

    def brute_force(self, state=()):
        if self.is_over(state):
            return self.result(state)
        values = [self.brute_force(self.apply(state, move)) for move in self.legal_moves(state)]
        return max(values) if self.player(state) == 0 else min(values)


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_by_brute_force(seed):
    game = RandomTree(seed)
    sign = 1 if game.player(()) == 0 else -1
    expected = sign * game.brute_force()
    pruned, plain = minimax(game), minimax(game, method="plain")
    assert pruned.value == plain.value == expected
    assert pruned.certificate.holds
    assert sign * game.brute_force((pruned.action,)) == expected
    deepest = minimax(game, max_depth=7, method="plain")
    assert deepest.n_nodes == plain.n_nodes


def test_pruning_visits_fewer_positions():
    game = TicTacToe()
    state = game.position([0, 4, 8])
    kwargs = {"max_depth": 6, "evaluate": lambda s: 0.0}
    plain = minimax(game, state, method="plain", max_depth=6)
    assert minimax(game, state, **kwargs).n_nodes < plain.n_nodes / 2


def test_limits_are_kept_and_nothing_is_claimed():
    game = ConnectFour()
    few = minimax(game, max_nodes=5000)
    assert few.n_nodes <= 5001
    assert not few.certificate.holds
    assert (few.lower, few.upper) == (-1.0, 1.0)
    assert few == minimax(game, max_nodes=5000, max_depth=200) or few.value == minimax(game, max_nodes=5000).value
    assert minimax(game, max_depth=3).depth == 3
    assert minimax(game, max_nodes=1).action in range(7)
    slow = minimax(RandomTree(1), max_nodes=10)
    assert slow.n_nodes <= 10
    assert not slow.certificate.holds
    assert minimax(game, time_limit=0.05).depth < 30


def test_a_small_table_gives_the_same_value():
    game = ConnectFour()
    state = game.position(line(SOLVED[1][0]))
    assert minimax(game, state, table_size=16).value == minimax(game, state).value == 1


def test_bad_input():
    game = TicTacToe()
    with pytest.raises(ValueError, match="over in this state"):
        minimax(game, game.position([0, 3, 1, 4, 2]))
    with pytest.raises(TypeError, match="game="):
        minimax("chess")
    with pytest.raises(ValueError, match="method='alpha'"):
        minimax(game, method="alpha")
    with pytest.raises(ValueError, match="chance moves"):
        minimax(KuhnPoker())
    with pytest.raises(ValueError, match="finite number"):
        minimax(game, max_depth=2, evaluate=lambda s: float("nan"))
