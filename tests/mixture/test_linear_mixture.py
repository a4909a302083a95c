"""Mixtures of binary rows and counts: SciPy's densities, EM by hand, planted mixtures, engines, odd rows, errors."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import softmax

import epicycle as ep
from epicycle import BernoulliMixture, MultinomialMixture, PoissonMixture
from epicycle.exceptions import DataError, ParameterError

CLASSES = [BernoulliMixture, MultinomialMixture, PoissonMixture]
#: Log density of a row under one component, by SciPy.
DENSITIES = {
    BernoulliMixture: lambda x, v: stats.bernoulli.logpmf(x, v).sum(),
    MultinomialMixture: lambda x, v: stats.multinomial.logpmf(x, int(x.sum()), v / v.sum()),
    PoissonMixture: lambda x, v: stats.poisson.logpmf(x, v).sum(),
}


def values_of(model):
    return model.rates_ if isinstance(model, PoissonMixture) else model.probabilities_


def planted(cls, n=400, seed=0):
    """(rows, components, table) of a mixture of three components with five features, twelve where they are binary."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(5), 3) * (20 if cls is PoissonMixture else 1)
    if cls is BernoulliMixture:
        table = rng.choice([0.1, 0.5, 0.9], (3, 12))
    label = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    if cls is BernoulliMixture:
        X = (rng.random((n, 12)) < table[label]).astype(float)
    elif cls is PoissonMixture:
        X = rng.poisson(table[label]).astype(float)
    else:
        X = np.array([rng.multinomial(25, table[a]) for a in label]).astype(float)
    return X, label, table


