"""Policies from an expert: cloned ones, ones that asked, and the drift between them."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression as PeerLogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

import epicycle as ep
from epicycle.control import LQR, CartPole, InvertedPendulum, MDPEnvironment, policy_iteration, worlds
from epicycle.exceptions import DataError, NotFittedError, ParameterError, ParameterTypeError
from epicycle.rl import BehaviorCloning, DAgger, Episodes, QLearning, record_episodes

GRID = worlds.russell_norvig_grid()
BEST = policy_iteration(GRID).q_values().argmax(axis=1)
POLE = CartPole().environment(max_steps=100)


_, A, B = CartPole().derivatives(np.zeros(4), np.zeros(1))
GAIN = LQR(A, B, np.eye(4), [[0.1]]).solve().gain


def pole_expert(x):
    """Pushes to where linear feedback would."""
    return int((-GAIN @ x)[0] > 0)


class Ledge:
    """A path of 40 places: who is blown off it (one step in thirty) has to climb back, or else pays 1 a step.

    Even states are on the path, where action 0 goes on; odd ones are beside it, where action 1 climbs back.
    """

    observation_space, action_space = SimpleNamespace(n=82), SimpleNamespace(n=2)

    def reset(self, *, seed=None, options=None):
        self.rng, self.place, self.off = np.random.default_rng(seed), 0, False
        return 0, {}

    def step(self, action):
        cost = float(self.off)
        self.off = (action == 0) if self.off else (action == 1 or self.rng.random() < 1 / 30)
        self.place += 1
        return 2 * self.place + self.off, -cost, False, self.place == 40, {}


def ledge_expert(state):
    return int(state % 2)


class Cart:
    """A cart that is to stand at zero: x' = x + 0.5 u, reward -x^2 for ten steps."""

    action_space = SimpleNamespace(shape=(1,))

    def reset(self, *, seed=None, options=None):
        self.x, self.steps = np.random.default_rng(seed).uniform(-1, 1), 0
        return np.array([self.x]), {}

    def step(self, action):
        self.x += 0.5 * float(np.ravel(action)[0])
        self.steps += 1
        return np.array([self.x]), -(self.x**2), False, self.steps == 10, {}


# ---------------------------------------------------------------------------------------------- cloning


def test_the_clone_is_the_classifier_that_was_given():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    a = (X[:, 0] + 0.3 * rng.normal(size=300) > 0).astype(int) + (X[:, 1] > 1)
    weight = rng.uniform(0.5, 2, size=300)
    policy = BehaviorCloning(PeerLogisticRegression(C=1.0)).fit(X, a, sample_weight=weight)
    peer = PeerLogisticRegression(C=1.0).fit(X, a, sample_weight=weight)
    assert [policy.act(x) for x in X[:50]] == peer.predict(X[:50]).tolist()
    ours = BehaviorCloning(ep.LogisticRegression(C=1.0)).fit(X, a, sample_weight=weight)
    assert [ours.act(x) for x in X[:50]] == peer.predict(X[:50]).tolist()
    drawn = [policy.act(X[7], deterministic=False) for _ in range(2000)]
    assert_allclose(np.bincount(drawn, minlength=3) / 2000, peer.predict_proba(X[7:8])[0], atol=0.04)


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(), ep.LogisticRegression(C=1e3)], ids=str)
def test_a_grid_is_walked_as_the_expert_walks_it(estimator):
    env = MDPEnvironment(GRID, max_steps=200)
    seen = record_episodes(BEST, env, 60, seed=0)
    policy = BehaviorCloning(estimator, random_state=0).fit(seen)
    visited = np.unique(seen.observations)
    assert_array_equal([policy.act(s) for s in visited], BEST[visited])
    expert = BehaviorCloning(DecisionTreeClassifier()).fit(np.arange(11), BEST)
    assert policy.evaluate(env, 50, seed=1).mean == expert.evaluate(env, 50, seed=1).mean
    assert policy.history_["error"][-1] == 0
    assert policy.history_["held_out_error"][-1] <= 0.05


