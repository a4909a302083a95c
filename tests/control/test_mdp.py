"""Finite decision processes: published values, all policies by brute force, bounds that are true, bad models."""

import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from epicycle.control import (
    MDP,
    backward_induction,
    generalized_policy_iteration,
    linear_program,
    modified_policy_iteration,
    policy_evaluation,
    policy_iteration,
    value_iteration,
    worlds,
)
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError

PLANNERS = {
    "value iteration": value_iteration,
    "gauss-seidel": lambda m, **k: value_iteration(m, method="gauss-seidel", **k),
    "prioritized": lambda m, **k: value_iteration(m, method="prioritized", **k),
    "policy iteration": policy_iteration,
    "modified": modified_policy_iteration,
    "generalized": generalized_policy_iteration,
    "linear program": linear_program,
}


def all_policies(mdp):
    """Every policy as chosen pairs."""
    ranges = [range(a, b) if b > a else [-1] for a, b in itertools.pairwise(mdp.pair_start_.tolist())]
    return (np.array(choice) for choice in itertools.product(*ranges))


def best_values(mdp):
    """Best value of each state over all policies, by dense linear algebra."""
    best = np.full(mdp.n_states, -np.inf)
    for choice in all_policies(mdp):
        P, r = mdp.policy_chain(choice)
        A = np.eye(mdp.n_states) - mdp.discount * P.toarray()
        best = np.maximum(best, np.linalg.solve(A, np.where(choice >= 0, r, mdp.terminal_values_)))
    return best


@st.composite
def processes(draw):
    n, m = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    P = rng.exponential(size=(n, m, n)) * (rng.random((n, m, n)) < draw(st.sampled_from([0.4, 1.0])))
    P[..., 0] += P.sum(axis=2) == 0
    P /= P.sum(axis=2, keepdims=True)
    shape = draw(st.sampled_from([(n,), (n, m), (n, m, n)]))
    R = rng.choice([-1.0, 0.0, 1.0], size=shape) if draw(st.booleans()) else rng.normal(size=shape)
    R = R * draw(st.sampled_from([1e-6, 1.0, 1e9]))
    terminal = rng.random(n) < 0.3 if draw(st.booleans()) else None
    return MDP(P, R, draw(st.sampled_from([0.0, 0.5, 0.9, 0.999, 1 - 1e-6])), terminal=terminal)


@given(processes(), st.sampled_from(sorted(PLANNERS)))
def test_every_planner_finds_the_best_of_all_policies_and_its_bounds_are_true(mdp, planner):
    with warnings.catch_warnings():  # so near to no discount, rounding or max_iter may be the limit: then it is said
        warnings.simplefilter("ignore" if mdp.discount > 0.99 else "error", ConvergenceWarning)
        options = {} if planner in ("policy iteration", "linear program") else {"max_iter": 3000}
        solution = PLANNERS[planner](mdp, **options)
    best = best_values(mdp)
    own = policy_evaluation(mdp, solution.policy)
    slack = 1e-13 * np.abs(best).max() / (1 - mdp.discount)  # of the brute force
    assert (solution.lower <= own + slack).all()
    assert (best <= solution.upper + slack).all()
    claimed = solution.certificate.value * np.abs(solution.values).max()
    assert (best - own).max() <= claimed + slack
    assert mdp.discount > 0.99 or solution.certificate.holds


@given(processes())
@settings(max_examples=20)
def test_three_exact_ways_agree(mdp):
    exact = policy_iteration(mdp).values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        others = [linear_program(mdp), value_iteration(mdp, tol=1e-10)]
    scale = max(np.abs(exact).max(), 1e-300)
    for other in others:
        if other.certificate.holds:
            assert_allclose(other.values / scale, exact / scale, atol=1e-9)


def test_the_grid_of_the_notes():
    solution = value_iteration(worlds.russell_norvig_grid())
    assert solution.values.round(2).tolist() == [0.86, 0.9, 0.93, 1, 0.82, 0.69, -1, 0.78, 0.75, 0.71, 0.49]
    assert "".join(solution.policy[[0, 1, 2, 4, 5, 7, 8, 9, 10]]) == "EEENNNWWW"


