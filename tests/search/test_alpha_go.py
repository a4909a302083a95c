"""Learning from games of an expert: the clone agrees, the policy gradient makes it stronger, the search plays well."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle.exceptions import NotFittedError
from epicycle.search import MCTS, AlphaGo, TicTacToe, play_match
from tests.search.test_alpha_zero import losses_over_all_lines

pytest.importorskip("torch")

GAME = TicTacToe()
SMALL = {"channels": 4, "blocks": 0, "clone_steps": 5, "rounds": 6, "round_games": 4, "value_games": 20}


@pytest.fixture(scope="module")
def games():
    """Games of a search that errs now and then."""

    def expert(state):
        seed = len(state.moves) + sum(state.moves)
        return MCTS(GAME, simulations=15, random_state=seed).search(state).action

    return play_match(GAME, expert, expert, 150, opening_moves=2, random_state=0).games


@pytest.fixture(scope="module")
def learner(games):
    settings = {"channels": 16, "blocks": 1, "clone_steps": 150, "value_games": 400, "value_steps": 200}
    return AlphaGo(GAME, **settings, random_state=0).learn(games, opening_moves=2)


def test_the_clone_does_what_the_expert_did(learner):
    history = learner.history_
    assert_array_equal(history.stage, [0, *[1] * 30, 2])
    assert history.agreement[0] > 0.5  # a random move is the expert's in one case of five
    p = learner.probabilities(GAME.position([0, 3, 1, 4]))
    assert_allclose(p.sum(), 1, atol=1e-6)
    assert not p[[0, 1, 3, 4]].any()
    assert p.argmax() == 2


def test_the_policy_gradient_makes_the_policy_stronger(learner):
    match = learner.policy_match(400)
    assert match.wins + match.draws + match.losses == 400
    assert match.score > 0.57  # the standard error is 0.02

    def lost(policy):
        return losses_over_all_lines(lambda state: int(learner.probabilities(state, policy).argmax()))

    assert lost("reinforced") < lost("cloned")


def test_values_are_those_of_games_that_nobody_learnt_from(learner):
    # Games of the policy against itself, from another stream than those that were learnt from.
    from epicycle.search.alpha_zero._policy_games import play_by_policies

    policy = learner._policy("reinforced")
    played = play_by_policies(GAME, [(policy, policy)] * 60, 5, ("test",))
    z = np.concatenate([[g.result * (1 - 2 * who) for who in g.players] for g in played])
    v = np.concatenate([learner._guide(np.stack(g.planes), np.stack(g.legal))[1] for g in played])
    # Most of these games are draws, and who wins another is told by few positions before the last ones.
    assert np.mean((z - v) ** 2) < 0.95 * z.var()
    assert np.corrcoef(z, v)[0, 1] > 0.25
    assert learner.history_.value_error[-1] < 0.4


def test_the_search_never_loses_where_the_policies_do(learner):
    assert losses_over_all_lines(lambda state: learner.search(state, simulations=150).action) == 0
    random = np.random.default_rng(0)

    def act(state):
        return learner.search(state, simulations=150).action

    match = play_match(GAME, act, lambda state: int(random.choice(GAME.legal_moves(state))), 20)
    assert match.losses == 0
    assert match.wins > 14
    assert learner.arena(MCTS(GAME, simulations=20), 10).score >= 0.5


def state_of(learner):
    state = learner.__epi_state__()
    arrays = {f"{name}.{key}": x for name, net in state["nets"].items() for key, x in net.items()}
    return arrays | state["optimizer"] | {"rows": state["rows"][:, :-1]}  # all columns but the seconds


def same_bits(one, other):
    a, b = state_of(one), state_of(other)
    assert a.keys() == b.keys()
    for name in a:
        assert_array_equal(a[name], b[name], err_msg=name)


@pytest.mark.parametrize("part", [0, 4, 7])
def test_an_interrupted_part_leaves_no_trace(games, part, tmp_path, monkeypatch):
    whole = AlphaGo(GAME, **SMALL, random_state=1).learn(games)
    cut, file = AlphaGo(GAME, **SMALL, random_state=1), tmp_path / "learner.epi"
    step = ("_clone", "_reinforce", "_value")[0 if part == 0 else 1 if part <= 6 else 2]
    inner, calls = getattr(AlphaGo, step), []

    def once(self, *given):
        row = inner(self, *given)
        calls.append(row)
        if len(calls) == (4 if step == "_reinforce" else 1):
            raise KeyboardInterrupt  # after all has changed
        return row

    with monkeypatch.context() as patch:
        patch.setattr(AlphaGo, step, once)
        with pytest.raises(KeyboardInterrupt):
            cut.learn(games, checkpoint=file)
    assert cut.n_iter_ == part
    if part:
        same_bits(ep.load(file).learn(games), whole)
    same_bits(cut.learn(games), whole)


def test_bad_input_is_named(games):
    with pytest.raises(NotFittedError, match="AlphaGo has not learnt yet"):
        AlphaGo(GAME).act()
    with pytest.raises(ValueError, match="simulations=1"):
        AlphaGo(GAME, simulations=1)
    with pytest.raises(ValueError, match=r"games\[1\]: move 2, 0, is not legal there"):
        AlphaGo(GAME, **SMALL).learn([[0, 1], [0, 1, 0]])
    with pytest.raises(ValueError, match="got 3 games with moves after opening_moves=2; expected at least 10"):
        AlphaGo(GAME, **SMALL).learn(games[:3], opening_moves=2)
    with pytest.raises(ValueError, match="expected a list of games"):
        AlphaGo(GAME, **SMALL).learn([["north"]])
    small = AlphaGo(GAME, **SMALL, random_state=0).learn(games)
    with pytest.raises(ValueError, match="policy='fast'"):
        small.probabilities(GAME.initial_state(), "fast")
    again = AlphaGo(GAME, **SMALL, random_state=0).learn(games)
    same_bits(small.learn(games), again)  # a call after the last part begins anew