def test_continuous_actions_are_regressed():
    X = np.random.default_rng(0).uniform(-1, 1, size=(50, 1))
    policy = BehaviorCloning(ep.LinearRegression()).fit(X, -2 * X)
    assert policy.act(np.array([0.3])) == pytest.approx(-0.6, abs=1e-9)
    assert policy.evaluate(Cart(), 20, seed=0).mean == pytest.approx(0, abs=1e-12)
    two = BehaviorCloning(KNeighborsRegressor(1), held_out=0).fit(X, np.hstack([X, X**2]))
    assert_allclose(two.act(X[3]), [X[3, 0], X[3, 0] ** 2])
    assert len(two.estimators_) == 2
    assert np.isnan(two.history_["held_out_error"][0])


def test_error_that_was_held_out_is_honest():
    # Actions by a coin: what was learnt from is known by heart, what was held out is not.
    rng = np.random.default_rng(0)
    X, a = rng.normal(size=(2000, 2)), rng.integers(2, size=2000)
    policy = BehaviorCloning(DecisionTreeClassifier(), held_out=0.5, random_state=0).fit(X, a)
    assert policy.history_["error"][0] == 0
    assert policy.history_["held_out_error"][0] == pytest.approx(0.5, abs=0.06)
    assert "no proof of optimality; share of other actions than the expert's" in policy.certificate_.meaning


def test_an_expert_who_always_does_the_same():
    policy = BehaviorCloning(ep.LogisticRegression()).fit(np.zeros((5, 2)), np.full(5, 3))
    assert policy.act(np.ones(2)) == policy.act(np.ones(2), deterministic=False) == 3


def test_agents_can_be_cloned():
    cliff = MDPEnvironment(worlds.cliff_walk(), start=(3, 0), max_steps=500)
    agent = QLearning(learning_rate=0.5, discount=1.0, random_state=0).learn(cliff, 50_000)
    seen = record_episodes(agent, cliff, 3, seed=0, deterministic=True)
    assert (seen.probabilities == 1).all()
    assert BehaviorCloning().fit(seen).evaluate(cliff, 3, seed=0).mean == -13
    while_learning = record_episodes(agent, cliff, 50, seed=0)
    best = while_learning.probabilities > 0.5
    assert_allclose(while_learning.probabilities[best], 0.925)
    assert set(np.round(while_learning.probabilities[~best], 9)) <= {0.025, 0.475}  # two actions may be equally good


# ---------------------------------------------------------------------------------------------- asking


def test_asking_loses_less_than_cloning_where_errors_lead_astray():
    # The same number of answers of the expert; the expert never stays beside the path, and so never shows enough of it.
    lost = {"clone": [], "asked": []}
    for seed in range(4):
        agent = DAgger(ledge_expert, DecisionTreeClassifier(), batch_size=80, expert_share=0.0, random_state=seed)
        agent.learn(Ledge(), 1200)
        seen = record_episodes(SimpleNamespace(act=lambda s, d: ledge_expert(s)), Ledge(), 30, seed=seed)
        clone = BehaviorCloning(DecisionTreeClassifier(), random_state=seed).fit(seen)
        assert len(seen) == 1200 == len(agent._asked["actions"])
        lost["clone"].append(-clone.evaluate(Ledge(), 200, seed=1).mean)
        lost["asked"].append(-agent.evaluate(Ledge(), 200, seed=1).mean)
    expert = (
        -BehaviorCloning(DecisionTreeClassifier())
        .fit(np.arange(82), np.arange(82) % 2)
        .evaluate(Ledge(), 200, seed=1)
        .mean
    )
    clone, asked = (np.mean(lost[name]) - expert for name in ("clone", "asked"))
    assert clone > 0.2
    assert asked < 0.3 * clone


def test_the_disagreement_falls_and_the_pole_stands():
    agent = DAgger(pole_expert, ep.LogisticRegression(C=1e3), batch_size=100, random_state=0).learn(POLE, 800)
    assert agent.evaluate(POLE, 3, seed=1).mean == 100
    assert agent.n_rounds_ == 8
    apart = agent.history_["disagreement"]
    assert np.nanmean(apart[-3:]) < 0.1
    shares = agent.history_["exploration"]
    assert shares[0] == 1
    assert np.all(np.diff(shares) <= 0)