def test_total_rewards_gambler_and_cliff():
    gamble = worlds.gambler(16, 0.4)
    for planner in PLANNERS.values():
        solution = planner(gamble)
        assert solution.certificate.holds
        # Bold play is optimal below even chances: success from half the goal has probability p.
        assert_allclose(solution.values[[4, 8, 12]], [0.16, 0.4, 0.64], atol=1e-8)
    cliff = worlds.cliff_walk()
    for planner in (value_iteration, policy_iteration):
        solution = planner(cliff)  # some policies never end there: a step that costs is what bounds the loss
        assert solution.certificate.holds
        assert solution.values[cliff.states.tolist().index((3, 0))] == pytest.approx(-13)
        assert solution.upper is not None


@given(st.integers(0, 2**32), st.sampled_from(["value iteration", "policy iteration", "modified", "linear program"]))
@settings(max_examples=40)
def test_bounds_of_total_rewards_are_true(seed, planner):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    P = rng.exponential(size=(n, m, n)) * (rng.random((n, m, n)) < 0.6)
    P[..., -1] += np.where(P.sum(axis=2) == 0, 1.0, 0.02)  # the last state can always be reached
    P /= P.sum(axis=2, keepdims=True)
    reward = rng.normal(size=(n, m)) if rng.random() < 0.5 else -rng.uniform(0.1, 3, size=(n, m))
    mdp = MDP(P, reward, 1.0, terminal=[n - 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = PLANNERS[planner](mdp)
    best = best_values(mdp)
    own = policy_evaluation(mdp, solution.policy)
    slack = 1e-11 * max(np.abs(best).max(), 1)
    assert (solution.lower <= own + slack).all()
    assert (best <= solution.upper + slack).all()
    assert (best - own).max() <= solution.certificate.value * np.abs(solution.values).max() + slack


@given(st.integers(0, 2**32))
def test_average_reward_is_the_best_of_all_stationary_policies(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 5), rng.integers(1, 4)
    P = rng.dirichlet(np.ones(n), size=(n, m))
    mdp = MDP(P, rng.normal(size=(n, m)), criterion="average")
    gains = []
    for choice in all_policies(mdp):
        chain, r = mdp.policy_chain(choice)
        A = np.vstack([chain.toarray().T - np.eye(n), np.ones(n)])
        gains.append(np.linalg.lstsq(A, np.r_[np.zeros(n), 1], rcond=None)[0] @ r)
    solution = value_iteration(mdp)
    assert solution.certificate.holds
    assert solution.gain == pytest.approx(max(gains), abs=1e-7)


def test_average_reward_of_a_chain_that_alternates():
    mdp = MDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), [1.0, 4.0], criterion="average")
    solution = value_iteration(mdp)
    assert solution.certificate.holds
    assert solution.gain == pytest.approx(2.5)


def test_time_left_decides():
    # +1 is one step away, +10 four steps: with fewer left the near goal is the better one.
    step = lambda s, a: [(1.0, s + a, {0: 1.0, 5: 10.0}.get(s + a, 0.0))]  # noqa: E731
    line = MDP.from_function(step, range(6), lambda s: [] if s in (0, 5) else [-1, 1], discount=1)
    plan = backward_induction(line, 6)
    assert_array_equal(plan.policy[:, 1], [1, 1, 1, -1, -1, -1])
    assert_array_equal(plan.values[:, 1], [10, 10, 10, 1, 1, 1, 0])
    assert plan.certificate.holds


def test_finite_horizon_with_dynamics_that_change_is_the_best_sequence_of_policies():
    rng = np.random.default_rng(5)
    mdps = [MDP(rng.dirichlet(np.ones(2), size=(2, 2)), rng.normal(size=(2, 2)), 0.9) for _ in range(3)]
    best = np.full(2, -np.inf)
    for plans in itertools.product(*(all_policies(m) for m in mdps)):
        v = np.zeros(2)
        for m, choice in zip(mdps[::-1], plans[::-1], strict=True):
            P, r = m.policy_chain(choice)
            v = r + 0.9 * P @ v
        best = np.maximum(best, v)
    assert_allclose(backward_induction(mdps).values[0], best, rtol=1e-12)


