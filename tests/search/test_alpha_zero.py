"""Learning by self-play: it repeats, goes on from a file with the same bits, and plays tic-tac-toe without a loss."""

import numpy as np
import pytest

import epicycle as ep
from epicycle.exceptions import NotFittedError
from epicycle.search import MCTS, AlphaZero, ConnectFour, Go, TicTacToe

pytest.importorskip("torch")

SMALL = {"channels": 8, "blocks": 1, "simulations": 12, "games": 8, "steps": 10, "batch_size": 32, "random_state": 0}


@pytest.fixture(scope="module")
def three():
    """Three iterations with a gate."""
    return AlphaZero(TicTacToe(), gate_games=6, **SMALL).learn(3)


def same_bits(one, other):
    a, b = one.__epi_state__(), other.__epi_state__()
    for part in ("best", "candidate", "optimizer"):
        assert a[part].keys() == b[part].keys()
        assert all(np.array_equal(a[part][name], b[part][name]) for name in a[part])
    assert all(np.array_equal(x, y) for x, y in zip(a["buffer"], b["buffer"], strict=True))
    # All columns but the seconds.
    assert np.array_equal(a["rows"][:, :-1], b["rows"][:, :-1], equal_nan=True)


def test_a_run_that_was_saved_goes_on_with_the_same_bits(three, tmp_path):
    part = AlphaZero(TicTacToe(), gate_games=6, **SMALL).learn(1)
    part.save(tmp_path / "learner.epi")
    resumed = ep.load(tmp_path / "learner.epi")
    assert resumed.n_iter_ == 1
    resumed.learn(2)
    same_bits(three, resumed)


def test_history_and_certificate(three):
    history = three.history_
    assert history.n_iter == three.n_iter_ == 3
    assert ((history.gate_score >= 0) & (history.gate_score <= 1)).all()
    assert np.array_equal(history.accepted == 1, history.gate_score >= 0.5)
    assert (np.diff(history.elo)[history.accepted[1:] == 0] == 0).all()
    assert three.certificate_.kind == "none"
    assert not three.certificate_.holds


def test_an_interrupted_iteration_leaves_no_trace(three, monkeypatch):
    learner = AlphaZero(TicTacToe(), gate_games=6, **SMALL).learn(1)

    def interrupt(number):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(learner, "_gate_score", interrupt)
        with pytest.raises(KeyboardInterrupt):
            learner.learn(1)
    assert learner.n_iter_ == 1
    same_bits(three, learner.learn(2))


def test_targets_are_what_the_searches_found(three):
    planes, policies, results = three._buffer
    np.testing.assert_allclose(policies.sum(axis=1), 1, atol=1e-6)
    taken = planes[:, :2].sum(axis=1).reshape(len(planes), 9) > 0
    assert not policies[taken].any()
    assert set(np.unique(results)) <= {-1.0, 0.0, 1.0}
    starts = planes[:, :2].sum(axis=(1, 2, 3)) == 0
    assert starts.sum() == 3 * 8  # one in each game


def test_symmetries_move_planes_and_policies_alike(three):
    from epicycle.search.alpha_zero._updates import symmetry_tables

    cells, moves = symmetry_tables(three.game, (3, 3))
    assert np.array_equal(cells, moves)  # a move of tic-tac-toe is a cell
    assert len({tuple(row) for row in cells.tolist()}) == 8


def test_other_games_and_playouts():
    for game in (ConnectFour(), Go(5, komi=0.5)):
        learner = AlphaZero(game, playout_share=0.5, **{**SMALL, "games": 2, "steps": 2}).learn(1)
        state = game.initial_state()
        policy, value = learner.evaluate(state)
        assert policy.sum() == pytest.approx(1, abs=1e-5)
        assert -1 <= value <= 1
        assert learner.act() in game.legal_moves(state)


def losses_over_all_lines(act):
    """Ends of games that are lost, by playing first and second against every line of play of the other."""
    game, lost = TicTacToe(), 0
    for me in (0, 1):
        waiting, seen = [game.initial_state()], set()
        while waiting:
            state = waiting.pop()
            if game.key(state) in seen:
                continue
            seen.add(game.key(state))
            if game.is_over(state):
                lost += game.result(state) * (1 if me == 0 else -1) < 0
            elif game.player(state) == me:
                waiting.append(game.apply(state, act(state)))
            else:
                waiting += [game.apply(state, move) for move in game.legal_moves(state)]
    return lost


def test_learns_tic_tac_toe_without_a_loss_over_all_lines():
    """The same search with uniform priors and values of zero loses dozens of lines; the network alone few."""
    game = TicTacToe()
    learner = AlphaZero(
        game,
        channels=32,
        blocks=1,
        simulations=50,
        games=32,
        steps=60,
        temperature_moves=4,
        noise_share=0.4,
        buffer_size=6000,
        random_state=0,
    ).learn(6)
    assert losses_over_all_lines(lambda state: learner.search(state, simulations=150).action) == 0
    assert losses_over_all_lines(lambda state: int(learner.evaluate(state)[0].argmax())) < 20

    def ignorant(planes, legal):
        return np.ones(legal.shape), np.zeros(len(planes))

    assert losses_over_all_lines(MCTS(game, simulations=100, exploration=1.5, evaluator=ignorant).act) > 20


def test_arena_is_scored_from_the_learner_s_side():
    """A learner of nothing but searches beats far smaller ones, and loses to far larger ones."""
    game = ConnectFour()
    learner = AlphaZero(game, **{**SMALL, "games": 2, "steps": 1}).learn(1)
    weak = learner.arena(MCTS(game, simulations=2), 12, simulations=150)
    strong = learner.arena(MCTS(game, simulations=3000), 12, simulations=4)
    assert weak.score > 0.7 > 0.3 > strong.score
    assert weak.elo > 0 > strong.elo
    assert weak.wins + weak.draws + weak.losses == len(weak.games) == 12
    with pytest.raises(ValueError, match="expected an AlphaZero, an AlphaGo or an MCTS"):
        learner.arena(MCTS(TicTacToe()), 2)


class Renamed(TicTacToe):
    """Rules that files do not know."""


def test_bad_input(tmp_path):
    with pytest.raises(ValueError, match="simulations=1"):
        AlphaZero(TicTacToe(), simulations=1)
    with pytest.raises(TypeError, match="game="):
        AlphaZero("go")
    with pytest.raises(NotFittedError, match="call learn"):
        AlphaZero(TicTacToe()).act()
    with pytest.raises(ValueError, match="iterations=0"):
        AlphaZero(TicTacToe()).learn(0)
    learner = AlphaZero(Renamed(), **{**SMALL, "games": 1, "steps": 1}).learn(1)
    with pytest.raises(ValueError, match="rules of Renamed are code"):
        learner.save(tmp_path / "no.epi")
    assert not list(tmp_path.iterdir())
