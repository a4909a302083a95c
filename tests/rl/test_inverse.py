"""Rewards from an expert: planted rewards, matched features, programs against other solutions of them."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog, minimize

import epicycle as ep
from epicycle.control import MDP, MDPEnvironment, policy_evaluation, policy_iteration, worlds
from epicycle.exceptions import ConvergenceWarning, DataError, NotFittedError, ParameterError
from epicycle.rl import Episodes, InverseRL, record_episodes
from epicycle.rl.inverse._expert_problem import expert_problem
from epicycle.rl.inverse._max_entropy import MaximumEntropy

GRID = worlds.grid_world("...+\n.#.-\n....", step_reward=0.0, discount=0.9)


def dense(mdp):
    """Probabilities (A, S, S) of a process in which every action is available, zero in terminal states."""
    P = np.zeros((mdp.n_actions, mdp.n_states, mdp.n_states))
    P[mdp.pair_action_, mdp._pair_state()] = mdp.transitions_.toarray()
    return P


def soft_policy(mdp, reward, sweeps=3000):
    """The policy of maximum causal entropy for a reward, by plain sweeps."""
    P, V = dense(mdp), np.zeros(mdp.n_states)
    for _ in range(sweeps):
        Q = mdp.discount * P @ V
        V = reward + np.where(mdp.is_terminal, 0, np.log(np.exp(Q).sum(axis=0)))
    policy = np.exp(Q - np.log(np.exp(Q).sum(axis=0))).T
    policy[mdp.is_terminal] = np.eye(mdp.n_actions)[0]
    return policy


def expectations(mdp, policy, features, start):
    chain = np.einsum("sa,ast->st", policy, dense(mdp))
    return features.T @ np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * chain.T, start)


def planted(mdp, reward):
    """The process with the rewards of its states."""
    return MDP(list(dense(mdp)), reward, mdp.discount, terminal=mdp.is_terminal)


# ---------------------------------------------------------------------------------------------- maximum entropy


@pytest.mark.parametrize("seed", range(3))
def test_gradient_of_the_dual_against_differences(seed):
    rng = np.random.default_rng(seed)
    mdp = worlds.random_mdp(7, 3, n_successors=3, discount=0.8, random_state=seed)
    expert = rng.dirichlet(np.ones(3), size=7)
    objective = MaximumEntropy(expert_problem(mdp, expert, rng.normal(size=(7, 4)), None), 0.1)
    w = rng.normal(size=4)
    value, gradient = objective.value_and_gradient(w)
    numeric = [(objective.value(w + 1e-5 * e) - objective.value(w - 1e-5 * e)) / 2e-5 for e in np.eye(4)]
    assert_allclose(gradient, numeric, atol=1e-7)
    assert ep.optim.check_gradient(objective, w).holds
    assert np.isfinite(value)


def test_planted_reward_is_found_up_to_a_constant_and_the_policy_exactly():
    # A constant c for every step, with c / (1 - discount) at an end, gives every policy the same: none can tell it.
    reward = np.random.default_rng(0).normal(size=GRID.n_states)
    policy = soft_policy(GRID, reward)
    model = InverseRL(penalty=0.0, tol=1e-9).fit(GRID, policy)
    assert model.certificate_.holds
    difference = model.reward_ - reward
    difference[GRID.is_terminal] *= 1 - GRID.discount
    assert_allclose(difference, difference[0], atol=1e-6)
    assert_allclose(model.probabilities_, policy, atol=1e-7)
    assert_allclose(model.expectations_, model.expert_expectations_, atol=1e-7)
    start = ~GRID.is_terminal / (~GRID.is_terminal).sum()
    assert_allclose(model.expert_expectations_, expectations(GRID, policy, np.eye(GRID.n_states), start), rtol=1e-9)
    best = policy_iteration(planted(GRID, reward))
    assert_array_equal(model.policy_[~GRID.is_terminal], best.policy[~GRID.is_terminal])


def test_dual_meets_the_primal_program():
    # Occupancies d(s, a) of largest causal entropy among those with the expert's features, by another solver.
    rng, S, A = np.random.default_rng(3), 4, 2
    mdp = worlds.random_mdp(S, A, n_successors=3, discount=0.7, random_state=3)
    P, features, start = dense(mdp), rng.normal(size=(S, 2)), np.full(S, 1 / S)
    expert, uniform = rng.dirichlet(np.ones(A), size=S), np.full((S, A), 1 / A)
    target = expectations(mdp, expert, features, start)

    def negative_entropy(d):
        d = np.maximum(d.reshape(S, A), 1e-12)
        return (d * np.log(d / d.sum(axis=1, keepdims=True))).sum()

    def flow(d):
        d = d.reshape(S, A)
        return d.sum(axis=1) - start - 0.7 * np.einsum("sa,ast->t", d, P)

    def matched(d):
        return features.T @ d.reshape(S, A).sum(axis=1) - target

    begin = (expectations(mdp, uniform, np.eye(S), start)[:, None] * uniform).ravel()
    constraints = [{"type": "eq", "fun": f} for f in (flow, matched)]
    found = minimize(negative_entropy, begin, bounds=[(1e-12, None)] * (S * A), constraints=constraints, tol=1e-12)
    d = found.x.reshape(S, A)
    model = InverseRL(penalty=0.0, tol=1e-10).fit(mdp, expert, features=features)
    assert_allclose(model.probabilities_, d / d.sum(axis=1, keepdims=True), atol=2e-4)
    assert model.history_.objective[-1] == pytest.approx(-found.fun, abs=1e-6)


def test_penalty_keeps_the_rewards_of_a_faultless_expert_finite():
    expert = policy_iteration(GRID).policy
    model = InverseRL(penalty=1e-3).fit(GRID, expert)
    assert model.certificate_.kind == "strong convexity"
    assert model.certificate_.holds
    assert_allclose(1e-3 * model.weights_, model.expert_expectations_ - model.expectations_, atol=2e-4)
    loss = policy_iteration(GRID).values - policy_evaluation(GRID, GRID.actions[model.policy_])
    assert loss.max() < 1e-9
    with pytest.warns(ConvergenceWarning, match="the penalty of an expert who never errs"):
        InverseRL(penalty=0.0, max_iter=5).fit(GRID, expert)


def test_demonstrations_give_the_reward_back():
    reward = np.full(GRID.n_states, -1.5)
    reward[[3, 6]] = 8.0, -6.0  # the goal; a place that costs much, which ends the walk
    reward[2] = -4.0  # a puddle before the goal
    policy = soft_policy(GRID, reward)
    steps = record_episodes(policy, MDPEnvironment(GRID, max_steps=100), 1500, seed=0)
    model = InverseRL(penalty=1e-3).fit(GRID, steps)
    exact = InverseRL(penalty=1e-3).fit(GRID, policy)
    assert_allclose(model.expert_expectations_, exact.expert_expectations_, atol=0.1)
    assert np.abs(model.probabilities_ - policy).max() < 0.1
    walked = ~GRID.is_terminal
    assert model.reward_[walked].argmin() == 2
    assert np.corrcoef(model.reward_[walked], reward[walked])[0, 1] > 0.9


# ---------------------------------------------------------------------------------------------- apprenticeship


@pytest.mark.parametrize("seed", range(3))
def test_projection_finds_the_policy_of_a_planted_reward(seed):
    rng = np.random.default_rng(seed)
    reward = rng.normal(size=GRID.n_states)
    process = planted(GRID, reward)
    best = policy_iteration(process)
    model = InverseRL("apprenticeship").fit(process, best.policy)
    assert model.certificate_.holds
    assert_array_equal(model.policy_[~GRID.is_terminal], best.policy[~GRID.is_terminal])
    assert np.all(np.diff(model.history_.objective) <= 1e-12)


def test_mixture_is_worth_as_much_as_the_expert_whatever_the_reward_is():
    rng = np.random.default_rng(1)
    mdp = worlds.random_mdp(12, 3, n_successors=4, discount=0.8, random_state=1)
    expert, features = rng.dirichlet(np.ones(3), size=12), rng.normal(size=(12, 3))
    model = InverseRL("apprenticeship", tol=1e-3).fit(mdp, expert, features=features)
    assert model.certificate_.holds
    start = np.full(12, 1 / 12)
    own, target = (expectations(mdp, p, features, start) for p in (model.probabilities_, expert))
    assert_allclose(model.expectations_, own, atol=1e-10)
    size = np.linalg.norm(target)
    assert np.linalg.norm(own - target) / size == pytest.approx(model.certificate_.value, abs=1e-10)
    for w in rng.normal(size=(50, 3)):
        assert abs(w @ (own - target)) / np.linalg.norm(w) <= 1e-3 * size * (1 + 1e-9)
    with pytest.warns(ConvergenceWarning, match="distance of feature expectations"):
        InverseRL("apprenticeship", tol=1e-12, max_iter=3).fit(mdp, expert, features=features)


# ---------------------------------------------------------------------------------------------- linear programming


@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_program_of_ng_and_russell_by_a_dense_formulation(penalty):
    mdp = worlds.random_mdp(6, 3, n_successors=3, discount=0.8, random_state=4)
    pi = policy_iteration(mdp).choice - mdp.pair_start_[:-1]
    P = dense(mdp)
    own = P[pi, np.arange(6)]
    inverse = np.linalg.inv(np.eye(6) - 0.8 * own)
    leads = [(s, (own[s] - P[a, s]) @ inverse) for s in range(6) for a in range(3) if a != pi[s]]
    # x = (R+, R-, t), R = R+ - R-
    A = [np.concatenate([-row, row, np.eye(6)[s]]) for s, row in leads]
    cost = np.concatenate([np.full(12, penalty), -np.ones(6)])
    found = linprog(cost, A_ub=A, b_ub=np.zeros(len(A)), bounds=[(0, 1)] * 12 + [(0, None)] * 6, method="highs-ipm")
    model = InverseRL("linear_programming", penalty=penalty).fit(mdp, mdp.actions[pi])
    smallest = np.full(6, np.inf)
    for s, row in leads:
        smallest[s] = min(smallest[s], row @ model.reward_)
    assert smallest.min() >= -1e-9
    assert smallest.sum() - penalty * np.abs(model.reward_).sum() == pytest.approx(-found.fun, abs=1e-7)
    assert model.certificate_.holds
    assert_array_equal(model.policy_, pi)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.integers(2, 8), st.integers(2, 4), st.floats(0.1, 0.95))
def test_any_best_policy_is_best_for_the_reward_that_is_found(seed, states, actions, discount):
    mdp = worlds.random_mdp(states, actions, n_successors=2, discount=discount, random_state=seed)
    expert = policy_iteration(mdp).policy
    model = InverseRL("linear_programming", penalty=0.0).fit(mdp, expert)
    if not model.reward_.any():  # all actions lead to the same: nothing can be told
        return
    assert model.certificate_.holds
    assert_array_equal(mdp.actions[model.policy_], expert)
    again = policy_evaluation(model.process(mdp), expert)
    assert_allclose(again, policy_iteration(model.process(mdp)).values, atol=1e-7)


def test_a_large_penalty_leaves_nothing_and_says_so():
    with pytest.warns(ConvergenceWarning, match="does not hold"):
        model = InverseRL("linear_programming", penalty=100.0).fit(GRID, policy_iteration(GRID).policy)
    assert not model.reward_.any()
    assert "the penalty is too large" in model.certificate_.meaning


def test_reward_moves_to_other_dynamics():
    # Learnt where steps go aside, used where they do not: the reward transfers.
    model = InverseRL("apprenticeship").fit(GRID, policy_iteration(GRID).policy)
    firm = worlds.grid_world("...+\n.#.-\n....", step_reward=0.0, discount=0.9, slip=0.0)
    policy = policy_iteration(model.process(firm)).policy
    assert policy_evaluation(firm, policy)[0] > 0.5 * policy_iteration(firm).values[0]


# ---------------------------------------------------------------------------------------------- the contract


@pytest.mark.parametrize("method", ["max_entropy", "apprenticeship", "linear_programming"])
def test_files_and_acting(method, tmp_path):
    model = InverseRL(method, random_state=3).fit(GRID, policy_iteration(GRID).policy)
    model.save(tmp_path / "m.epi")
    back = ep.load(tmp_path / "m.epi")
    assert repr(back) == repr(model)
    for name in ("reward_", "policy_", "probabilities_", "weights_", "expectations_", "expert_expectations_"):
        assert_array_equal(getattr(back, name), getattr(model, name))
    assert back.certificate_ == model.certificate_
    assert back.history_ == model.history_
    assert [back.act(0, False) for _ in range(5)] == [model.act(0, False) for _ in range(5)]
    env = MDPEnvironment(GRID, max_steps=100)
    assert model.evaluate(env, 50, seed=0).mean > 0.6


def test_cuts_and_states_that_nobody_saw():
    policy = policy_iteration(GRID).policy
    numbers = np.array([GRID.actions.tolist().index(a) for a in policy])
    short = record_episodes(numbers, MDPEnvironment(GRID, start=(0, 0), max_steps=3), 20, seed=0)
    with pytest.warns(ConvergenceWarning, match=r"episodes were cut off; what follows is missing"):
        InverseRL().fit(GRID, short)
    with pytest.raises(DataError, match="needs the expert's action in every state"):
        InverseRL("linear_programming").fit(
            GRID, record_episodes(numbers, MDPEnvironment(GRID, start=(0, 0)), 5, seed=0)
        )


def test_bad_input_is_named():
    expert = policy_iteration(GRID).policy
    with pytest.raises(ParameterError, match="method='bayes'"):
        InverseRL("bayes").fit(GRID, expert)
    with pytest.raises(DataError, match="expected an MDP, whose rewards are not looked at"):
        InverseRL().fit("grid", expert)
    with pytest.raises(ParameterError, match="expected a discount below 1"):
        InverseRL().fit(worlds.cliff_walk(), expert)
    with pytest.raises(DataError, match=r"features: got shape \(3, 2\)"):
        InverseRL().fit(GRID, expert, features=np.ones((3, 2)))
    with pytest.raises(DataError, match=r"expert: expected probabilities"):
        InverseRL().fit(GRID, np.ones((GRID.n_states, 4)))
    with pytest.raises(NotFittedError, match=r"call fit\(mdp, expert\)"):
        InverseRL().act(0)
    steps = Episodes([0, 1], [9, 0], [0.0, 0.0], [1, 2], [False, True])
    with pytest.raises(DataError, match="actions: expected whole numbers from 0 to 3"):
        InverseRL().fit(GRID, steps)
    good = Episodes([0, 1], [0, 0], [0.0, 0.0], [1, 2], [False, True])
    with pytest.raises(ParameterError, match="start: given together with episodes"):
        InverseRL().fit(GRID, good, start=(0, 0))
    model = InverseRL("apprenticeship").fit(GRID, expert)
    with pytest.raises(DataError, match="expected a number of a state, from 0 to 10"):
        model.act(99)
    with pytest.raises(DataError, match="expected an MDP of 11 states"):
        model.process(worlds.river_swim())