def test_same_bits_from_a_file_and_after_a_kill(tmp_path, monkeypatch):
    def new():
        return DAgger(pole_expert, ep.LogisticRegression(), batch_size=50, random_state=2)

    whole = new().learn(POLE, 300)
    one, write = new(), DAgger._write

    def killed(self, path):
        write(self, path)
        raise SystemError("killed")

    monkeypatch.setattr(DAgger, "_write", killed)
    with pytest.raises(SystemError):
        one.learn(POLE, 300, checkpoint=tmp_path / "run.epi", checkpoint_every=150)
    back = ep.load(tmp_path / "run.epi")
    assert back.expert is None
    with pytest.raises(ParameterTypeError, match="expected a function of a state, or an agent"):
        back.resume(POLE)
    back.expert = pole_expert
    back.resume(POLE)
    assert_array_equal(back._asked["states"], whole._asked["states"])
    assert back.history_ == whole.history_
    x = np.array([0.1, 0.0, -0.05, 0.2])
    assert back.act(x) == whole.act(x)


def test_an_environment_that_fails_loses_no_answer():
    class Broken(Cart):
        def step(self, action):
            self.total = getattr(self, "total", 0) + 1
            if self.total == 33:
                raise RuntimeError("the wheel came off")
            return super().step(action)

    agent, env = DAgger(lambda x: -2 * x, ep.LinearRegression(), batch_size=20, random_state=0), Broken()
    with pytest.raises(DataError, match="step raised RuntimeError: the wheel came off"):
        agent.learn(env, 60)
    assert len(agent._asked["actions"]) == agent._progress["made"] == 32
    agent.resume(env)
    assert len(agent._asked["actions"]) == agent._progress["made"] == 60
    assert agent.act(np.array([0.5])) == pytest.approx(-1, abs=1e-9)


@pytest.mark.parametrize("estimator", [ep.LogisticRegression(), ep.DecisionTreeClassifier(random_state=0)], ids=str)
def test_clones_come_back_from_files(estimator, tmp_path):
    seen = record_episodes(BEST, MDPEnvironment(GRID), 20, seed=0)
    policy = BehaviorCloning(estimator, random_state=1).fit(seen)
    policy.save(tmp_path / "p.epi")
    back = ep.load(tmp_path / "p.epi")
    assert [back.act(s) for s in range(11)] == [policy.act(s) for s in range(11)]
    assert [back.act(0, False) for _ in range(9)] == [policy.act(0, False) for _ in range(9)]
    assert back.history_ == policy.history_
    assert back.certificate_.meaning == policy.certificate_.meaning


def test_long_episodes_are_seen_to_their_end():
    # The 40th place is beyond the 15 steps of a round; a round ends with its episode.
    agent = DAgger(ledge_expert, DecisionTreeClassifier(), batch_size=15, random_state=0).learn(Ledge(), 400)
    assert agent.n_rounds_ == 10
    assert agent._asked["states"].max() >= 78
    assert_array_equal(agent.history_["length"], 40)
    short = DAgger(ledge_expert, DecisionTreeClassifier(), batch_size=15, episode_limit=7, random_state=0)
    short.learn(Ledge(), 60)
    assert_array_equal(short.history_["length"], 7)
    assert short._asked["states"].max() <= 13


def test_a_weight_of_zero_is_a_step_that_is_not_there():
    rng = np.random.default_rng(0)
    X, a = rng.normal(size=(80, 2)), rng.integers(3, size=80)
    weight = (a < 2).astype(float)
    one = BehaviorCloning(DecisionTreeClassifier(), random_state=0).fit(X, a, sample_weight=weight)
    two = BehaviorCloning(DecisionTreeClassifier(), random_state=0).fit(X[a < 2], a[a < 2])
    assert one.history_ == two.history_
    assert [one.act(x) for x in X] == [two.act(x) for x in X]


def test_features_of_the_user():
    policy = BehaviorCloning(DecisionTreeClassifier(), features=lambda s: [s % 2]).fit(np.arange(10), np.arange(10) % 2)
    assert policy.act(101) == 1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 4))
def test_what_was_shown_is_done(seed, n_states, n_actions):
    rng = np.random.default_rng(seed)
    expert, x = rng.integers(n_actions, size=n_states), rng.integers(n_states, size=60)
    policy = BehaviorCloning(DecisionTreeClassifier(), held_out=0, random_state=0).fit(x, expert[x])
    assert [policy.act(s) for s in np.unique(x)] == expert[np.unique(x)].tolist()
    assert policy.history_["error"][0] == 0


