"""Isolation forests: path lengths by hand, scikit-learn's scores, weights, threads, explanations, warm starts."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import IsolationForest as Peer
from sklearn.metrics import roc_auc_score

import epicycle as ep
from epicycle import IsolationForest
from epicycle.anomaly._isolation_trees import average_path_length
from epicycle.exceptions import DataError, ParameterError
from epicycle.tree._nodes import split_features, thresholds

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(590, 3)), RNG.uniform(-6, 6, size=(10, 3))])
OUTLIER = np.arange(600) >= 590


@pytest.fixture(scope="module")
def forest():
    return IsolationForest(random_state=0).fit(X)


def walk(tree, x):
    """Path length of one row: the depth of its leaf and c(n) of the rows there, in plain Python."""
    at, depth = 0, 0
    while tree.children_left[at] >= 0:
        at = (tree.children_left if x[tree.feature[at]] <= tree.threshold[at] else tree.children_right)[at]
        depth += 1
    n = tree.n_node_samples[at]
    harmonic = sum(1 / i for i in range(1, n))
    exact = 2 * harmonic - 2 * (n - 1) / n if n > 1 else 0.0
    return depth + exact


def test_scores_are_those_of_the_paper(forest):
    rows = X[::37]
    lengths = np.array([[walk(tree.tree_, x) for tree in forest.estimators_] for x in rows])
    harmonic = sum(1 / i for i in range(1, 256))
    mean = 2 * harmonic - 2 * 255 / 256
    # log(n - 1) + gamma stands for the harmonic number, which it meets to 1 / 2n
    assert_allclose(forest.score_samples(rows), -(2 ** -(lengths.mean(axis=1) / mean)), atol=5e-3)
    assert average_path_length(1) == 0
    assert average_path_length(2) == 1


def test_every_split_isolates_and_no_path_is_longer_than_the_limit(forest):
    for t, tree in enumerate(forest.estimators_[:5]):
        sample = X[forest.estimators_samples_[t]]
        assert len(np.unique(forest.estimators_samples_[t])) == 256
        assert tree.tree_.max_depth <= 8
        leaves, counts = np.unique(tree.apply(sample), return_counts=True)
        assert_array_equal(tree.tree_.n_node_samples[leaves], counts)
        assert counts.sum() == 256


def test_the_splits_are_uniform():
    """One column of three values: the threshold falls below the second with the chance of its gap."""
    table = np.array([[0.0], [1.0], [4.0]])
    model = IsolationForest(n_estimators=1500, random_state=1).fit(table)
    first = thresholds(model.trees_["nodes"][model.trees_["roots"][:-1]])
    assert abs((first < 1).mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 1500)
    assert abs(first.mean() - 2.0) < 4 * 4 / np.sqrt(12 * 1500)
    # columns that differ are drawn alike, a constant one never
    wide = np.column_stack([np.arange(9.0), np.zeros(9), np.arange(9.0) ** 2])
    model = IsolationForest(n_estimators=1000, random_state=1).fit(wide)
    roots = split_features(model.trees_["nodes"][model.trees_["roots"][:-1]])
    assert not (roots == 1).any()
    assert abs((roots == 0).mean() - 0.5) < 4 * 0.5 / np.sqrt(1000)


def test_scores_agree_with_scikit_learn_over_many_trees():
    ours = IsolationForest(n_estimators=200, random_state=0).fit(X).score_samples(X)
    peer = Peer(n_estimators=200, random_state=0).fit(X).score_samples(X)
    again = Peer(n_estimators=200, random_state=1).fit(X).score_samples(X)
    assert np.abs(ours - peer).mean() < 1.5 * np.abs(again - peer).mean() + 1e-3
    assert abs(roc_auc_score(OUTLIER, -ours) - roc_auc_score(OUTLIER, -peer)) < 5e-3


def test_contamination_is_the_share_below_the_threshold():
    model = IsolationForest(contamination=0.05, random_state=0).fit(X)
    assert (model.predict(X) == -1).sum() == 30
    assert_allclose(model.decision_function(X), model.score_samples(X) - model.offset_)
    weight = RNG.integers(0, 4, 600)
    weighted = IsolationForest(contamination=0.05, random_state=0).fit(X, sample_weight=weight)
    repeated = IsolationForest(contamination=0.05, random_state=0).fit(np.repeat(X, weight, axis=0))
    assert_allclose(weighted.offset_, repeated.offset_, rtol=1e-12)
    assert_array_equal(weighted.score_samples(X), repeated.score_samples(X))


@pytest.mark.parametrize("options", [{}, {"bootstrap": True}, {"max_samples": 40, "max_features": 0.7}])
def test_the_same_bits_for_any_number_of_threads_order_and_type(options):
    models = [IsolationForest(random_state=3, n_jobs=k, **options).fit(X) for k in (1, 2, 4)]
    scores = models[0].set_params(n_jobs=1).score_samples(X)
    for model in models[1:]:
        assert_array_equal(model.score_samples(X), scores)
    order = RNG.permutation(600)
    for rows in (X[order], np.asfortranarray(X), sp.csr_array(X)):
        assert_array_equal(IsolationForest(random_state=3, **options).fit(rows).score_samples(X), scores)
    frame = pd.DataFrame(X)
    assert_array_equal(IsolationForest(random_state=3, **options).fit(frame).score_samples(frame), scores)
    assert_array_equal(models[0].score_samples(sp.csr_array(X)), scores)


def test_warm_start_adds_the_trees_of_a_larger_forest():
    model = IsolationForest(n_estimators=10, warm_start=True, random_state=0).fit(X)
    model.set_params(n_estimators=30).fit(X)
    assert_array_equal(model.score_samples(X), IsolationForest(n_estimators=30, random_state=0).fit(X).score_samples(X))
    assert model.history_.n_iter == 30
    with pytest.raises(ParameterError, match="n_estimators=5"):
        model.set_params(n_estimators=5).fit(X)
    with pytest.raises(DataError, match="3"):
        model.set_params(n_estimators=40).fit(X[:, :2])


def test_explanations_add_up_and_name_the_column(forest):
    found = forest.explain(X)
    lengths = -np.log2(-forest.score_samples(X))
    expected = np.mean(
        [
            tree.tree_.n_node_samples[tree.tree_.is_leaf] @ tree.tree_.values[tree.tree_.is_leaf, 0] / 256
            for tree in forest.estimators_
        ]
    ) / float(average_path_length(256))
    assert_allclose(found.sum(axis=1), expected - lengths, atol=1e-9)
    odd = np.tile(np.zeros(3), (3, 1)) + 9 * np.eye(3)
    assert_array_equal(forest.explain(odd).argmax(axis=1), [0, 1, 2])
    assert_allclose(forest.explain(sp.csr_array(odd)), forest.explain(odd))


def test_missing_and_infinite_values_are_split_off():
    table = np.concatenate([X, X])
    table[::7, 1] = np.nan
    table[3, 0] = np.inf
    model = IsolationForest(random_state=0).fit(table)
    assert np.isfinite(model.score_samples(table)).all()
    assert model.score_samples(table)[3] < np.quantile(model.score_samples(table), 0.2)
    assert np.isfinite(IsolationForest(random_state=0).fit(X).score_samples(np.full((1, 3), np.nan))).all()


@given(
    n=st.integers(1, 30),
    p=st.integers(1, 4),
    scale=st.sampled_from([1e-300, 1.0, 1e150, 1e307]),
    seed=st.integers(0, 9),
)
@settings(deadline=None)
def test_any_table_gives_scores_between_minus_one_and_zero(n, p, scale, seed):
    rng = np.random.default_rng(seed)
    table = scale * rng.integers(-2, 3, (n, p))
    model = IsolationForest(n_estimators=5, random_state=seed).fit(table)
    scores = model.score_samples(table)
    assert ((scores > -1) & (scores < 0)).all()


def test_files_and_errors(forest, tmp_path):
    forest.save(tmp_path / "forest.epi")
    again = ep.load(tmp_path / "forest.epi")
    assert_array_equal(again.score_samples(X), forest.score_samples(X))
    with pytest.raises(AttributeError, match="estimators_samples_"):
        _ = again.estimators_samples_
    with pytest.raises(ParameterError, match="max_features=9"):
        IsolationForest(max_features=9).fit(X)
    with pytest.raises(DataError, match="sample_weight"):
        IsolationForest().fit(X, sample_weight=np.zeros(600))
    with pytest.warns(UserWarning, match="max_samples"):
        assert IsolationForest(max_samples=1000).fit(X).max_samples_ == 600
    share = IsolationForest(max_samples=0.5, random_state=0).fit(X, sample_weight=RNG.uniform(0.5, 2, 600))
    assert share.max_samples_ == 300
