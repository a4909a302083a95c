"""Equilibria: Kuhn's value, matrix games by linear programming, best replies by brute force, common interests."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import epicycle as ep
from epicycle.exceptions import ConvergenceWarning, NotFittedError
from epicycle.optim import matrix_game
from epicycle.search import CFR, KuhnPoker, LeducPoker, SelfPlay, TicTacToe, minimax
from epicycle.search.equilibrium._extensive_tree import lay_out

ROCK_PAPER_SCISSORS = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]], dtype=float)


@pytest.mark.parametrize(
    ("variant", "iterations"), [("cfr+", 3000), ("discounted", 3000), ("linear", 10000), ("vanilla", 100_000)]
)
def test_kuhn_poker(variant, iterations):
    found = CFR(variant, tol=1e-4 if variant != "vanilla" else 5e-4).learn(KuhnPoker(), iterations)
    assert found.certificate_.holds
    assert found.value_ == pytest.approx(-1 / 18, abs=1e-3)
    assert found.bounds_[0] <= -1 / 18 <= found.bounds_[1]
    if variant == "cfr+":
        assert found.exploitability_ < 1e-4 * 4
    assert found.exploitability_ == pytest.approx((found.bounds_[1] - found.bounds_[0]) / 2)
    # Facts about all equilibria (Kuhn 1950): a king always calls, a jack never does, the queen first passes.
    strategy = found.strategy_
    assert strategy[(1, (2, (1,)))][1] > 0.97
    assert strategy[(1, (0, (1,)))][1] < 0.03
    assert strategy[(0, (1, ()))][1] < 0.03
    assert strategy[(1, (0, (0,)))][1] == pytest.approx(1 / 3, abs=0.02)
    alpha = strategy[(0, (0, ()))][1]  # the jack bets with alpha in [0, 1/3], the king with 3 alpha
    assert strategy[(0, (2, ()))][1] == pytest.approx(3 * alpha, abs=0.05)


def test_kuhn_poker_below_1e_4():
    assert CFR(tol=2e-5).learn(KuhnPoker(), 30_000).exploitability_ < 1e-4


def test_leduc_poker_below_1e_2():
    tree = lay_out(LeducPoker())
    assert len(tree.player) == 9457  # as in the literature
    assert len(tree.keys) == 288  # 936 where suits are told apart
    found = CFR(tol=1e-2 / 26).learn(LeducPoker(), 500)
    assert found.exploitability_ < 1e-2
    assert found.value_ == pytest.approx(-0.0856, abs=0.01)  # of the literature


def slow_value(game, state, policies):
    """Expected result by going through the whole tree."""
    if game.is_over(state):
        return game.result(state)
    who = game.player(state)
    moves = game.legal_moves(state)
    chances = game.chance(state) if who == 2 else [policies[(who, game.information_set(state))][m] for m in moves]
    return sum(p * slow_value(game, game.apply(state, m), policies) for p, m in zip(chances, moves, strict=True))


def test_best_replies_by_trying_all_pure_strategies():
    """Kuhn's players have 2^6 pure strategies each."""
    game = KuhnPoker()
    tree = lay_out(game)
    rng = np.random.default_rng(0)
    weights = tree.normalized(rng.random(tree.n_actions))
    mixed = {
        key: dict(zip(moves, weights[a : a + len(moves)], strict=True))
        for key, moves, a in zip(tree.keys, tree.moves, tree.first_action[:-1], strict=True)
    }
    for me in (0, 1):
        mine = [key for key in tree.keys if key[0] == me]
        best = -np.inf
        for choice in itertools.product((0, 1), repeat=len(mine)):
            pure = {key: {0: 1.0 - c, 1: float(c)} for key, c in zip(mine, choice, strict=True)}
            value = slow_value(game, game.initial_state(), {**mixed, **pure})
            best = max(best, value if me == 0 else -value)
        assert tree.best_reply(weights, me)[0] == pytest.approx(best, abs=1e-12)
    low, high = -tree.best_reply(weights, 1)[0], tree.best_reply(weights, 0)[0]
    assert low <= slow_value(game, game.initial_state(), mixed) <= high


def test_games_with_perfect_information_have_their_minimax_value():
    class Ending(TicTacToe):
        def __init__(self, moves):
            self.moves = moves

        def initial_state(self):
            return self.position(self.moves)

    values = set()
    for moves in ([0, 4, 8, 2], [4, 0, 8, 2], [0, 4, 1, 2, 6]):
        game = Ending(moves)
        found = CFR(tol=1e-3).learn(game, 2000)
        expected = minimax(game).value * (1 if len(moves) % 2 == 0 else -1)
        assert found.value_ == pytest.approx(expected, abs=4e-3)
        values.add(expected)
    assert len(values) > 1


