"""Factor analysis and probabilistic PCA: scikit-learn's optimum, closed forms, gaps, few rows, rotations, engines."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn import decomposition as peer
from sklearn.base import clone

import epicycle as ep
from epicycle import FactorAnalysis, ProbabilisticPCA
from epicycle.decomposition._rotation import rotated
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError

BOTH = [FactorAnalysis, ProbabilisticPCA]


def rows(n=300, p=8, k=2, seed=0, offset=3.0):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(k, p))
    return rng.normal(size=(n, k)) @ W + rng.normal(size=(n, p)) * rng.uniform(0.5, 1.5, p) + offset


X = rows()
GAPS = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
GAPS[7] = np.nan


def log_likelihood(model, table, weight=None):
    """By SciPy, row by row, over the entries that are there."""
    C, total = model.get_covariance(), 0.0
    for i, x in enumerate(table):
        o = ~np.isnan(x)
        if o.any():
            density = multivariate_normal.logpdf(x[o], model.mean_[o], C[np.ix_(o, o)])
            total += density * (1.0 if weight is None else weight[i])
    return total


# ------------------------------------------------------------------------------------------------ complete rows


def test_the_optimum_is_that_of_scikit_learn():
    mine = FactorAnalysis(2, tol=1e-11).fit(X)
    theirs = peer.FactorAnalysis(2, tol=1e-11, svd_method="lapack", max_iter=20_000).fit(X)
    assert mine.log_likelihood_ == pytest.approx(theirs.loglike_[-1], abs=1e-6)
    assert_allclose(mine.get_covariance(), theirs.get_covariance(), atol=1e-4)
    assert_allclose(mine.noise_variance_, theirs.noise_variance_, atol=1e-4)
    assert_allclose(np.abs(mine.transform(X)), np.abs(theirs.transform(X)), atol=1e-3)
    assert mine.log_likelihood_ == pytest.approx(log_likelihood(mine, X), rel=1e-12)
    assert (np.diff(mine.loglike_) >= -1e-9).all()
    assert mine.certificate_.holds


def test_a_step_is_one_of_scikit_learn():
    start = np.linspace(0.5, 1.5, 8)
    with ep.config(on_nonconvergence="ignore"):
        mine = FactorAnalysis(2, tol=0, max_iter=1, noise_variance_init=start).fit(X)
    with pytest.warns(match="did not converge"):
        theirs = peer.FactorAnalysis(2, tol=0, max_iter=2, noise_variance_init=start, svd_method="lapack").fit(X)
    assert mine.loglike_[-1] == pytest.approx(theirs.loglike_[-1], rel=1e-12)


def test_no_numerical_climb_finds_a_larger_likelihood():
    model = FactorAnalysis(2, tol=1e-10).fit(X)
    S = np.cov(X.T, bias=True)

    def objective(x):
        W, noise = x[:16].reshape(2, 8), np.exp(x[16:])
        C = W.T @ W + np.diag(noise)
        inverse = np.linalg.inv(C)
        G = inverse - inverse @ S @ inverse
        value = 0.5 * (np.linalg.slogdet(C)[1] + np.trace(inverse @ S))
        return value, np.concatenate([(W @ G).ravel(), 0.5 * np.diagonal(G) * noise])

    x = np.concatenate([model.components_.ravel(), np.log(model.noise_variance_)])
    value, slope = objective(x)
    assert np.abs(slope).max() < 1e-5
    found = scipy.optimize.minimize(objective, x + 0.1, jac=True, method="BFGS")
    assert value <= found.fun + 1e-8


def test_closed_form_em_and_scikit_learn_agree_on_principal_components():
    closed = ProbabilisticPCA(2).fit(X)
    climbed = ProbabilisticPCA(2, method="em", tol=1e-13).fit(X)
    theirs = peer.PCA(2).fit(X)
    n = len(X)
    for model in (closed, climbed):
        assert model.noise_variance_ == pytest.approx(theirs.noise_variance_ * (n - 1) / n, rel=1e-6)
        assert_allclose(model.explained_variance_, theirs.explained_variance_ * (n - 1) / n, rtol=1e-5)
        axes = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
        assert_allclose(np.abs(axes), np.abs(theirs.components_), atol=1e-4)
        assert model.log_likelihood_ == pytest.approx(log_likelihood(model, X), rel=1e-11)
    assert climbed.log_likelihood_ == pytest.approx(closed.log_likelihood_, abs=1e-6)
    assert (np.diff(climbed.history_["log_likelihood"]) >= -1e-8).all()


@pytest.mark.parametrize("cls", BOTH)
def test_fewer_rows_than_columns(cls):
    few = rows(n=12, p=40)
    model = cls(2).fit(few)
    assert model.converged_
    assert model.log_likelihood_ == pytest.approx(log_likelihood(model, few), rel=1e-9)
    # the same from the covariance itself, which partitions give
    other = cls(2).fit(da.from_array(few, chunks=(5, 40)))
    assert other.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=0.05)
    assert_allclose(other.get_covariance(), model.get_covariance(), atol=0.05)
    if cls is FactorAnalysis:
        theirs = peer.FactorAnalysis(2, tol=1e-2, svd_method="lapack", max_iter=5000).fit(few)
        assert model.log_likelihood_ >= theirs.loglike_[-1] - 1e-2


def test_all_and_no_components():
    for k in (0, 8):
        model = FactorAnalysis(k).fit(X)
        assert_allclose(model.get_covariance() @ model.get_precision(), np.eye(8), atol=1e-9)
        assert model.transform(X).shape == (300, k)
    assert_allclose(FactorAnalysis(0).fit(X).noise_variance_, X.var(axis=0), rtol=1e-10)
    assert_allclose(ProbabilisticPCA(7).fit(X).get_covariance(), np.cov(X.T, bias=True), atol=1e-9)
    assert len(ProbabilisticPCA().fit(X).components_) == 7
    assert len(ProbabilisticPCA().fit(X[:5]).components_) == 3  # five rows differ in four directions


# ------------------------------------------------------------------------------------------------ gaps


@pytest.mark.parametrize("cls", BOTH)
def test_gaps(cls):
    model = cls(2, tol=1e-6).fit(GAPS)
    assert model.certificate_.holds
    assert (np.diff(model.history_["log_likelihood"]) >= -1e-8).all()
    assert model.log_likelihood_ == pytest.approx(log_likelihood(model, GAPS), rel=1e-10)
    assert model.score_samples(GAPS)[7] == 0
    assert_array_equal(model.transform(GAPS)[7], 0)
    # E[z | entries that are there], by the joint normal
    C, W = model.get_covariance(), model.components_
    o = ~np.isnan(GAPS[0])
    expected = W[:, o] @ np.linalg.solve(C[np.ix_(o, o)], (GAPS[0] - model.mean_)[o])
    assert_allclose(model.transform(GAPS)[0], expected, atol=1e-10)
    whole = cls(2, tol=1e-6).fit(X)
    assert_allclose(model.get_covariance(), whole.get_covariance(), atol=0.5)
    for direction in np.random.default_rng(0).normal(size=(5, 8)):  # no mean nearby is better
        moved = clone(model)
        moved.__dict__.update(vars(model))
        moved.mean_ = model.mean_ + 1e-2 * direction
        assert log_likelihood(moved, GAPS) < model.log_likelihood_


@pytest.mark.parametrize("cls", BOTH)
def test_rows_that_are_wholly_missing_change_nothing(cls):
    method = {"method": "em", "tol": 1e-12} if cls is ProbabilisticPCA else {"tol": 1e-8}
    padded = np.concatenate([X, np.full((50, 8), np.nan)])
    one, two = cls(2, **method).fit(X), cls(2, **method).fit(padded)
    assert two.log_likelihood_ == pytest.approx(one.log_likelihood_, abs=1e-4)
    assert_allclose(two.get_covariance(), one.get_covariance(), atol=1e-3)


# ------------------------------------------------------------------------------------------------ rotations


def criterion(B, name):
    if name in ("varimax", "quartimax"):
        return float((B**4).sum() - (name == "varimax") / B.shape[1] * ((B**2).sum(axis=1) ** 2).sum())
    S = B**2
    return -float(((S.sum(axis=0)) ** 2 - (S**2).sum(axis=0)).sum())


@pytest.mark.parametrize("name", ["varimax", "quartimax", "promax", "oblimin"])
def test_rotations_find_a_simple_structure_and_leave_the_model(name):
    simple = np.zeros((2, 8))
    simple[0, :4], simple[1, 4:] = [1.0, 0.9, 1.1, 0.8], [1.2, 0.7, 0.9, 1.0]
    angle = 0.6
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ simple
    B, correlations = rotated(turned, name)
    assert_allclose(np.sort(np.abs(B), axis=0), np.sort(np.abs(simple), axis=0), atol=1e-4)
    assert_allclose(B.T @ correlations @ B, simple.T @ simple, atol=1e-10)
    assert_allclose(np.diagonal(correlations), 1.0)
    plain, model = FactorAnalysis(2, tol=1e-4).fit(X), FactorAnalysis(2, tol=1e-4, rotation=name).fit(X)
    assert_allclose(model.get_covariance(), plain.get_covariance(), atol=1e-10)
    assert model.score(X) == pytest.approx(plain.score(X), rel=1e-12)
    assert not np.allclose(np.abs(model.components_), np.abs(plain.components_), atol=1e-3)
    assert_allclose(model.inverse_transform(model.transform(X)), plain.inverse_transform(plain.transform(X)), atol=1e-9)
    best = criterion(B, name)
    for a in np.linspace(0, np.pi, 50):
        R = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        assert criterion(R @ turned, name) <= best + 1e-6


# ------------------------------------------------------------------------------------------------ the house


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("gaps", [False, True])
def test_the_same_from_memory_files_and_dask(cls, gaps, tmp_path):
    table = (GAPS if gaps else X)[:90, :5]
    weight, names = np.random.default_rng(0).uniform(0.5, 2, len(table)), list("abcde")
    pd.DataFrame(table, columns=names).assign(w=weight).to_parquet(tmp_path / "rows.parquet", row_group_size=40)
    options = {"tol": 1e-3} if cls is FactorAnalysis else {"tol": 1e-6}
    model = cls(2, **options).fit(table, sample_weight=weight)
    scanned = cls(2, **options).fit(ep.data.scan(tmp_path / "rows.parquet", weight="w"))
    spread = cls(2, **options).fit(da.from_array(table, chunks=(30, 5)), sample_weight=da.from_array(weight, chunks=30))
    for other in (scanned, spread):
        assert_allclose(other.components_, model.components_, atol=1e-6)
        assert_allclose(other.noise_variance_, model.noise_variance_, rtol=1e-6)
    assert_allclose(
        np.asarray(spread.transform(da.from_array(table, chunks=(30, 5)))), model.transform(table), atol=1e-5
    )
    assert model.log_likelihood_ == pytest.approx(log_likelihood(model, table, weight), rel=1e-9)
    assert model.score(table, sample_weight=weight) == pytest.approx(model.log_likelihood_ / weight.sum(), rel=1e-9)


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(2, 40),
    p=st.integers(1, 7),
    gaps=st.booleans(),
    scale=st.sampled_from([1e-8, 1.0, 1e6]),
    offset=st.sampled_from([0.0, 1e4]),
    ties=st.booleans(),
    cls=st.sampled_from(BOTH),
    data=st.data(),
)
def test_any_rows_give_finite_models_and_weights_are_repetitions(seed, n, p, gaps, scale, offset, ties, cls, data):
    rng = np.random.default_rng(seed)
    table = scale * ((rng.integers(0, 3, (n, p)) if ties else rng.normal(size=(n, p))) + offset)
    table[0], table[1] = scale * offset, scale * (offset + 1)  # rows that differ
    if gaps and n > 4:
        table[2:][rng.random((n - 2, p)) < 0.2] = np.nan
    k = data.draw(st.integers(0, p))
    times = rng.integers(1, 4, n)
    with ep.config(on_nonconvergence="ignore"):
        model = cls(k, max_iter=30).fit(table, sample_weight=times)
        other = cls(k, max_iter=30).fit(np.repeat(table, times, axis=0)[::-1])
    assert np.isfinite(model.components_).all()
    assert (np.asarray(model.noise_variance_) > 0).all()
    value = model.history_["log_likelihood"]
    assert (np.diff(value) >= -1e-7 * (abs(value[:-1]) + n)).all()
    assert np.isfinite(model.transform(table)).all()
    assert model.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-4, abs=1e-2)


@pytest.mark.parametrize("cls", BOTH)
def test_sparse_rows_types_files_and_threads(cls, tmp_path):
    rng = np.random.default_rng(0)
    thin = np.where(rng.random((200, 6)) < 0.3, rows(200, 6, offset=0), 0.0)
    dense, sparse = cls(2).fit(thin), cls(2).fit(sp.csr_array(thin))
    assert_allclose(sparse.get_covariance(), dense.get_covariance(), atol=1e-8)
    assert_allclose(sparse.transform(sp.csr_array(thin)), sparse.transform(thin), atol=1e-10)
    assert_allclose(sparse.score_samples(sp.csr_array(thin)), sparse.score_samples(thin), atol=1e-9)
    single = cls(2).fit(X.astype(np.float32))
    assert_allclose(single.get_covariance(), cls(2).fit(X).get_covariance(), atol=1e-3)
    one, two = (cls(2, n_jobs=j).fit(np.tile(X, (20, 1))) for j in (1, 2))
    assert_array_equal(one.components_, two.components_)
    for table in (X, GAPS):
        model = cls(2).fit(pd.DataFrame(table, columns=list("abcdefgh")))
        model.save(tmp_path / "model.epi")
        loaded = ep.load(tmp_path / "model.epi")
        frame = pd.DataFrame(table, columns=list("abcdefgh"))
        assert_array_equal(loaded.transform(frame), model.transform(frame))
        assert loaded.score(frame) == model.score(frame)
    names = list(model.get_feature_names_out())
    assert names == [f"{cls.__name__.lower()}{i}" for i in range(2)]
    scaled = cls(2, tol=1e-6).fit(X * 8.0)
    assert_allclose(scaled.get_covariance(), 64 * cls(2, tol=1e-6).fit(X).get_covariance(), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("cls", BOTH)
def test_draws_and_reconstruction(cls):
    model = cls(2).fit(X)
    drawn = model.sample(100_000, random_state=0)
    assert_allclose(np.cov(drawn.T), model.get_covariance(), atol=0.15)
    assert_allclose(drawn.mean(axis=0), model.mean_, atol=0.05)
    back = model.inverse_transform(model.transform(X))
    assert ((X - back) ** 2).sum() < 0.7 * ((X - X.mean(axis=0)) ** 2).sum()


@pytest.mark.parametrize("cls", BOTH)
def test_a_fit_that_was_stopped_goes_on(cls, tmp_path):
    whole = cls(2).fit(GAPS)
    file = tmp_path / "run.epi"
    with ep.config(on_nonconvergence="ignore"):
        clone(whole).set_callbacks(ep.Checkpoint(file), ep.TimeLimit(1e-9)).fit(GAPS)
    second = ep.Checkpoint.resume(file).set_callbacks().fit(GAPS)
    assert second.log_likelihood_ == pytest.approx(whole.log_likelihood_, abs=1e-3)


def test_bad_input_is_refused_by_name():
    for call, error, words in (
        (lambda: FactorAnalysis(9).fit(X), ParameterError, "n_components=9; expected at most the 8 features"),
        (lambda: FactorAnalysis(2, noise_variance_init=np.ones(3)).fit(X), DataError, "noise_variance_init: shape"),
        (lambda: FactorAnalysis(2, noise_variance_init=-np.ones(8)).fit(X), DataError, "numbers above 0"),
        (lambda: FactorAnalysis(2, rotation="other").fit(X), ParameterError, "rotation='other'"),
        (lambda: FactorAnalysis(2).fit(np.where(X > 5, np.inf, X)), DataError, "X contains infinity"),
        (lambda: FactorAnalysis(2).fit(X * 1e200), DataError, "X: sums of squares of its columns overflow"),
        (lambda: FactorAnalysis(2).fit(np.ones((9, 3))), DataError, "all columns are constant"),
        (lambda: FactorAnalysis(2).fit(np.c_[X, np.full(300, np.nan)]), DataError, "column 8 has no value"),
        (lambda: FactorAnalysis(2).fit(sp.csr_array(GAPS)), DataError, "NaN"),
        (
            lambda: ProbabilisticPCA(2, method="closed form").fit(GAPS),
            DataError,
            "method='closed form' is for complete",
        ),
        (lambda: ProbabilisticPCA(2).fit(X).transform(np.where(X > 5, np.inf, X)), DataError, "X contains infinity"),
        (lambda: FactorAnalysis(2).fit(X).inverse_transform(X), DataError, "a column for each factor"),
    ):
        with pytest.raises(error, match=words):
            call()
    with pytest.warns(ConvergenceWarning):
        FactorAnalysis(2, max_iter=1).fit(X)
