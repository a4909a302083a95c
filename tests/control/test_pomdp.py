"""Partially observed processes: beliefs, exact values against a tree of all histories, bounds that enclose them."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from epicycle import HiddenMarkovModel
from epicycle._native import control as native
from epicycle.control import (
    POMDP,
    backward_induction,
    fast_informed_bound,
    heuristic_search_value_iteration,
    incremental_pruning,
    online_search,
    point_based_value_iteration,
    qmdp,
    worlds,
)
from epicycle.exceptions import ConvergenceError, ConvergenceWarning, DataError

TIGER = 19.37137  # published as 19.37; the further digits are those on which the planners agree


def tree_value(pomdp, belief, steps):
    """Best expected sum of rewards by trying every action and observation: no vectors, no linear programs."""
    if steps == 0:
        return float(belief @ pomdp.terminal_values_)
    n, best = pomdp.n_states, -np.inf
    for a in range(pomdp.n_actions):
        moved = belief @ pomdp.transitions_[a * n : (a + 1) * n].toarray()
        after = moved[:, None] * pomdp.observations_[a]
        total = belief @ pomdp.rewards_[a]
        for o in range(pomdp.n_observations):
            if after[:, o].sum() > 0:
                total += pomdp.discount * tree_value(pomdp, after[:, o], steps - 1)
        best = max(best, total)
    return best


def small(seed, terminal=False):
    rng = np.random.default_rng(seed)
    n, m, k = rng.integers(2, 5), rng.integers(1, 4), rng.integers(1, 4)
    P, O = rng.dirichlet(np.ones(n), size=(n, m)), rng.dirichlet(np.ones(k), size=(n, m))  # noqa: E741
    rewards = rng.normal(size=n) if rng.random() < 0.5 else rng.normal(size=(n, m))
    return POMDP(P, O, rewards, 0.7, start=rng.dirichlet(np.ones(n)), terminal=[0] if terminal else None), rng


@pytest.fixture(scope="module")
def tiger():
    return worlds.tiger()


def test_tiger_has_its_published_value_by_all_planners(tiger):
    for planner, tol in (
        (incremental_pruning, 1e-7),
        (heuristic_search_value_iteration, 1e-6),
        (point_based_value_iteration, 1e-4),
    ):
        solution = planner(tiger, tol=tol)
        lower, upper = solution.bounds(tiger.start)
        assert solution.certificate.holds
        assert lower - 1e-5 <= TIGER <= upper + 1e-5
        assert upper - lower <= 100 * tol * 1.01
        assert round(lower, 1) == round(upper, 1) == 19.4
        assert solution.action([0.5, 0.5]) == "listen"
        assert solution.action([0.99, 0.01]) == "open right"


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=12)
def test_finite_horizons_equal_the_tree_of_all_histories(seed, terminal):
    pomdp, rng = small(seed, terminal)
    solution = incremental_pruning(pomdp, horizon=3)
    for b in [pomdp.start, *np.eye(pomdp.n_states), *rng.dirichlet(np.ones(pomdp.n_states), size=2)]:
        lower, upper = solution.bounds(b)
        assert lower == pytest.approx(tree_value(pomdp, b, 3), abs=1e-8)
        assert upper == pytest.approx(lower, abs=1e-6)
        best = [(b @ vectors.T).max() for vectors, _ in solution.stages]
        assert best[1] == pytest.approx(tree_value(pomdp, b, 2), abs=1e-8)


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=8)
def test_bounds_enclose_the_value(seed, terminal):
    pomdp, rng = small(seed, terminal)
    steps, n = 6 if pomdp.n_actions * pomdp.n_observations < 5 else 3, pomdp.n_states
    # What comes after the tree is worth at most the largest reward for ever.
    rest = pomdp.discount**steps * np.abs(pomdp.rewards_).max() / (1 - pomdp.discount) + 1e-9
    beliefs = np.vstack([pomdp.start, rng.dirichlet(np.ones(n), size=2)])
    exact = np.array([tree_value(pomdp, b, steps) for b in beliefs])
    search = heuristic_search_value_iteration(pomdp, tol=1e-2)
    assert search.certificate.holds
    first = search.value(pomdp.start)
    assert exact[0] - rest <= first <= exact[0] + rest
    points = point_based_value_iteration(pomdp, n_beliefs=30, tol=0.3)
    informed, seen = fast_informed_bound(pomdp), qmdp(pomdp)
    for solution in (search, points, informed, seen):
        lower, upper = solution.bounds(beliefs)
        assert (lower <= exact + rest).all()
        assert (upper >= exact - rest).all()
        assert (lower <= upper).all()
        assert lower[0] <= search.bounds(pomdp.start)[1] + 1e-9
        assert upper[0] >= search.bounds(pomdp.start)[0] - 1e-9
    assert (informed.bounds(beliefs)[1] <= seen.bounds(beliefs)[1] + 1e-8).all()


def test_exact_and_search_agree_on_the_infinite_horizon():
    pomdp = worlds.random_pomdp(4, 2, 2, discount=0.8, random_state=3)
    exact, search = incremental_pruning(pomdp, tol=1e-3), heuristic_search_value_iteration(pomdp, tol=1e-2)
    low, high = exact.bounds(pomdp.start)
    assert exact.certificate.holds
    assert high - low < 1e-2
    assert search.bounds(pomdp.start)[0] <= high
    assert search.bounds(pomdp.start)[1] >= low


def test_a_seen_state_makes_it_a_decision_process():
    rng = np.random.default_rng(5)
    P, R = rng.dirichlet(np.ones(4), size=(4, 3)), rng.normal(size=(4, 3))
    pomdp = POMDP(P, np.eye(4), R, 0.9)
    expected = backward_induction(pomdp.observed_mdp(), 4).values[0]
    assert_allclose(incremental_pruning(pomdp, horizon=4).bounds(np.eye(4))[0], expected, rtol=1e-9)
    assert_allclose(fast_informed_bound(pomdp).upper_bound(np.eye(4)), qmdp(pomdp).upper_bound(np.eye(4)), rtol=1e-6)


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_pruning_and_excess_equal_linear_programs_of_scipy(seed):
    rng = np.random.default_rng(seed)
    n, k = rng.integers(2, 6), rng.integers(2, 12)
    vectors, others = rng.normal(size=(k, n)), rng.normal(size=(rng.integers(1, 6), n))

    def margin(x, rows):
        # max d subject to b'(x - y) >= d for all y, over beliefs
        A = np.column_stack([rows - x, np.ones(len(rows))])
        found = linprog(
            np.r_[np.zeros(n), -1.0],
            A_ub=A,
            b_ub=np.zeros(len(rows)),
            A_eq=[[1.0] * n + [0.0]],
            b_eq=[1.0],
            bounds=[(0, None)] * n + [(None, None)],
        )
        return -found.fun

    kept = native.prune_vectors(vectors, 1e-10)
    for i in range(k):
        rest = np.delete(vectors, i, axis=0)
        assert (i in kept) == (margin(vectors[i], rest) > 1e-9)
    expected = max(margin(x, others) for x in vectors)
    assert native.largest_excess(vectors, others) == pytest.approx(expected, abs=1e-9)


def test_the_policy_earns_what_its_bounds_say():
    for pomdp in (worlds.machine_maintenance(), worlds.noisy_grid("...+\n.#.-\n....")):
        solution = heuristic_search_value_iteration(pomdp, tol=0.05)
        earned = pomdp.simulate(solution.action, n_episodes=2000, n_steps=120, random_state=0)
        error = earned.std() / np.sqrt(len(earned))
        lower, upper = solution.bounds(pomdp.start)
        assert lower - 4 * error <= earned.mean() <= upper + 4 * error
        blind = pomdp.simulate(lambda b, p=pomdp: [p.actions[0]] * len(b), n_episodes=500, random_state=1)
        assert earned.mean() > blind.mean() + 3 * error


def test_online_search_decides_as_the_solution_does(tiger):
    solution = heuristic_search_value_iteration(tiger, tol=1e-3)
    for belief in ([0.5, 0.5], [0.9, 0.1], [0.02, 0.98]):
        decision = online_search(tiger, belief, solution=solution, max_iter=100)
        assert decision.action == solution.action(belief)
        low, high = solution.bounds(belief)
        assert low - 1e-9 <= decision.lower <= decision.upper <= high + 1e-9
    alone = online_search(worlds.tiger(0.5), [0.001, 0.999])
    assert alone.action == "open left"
    assert alone.certificate.holds
    assert (np.diff(alone.history["lower"]) >= 0).all()


def test_beliefs_are_those_of_the_hidden_markov_model(tiger):
    rng = np.random.default_rng(2)
    codes = rng.integers(3, size=(200, 1))
    model = HiddenMarkovModel(2, emission="categorical", max_iter=5, tol=1e-12, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(codes)
    pomdp = POMDP.from_hidden_markov_model(model, {"wait": None, "reset": [[1, 0], [1, 0]]}, [[0, 1], [1, 0]])
    first = model.startprob_ * model.emissionprob_[:, codes[0, 0]]
    beliefs = pomdp.filter(["wait"] * 9, codes[1:10, 0], first / first.sum())
    for t in range(10):  # the last row of a prefix: what is known without the future
        assert_allclose(beliefs[t], model.predict_proba(codes[: t + 1])[-1], rtol=1e-9)
    assert_allclose(pomdp.update(beliefs[-1], "reset", 1), [1.0, 0.0])
    assert_allclose(tiger.observation_probabilities([0.5, 0.5], "listen"), [0.5, 0.5])
    with pytest.raises(DataError, match="categorical"):
        POMDP.from_hidden_markov_model(HiddenMarkovModel(2), {"wait": None}, [0, 1])


def test_that_the_process_goes_on_says_that_it_has_not_ended():
    P = np.zeros((3, 1, 3))
    P[:, 0] = [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    pomdp = POMDP(P, np.ones((3, 1)), [0.0, 1.0, 5.0], 0.5, terminal=[2], start=[0.5, 0.5, 0.0])
    assert_allclose(pomdp.filter([0, 0], [0, 0])[1:], [[0.25, 0.5, 0.25], [1 / 6, 4 / 6, 1 / 6]])
    # From the first state the end is worth 5: V(0) = 0.5 (V(0) / 2 + 5 / 2); V(1) = 1 + V(1) / 2.
    solution = incremental_pruning(pomdp, tol=1e-9)
    assert_allclose([solution.value(b) for b in np.eye(3)], [5 / 3, 2.0, 5.0], rtol=1e-8)
    assert_allclose(heuristic_search_value_iteration(pomdp, tol=1e-8).value([1.0, 0, 0]), 5 / 3, rtol=1e-6)


def test_solutions_can_be_stored(tiger):
    solution = heuristic_search_value_iteration(tiger)
    again = pickle.loads(pickle.dumps(solution))
    assert again.bounds(tiger.start) == solution.bounds(tiger.start)


def test_more_threads_give_the_same_bits():
    pomdp = worlds.random_pomdp(20, 3, 4, random_state=1)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        one, two = (point_based_value_iteration(pomdp, tol=1e-9, max_iter=5, n_jobs=k).alpha_vectors for k in (1, 2))
    assert np.array_equal(one, two)


def test_plots(tiger):
    solution = incremental_pruning(tiger, tol=1e-3)
    ax = solution.plot()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["open right", "listen", "open left", "upper bound"]
    assert solution.plot_convergence().get_xlabel() == "iteration"
    with pytest.raises(DataError, match="expected 2"):
        heuristic_search_value_iteration(worlds.machine_maintenance(), tol=0.1).plot()


EYE = np.eye(2)[None].repeat(2, axis=0).transpose(1, 0, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transitions": EYE * 0.9}, "transitions: the probabilities of state 'l', action 'x' add up to 0.9"),
        ({"transitions": EYE * [[[0.0], [1.0]]]}, "state 'l', action 'x' has no probabilities"),
        ({"observations": np.full((2, 2, 2), 0.6)}, "observations: .* state 'l', action 'x' add up to 1.2"),
        ({"observations": [[1.5, -0.5], [1, 0]]}, "state 'l', action 'x', observation 'b' has probability -0.5"),
        ({"observations": np.ones((3, 2))}, r"observations: got shape \(3, 2\)"),
        ({"rewards": [np.nan, 0.0]}, "rewards: entry"),
        ({"start": [0.5, 0.6]}, "start: probabilities add up to 1.1"),
        ({"start": [1.0]}, r"start: got shape \(1,\)"),
        ({"actions": ["x", "x"]}, "actions: got 2 labels"),
    ],
)
def test_bad_models_are_named(change, message):
    good = {"transitions": EYE, "observations": np.eye(2), "rewards": [0.0, 1.0]}
    labels = {"states": ["l", "r"], "actions": ["x", "y"], "observation_labels": ["a", "b"]}
    with pytest.raises(DataError, match=message):
        POMDP(**{**good, **labels, **change})


def test_bad_arguments(tiger):
    with pytest.raises(DataError, match="action='jump': expected one of"):
        tiger.update([0.5, 0.5], "jump", "hear left")
    with pytest.raises(DataError, match="it has probability 0"):
        worlds.tiger(accuracy=1.0).update([1.0, 0.0], "listen", "hear right")
    with pytest.raises(DataError, match="discount=1 needs a finite horizon"):
        qmdp(worlds.tiger(1.0))
    with pytest.raises(ConvergenceError, match="more than max_vectors=5"):
        incremental_pruning(tiger, max_vectors=5)
    with pytest.raises(DataError, match="steps_left=3: expected 1 to 2"):
        incremental_pruning(tiger, horizon=2).action([0.5, 0.5], steps_left=3)
    assert incremental_pruning(worlds.tiger(1.0), horizon=2).bounds([0.5, 0.5])[0] == pytest.approx(-2.0)