def test_learning_goes_on_with_the_same_bits():
    game = KuhnPoker()
    parts, whole = CFR("discounted", tol=1e-12), CFR("discounted", tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="raise iterations"):
        parts.learn(game, 40)
    with pytest.warns(ConvergenceWarning):
        parts.learn(game, 60)
    with pytest.warns(ConvergenceWarning):
        whole.learn(game, 100)
    assert parts.strategy_ == whole.strategy_
    assert parts.n_iter_ == 100
    policy = whole.policy(game.apply(game.apply(game.initial_state(), 0), 1))
    assert policy[:2].sum() == pytest.approx(1)


@pytest.mark.filterwarnings("ignore::epicycle.exceptions.ConvergenceWarning")
def test_ctrl_c_keeps_what_was_learnt(monkeypatch):
    inner, calls = CFR._minimize, []

    def interrupted(self, iterations):
        inner(self, iterations)
        calls.append(self.n_iter_)
        if len(calls) == 9:
            raise KeyboardInterrupt

    whole, cut = CFR(tol=1e-12).learn(KuhnPoker(), 60), CFR(tol=1e-12)
    with monkeypatch.context() as patch:
        patch.setattr(CFR, "_minimize", interrupted)
        with pytest.warns(ConvergenceWarning, match=r"CFR: interrupted after \d+ of 60 iterations, learn goes on"):
            cut.learn(KuhnPoker(), 60)
    assert cut.n_iter_ == calls[-1]
    assert cut.policy(KuhnPoker().apply(KuhnPoker().apply(KuhnPoker().initial_state(), 0), 1))[:2].sum() == 1
    assert cut.learn(KuhnPoker(), 60 - cut.n_iter_).strategy_ == whole.strategy_


@pytest.mark.filterwarnings("ignore::epicycle.exceptions.ConvergenceWarning")
def test_strategies_come_back_from_files_and_go_on_with_the_same_bits(tmp_path):
    whole = CFR(tol=1e-12).learn(KuhnPoker(), 40).learn(KuhnPoker(), 60)
    CFR(tol=1e-12).learn(KuhnPoker(), 40).save(tmp_path / "part.epi")
    back = ep.load(tmp_path / "part.epi")
    assert back.n_iter_ == 40
    assert back.certificate_.kind == "exploitability"
    back.learn(KuhnPoker(), 60)
    assert back.strategy_ == whole.strategy_
    assert back.exploitability_ == whole.exploitability_
    for learner, game in ((SelfPlay("cfr"), KuhnPoker()), (SelfPlay("fictitious_play"), ROCK_PAPER_SCISSORS)):
        learner.learn(game, 50).save(tmp_path / "players.epi")
        again = ep.load(tmp_path / "players.epi")
        assert repr(again) == repr(learner)
        assert again.certificate_ == learner.certificate_
        assert again.history_ == learner.history_
        assert np.array_equal(again.values_, learner.values_)
        strategies = [x.strategies_ for x in (again, learner)]
        if isinstance(strategies[0], dict):
            assert strategies[0] == strategies[1]
        else:
            assert all(np.array_equal(a, b) for a, b in zip(*strategies, strict=True))
    for made in (CFR(), SelfPlay()):
        with pytest.raises(NotFittedError, match=r"call learn\(game\)"):
            made.save(tmp_path / "none.epi")
    with pytest.raises(ValueError, match="the rules of Renamed are code"):
        CFR().learn(Renamed(), 5).save(tmp_path / "none.epi")
    assert not (tmp_path / "none.epi").exists()


@pytest.mark.parametrize("method", ["regret_matching", "regret_matching+", "fictitious_play", "linear_program"])
def test_matrix_games_have_the_value_of_the_linear_program(method):
    A = np.random.default_rng(1).normal(size=(4, 5))
    exact = matrix_game(A)
    tol = 1e-8 if method == "linear_program" else 5e-3
    found = SelfPlay(method, tol=tol).learn(A, 50_000)
    assert found.certificate_.holds
    assert found.value_ == pytest.approx(exact.value, abs=2 * tol * np.ptp(A) + 1e-9)
    p, q = found.strategies_
    gap = (A @ q).max() - (p @ A).min()
    assert found.exploitability_ == pytest.approx(gap / 2, abs=1e-12)
    assert found.joint_.sum() == pytest.approx(1)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 4))