def test_states_that_were_never_seen_share_one_action():
    policy = BehaviorCloning(DecisionTreeClassifier(random_state=0)).fit(np.arange(10), np.arange(10) % 2)
    assert policy.act(10) == policy.act(10_000) == policy.act(-1) == policy.act(-7)


def test_bad_input_is_named():
    X, a = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    with pytest.raises(NotFittedError, match=r"call fit\(episodes\)"):
        BehaviorCloning().act(0)
    with pytest.raises(ParameterError, match="held_out=1"):
        BehaviorCloning(held_out=1.0).fit(X, a)
    with pytest.raises(DataError, match="actions: expected the expert's actions"):
        BehaviorCloning().fit(X)
    with pytest.raises(DataError, match=r"actions: got shape \(3,\); expected finite numbers, one row for each of 4"):
        BehaviorCloning().fit(X, a[:3])
    with pytest.raises(DataError, match="expected numbers of actions"):
        BehaviorCloning(ep.LogisticRegression()).fit(X, X)
    with pytest.raises(DataError, match="for the regressor LinearRegression; expected floats, or a classifier"):
        BehaviorCloning(ep.LinearRegression()).fit(X, a)
    with pytest.raises(DataError, match="observation: gives 3 features; expected 2"):
        BehaviorCloning().fit(X, a).act(np.zeros(3))
    with pytest.raises(DataError, match="features: expected finite numbers, as many for every state"):
        BehaviorCloning(features=lambda x: np.ones(int(x))).fit(np.arange(1, 4), a[:3])
    with pytest.raises(ParameterTypeError, match="expected an object with fit and predict"):
        BehaviorCloning("forest").fit(X, a)
    with pytest.raises(DataError, match="sample_weight: expected 4 finite numbers"):
        BehaviorCloning().fit(X, a, sample_weight=[1, 1])
    with pytest.raises(DataError, match="actions: given together with episodes"):
        BehaviorCloning().fit(Episodes([0, 1], [0, 0], [0.0, 0.0], [1, 2], [False, True]), a)
    with pytest.raises(ParameterTypeError, match="expert='me'"):
        DAgger("me").learn(Cart(), 10)
    with pytest.raises(DataError, match="expert: returned 'left'"):
        DAgger(lambda x: "left").learn(Cart(), 10)
    with pytest.raises(DataError, match=r"expert: returned 0\.5; expected the number of an action"):
        DAgger(lambda x: 0.5).learn(POLE, 10)
    with pytest.raises(ParameterError, match="batch_size=0"):
        DAgger(pole_expert, batch_size=0).learn(POLE, 10)


def test_recorded_episodes_by_hand():
    steps = Episodes([0, 1, 0], [1, 1, 0], [1.0, 2.0, 4.0], [1, 2, 2], [False, True, False])
    assert steps.truncated.tolist() == [False, False, True]
    assert steps.starts.tolist() == [0, 2, 3]
    assert steps.lengths.tolist() == [2, 1]
    assert steps.times.tolist() == [0, 1, 0]
    assert steps.returns(0.5).tolist() == [2.0, 4.0]
    with pytest.raises(DataError, match=r"observations: got shape \(2,\); expected finite numbers in 3 rows"):
        Episodes([0, 1], [1, 1, 0], [1.0, 2.0, 4.0], [1, 2, 2], [False, True, False])
    with pytest.raises(DataError, match=r"rewards: got shape"):
        Episodes([0], [1], [np.nan], [1], [True])
    with pytest.raises(DataError, match="probabilities: expected 1 numbers above 0"):
        Episodes([0], [1], [1.0], [1], [True], probabilities=[0.0])
    with pytest.raises(DataError, match=r"terminated: got shape \(2,\); expected \(1,\)"):
        Episodes([0], [1], [1.0], [1], [True, False])
    with pytest.raises(DataError, match="next_observations: got shape"):
        Episodes([0], [1], [1.0], [[1]], [True])
    with pytest.raises(DataError, match="policy: got shape"):
        record_episodes(np.ones((3, 2)), GRID)
    with pytest.raises(DataError, match="an array, but states or actions are not numbered"):
        record_episodes(BEST, InvertedPendulum().environment())
    rows = record_episodes(np.zeros(6, dtype=int), MDPEnvironment(worlds.river_swim(), start=0), 2, seed=0, max_steps=7)
    assert rows.lengths.tolist() == [7, 7]
    assert rows.truncated.sum() == 2
