"""Rows drawn by gradient: the right share, sums that are right on average, and models that lose little."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import GradientBoostingClassifier, GradientBoostingRegressor
from epicycle.tree.boosting._row_sampling import bucket_counts, draw, row_sizes, threshold


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 400), share=st.floats(0.01, 0.99), kind=st.integers(0, 3))
def test_the_threshold_gives_the_share(seed, n, share, kind):
    rng = np.random.default_rng(seed)
    sizes = {0: rng.exponential(size=n), 1: np.ones(n), 2: np.exp(9 * rng.normal(size=n)), 3: np.zeros(n)}[kind]
    sizes = sizes.astype(np.float32)
    sizes[rng.random(n) < 0.2] = 0.0
    mu = threshold(bucket_counts(sizes), share)
    expected = np.where(sizes >= mu, 1.0, sizes.astype(float) / max(mu, 1e-30))[sizes > 0].sum()
    assert abs(expected - min(share * n, np.count_nonzero(sizes))) <= 0.01 * n * share + 1e-6


def test_sums_are_right_on_average():
    rng = np.random.default_rng(0)
    gh = np.abs(rng.standard_t(3, size=(2, 500, 2))).astype(np.float32)
    gh[:, :, 0] *= rng.choice([-1, 1], (2, 500))
    sizes = row_sizes(gh, np.array([1.0, 4.0]))
    mu = threshold(bucket_counts(sizes), 0.3)
    found, counts = [], []
    for number in range(2000):
        drawn = draw(7, number, 0.3, 0, 500, sizes=sizes, mu=mu)
        found.append((gh[:, drawn.rows].astype(float) * drawn.factor[:, None]).sum(axis=1).ravel())
        counts.append(len(drawn.rows))
    found = np.array(found)
    errors = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - gh.sum(axis=1, dtype=float).ravel()) < 4 * errors).all()
    assert abs(np.mean(counts) - 150) < 3
    uniform = [gh[:, draw(8, i, 0.3, 0, 500).rows].sum(axis=1).ravel() / 0.3 for i in range(500)]
    assert (found.std(axis=0) < np.std(uniform, axis=0)).all()


def test_parts_draw_what_the_whole_draws():
    sizes = np.random.default_rng(0).exponential(size=1000).astype(np.float32)
    whole = draw(1, 2, 0.4, 0, 1000, sizes=sizes, mu=2.0)
    parts = [draw(1, 2, 0.4, a, b, sizes=sizes[a:b], mu=2.0) for a, b in ((0, 301), (301, 302), (302, 1000))]
    rows = np.concatenate([part.rows + start for part, start in zip(parts, (0, 301, 302), strict=True)])
    assert_array_equal(rows, whole.rows)
    assert_array_equal(np.concatenate([part.factor for part in parts]), whole.factor)


def make(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    score = 3 * np.sin(2 * X[:, 0]) + 2 * X[:, 1] * (X[:, 2] > 0) + X[:, 3]
    return X, score, rng


def test_quality_with_few_rows():
    X, score, rng = make(12_000)
    y = (score + rng.logistic(size=len(score)) / 3 > 0).astype(int)
    train, test = slice(0, 6000), slice(6000, None)
    loss = {}
    for name, options in {
        "all": {},
        "gradient": {"subsample": 0.2, "sampling": "gradient"},
        "uniform": {"subsample": 0.2},
    }.items():
        model = GradientBoostingClassifier(n_estimators=100, random_state=0, **options).fit(X[train], y[train])
        p = model.predict_proba(X[test])[np.arange(6000), y[test]]
        loss[name] = -np.log(p).mean()
    assert loss["gradient"] < loss["uniform"]
    assert loss["gradient"] < 1.1 * loss["all"]


CASES = {
    "squares": (GradientBoostingRegressor, {}),
    "quantile": (GradientBoostingRegressor, {"loss": "quantile", "quantile": 0.7}),
    "first order": (GradientBoostingRegressor, {"loss": "huber", "order": 1}),
    "three classes": (GradientBoostingClassifier, {}),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_memory_threads_and_dask_agree(case, weighted):
    cls, options = CASES[case]
    X, score, rng = make(900)
    y = score + rng.normal(size=len(score)) if cls is GradientBoostingRegressor else np.digitize(score, [-1, 1])
    weight = rng.integers(0, 4, len(y)).astype(float) if weighted else None
    options = {"n_estimators": 5, "subsample": 0.3, "sampling": "gradient", "random_state": 3, **options}
    model = cls(**options, n_jobs=1).fit(X, y, weight)
    assert (model.history_.objective[-1] < model.history_.objective[0]) or case == "quantile"
    threaded = cls(**options, n_jobs=3).fit(X, y, weight)
    lazy = [None if a is None else da.from_array(a, chunks=(250, -1)[: a.ndim]) for a in (X, y, weight)]
    on_dask = cls(**options).fit(*lazy)
    for other in (threaded, on_dask):
        for name in ("nodes", "roots", "count"):
            assert_array_equal(other.trees_[name], model.trees_[name])
        assert_allclose(other.trees_["values"], model.trees_["values"], rtol=1e-12)
