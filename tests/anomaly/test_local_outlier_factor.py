"""Local outlier factors: the definition by brute force, scikit-learn's values, metrics, novelty."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.neighbors import LocalOutlierFactor as Peer

import epicycle as ep
from epicycle import LocalOutlierFactor
from epicycle.exceptions import NotFittedError, ParameterError

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(150, 3)), 0.1 * RNG.normal(size=(50, 3)) + 4])


def by_definition(D, k):
    """Breunig et al. (2000) from a matrix of distances, row by row."""
    n = len(D)
    D = D + np.diag(np.full(n, np.inf))
    near = np.argsort(D, axis=1, kind="stable")[:, :k]
    kth = np.sort(D, axis=1)[:, k - 1]
    density = np.array([1 / np.mean([max(D[i, o], kth[o]) for o in near[i]]) for i in range(n)])
    return np.array([np.mean([density[o] / density[i] for o in near[i]]) for i in range(n)])


@pytest.mark.parametrize(
    ("metric", "name"), [("euclidean", "euclidean"), ("manhattan", "cityblock"), ("chebyshev", "chebyshev")]
)
def test_factors_are_those_of_the_definition(metric, name):
    D = cdist(X, X, name)
    model = LocalOutlierFactor(n_neighbors=7, metric=metric).fit(X)
    assert_allclose(-model.negative_outlier_factor_, by_definition(D, 7), rtol=1e-6)
    given_distances = LocalOutlierFactor(n_neighbors=7, metric="precomputed").fit(D)
    assert_allclose(given_distances.negative_outlier_factor_, model.negative_outlier_factor_, rtol=1e-6)


@pytest.mark.parametrize("metric", ["minkowski", "chebyshev", "canberra", "correlation"])
def test_new_rows_as_in_scikit_learn(metric):
    options = {"n_neighbors": 9, "metric": metric, "novelty": True, "contamination": 0.1, "p": 3}
    ours, peer = LocalOutlierFactor(**options).fit(X[::2]), Peer(**options).fit(X[::2])
    assert_allclose(ours.score_samples(X[1::2]), peer.score_samples(X[1::2]), rtol=1e-9)
    assert_allclose(ours.offset_, peer.offset_, rtol=1e-9)
    assert_array_equal(ours.predict(X[1::2]), peer.predict(X[1::2]))
    assert_array_equal(ours.predict(X[1::2]) == -1, ours.decision_function(X[1::2]) < 0)


@given(seed=st.integers(0, 99), scale=st.sampled_from([1e-3, 1.0, 1e140]))
@settings(deadline=None, max_examples=20)
def test_scale_and_order_do_not_matter(seed, scale):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(40, 2))
    base = LocalOutlierFactor(n_neighbors=5).fit(table).negative_outlier_factor_
    order = rng.permutation(40)
    moved = LocalOutlierFactor(n_neighbors=5).fit(scale * table[order]).negative_outlier_factor_
    assert_allclose(moved, base[order], rtol=1e-5)


def test_threads_sparse_float32_and_files(tmp_path):
    models = [LocalOutlierFactor(n_jobs=k, novelty=True).fit(X) for k in (1, 2, 4)]
    for model in models[1:]:
        assert_array_equal(model.negative_outlier_factor_, models[0].negative_outlier_factor_)
    sparse = LocalOutlierFactor(novelty=True).fit(sp.csr_array(X))
    assert_allclose(sparse.negative_outlier_factor_, models[0].negative_outlier_factor_, rtol=1e-9)
    single = LocalOutlierFactor(novelty=True).fit(X.astype(np.float32))
    assert single.score_samples(X[:3].astype(np.float32)).dtype == np.float32
    models[0].save(tmp_path / "lof.epi")
    assert_array_equal(ep.load(tmp_path / "lof.epi").score_samples(X[:9] + 0.1), models[0].score_samples(X[:9] + 0.1))


def test_duplicates_are_told_and_methods_belong_to_their_mode():
    table = np.concatenate([np.zeros((30, 2)), np.arange(20.0).reshape(10, 2)])
    with pytest.warns(UserWarning, match="Duplicate values"):
        assert np.isfinite(LocalOutlierFactor(n_neighbors=3).fit(table).negative_outlier_factor_).all()
    assert not hasattr(LocalOutlierFactor(), "predict")
    assert not hasattr(LocalOutlierFactor(novelty=True), "fit_predict")


@pytest.mark.parametrize("p", [1, 2, 3])
def test_explanations_add_up_and_name_the_column(p):
    model = LocalOutlierFactor(n_neighbors=9, novelty=True, p=p).fit(X)
    rows = np.concatenate([X[:20], np.add(X[:1], [0.0, 9.0, 0.0])])
    parts = model.explain(rows)
    assert_allclose(parts.sum(axis=1), -model.score_samples(rows), rtol=1e-9)
    assert parts[-1].argmax() == 1
    assert parts[-1, 1] > 0.5 * parts[-1].sum()
    near = X[model.kneighbors(rows[-1:], 9, return_distance=False)[0]]
    d = (np.abs(rows[-1] - near) ** p).sum(axis=1) ** (1 / p)
    shares = (np.abs(rows[-1] - near) ** p / d[:, None] ** (p - 1)).sum(axis=0) / d.sum()
    assert_allclose(parts[-1], -model.score_samples(rows[-1:]) * shares, rtol=1e-9)
    sparse = LocalOutlierFactor(n_neighbors=9, novelty=True, p=p).fit(sp.csr_array(X))
    assert_allclose(sparse.explain(sp.csr_array(rows)), parts, rtol=1e-6)
    same = LocalOutlierFactor(n_neighbors=2, novelty=True).fit(np.zeros((5, 2))).explain([[0.0, 0.0]])
    assert same[0, 0] == same[0, 1]
    with pytest.raises(ParameterError, match="metric='canberra'"):
        LocalOutlierFactor(novelty=True, metric="canberra").fit(X).explain(rows)


def test_thresholds_by_labels_and_p_values():
    rng = np.random.default_rng(1)
    rows, odd = np.concatenate([rng.normal(size=(400, 3)), 7 + rng.normal(size=(20, 3))]), np.arange(420) >= 400
    model = LocalOutlierFactor(novelty=True).fit(rng.normal(size=(400, 3))).calibrate(rows, odd)
    assert model.f1_ > 0.95
    assert_array_equal(model.predict(rows) == -1, model.score_samples(rows) < model.offset_)
    fresh = model.p_values(rng.normal(size=(2000, 3)))
    assert np.mean(fresh <= 0.1) < 0.13
    assert_array_equal(model.detect(rows[390:], fdr=0.2)[10:], -1)
    with pytest.raises(NotFittedError, match="calibrate"):
        LocalOutlierFactor(novelty=True).fit(rows).p_values(rows)
    assert not any(hasattr(LocalOutlierFactor(), name) for name in ("calibrate", "p_values", "detect", "explain"))
