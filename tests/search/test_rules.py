"""Rules against counts that are published, against the same rules in plain Python, and case by case."""

import numpy as np
import pytest
from slow_rules import SlowConnectFour, SlowGo, SlowOthello, SlowTicTacToe

from epicycle._native import search as native
from epicycle.search import ConnectFour, Go, KuhnPoker, LeducPoker, Othello, TicTacToe, perft

GAMES = {
    "tic-tac-toe": (TicTacToe(), SlowTicTacToe),
    "connect-four": (ConnectFour(), SlowConnectFour),
    "othello": (Othello(), SlowOthello),
    "go 5": (Go(5, komi=0.5), lambda: SlowGo(5, 0.5)),
    "go 7": (Go(7, komi=-2), lambda: SlowGo(7, -2)),
}


@pytest.mark.parametrize("name", GAMES)
def test_random_games_follow_the_slow_rules(name):
    """Boards, players, legal moves, ends and results agree all along games of random moves."""
    game, slow_game = GAMES[name]
    rng = np.random.default_rng(3)
    for _ in range(3 if name == "go 7" else 12):
        state, slow = game.initial_state(), slow_game()
        while True:
            assert state.board.tolist() == slow.board
            assert game.legal_moves(state) == slow.legal()
            assert game.is_over(state) == slow.over()
            if slow.over():
                assert game.result(state) == slow.result()
                break
            assert game.player(state) == slow.turn
            legal = slow.legal()
            # Passes end a game of Go at once if they are as likely as other moves.
            move = int(rng.choice(legal[:-1] if len(legal) > 1 and rng.random() < 0.95 else legal))
            state = game.apply(state, move)
            slow.play(move)


def test_tic_tac_toe_has_255168_games_and_5478_positions():
    game = TicTacToe()
    assert perft(game, 9, include_ended=True) == 255168
    keys, level = set(), {(): game.initial_state()}
    for _ in range(10):
        fresh = {game.key(s): s for s in level.values()}
        keys |= fresh.keys()
        level = {(k, m): game.apply(s, m) for k, s in fresh.items() for m in game.legal_moves(s)}
    assert len(keys) == 5478


def test_connect_four_counts():
    """Numbers of lines of play (J. Tromp's positions are fewer, since they count a position once)."""
    game = ConnectFour()
    assert [perft(game, d) for d in range(8)] == [1, 7, 49, 343, 2401, 16807, 117649, 823536]
    positions = {0: {game.key(game.initial_state()): game.initial_state()}}
    for d in range(5):
        after = [game.apply(s, m) for s in positions[d].values() for m in game.legal_moves(s)]
        positions[d + 1] = {game.key(s): s for s in after}
    assert [len(positions[d]) for d in range(6)] == [1, 7, 49, 238, 1120, 4263]  # Tromp's table


def test_othello_counts():
    def count(moves, depth):
        slow = SlowOthello(moves)
        legal = slow.legal()
        return len(legal) if depth == 1 else sum(count([*moves, m], depth - 1) for m in legal)

    assert [perft(Othello(), d) for d in range(1, 6)] == [count([], d) for d in range(1, 6)]
    assert perft(Othello(), 4) == 244  # 4, 12, 56, 244 as on the large board


@pytest.mark.parametrize("name", GAMES)
def test_python_and_compiled_counts_agree(name):
    game, _ = GAMES[name]
    depth = 2 if "go" in name else 3

    def count(state, left):
        if left == 0:
            return 1
        return sum(count(game.apply(state, move), left - 1) for move in game.legal_moves(state))

    assert perft(game, depth) == count(game.initial_state(), depth)


def cells(game, text):
    return [game.read_move(word) for word in text.split()]


def test_go_takes_a_stone_without_liberties():
    game = Go(5)
    state = game.position(cells(game, "b5 a5 a4"))
    assert state.board[0].tolist() == [-1, 0, -1, -1, -1]
    assert state.board[1, 0] == 0


def test_go_forbids_suicide_but_not_what_takes():
    game = Go(5)
    state = game.position(cells(game, "b5 e1 a4 e2"))  # black round the corner
    state = game.apply(state, game.read_move("pass"))
    assert game.read_move("a5") not in game.legal_moves(state)
    # White round black's corner group, with one liberty inside: filling it takes the group.
    state = game.position(cells(game, "b5 c5 a4 b4 e1 a3 e2"))
    assert game.read_move("a5") in game.legal_moves(state)
    after = game.apply(state, game.read_move("a5"))
    assert after.board[0].tolist() == [1, -1, 1, -1, -1]
    assert after.board[1].tolist() == [-1, 1, -1, -1, -1]


