"""Agents with tables: values against exact solutions, the figures of the textbook, files, errors."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle.control import MDPEnvironment, policy_iteration, worlds
from epicycle.exceptions import ConvergenceWarning, DataError, NotFittedError, ParameterError, ParameterTypeError
from epicycle.rl import (
    SARSA,
    UCB,
    DoubleQLearning,
    DynaQ,
    EpsilonGreedy,
    ExpectedSARSA,
    ExponentialDecay,
    LinearDecay,
    MonteCarloControl,
    MonteCarloPrediction,
    PrioritizedSweeping,
    QLearning,
    Softmax,
    TDPrediction,
    VisitDecay,
)

CLIFF = MDPEnvironment(worlds.cliff_walk(), start=(3, 0), max_steps=500)
CONTROL = [SARSA, ExpectedSARSA, QLearning, DoubleQLearning]


def best_q(mdp):
    values = policy_iteration(mdp).values
    q = mdp.rewards_ + mdp.discount * (mdp.transitions_ @ values)
    return q.reshape(mdp.n_states, mdp.n_actions)


class Script:
    """An environment that plays given episodes back: lists of (state, reward), and the state at the end."""

    def __init__(self, episodes, n_states, truncated=False):
        self.observation_space, self.action_space = SimpleNamespace(n=n_states), SimpleNamespace(n=1)
        self.episodes, self.truncated, self.played = episodes, truncated, 0

    def reset(self, *, seed=None, options=None):
        self.now, self.i = self.episodes[self.played % len(self.episodes)], 0
        self.played += 1
        return self.now[0][0], {}

    def step(self, action):
        reward = self.now[self.i][1]
        self.i += 1
        over = self.i == len(self.now) - 1
        return self.now[self.i][0], reward, over and not self.truncated, over and self.truncated, {}


class Wrapped:
    """A process that is asked step by step, as other environments are."""

    def __init__(self, mdp, **settings):
        self.inner = MDPEnvironment(mdp, **settings)
        self.observation_space, self.action_space = self.inner.observation_space, self.inner.action_space
        self.reset, self.step = self.inner.reset, self.inner.step


# ---------------------------------------------------------------------------------------------- convergence


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("agent", [QLearning(), DoubleQLearning(), QLearning(trace_decay=0.5)], ids=str)
def test_q_learning_converges_to_the_values_of_the_best_policy(agent, seed):
    mdp = worlds.random_mdp(8, 3, n_successors=3, discount=0.8, random_state=seed)
    agent.learning_rate, agent.exploration, agent.discount = VisitDecay(0.75), 1.0, 0.8
    # With a trace the actions have to be greedy for a while.
    agent = type(agent)(**{name: getattr(agent, name) for name in agent._arguments})
    agent.learn(mdp, 2_000_000, seed=seed)
    assert_allclose(agent.q_, best_q(mdp), atol=0.06)
    assert agent.certificate_.holds


def test_sarsa_and_its_expectation_learn_the_policy_that_explores():
    # With epsilon = 1 the values are those of the uniform policy.
    mdp = worlds.random_mdp(6, 2, n_successors=3, discount=0.8, random_state=5)
    P = mdp.transitions_.toarray().reshape(6, 2, 6)
    R = mdp.rewards_.reshape(6, 2)
    v = np.linalg.solve(np.eye(6) - 0.8 * P.mean(axis=1), R.mean(axis=1))
    for settings in ({}, {"n_steps": 4}, {"trace_decay": 0.7, "trace": "accumulating"}, {"trace_decay": 0.7}):
        agent = SARSA(learning_rate=VisitDecay(0.8), exploration=1.0, discount=0.8, **settings)
        agent.learn(mdp, 1_000_000, seed=0)
        assert_allclose(agent.q_, R + 0.8 * P @ v, atol=0.06, err_msg=str(settings))
    agent = ExpectedSARSA(learning_rate=VisitDecay(0.8), exploration=1.0, discount=0.8).learn(mdp, 1_500_000, seed=0)
    assert_allclose(agent.q_, R + 0.8 * P @ v, atol=0.06)


@pytest.mark.parametrize("settings", [{"visits": "first"}, {"visits": "every"}, {"off_policy": True}], ids=str)
def test_monte_carlo_control_finds_the_best_policy_and_its_values(settings):
    mdp = worlds.grid_world("..+\n.#-\n...", discount=0.9)
    env = MDPEnvironment(mdp)
    exploration = 0.5 if settings.get("off_policy") else EpsilonGreedy(ExponentialDecay(1.0, 0.01, 500_000))
    agent = MonteCarloControl(exploration=exploration, discount=0.9, learning_rate=0.01, **settings)
    agent.learn(env, 1_000_000, seed=1)
    # Returns of earlier greedy policies stay in the means off the policy.
    assert agent.certificate_.value < (0.04 if settings.get("off_policy") else 0.01)
    assert_allclose(agent.values_[:-1].mean(), policy_iteration(mdp).values[:-1].mean(), atol=0.15)


def test_a_table_and_the_same_process_step_by_step_learn_the_same_values():
    mdp = worlds.random_mdp(5, 2, n_successors=2, discount=0.7, random_state=3)
    settings = {"learning_rate": VisitDecay(0.8), "exploration": 0.5, "discount": 0.7}
    one = QLearning(**settings).learn(mdp, 60_000, seed=0)
    two = QLearning(**settings).learn(Wrapped(mdp), 60_000, seed=0)
    assert_allclose(one.q_, two.q_, atol=0.25)
    assert two.certificate_.kind == "none"
    assert "no proof" in two.certificate_.meaning


# ---------------------------------------------------------------------------------------------- the textbook


def test_cliff_walk_safe_and_short_paths_and_their_returns_while_learning():
    # Sutton and Barto, example 6.6: epsilon 0.1, step size 0.5.
    online = {}
    for cls in (SARSA, QLearning):
        means = []
        for seed in range(10):
            agent = cls(learning_rate=0.5, exploration=0.1, discount=1.0).learn(CLIFF, 10_000, seed=seed)
            means.append(agent.history_["return"][100:].mean())
        online[cls] = np.mean(means)
    assert -35 < online[SARSA] < -20
    assert -60 < online[QLearning] < -40
    short = QLearning(learning_rate=0.5, discount=1.0).learn(CLIFF, 100_000, seed=0)
    assert short.evaluate(CLIFF, 5, seed=0).mean == -13
    safe = SARSA(learning_rate=0.1, discount=1.0).learn(CLIFF, 300_000, seed=0)
    mean = safe.evaluate(CLIFF, 5, seed=0).mean
    assert -17 <= mean <= -15  # a row or two above the edge
    for agent, row in ((short, 2), (safe, 1)):
        state, path = CLIFF.reset(seed=0)[0], []
        over = False
        while not over:
            state, _, terminated, truncated, _ = CLIFF.step(agent.act(state))
            path.append(CLIFF.mdp.states[state])
            over = terminated or truncated
        assert max(c for r, c in path[:-1] if r == row or row == 2) >= 10
        assert (max(r for r, c in path if 2 <= c <= 9)) <= row


def walks(n_states, n_episodes, seed, left=0.0):
    """Episodes of the random walk from the middle, as a script."""
    rng, episodes = np.random.default_rng(seed), []
    for _ in range(n_episodes):
        path = [(n_states + 1) // 2]
        while 0 < path[-1] <= n_states:
            path.append(path[-1] + (1 if rng.random() < 0.5 else -1))
        rewards = [0.0] * (len(path) - 2) + [left if path[-1] == 0 else 1.0]
        episodes.append([*zip(path[:-1], rewards, strict=True), (path[-1], 0.0)])
    return episodes


def walk_errors(agents, n_states, episodes, truth, left=0.0):
    """Root mean square error of the values of the random walk after each episode, mean over the agents (one a run)."""
    errors = np.zeros((len(agents), episodes))
    for run, agent in enumerate(agents):
        script = walks(n_states, episodes, run, left)
        env = Script(script, n_states + 2)
        for i, episode in enumerate(script):
            agent.learn(env, len(episode) - 1, seed=0)
            errors[run, i] = np.sqrt(np.mean((agent.values_[1:-1] - truth) ** 2))
    return errors.mean(axis=0)


def test_random_walk_errors_of_td_and_monte_carlo():
    # Sutton and Barto, example 6.2, right: TD at 0.1 ends below Monte Carlo at any of its step sizes.
    def curve(cls, rate, **settings):
        made = [cls(learning_rate=rate, discount=1.0, initial_value=0.5, **settings) for _ in range(16)]
        return walk_errors(made, 5, 100, np.arange(1, 6) / 6)

    td, slow = curve(TDPrediction, 0.1), curve(TDPrediction, 0.05)
    mc = {rate: curve(MonteCarloPrediction, rate, visits="every") for rate in (0.01, 0.03)}
    assert td[0] == pytest.approx(0.24, abs=0.02)
    assert td[-1] < 0.13
    assert slow[-1] < td[20]
    assert min(curve[40:].mean() for curve in mc.values()) > slow[40:].mean()


def test_n_step_methods_are_best_in_between():
    # Sutton and Barto, figure 7.2: the walk of 19 states over its first 10 episodes, values from -1 to 1.
    error = {}
    for n in (1, 4, 64):
        curves = [
            walk_errors(
                [TDPrediction(learning_rate=rate, discount=1.0, n_steps=n) for _ in range(10)],
                19,
                10,
                np.arange(1, 20) / 10 - 1,
                left=-1.0,
            ).mean()
            for rate in (0.1, 0.2, 0.4, 0.8)
        ]
        error[n] = min(curves)
    assert error[4] < error[1]
    assert error[4] < error[64]
    assert error[4] == pytest.approx(0.28, abs=0.06)


def test_double_q_learning_is_not_misled_by_the_maximum():
    # Sutton and Barto, example 6.7: left leads to many actions with normal rewards of mean -0.1.
    class Misleading:
        observation_space, action_space = SimpleNamespace(n=3), SimpleNamespace(n=10)

        def reset(self, *, seed=None, options=None):
            self.rng, self.s = np.random.default_rng(seed), 0
            return 0, {"action_mask": [1, 1] + [0] * 8}

        def step(self, action):
            if self.s == 0:
                self.s = 1
                return (1, 0.0, False, False, {}) if action == 0 else (2, 0.0, True, False, {})
            return 2, self.rng.normal(-0.1, 1), True, False, {}

    share = {}
    for cls in (QLearning, DoubleQLearning):
        lengths = [
            cls(learning_rate=0.1, exploration=0.1, discount=1.0).learn(Misleading(), 300, seed=s).history_["length"]
            for s in range(30)
        ]
        share[cls] = np.mean([np.mean(length[:100] == 2) for length in lengths])  # episodes that went left
    assert share[DoubleQLearning] + 0.05 < share[QLearning]


# ---------------------------------------------------------------------------------------------- exact updates


def test_values_of_one_step_by_hand():
    episodes = [[(0, 1.0), (1, 2.0), (2, 0.0)]]
    agent = TDPrediction(learning_rate=0.5, discount=0.9, initial_value=1.0).learn(Script(episodes, 3), 2)
    assert_allclose(agent.values_, [1 + 0.5 * (1 + 0.9 * 1 - 1), 1 + 0.5 * (2 - 1), 1])
    two = TDPrediction(learning_rate=0.5, discount=0.9, n_steps=2, initial_value=1.0).learn(Script(episodes, 3), 2)
    assert_allclose(two.values_, [1 + 0.5 * (1 + 0.9 * 2 - 1), 1 + 0.5 * (2 - 1), 1])
    cut = TDPrediction(learning_rate=0.5, discount=0.9, initial_value=1.0).learn(Script(episodes, 3, True), 2)
    assert_allclose(cut.values_, [1 + 0.5 * (1 + 0.9 * 1 - 1), 1 + 0.5 * (2 + 0.9 * 1 - 1), 1])


@pytest.mark.parametrize("decay", [0.3, 0.8, 1.0])
def test_traces_offline_are_the_forward_view(decay):
    rng = np.random.default_rng(0)
    states = rng.integers(4, size=12)
    rewards, rate, g = rng.normal(size=12), 0.1, 0.9
    episode = [*zip(states.tolist(), rewards.tolist(), strict=True), (4, 0.0)]
    v = np.zeros(5)
    for _ in range(2):
        change = np.zeros(5)
        values = np.append(v[states[1:]], 0.0)  # the end is worth nothing
        for t in range(12):
            n_step = [
                sum(g**i * rewards[t + i] for i in range(n)) + (g**n * values[t + n - 1] if t + n < 12 else 0.0)
                for n in range(1, 12 - t + 1)
            ]
            weights = [(1 - decay) * decay ** (n - 1) for n in range(1, 12 - t)] + [decay ** (11 - t)]
            change[states[t]] += rate * (np.dot(weights, n_step) - v[states[t]])
        v += change
    agent = TDPrediction(learning_rate=rate, discount=g, trace_decay=decay, offline=True)
    agent.learn(Script([episode], 5), 24)
    assert_allclose(agent.values_, v, atol=1e-10)


def test_monte_carlo_means_of_first_and_every_visits():
    episodes = [[(0, 1.0), (0, 2.0), (1, 3.0), (2, 0.0)], [(1, 1.0), (0, 1.0), (2, 0.0)]]
    first = MonteCarloPrediction(discount=0.5).learn(Script(episodes, 3), 5)
    every = MonteCarloPrediction(discount=0.5, visits="every").learn(Script(episodes, 3), 5)
    # Returns: 1 + 0.5 (2 + 0.5 * 3) = 2.75, 3.5, 3; then 1.5, 1.
    assert_allclose(first.values_, [(2.75 + 1) / 2, (3 + 1.5) / 2, 0])
    assert_allclose(every.values_, [(2.75 + 3.5 + 1) / 3, (3 + 1.5) / 2, 0])
    assert_array_equal(every.visits_, [3, 2, 0])


def test_prediction_is_certified_where_the_process_is_known():
    mdp = worlds.random_mdp(6, 3, n_successors=3, discount=0.8, random_state=1)
    policy = np.random.default_rng(0).dirichlet(np.ones(3), size=6)
    P = np.einsum("sa,sat->st", policy, mdp.transitions_.toarray().reshape(6, 3, 6))
    v = np.linalg.solve(np.eye(6) - 0.8 * P, (policy * mdp.rewards_.reshape(6, 3)).sum(axis=1))
    for settings in ({}, {"n_steps": 3}, {"trace_decay": 0.6}):
        agent = TDPrediction(policy, learning_rate=VisitDecay(0.9), discount=0.8, **settings)
        agent.learn(mdp, 1_000_000, seed=0)
        error = np.abs(agent.values_ - v).max() / np.abs(v).max()
        assert agent.certificate_.value == pytest.approx(error, rel=1e-6)
        assert error < 0.05


# ---------------------------------------------------------------------------------------------- exploration


@pytest.mark.parametrize(
    "exploration",
    [0.2, EpsilonGreedy(LinearDecay(1.0, 0.05, 20_000)), EpsilonGreedy(VisitDecay(0.5)), Softmax(0.1), UCB(1.0)],
    ids=str,
)
def test_ways_to_explore_find_the_river_s_spring(exploration):
    agent = QLearning(exploration=exploration, discount=0.9, initial_value=1.0, learning_rate=0.1, random_state=0)
    agent.learn(MDPEnvironment(worlds.river_swim(4, discount=0.9)), 100_000)
    assert_array_equal(agent.policy_, 1)
    drawn = [agent.act(2, deterministic=False) for _ in range(50)]
    assert np.mean(drawn) > 0.5


def test_probabilities_of_acting_are_those_of_learning():
    stock = worlds.inventory(3, demand=1.0, discount=0.9)
    agent = SARSA(exploration=0.3, discount=0.9, random_state=0).learn(stock, 2000)
    p = agent._probabilities(2)  # two of four actions are available
    assert p.tolist() == pytest.approx([0.85, 0.15, 0, 0]) or p.tolist() == pytest.approx([0.15, 0.85, 0, 0])
    assert np.isnan(agent.q_[2, 2:]).all()
    assert agent.visits_[2, 2:].sum() == 0


def test_schedules_by_numbers():
    from epicycle.rl._schedules import at_step, numbers_of

    assert at_step(numbers_of("x", LinearDecay(1.0, 0.0, 10)), 5, 1) == 0.5
    assert at_step(numbers_of("x", ExponentialDecay(1.0, 0.01, 10)), 5, 1) == pytest.approx(0.1)
    assert at_step(numbers_of("x", VisitDecay(0.5, start=2.0)), 0, 16) == 0.5
    with pytest.raises(ParameterError, match=r"epsilon=1\.5"):
        EpsilonGreedy(1.5)
    with pytest.raises(ParameterTypeError, match="expected a number, LinearDecay"):
        EpsilonGreedy("much")


# ---------------------------------------------------------------------------------------------- the contract


def same(a, b):
    tables = [agent._learnt() for agent in (a, b)]
    assert tables[0].keys() == tables[1].keys()
    for name in tables[0]:
        assert_array_equal(tables[0][name], tables[1][name], err_msg=name)
    assert a.history_ == b.history_


AGENTS = [
    SARSA(n_steps=3),
    SARSA(trace_decay=0.8),
    ExpectedSARSA(),
    QLearning(exploration=Softmax(LinearDecay(1.0, 0.1, 1000))),
    DoubleQLearning(exploration=UCB(2.0)),
    MonteCarloControl(),
    DynaQ(planning_steps=4),
    PrioritizedSweeping(planning_steps=3),
    TDPrediction(trace_decay=0.9),
    MonteCarloPrediction(),
]


def fresh(agent, **changes):
    return type(agent)(**({name: getattr(agent, name) for name in agent._arguments} | changes))


@pytest.mark.parametrize("agent", AGENTS, ids=str)
def test_same_seed_same_bits_and_files_hold_it_all(agent, tmp_path):
    env = MDPEnvironment(worlds.grid_world("...+\n.#.-\n...."), max_steps=50)
    one, two = (fresh(agent, random_state=4).learn(env, 5000) for _ in range(2))
    same(one, two)
    one.save(tmp_path / "agent.epi")
    back = ep.load(tmp_path / "agent.epi")
    same(one, back)
    assert repr(back) == repr(one)
    assert back.certificate_ == one.certificate_
    assert [back.act(s) for s in range(10)] == [one.act(s) for s in range(10)]
    same(one.learn(env, 1000, seed=9), back.learn(env, 1000, seed=9))


@pytest.mark.parametrize("agent", AGENTS, ids=str)
@pytest.mark.parametrize("by_table", [True, False])
def test_a_run_that_was_killed_goes_on_to_the_same_bits(agent, by_table, tmp_path, monkeypatch):
    from epicycle.rl.tabular import _table_agent

    monkeypatch.setattr(_table_agent, "_CHUNK", 700)
    mdp = worlds.grid_world("...+\n.#.-\n....")
    env = MDPEnvironment(mdp, max_steps=30) if by_table else Wrapped(mdp, max_steps=30)
    whole = fresh(agent, random_state=4).learn(env, 4000)
    file = tmp_path / "run.epi"
    agent = fresh(agent, random_state=4)
    write, written = type(agent)._write, []

    def killed(self, path):
        write(self, path)
        written.append(self._progress["made"])
        if len(written) == 3:
            raise SystemError("killed")

    monkeypatch.setattr(type(agent), "_write", killed)
    with pytest.raises(SystemError):
        agent.learn(env, 4000, checkpoint=file, checkpoint_every=500)
    back = ep.load(file)
    assert 1000 < back._progress["made"] < 4000
    same(back.resume(env), whole)


def test_a_process_without_end_is_learnt_in_pieces_of_any_size(monkeypatch):
    from epicycle.rl.tabular import _table_agent

    river = worlds.river_swim()
    one = SARSA(n_steps=4, random_state=0).learn(river, 5000)
    monkeypatch.setattr(_table_agent, "_CHUNK", 333)
    same(one, SARSA(n_steps=4, random_state=0).learn(river, 5000))
    assert one.history_.n_iter == 0


def test_histories_stay_small_and_keep_the_means():
    agent = QLearning(random_state=0).learn(MDPEnvironment(worlds.random_walk(3)), 200_000)
    log = agent.history_
    assert agent._log.n_episodes > 30_000
    assert log.n_iter <= 4096
    assert log["steps"][-1] <= 200_000
    assert (np.diff(log["steps"]) > 0).all()
    assert log["return"].mean() == pytest.approx(0.5, abs=0.02)
    assert log["length"].mean() == pytest.approx(16 / 5, abs=0.3)


class Broken(Wrapped):
    def __init__(self, fault):
        super().__init__(worlds.grid_world("...+\n.#.-\n...."), max_steps=30)
        self.fault, self.count = fault, 0
        self.step = self._step

    def _step(self, action):
        self.count += 1
        result = list(self.inner.step(action))
        if self.count == 500:
            if self.fault == "raises":
                raise RuntimeError("the robot fell over")
            if self.fault == "interrupts":
                raise KeyboardInterrupt
            place, value = {
                "nan": (1, float("nan")),
                "state": (0, 99),
                "kind": (0, "north"),
                "short": (slice(4, 5), []),
            }[self.fault]
            result[place] = value
        return tuple(result)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("raises", "step raised RuntimeError: the robot fell over"),
        ("nan", "the reward of step 500 .* is nan"),
        ("state", "observation 99; expected an integer from 0 to 10"),
        ("kind", "observation 'north'"),
        ("short", "expected observation, reward, terminated, truncated, information"),
    ],
)
def test_environments_that_fail_lose_nothing(fault, words):
    agent = QLearning(random_state=0)
    env = Broken(fault)
    with pytest.raises(DataError, match=words):
        agent.learn(env, 2000)
    assert agent.visits_.sum() in (499, 500)
    assert agent.history_.n_iter > 10
    agent.resume(env)
    assert agent.visits_.sum() == 2000


def test_interruption_keeps_what_was_learnt():
    agent, env = QLearning(random_state=0), Broken("interrupts")
    with pytest.warns(ConvergenceWarning, match=r"interrupted after 499 of 2,000 steps"):
        agent.learn(env, 2000)
    assert agent.visits_.sum() == 499
    agent.resume(env)
    assert agent.visits_.sum() == 2000


def test_time_limits_and_episodes_without_end():
    with pytest.warns(ConvergenceWarning, match="the time limit of 0.05 s ran out"):
        agent = QLearning().learn(worlds.random_mdp(5, 2, random_state=0), 10**12, time_limit=0.05)
    assert agent.visits_.sum() == agent._progress["made"] > 0
    with pytest.warns(ConvergenceWarning, match="no episode ended within 1,000 steps"):
        MonteCarloControl().learn(worlds.river_swim(), 1000)
    walker = QLearning(random_state=0).learn(worlds.river_swim(), 1000)
    with pytest.warns(ConvergenceWarning, match="3 of 3 episodes did not end within max_steps=20"):
        found = walker.evaluate(worlds.river_swim(), 3, max_steps=20)
    assert (found.lengths == 20).all()


def test_evaluation_has_an_interval_that_holds_the_truth():
    walk = MDPEnvironment(worlds.random_walk(5), start=2)
    agent = TDPrediction(discount=1.0).learn(walk, 10)
    found = [agent.evaluate(walk, 200, seed=seed) for seed in range(20)]
    assert np.mean([e.low <= 2 / 6 <= e.high for e in found]) >= 0.8
    assert found[0].returns.mean() == pytest.approx(found[0].mean)
    assert agent.evaluate(walk, 1).high == np.inf


def test_a_certificate_of_a_policy_that_does_not_end():
    # A step north from the start of the cliff, for ever.
    agent = QLearning(discount=1.0, learning_rate=0.5).learn(CLIFF, 3, seed=0)
    assert agent.certificate_.value == np.inf
    assert not agent.certificate_.holds


def test_bad_arguments_are_named_before_any_step():
    with pytest.raises(NotFittedError, match="has not learnt yet"):
        QLearning().act(0)
    with pytest.raises(ParameterError, match=r"n_steps=2 with trace_decay=0\.5"):
        SARSA(n_steps=2, trace_decay=0.5).learn(CLIFF, 10)
    with pytest.raises(ParameterError, match=r"discount=1\.5"):
        QLearning(discount=1.5).learn(CLIFF, 10)
    with pytest.raises(ParameterError, match="steps=0"):
        QLearning().learn(CLIFF, 0)
    with pytest.raises(ParameterTypeError, match="it has no step"):
        QLearning().learn(SimpleNamespace(reset=lambda: None), 10)
    with pytest.raises(DataError, match=r"env\.observation_space=None: expected a discrete space"):
        QLearning().learn(SimpleNamespace(reset=print, step=print), 10)
    with pytest.raises(DataError, match="expected 38 and 4, as in the first call"):
        QLearning().learn(CLIFF, 10).learn(worlds.river_swim(), 10)
    with pytest.raises(DataError, match=r"policy: got shape \(3,\)"):
        TDPrediction([0, 1, 0]).learn(CLIFF, 10)
    with pytest.raises(DataError, match="action 3 is not available in state 1"):
        TDPrediction([3, 3, 3, 3]).learn(worlds.inventory(3), 10)
    with pytest.raises(ParameterError, match="expected EpsilonGreedy"):
        MonteCarloControl(off_policy=True, exploration=UCB()).learn(CLIFF, 10)
    with pytest.raises(DataError, match="expected a number of a state"):
        QLearning().learn(CLIFF, 10).act(-1)


def test_gymnasium_s_toy_texts():
    gymnasium = pytest.importorskip("gymnasium")
    cliff = gymnasium.make("CliffWalking-v1")
    agent = QLearning(learning_rate=0.5, discount=1.0, exploration=0.1, random_state=0).learn(cliff, 20_000)
    assert agent.evaluate(cliff, 3, seed=0).mean == -13
    lake = gymnasium.make("FrozenLake-v1", is_slippery=True)
    agent = QLearning(
        learning_rate=VisitDecay(0.6), exploration=EpsilonGreedy(0.5), discount=0.99, initial_value=1.0, random_state=0
    ).learn(lake, 60_000)
    found = agent.evaluate(lake, 300, seed=0)
    assert found.mean > 0.6  # the best policy reaches the goal in 0.74 of the episodes of at most 100 steps
    assert agent.certificate_.kind == "loss of the greedy policy"
    assert agent.certificate_.value < 0.1


@pytest.mark.parametrize("slippery", [True, False])
def test_tables_of_gymnasium_are_drawn_as_it_draws_them(slippery):
    gymnasium = pytest.importorskip("gymnasium")
    from epicycle.rl.tabular._table_world import toy_text

    class Watched(gymnasium.Wrapper):
        """A wrapper that may do anything, so that it is stepped."""

    lake = gymnasium.make("FrozenLake-v1", is_slippery=slippery, max_episode_steps=12)
    for other in (Watched(lake), gymnasium.make("FrozenLake-v1", render_mode="rgb_array"), gymnasium.make("Taxi-v4")):
        assert toy_text(other) is None
    assert toy_text(lake) is not None
    assert toy_text(gymnasium.make("CliffWalking-v1").unwrapped) is not None
    one = QLearning(exploration=1.0, random_state=0).learn(lake, 200_000)
    two = QLearning(exploration=1.0, random_state=1).learn(Watched(lake), 20_000)
    for agent in (one, two):
        assert agent.history_["length"].max() <= 12
    assert_allclose(one.visits_ / one.visits_.sum(), two.visits_ / 20_000, atol=0.012)
    means = [[agent.history_[name].mean() for name in ("return", "length")] for agent in (one, two)]
    assert_allclose(means[0], means[1], atol=0.15)
    assert set(np.unique(two.history_["return"])) <= {0.0, 1.0}
    assert two.certificate_.kind == "loss of the greedy policy"


def test_plot_draws_the_returns():
    agent = QLearning(random_state=0).learn(CLIFF, 2000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = agent.plot(smooth=5)
    assert_allclose(ax.lines[0].get_xdata(), agent.history_["steps"][4:])


def test_the_loss_is_that_of_the_policy_from_the_start():
    from epicycle.control import policy_evaluation
    from epicycle.rl.tabular._table_certificate import values_from

    mdp = worlds.random_mdp(12, 2, n_successors=2, discount=0.9, random_state=7)
    policy = np.random.default_rng(0).integers(2, size=12)
    assert_allclose(values_from(mdp, policy, np.arange(12)), policy_evaluation(mdp, policy), rtol=1e-9)
    few = values_from(mdp, policy, np.array([3]))
    assert few[3] == pytest.approx(policy_evaluation(mdp, policy)[3])
    cliff = CLIFF.mdp
    west = np.full(cliff.n_states, 3)  # ends nowhere
    assert values_from(cliff, west, np.array([0])) is None