def test_forms_of_transitions_and_rewards_are_the_same_process():
    rng = np.random.default_rng(0)
    P, R = rng.dirichlet(np.ones(4), size=(4, 3)), rng.normal(size=(4, 3, 4))
    full = MDP(P, R, 0.9)
    by_action = MDP([P[:, a] for a in range(3)], [R[:, a] for a in range(3)], 0.9)
    sparse = MDP([sp.csr_array(P[:, a]) for a in range(3)], [sp.csr_array(R[:, a]) for a in range(3)], 0.9)
    expected = MDP(P, (P * R).sum(axis=2), 0.9)
    function = MDP.from_function(lambda s, a: zip(P[s, a], range(4), R[s, a], strict=True), range(4), range(3), 0.9)
    values = policy_iteration(full).values
    for other in (by_action, sparse, expected, function):
        assert_allclose(policy_iteration(other).values, values, rtol=1e-12)


def test_entries_given_twice_add_up_and_the_matrix_of_the_user_stays():
    starts = np.array([0, 2, 3], dtype=np.int32)
    P = [sp.csr_array((np.array([0.5, 0.5, 1.0]), np.array([1, 1, 0], dtype=np.int32), starts)) for _ in range(2)]
    before = [p.data.copy() for p in P]
    assert_allclose(policy_iteration(MDP(P, [1.0, 0.0], 0.5)).values, [4 / 3, 2 / 3])
    for p, data in zip(P, before, strict=True):
        assert_array_equal(p.data, data)
        assert_array_equal(p.indptr, [0, 2, 3])


def test_a_table_of_gymnasium():
    # What its toy texts have: P[state][action] = [(probability, next, reward, done)]
    table = {0: [(1.0, 1, 0.0, False)], 1: [(0.5, 0, 0.0, False), (0.5, 2, 1.0, True)], 2: [(1.0, 2, 0.0, True)]}
    lake = SimpleNamespace(P={s: {0: entries} for s, entries in table.items()})
    # v1 = (v0 d + 1) / 2 and v0 = d v1
    assert_allclose(policy_iteration(MDP.from_gymnasium(lake, 0.9)).values, [0.45 / 0.595, 0.5 / 0.595, 0.0])
    with pytest.raises(DataError, match="table of transitions"):
        MDP.from_gymnasium(object())


def test_same_bits_for_any_number_of_threads():
    mdp = worlds.random_mdp(3000, 3, random_state=1)
    first = value_iteration(mdp, n_jobs=1)
    for jobs in (2, 4):
        other = value_iteration(mdp, n_jobs=jobs)
        assert_array_equal(other.values, first.values)
        assert_array_equal(other.history["residual"], first.history["residual"])


def test_large_sparse_policies_are_evaluated_exactly():
    mdp = worlds.random_mdp(3000, 4, discount=0.999, random_state=2)
    solution = policy_iteration(mdp)
    assert solution.certificate.holds
    P, r = mdp.policy_chain(solution.choice)
    assert_allclose(solution.values, r + 0.999 * (P @ solution.values), rtol=1e-12, atol=1e-11)


def test_unconverged_is_said():
    mdp = worlds.random_mdp(50, 2, discount=0.99, random_state=0)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        solution = value_iteration(mdp, max_iter=7)
    assert not solution.certificate.holds
    assert solution.n_iter == 7 == len(solution.history["residual"])
    assert (solution.lower <= policy_iteration(mdp).values).all()  # bounds are true also then


def test_actions_that_are_not_available_everywhere():
    stock = worlds.inventory(15, demand=4.0)
    solution = policy_iteration(stock)
    ordered = solution.policy.astype(int)
    levels = np.arange(16) + ordered
    refill = ordered > 0  # an (s, S) policy: below a level, fill up to another
    assert refill[: refill.sum()].all()
    assert len(set(levels[refill])) == 1
    assert np.isneginf(solution.q_values()[15, 1:]).all()
    with pytest.raises(DataError, match="action 15 is not available in state 1"):
        policy_evaluation(stock, np.full(16, 15) - np.r_[0, 0, np.arange(2, 16)])


