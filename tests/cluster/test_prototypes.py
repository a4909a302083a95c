"""K-medians, k-modes, k-prototypes: brute force over all clusterings, figures of the kmodes package, tables, ties."""

import itertools
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle import KMeans, KMedians, KModes, KPrototypes
from epicycle.cluster.prototypes._rounds import Dissimilarity, Rounds, first_rows, medians
from epicycle.exceptions import ConvergenceWarning, DataError


def absolute(X):
    return np.abs(X - np.median(X, axis=0)).sum()


def mismatches(X):
    return sum(len(c) - max(np.unique(c, return_counts=True)[1]) for c in X.T)


def least(X, k, cost):
    """The least sum over all clusterings."""
    labels = (np.array(label) for label in itertools.product(range(k), repeat=len(X)))
    return min(sum(cost(X[label == a]) for a in set(label)) for label in labels)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_many_starts_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    X, C = rng.normal(size=(8, 2)), rng.integers(0, 3, (8, 3))
    assert KMedians(2, n_init=40, random_state=0).fit(X).inertia_ == pytest.approx(least(X, 2, absolute))
    assert KModes(2, init="random", n_init=40, random_state=0).fit(C).inertia_ == least(C, 2, mismatches)
    mixed = np.hstack([X, C])
    model = KPrototypes(2, categorical_features=[2, 3, 4], gamma=0.7, n_init=40, random_state=0).fit(mixed)
    both = least(mixed, 2, lambda Z: ((Z[:, :2] - Z[:, :2].mean(axis=0)) ** 2).sum() + 0.7 * mismatches(Z[:, 2:]))
    assert model.inertia_ == pytest.approx(both)


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(1, 40),
    share=st.floats(0, 1),
    ties=st.booleans(),
    scale=st.sampled_from([1e-9, 1.0, 1e6]),
    offset=st.sampled_from([0.0, 1e6]),
    start=st.integers(0, 3),
)
def test_any_table_ends_where_no_round_helps(seed, n, share, ties, scale, offset, start):
    rng = np.random.default_rng(seed)
    N = scale * (offset + (rng.integers(0, 3, (n, 2)) if ties else rng.normal(size=(n, 2))))
    C, k = rng.integers(0, 3, (n, 2)), max(1, round(share * n))
    weight = rng.uniform(0.2, 3, n)
    mixed = KPrototypes(k, categorical_features=[2, 3], init=["cao", "huang", "k-prototypes++", "random"][start])
    for model, X in (
        (KMedians(k, init=["k-medians++", "random"][start % 2]), N),
        (KModes(k, init=["cao", "huang", "random"][start % 3]), C),
        (mixed, np.hstack([N, C])),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
            model.set_params(random_state=seed).fit(X, sample_weight=weight)
        d = model.transform(X)
        assert np.isfinite(d).all()
        assert model.inertia_ == pytest.approx(weight @ d.min(axis=1), rel=1e-9)
        objective = np.asarray(model.history_["objective"])
        assert (np.diff(objective) <= 1e-9 * objective[0]).all()
        assert model.certificate_.holds
        assert_array_equal(model.predict(X), model.labels_)
        if k >= len(np.unique(X, axis=0)):
            assert model.inertia_ == pytest.approx(0, abs=1e-9 * scale**2)


@given(seed=st.integers(0, 2**20), k=st.integers(1, 4))
def test_weights_are_repetitions_and_order_plays_no_part(seed, k):
    rng = np.random.default_rng(seed)
    X, times = rng.integers(0, 4, (20, 3)).astype(float), rng.integers(0, 4, 20)
    X[:4, 0] = range(4)
    times[:4] = 1
    for model in (KMedians(k), KModes(k, init="huang"), KPrototypes(k, categorical_features=[2])):
        model.set_params(random_state=seed)
        one = model.fit(X, sample_weight=times).inertia_
        assert model.fit(np.repeat(X, times, axis=0)).inertia_ == pytest.approx(one)
        assert model.fit(X[::-1], sample_weight=times[::-1]).inertia_ == pytest.approx(one)


def test_figures_of_the_kmodes_package():
    """Computed with kmodes 0.12.2: KModes(3, init="Cao") and KPrototypes(2) from given prototypes."""
    letters = np.array(
        [list(word) for word in ["abca", "abcb", "abda", "xyca", "xyza", "xyzb", "mnop", "mnoq", "mnop", "abzz"]]
    )
    model = KModes(3, init="cao").fit(letters)
    assert model.inertia_ == 7.0
    assert sorted("".join(row) for row in model.cluster_centers_) == ["abca", "mnop", "xyza"]
    X = pd.DataFrame({"x": [1.0, 1.5, 0.7, 5.0, 5.5, 4.6, 1.2, 5.1], "y": list("aababbba"), "z": list("ccdcdddc")})
    start = pd.DataFrame({"x": [1.0, 5.0], "y": ["a", "a"], "z": ["c", "c"]})
    mixed = KPrototypes(2, init=start).fit(X)
    assert mixed.gamma_ == pytest.approx(0.9992966276336571)
    assert mixed.inertia_ == pytest.approx(8.744373021069258)
    assert_array_equal(mixed.labels_, [0, 0, 0, 1, 1, 1, 0, 1])


def test_without_categories_prototypes_are_means():
    X = np.random.default_rng(0).normal(size=(60, 3))
    ours, known = KPrototypes(4, init=X[:4]).fit(X), KMeans(4, init=X[:4], tol=0).fit(X)
    assert ours.inertia_ == pytest.approx(known.inertia_)
    assert_allclose(ours.cluster_centers_.astype(float), known.cluster_centers_, rtol=1e-9)


def test_cao_takes_dense_rows_that_are_apart():
    X = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [2, 2.0]])
    rounds = Rounds(X, np.ones(5), Dissimilarity(np.array([0, 1]), 1.0, squared=True))
    # Densities 0.5, 0.5, 0.5, 0.3, 0.2; times the distance from (0, 0): 0.5 of (0, 1), 0.6 of (1, 1), 0.4 of (2, 2);
    # then times the least distance from both: 0.5 of (0, 1), 0.4 of (2, 2).
    assert_array_equal(first_rows(rounds, "cao", 3, np.random.default_rng(0)), [[0, 0], [1, 1], [0, 1]])


