"""Monte-Carlo search: the compiled tree against the one in Python, proofs against minimax, seeds, threads, reuse."""

import numpy as np
import pytest

from epicycle.search import MCTS, ConnectFour, Game, Go, Othello, TicTacToe, minimax, play_match


def evaluator(planes, legal):
    """Priors and values that look random but follow from the planes."""
    weights = np.random.default_rng(0).normal(size=(planes[0].size, legal.shape[1] + 1))
    raw = np.tanh(planes.reshape(len(planes), -1).astype(np.float64) @ weights)
    return np.exp(raw[:, 1:]), 0.9 * raw[:, 0]


@pytest.mark.parametrize("solver", [True, False])
@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("game", [TicTacToe(), ConnectFour(), Othello(), Go(5)], ids=repr)
def test_puct_grows_the_same_tree_in_python_and_compiled(game, batch_size, solver):
    options = {"evaluator": evaluator, "simulations": 150, "batch_size": batch_size, "solver": solver}
    moves = {"TicTacToe()": [0, 4], "ConnectFour()": [3, 3, 3]}.get(repr(game), [])
    state = game.position(moves)
    compiled = MCTS(game, **options).search(state)
    python = MCTS(_plain(game), **options).search(state)
    assert compiled.visits.tolist() == python.visits.tolist()
    np.testing.assert_allclose(compiled.action_values, python.action_values, atol=1e-6)
    assert compiled.proven == python.proven
    assert compiled.n_nodes == python.n_nodes


def _plain(game):
    class Wrapped(Game):
        n_actions = game.n_actions

        def initial_state(self):
            return game.initial_state()

        def player(self, state):
            return game.player(state)

        def legal_moves(self, state):
            return game.legal_moves(state)

        def apply(self, state, move):
            return game.apply(state, move)

        def is_over(self, state):
            return game.is_over(state)

        def result(self, state):
            return game.result(state)

        def encode(self, state):
            return game.encode(state)

    return Wrapped()


@pytest.mark.parametrize("python", [False, True])
def test_proofs_are_those_of_minimax(python):
    game, rng, proven = TicTacToe(), np.random.default_rng(0), 0
    searched = _plain(game) if python else game
    for _ in range(12):
        state = game.initial_state()
        for _ in range(4):
            state = game.apply(state, int(rng.choice(game.legal_moves(state))))
        found = MCTS(searched, simulations=3000, random_state=0).search(state)
        if found.proven is not None:
            proven += 1
            assert found.certificate.holds
            assert found.proven == minimax(game, state).value
            after = game.apply(state, found.action)
            value = game.result(after) * (1 if game.player(state) == 0 else -1)
            assert value == found.proven if game.is_over(after) else -minimax(game, after).value == found.proven
    assert proven >= 10


def test_never_loses_tic_tac_toe_over_all_lines():
    game = TicTacToe()
    player = MCTS(game, simulations=20000, random_state=0)
    for me in (0, 1):
        assert all(score >= 0 for score in scores_of_all_lines(game, player.act, me))


def scores_of_all_lines(game, act, me):
    """Results for a player against every line of play of the other, each position asked once."""
    waiting, seen = [game.initial_state()], set()
    while waiting:
        state = waiting.pop()
        if game.key(state) in seen:
            continue
        seen.add(game.key(state))
        if game.is_over(state):
            yield game.result(state) * (1 if me == 0 else -1)
        elif game.player(state) == me:
            waiting.append(game.apply(state, act(state)))
        else:
            waiting += [game.apply(state, move) for move in game.legal_moves(state)]


def test_the_same_bits_for_any_number_of_threads():
    game = ConnectFour()
    found = [MCTS(game, simulations=8000, n_trees=4, random_state=7, n_jobs=jobs).search() for jobs in (1, 2, 3)]
    for other in found[1:]:
        assert np.array_equal(found[0].visits, other.visits)
        assert np.array_equal(found[0].action_values, other.action_values)
    another = MCTS(game, simulations=8000, n_trees=4, random_state=8).search()
    assert not np.array_equal(found[0].visits, another.visits)
    assert found[0].n_simulations == 8000


def test_more_simulations_play_better():
    game = ConnectFour()
    strong, weak = MCTS(game, simulations=1500, random_state=0), MCTS(game, simulations=50, random_state=1)
    match = play_match(game, strong, weak, 20, opening_moves=2, random_state=0)
    assert match.wins >= 14
    assert match.wins + match.draws + match.losses == len(match.games) == 20
    assert match.interval[0] > 0.5


def test_a_given_prior_leads_the_search():
    game = ConnectFour()

    def prefers_the_edge(planes, legal):
        priors = np.full(legal.shape, 0.01)
        priors[:, 6] = 1.0
        return priors, np.zeros(len(planes))

    found = MCTS(game, evaluator=prefers_the_edge, simulations=100).search()
    assert found.action == 6
    assert found.visits[6] > 80
    mixed = MCTS(game, evaluator=prefers_the_edge, simulations=100, playout_share=0.5, random_state=0).search()
    assert not np.allclose(mixed.value, found.value)


def test_the_tree_is_kept_when_asked():
    game = ConnectFour()
    for searched in (game, _plain(game)):
        player = MCTS(searched, simulations=300, reuse=True, random_state=0)
        first = player.search(game.position([3]))
        assert first.n_simulations == 300
        second = player.search(game.position([3, first.action]))
        assert second.visits.sum() > 300 - 1  # those of before count
        assert second.n_simulations == 300
        fresh = MCTS(searched, simulations=300, random_state=0).search(game.position([3, first.action]))
        assert fresh.visits.sum() < second.visits.sum()


def test_nodes_are_limited():
    found = MCTS(ConnectFour(), simulations=20000, max_nodes=500, random_state=0).search()
    assert found.n_nodes <= 500
    assert found.n_simulations == 20000


def test_bad_input():
    game = TicTacToe()
    with pytest.raises(ValueError, match="simulations=0"):
        MCTS(game, simulations=0)
    with pytest.raises(TypeError, match="game="):
        MCTS(7)
    with pytest.raises(ValueError, match="over in this state"):
        MCTS(game).search(game.position([0, 3, 1, 4, 2]))
    with pytest.raises(ValueError, match=r"got shapes \(1, 2\)"):
        MCTS(game, evaluator=lambda p, m: (np.ones((1, 2)), np.zeros(1))).search()
    with pytest.raises(ValueError, match="not negative"):
        MCTS(game, evaluator=lambda p, m: (-np.ones(m.shape), np.zeros(len(m)))).search()
    with pytest.raises(ValueError, match="expected priors"):
        MCTS(game, evaluator=lambda p, m: None).search()
    with pytest.raises(ValueError, match="is not legal"):
        play_match(game, lambda s: 0, lambda s: 0, 1)