def test_jacks_car_rental():
    # Sutton and Barto, figure 4.2: up to five cars go from the first place to the second, and back when it is empty.
    solution = policy_iteration(worlds.car_rental())
    policy = solution.policy.reshape(21, 21)
    assert solution.n_iter <= 6
    assert (policy.max(), policy.min()) == (5, -4)
    assert (policy[20, 0], policy[0, 20]) == (5, -4)


P1 = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MDP(P1 * [[[0.9]], [[1]]], [0, 0]), r"state 0, action 0 add up to 0\.9; expected 1"),
        (lambda: MDP([[[1.5, -0.5]], [[0, 1]]], [0, 0]), r"state 0, action 0 has probability -0\.5"),
        (lambda: MDP([[[np.nan, 1]], [[0, 1]]], [0, 0]), "has probability nan"),
        (lambda: MDP(P1, [0, np.nan]), r"rewards: entry \(1,\) is nan"),
        (lambda: MDP(P1, [0, 0, 0]), r"rewards: got shape \(3,\); expected \(2,\), \(2, 1\) or \(2, 1, 2\)"),
        (lambda: MDP(P1[0], [0]), r"transitions: got shape \(1, 2\)"),
        (lambda: MDP([[[0, 0]], [[0, 1]]], [0, 0]), "state 0 has no action"),
        (lambda: MDP(P1, [0, 0], discount=1), "no terminal state can be reached from state 0"),
        (lambda: MDP(P1, [0, 0], terminal=["x"]), "terminal: 'x' is none of the states"),
        (lambda: MDP(P1, [0, 0], terminal=[1], criterion="average"), "criterion='average'"),
        (lambda: MDP(P1, [0, 0], states=["a", "a"]), "expected 2 different ones"),
        (lambda: MDP("P", [0, 0]), "transitions: expected numbers"),
    ],
)
def test_bad_models_name_what_is_wrong(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_bad_arguments():
    mdp = MDP(P1, [0, 1], 0.9)
    for wrong in ({"tol": 0}, {"max_iter": 0}, {"method": "fast"}, {"n_jobs": 0}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            value_iteration(mdp, **wrong)
    with pytest.raises(ParameterError, match="mdp"):
        value_iteration(P1)
    for discount in (-0.1, 1.1, np.nan):
        with pytest.raises(ParameterError, match="discount"):
            MDP(P1, [0, 1], discount)
    with pytest.raises(DataError, match="initial_values"):
        value_iteration(mdp, initial_values=[1, 2, 3])
    assert MDP(P1, [0, 1]).unreachable_states().tolist() == [0]


def test_pictures_show_the_values_and_the_policy():
    import matplotlib.pyplot as plt

    rental = policy_iteration(worlds.car_rental(max_cars=4, max_moved=2))
    gamble = policy_iteration(worlds.gambler(8))
    assert_array_equal(rental.plot_values().images[0].get_array(), rental.values.reshape(5, 5))
    assert_array_equal(rental.plot_policy().images[0].get_array(), rental.policy.reshape(5, 5))
    assert_array_equal(gamble.plot_values().lines[0].get_ydata(), gamble.values)
    drawn = gamble.plot_policy().lines[0].get_ydata()
    assert_array_equal(drawn[1:-1], gamble.policy[1:-1])
    assert np.isnan(drawn[[0, -1]]).all()  # the ends have no action
    named = policy_iteration(MDP(P1, [0, 1], 0.9, states=["a", "b"], actions=["go"])).plot_policy()
    assert [t.get_text() for t in named.get_xticklabels()] == ["a", "b"]
    assert [t.get_text() for t in named.get_yticklabels()] == ["go"]
    plt.close("all")


def test_large_processes_without_near_successors_are_solved_without_factors(monkeypatch):
    # Factors of a random chain fill up: 20,000 states would take minutes and gigabytes.
    monkeypatch.setattr("scipy.sparse.linalg.splu", lambda *_: pytest.fail("factorised"))
    mdp = worlds.random_mdp(2000, 3, discount=0.999, random_state=4)
    exact = policy_iteration(mdp)
    assert exact.certificate.value < 1e-11
    assert_allclose(exact.values, modified_policy_iteration(mdp, tol=1e-10).values, rtol=1e-8)