def test_medians_of_weighted_rows():
    rng = np.random.default_rng(0)
    x, times, label = rng.normal(size=30), rng.integers(1, 4, 30), rng.integers(0, 3, 30)
    expected = [np.median(np.repeat(x[label == a], times[label == a])) for a in range(3)]
    assert_allclose(medians(x, times.astype(float), label, 3), expected)


def test_tables_of_every_kind_are_the_same(tmp_path):
    names = np.array([["red", "s"], ["red", "s"], ["blue", "m"], ["blue", "l"], ["blue", "m"], ["red", "l"]] * 3)
    frame = pd.DataFrame(names, columns=["colour", "size"])
    model = KModes(2, init="huang", random_state=3).fit(names.astype(object))
    codes = np.stack([np.unique(column, return_inverse=True)[1] for column in names.T], axis=1)
    for table in (names.tolist(), frame, frame.astype("category"), pl.DataFrame(frame), codes):
        other = KModes(2, init="huang", random_state=3).fit(table)
        assert_array_equal(other.labels_, model.labels_)
        assert_array_equal(other.predict(table), model.labels_)
    model.save(tmp_path / "model.epi")
    assert_array_equal(ep.load(tmp_path / "model.epi").cluster_centers_, model.cluster_centers_)
    assert_allclose(
        KMedians(2, init=codes[[0, 2]]).fit(sp.csr_array(codes.astype(float))).inertia_,
        KMedians(2, init=codes[[0, 2]]).fit(codes).inertia_,
    )


def test_what_is_missing_is_a_category():
    X = np.array([["a", "u"], ["a", "u"], [None, "v"], [None, "v"], [None, "u"]], dtype=object)
    model = KModes(2).fit(X)
    assert sorted(map(str, model.cluster_centers_[:, 0])) == ["None", "a"]
    assert_array_equal(model.labels_[2:], model.labels_[2])
    new = model.predict(np.array([["zebra", "v"]], dtype=object))  # counts as missing
    assert new[0] == model.labels_[2]


def test_bad_input():
    X = np.array([[0.0, 1.0], [1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(DataError, match="n_samples=3 should be >= n_clusters=8"):
        KMedians().fit(X)
    with pytest.raises(DataError, match=r"init: \(1, 2\); expected prototypes of shape \(2, 2\)"):
        KMedians(2, init=X[:1]).fit(X)
    with pytest.raises(DataError, match="NaN"):
        KPrototypes(2).fit(np.where(X > 3, np.nan, X))
    with pytest.raises(DataError, match="needs its rows in memory"):
        KMedians(2).fit(da.from_array(X, chunks=(2, 2)))
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found smaller than n_clusters \(3\)"):
        assert KModes(3).fit([["a"], ["a"], ["b"], ["b"]]).inertia_ == 0


def test_numbers_with_fractions_are_cut_into_bins_of_equal_weight():
    x = np.array([0.5, 1.5, 2.5, 3.5, 4.5, 5.5, np.nan])
    X = np.column_stack([x, np.arange(7.0)])
    model = ep.KModes(2, n_bins=3).fit(X)
    assert list(model.bins_) == [0]  # whole numbers stay
    assert_array_equal(model.bins_[0], [1.5, 3.5, 5.5])
    assert set(model.categories_[0].tolist()) == {1.5, 3.5, 5.5}
    other = np.column_stack([[0.1, 1.6, 99.0], [0.0, 1.0, 2.0]])  # new numbers fall into the bins of the fit
    same = np.column_stack([[1.5, 3.5, 5.5], [0.0, 1.0, 2.0]])
    assert_array_equal(model.predict(other), model.predict(same))
    frame = pd.DataFrame(X, columns=["a", "b"])
    assert_array_equal(ep.KModes(2, n_bins=3).fit(frame).labels_, model.labels_)
    weight = np.array([1, 2, 1, 3, 1, 1, 1])
    weighted, repeated = ep.KModes(2).fit(X, sample_weight=weight), ep.KModes(2).fit(np.repeat(X, weight, axis=0))
    assert_array_equal(weighted.bins_[0], repeated.bins_[0])