@pytest.mark.parametrize("cls", CLASSES)
def test_densities_are_scipys_and_an_em_step_is_the_one_by_hand(cls):
    X = planted(cls)[0]
    model = cls(3, alpha=0.7, random_state=0, tol=0, max_iter=3)
    with ep.config(on_nonconvergence="ignore"):
        model.fit(X)
    values = values_of(model)
    joint = np.array([[DENSITIES[cls](x, v) for v in values] for x in X]) + np.log(model.weights_)
    assert_allclose(model.score_samples(X), np.logaddexp.reduce(joint, axis=1), rtol=1e-9)
    assert_allclose(model.predict_proba(X), softmax(joint, axis=1), atol=1e-10)
    r = softmax(joint, axis=1)
    counts, sums = r.sum(axis=0), r.T @ X
    expected = {
        BernoulliMixture: (sums + 0.7) / (counts + 1.4)[:, None],
        MultinomialMixture: (sums + 0.7) / (sums + 0.7).sum(axis=1, keepdims=True),
        PoissonMixture: (sums + 0.7 * X.mean(axis=0)) / (counts + 0.7)[:, None],
    }[cls]
    one = "rates_init" if cls is PoissonMixture else "probabilities_init"
    with ep.config(on_nonconvergence="ignore"):
        step = cls(3, alpha=0.7, max_iter=1, tol=0, weights_init=model.weights_, **{one: values}).fit(X)
    assert_allclose(values_of(step), expected, rtol=1e-9)
    assert_allclose(step.weights_, counts / len(X), rtol=1e-9)
    free = 3 * (X.shape[1] - (cls is MultinomialMixture)) + 2
    assert step.bic(X) == pytest.approx(-2 * step.score_samples(X).sum() + free * np.log(len(X)))


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("accelerate", [False, True])
def test_planted_components_are_found_and_the_trace_never_falls(cls, accelerate):
    X, _, table = planted(cls, 6000, seed=3)
    model = cls(3, n_init=4, random_state=0, tol=1e-7, max_iter=3000, accelerate=accelerate).fit(X)
    found = values_of(model)
    order = [int(np.argmin(((found - row) ** 2).sum(axis=1))) for row in table]
    assert sorted(order) == [0, 1, 2]
    scale = 20 if cls is PoissonMixture else 1
    assert_allclose(found[order], table, atol=0.07 * scale)
    assert_allclose(model.weights_[order], [0.5, 0.3, 0.2], atol=0.06)
    assert model.certificate_.holds
    for start in range(4):
        assert (np.diff(model.history_.log_likelihood[model.history_.start == start]) >= -1e-6).all()
    rows, labels = model.sample(3000)
    for a in range(3):
        mean = rows[labels == a].mean(axis=0)
        assert_allclose(mean, found[a] * (25 if cls is MultinomialMixture else 1), atol=0.12 * max(scale, 8))


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_the_same_from_files_dask_sparse_float32_and_repeated_rows(cls, tmp_path):
    X = planted(cls, 300)[0]
    pd.DataFrame(X, columns=list("abcdefghijkl")[: X.shape[1]]).to_parquet(tmp_path / "rows.parquet")
    model = cls(3, random_state=1, tol=0, max_iter=30)  # as many steps each time
    values = values_of(model.fit(X)).copy()
    labels = model.predict(X)
    model.save(tmp_path / "model.epi")
    assert_array_equal(ep.load(tmp_path / "model.epi").predict_proba(X), model.predict_proba(X))
    assert_allclose(values_of(model.fit(ep.scan(tmp_path / "rows.parquet"))), values, rtol=1e-7)
    chunks = da.from_array(X, chunks=(90, X.shape[1]))
    assert_allclose(values_of(model.fit(chunks)), values, rtol=1e-7)
    assert_array_equal(np.asarray(model.predict(chunks)), labels)
    # k-means breaks ties of binary rows by rounding, which is another one for sparse rows: the start is given.
    one = "rates_init" if cls is PoissonMixture else "probabilities_init"
    start = np.clip(X[:3] / (1 if cls is PoissonMixture else 25), 0.02, 0.9 if cls is not PoissonMixture else 99)
    model.set_params(weights_init=[0.5, 0.2, 0.3], **{one: start})
    values = values_of(model.fit(X)).copy()
    labels = model.predict(X)
    assert_allclose(values_of(model.fit(sp.csr_array(X))), values, rtol=1e-7)
    assert_array_equal(model.predict(sp.csr_array(X)), labels)
    single = model.fit(X.astype(np.float32))
    assert values_of(single).dtype == np.float32
    assert_allclose(values_of(single), values, rtol=1e-3, atol=1e-4)
    times = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = values_of(model.fit(X, sample_weight=times)).copy()
    assert_allclose(values_of(model.fit(np.repeat(X, times, axis=0))), weighted, rtol=1e-5)


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(1, 30),
    p=st.integers(1, 4),
    share=st.floats(0, 1),
    most=st.sampled_from([1, 3, 1000]),
    alpha=st.sampled_from([0.0, 1e-3, 1.0]),
    sparse=st.booleans(),
    cls=st.sampled_from(CLASSES),
    init=st.sampled_from(["kmeans", "k-means++", "random", "random_from_data"]),
    accelerate=st.booleans(),
)
def test_any_rows_are_fitted_without_a_fall_or_nan(seed, n, p, share, most, alpha, sparse, cls, init, accelerate):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, most + 1, (n, p)).astype(float) * (rng.random((n, p)) < 0.6)  # rows and columns of zeros too
    X = sp.csr_array(X) if sparse else X
    k = max(1, round(share * n))
    model = cls(k, alpha=alpha, init_params=init, random_state=seed, max_iter=15, accelerate=accelerate)
    with ep.config(on_nonconvergence="ignore"):
        model.fit(X)
    L = model.history_.log_likelihood
    assert np.isfinite(L).all()
    assert (np.diff(L) >= -1e-7 * (np.abs(L[:-1]) + n)).all()
    assert np.isfinite(values_of(model)).all()
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_bad_input_is_named():
    X = planted(PoissonMixture, 30)[0]
    for cls in (MultinomialMixture, PoissonMixture):
        with pytest.raises(DataError, match=rf"Negative values in data passed to {cls.__name__} .*150 entries"):
            cls().fit(-X - 1)
    with pytest.raises(DataError, match="entries are neither 0 nor 1; give binarize"):
        BernoulliMixture(binarize=None).fit(X)
    with pytest.raises(ParameterError, match=r"binarize=-1.*sparse"):
        BernoulliMixture(binarize=-1.0).fit(sp.csr_array(X))
    with pytest.raises(DataError, match="probabilities_init: expected numbers above 0"):
        BernoulliMixture(weights_init=[1.0], probabilities_init=np.ones((1, 5))).fit(X)
    with pytest.raises(DataError, match=r"'rates' should have the shape of \(1, 5\)"):
        PoissonMixture(rates_init=np.ones((2, 5))).fit(X)
    assert BernoulliMixture(2, binarize=3.0, random_state=0).fit(X).probabilities_.max() < 1