def test_equilibria_follow_scale_and_order_of_the_actions(seed, m, n):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n))
    rows = rng.permutation(m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fifty rounds are few
        first, scaled, permuted = (SelfPlay(tol=1e-12).learn(table, 50) for table in (A, 3 * A + 1, A[rows]))
    np.testing.assert_allclose(3 * first.values_[0] + 1, scaled.values_[0], atol=1e-9)
    np.testing.assert_allclose(first.strategies_[0][rows], permuted.strategies_[0], atol=1e-9)


def test_prisoners_choose_to_defect():
    """Not zero-sum: regrets lead to the one equilibrium in dominant strategies."""
    tables = np.array([[[3, 0], [5, 1]], [[3, 5], [0, 1]]], dtype=float)
    for method in ("regret_matching", "regret_matching+", "fictitious_play"):
        found = SelfPlay(method, tol=2e-3).learn(tables, 20_000)
        assert found.strategies_[0][1] > 0.98
        assert found.strategies_[1][1] > 0.98
        assert found.certificate_.holds


def test_regret_matching_finds_a_coarse_correlated_equilibrium():
    rng = np.random.default_rng(3)
    tables = rng.normal(size=(3, 2, 3, 2))
    found = SelfPlay("regret_matching", tol=1e-2).learn(tables, 20_000)
    assert found.certificate_.kind == "gain by a fixed action"
    assert found.certificate_.holds
    # Gains by fixed actions once more, entry by entry.
    for player in range(3):
        now = (tables[player] * found.joint_).sum()
        for action in range(tables.shape[1 + player]):
            deviated = 0.0
            for cell in np.ndindex(2, 3, 2):
                other = list(cell)
                other[player] = action
                deviated += found.joint_[cell] * tables[(player, *other)]
            assert deviated - now <= 1e-2 * max(np.ptp(t) for t in tables) + 1e-12


CLIMBING = np.array([[11, -30, 0], [-30, 7, 6], [0, 0, 5]], dtype=float)


def test_central_learner_climbs_where_independent_ones_do_not():
    """The climbing game: a joint optimum of 11 that one player alone cannot reach without losses."""
    central = [
        SelfPlay("centralised", exploration=1.0, random_state=seed).learn([CLIMBING, CLIMBING], 2000)
        for seed in range(5)
    ]
    assert all(found.value_ == 11 and found.certificate_.holds for found in central)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # they may end where one of them would like to change
        alone, again = (
            [
                SelfPlay("independent", exploration=1.0, random_state=seed).learn([CLIMBING, CLIMBING], 2000)
                for seed in seeds
            ]
            for seeds in (range(5), [0])
        )
    assert sum(found.value_ < 11 for found in alone) >= 4
    assert alone[0].strategies_[0].tolist() in np.eye(3).tolist()
    assert np.array_equal(again[0].joint_, alone[0].joint_)


def test_self_play_learns_games_too():
    found = SelfPlay("cfr+").learn(KuhnPoker(), 1000)
    assert found.value_ == pytest.approx(-1 / 18, abs=1e-2)
    assert found.gains_.mean() == pytest.approx(found.exploitability_)


class Renamed(KuhnPoker):
    """Rules that files do not know."""


class Forgetful(KuhnPoker):
    """A player who forgets the card after the first action."""

    def information_set(self, state):
        return state.actions if len(state.actions) > 1 else super().information_set(state)


class Unlikely(KuhnPoker):
    def chance(self, state):
        return [0.5] * (3 - len(state.cards))


def test_bad_input():
    with pytest.raises(ValueError, match="recall"):
        CFR().learn(Forgetful())
    with pytest.raises(ValueError, match="add up to 1"):
        CFR().learn(Unlikely())
    with pytest.raises(ValueError, match="learns from payoff tables"):
        SelfPlay("fictitious_play").learn(KuhnPoker())
    with pytest.raises(ValueError, match="learns from a Game"):
        SelfPlay("cfr").learn(ROCK_PAPER_SCISSORS)
    with pytest.raises(ValueError, match="expected \\(m, n\\)"):
        SelfPlay().learn(np.ones(3))
    with pytest.raises(ValueError, match="finite"):
        SelfPlay().learn([[1, np.nan]])
    with pytest.raises(ValueError, match="zero-sum"):
        SelfPlay("linear_program").learn(np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="method='nash'"):
        SelfPlay("nash")
    with pytest.raises(ValueError, match="iterations=0"):
        CFR().learn(KuhnPoker(), 0)