def test_go_forbids_to_take_back_a_ko_at_once():
    game = Go(5)
    # Black b4, c5, c3 and white d5, e4, d3; white stands on c4 and black takes it from d4.
    state = game.position(cells(game, "c5 d5 b4 e4 c3 d3 e1 c4 d4"))
    back = game.read_move("c4")
    assert state.board[1].tolist() == [-1, 0, -1, 0, 1]
    assert back not in game.legal_moves(state)
    later = game.position([*state.moves, *cells(game, "a1 e2")])  # elsewhere first: then it is another position
    assert back in game.legal_moves(later)


def test_go_superko_looks_at_all_earlier_positions():
    """With a pass between, the board of before the ko would come back with the other player to move."""
    game = Go(5)
    state = game.position(cells(game, "c5 d5 b4 e4 c3 d3 e1 c4 d4 pass pass")[:-1])
    state = game.apply(state, game.read_move("a1"))
    assert game.read_move("c4") in game.legal_moves(state)
    state = game.position(cells(game, "c5 d5 b4 e4 c3 d3 pass c4 d4 pass pass")[:-1])
    assert not game.is_over(state)


def test_go_counts_area_and_komi():
    moves = [2, 3, 7, 8, 12, 13, 17, 18, 22, 23, 25, 25]  # a wall each: 15 points against 10
    assert [Go(5, komi=k).result(Go(5, komi=k).position(moves)) for k in (4.5, 5, 5.5)] == [1.0, 0.0, -1.0]


def test_playouts_end_and_are_fair_where_the_game_is():
    first, _, second, steps = native.playouts(1, 0, np.array([], dtype=np.int64), 20000, 5)
    # The rates of random Connect Four: the first player wins 55.6 % of games, which take 21 moves.
    assert first / 20000 == pytest.approx(0.44, abs=0.015) or second / 20000 == pytest.approx(0.556, abs=0.015)
    assert 20.5 < steps / 20000 < 22.5


@pytest.mark.parametrize("name", GAMES)
def test_symmetries_are_symmetries_of_the_rules(name):
    """The legal moves of a turned position are the turned legal moves: policies turn with the planes."""
    game, _ = GAMES[name]
    rng = np.random.default_rng(0)
    state = game.initial_state()
    for _ in range(5):
        legal = [m for m in game.legal_moves(state) if m != game.rows * game.columns] or game.legal_moves(state)
        state = game.apply(state, int(rng.choice(legal)))
    planes, moves = game.encode(state), np.zeros(game.n_actions)
    moves[game.legal_moves(state)] = 1
    pairs = game.symmetries(planes, moves)
    assert len(pairs) == (2 if name == "connect-four" else 8)
    assert np.array_equal(pairs[0][0], planes)
    for turned, policy in pairs:
        assert turned.sum() == planes.sum()
        assert policy.sum() == moves.sum()
        if name in ("tic-tac-toe", "connect-four"):
            empty = turned[0] + turned[1] == 0
            free = empty.ravel() if name == "tic-tac-toe" else empty[0]
            assert np.array_equal(free, policy > 0)


def test_positions_refuse_moves_that_are_not_legal():
    game = ConnectFour()
    with pytest.raises(ValueError, match="number 7, 3, is not legal"):
        game.position([3] * 7)
    with pytest.raises(ValueError, match="expected one of"):
        game.apply(game.initial_state(), 7)
    with pytest.raises(ValueError, match="expected a sequence"):
        game.position("abc")
    with pytest.raises(ValueError, match="komi"):
        Go(5, komi=0.3)
    with pytest.raises(ValueError, match="size"):
        Go(9)


@pytest.mark.parametrize("name", GAMES)
def test_moves_have_names(name):
    game, _ = GAMES[name]
    assert [game.read_move(game.move_text(move)) for move in range(game.n_actions)] == list(range(game.n_actions))
    with pytest.raises(ValueError, match="expected one of"):
        game.read_move("z9")


def test_poker_pays_what_was_put_in():
    kuhn = KuhnPoker()
    state = kuhn.initial_state()
    for move in (2, 0, 1, 1):  # king against jack, a bet that is called
        state = kuhn.apply(state, move)
    assert kuhn.result(state) == 2
    leduc = LeducPoker()
    state = leduc.initial_state()
    for move in (0, 2, 2, 2, 1, 1, 1, 1):  # jack against queen, two raises of 2, a jack on the table, two checks
        assert move in leduc.legal_moves(state)
        state = leduc.apply(state, move)
    assert leduc.is_over(state)
    assert leduc.result(state) == 5
    assert leduc.legal_moves(state) == []
