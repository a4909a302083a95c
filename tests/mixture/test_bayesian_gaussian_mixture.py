"""Variational mixtures: the evidence in closed form, scikit-learn, bounds that never fall, engines, errors."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import multigammaln
from sklearn import mixture as peer

import epicycle as ep
from epicycle import BayesianGaussianMixture
from epicycle.exceptions import DataError

KINDS = ["full", "tied", "diag", "spherical"]
TYPES = ["dirichlet_process", "dirichlet_distribution"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(150, 3)) * [1, 0.5, 2] + 5 * rng.normal(size=3) for _ in range(3)])


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_the_bound_of_one_component_is_the_evidence_in_closed_form(rows, kind):
    """With one component q is the posterior: the bound touches log p(X) of the normal-Wishart model."""
    X = rows[:60]
    n, p = X.shape
    C0, m0, b0, v0 = np.diag([2.0, 1.0, 3.0]), np.array([1.0, 0.0, -1.0]), 0.7, 5.5
    model = BayesianGaussianMixture(
        covariance_type=kind,
        reg_covar=0,
        weight_concentration_prior_type="dirichlet_distribution",
        mean_precision_prior=b0,
        mean_prior=m0,
        degrees_of_freedom_prior=v0,
        covariance_prior=C0,
    ).fit(X)
    away = X.mean(axis=0) - m0
    Cn = C0 + n * np.cov(X.T, ddof=0) + b0 * n / (b0 + n) * np.outer(away, away)
    evidence = (
        -n * p / 2 * np.log(np.pi)
        + multigammaln((v0 + n) / 2, p)
        - multigammaln(v0 / 2, p)
        + v0 / 2 * np.linalg.slogdet(C0)[1]
        - (v0 + n) / 2 * np.linalg.slogdet(Cn)[1]
        + p / 2 * np.log(b0 / (b0 + n))
    )
    assert n * model.lower_bound_ == pytest.approx(evidence, rel=1e-10)
    assert_allclose(model.covariances_.reshape(p, p), Cn / (v0 + n), rtol=1e-9)
    assert_allclose(model.means_[0], (b0 * m0 + n * X.mean(axis=0)) / (b0 + n), rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prior_type", TYPES)
def test_it_ends_where_scikit_learn_does(rows, kind, prior_type):
    options = {"n_components": 3, "covariance_type": kind, "tol": 1e-10, "max_iter": 5000, "random_state": 0}
    options |= {"weight_concentration_prior_type": prior_type, "weight_concentration_prior": 2.0}
    ours, theirs = BayesianGaussianMixture(**options).fit(rows), peer.BayesianGaussianMixture(**options).fit(rows)
    if prior_type == "dirichlet_distribution":
        a, b = np.argsort(ours.means_[:, 0]), np.argsort(theirs.means_[:, 0])
        assert_allclose(ours.means_[a], theirs.means_[b], atol=2e-4)
        assert_allclose(ours.weights_[a], theirs.weights_[b], atol=1e-4)
        assert_allclose(ours.mean_precision_[a], theirs.mean_precision_[b], rtol=1e-3)
    else:  # sticks are broken in an order, which is that of the start
        assert_allclose(np.sort(ours.weights_), np.sort(theirs.weights_), atol=0.02)
    for name in ("weight_concentration_prior_", "mean_prior_", "covariance_prior_", "degrees_of_freedom_prior_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, err_msg=name)
    assert ours.score(rows) == pytest.approx(theirs.score(rows), abs=1e-2)
    assert (np.diff(ours.history_.log_likelihood) >= -1e-6).all()
    assert ours.certificate_.holds


@pytest.mark.parametrize("prior_type", TYPES)
def test_components_that_are_not_needed_lose_their_weight(rows, prior_type):
    model = BayesianGaussianMixture(
        n_components=8,
        weight_concentration_prior_type=prior_type,
        weight_concentration_prior=1e-3,
        n_init=3,
        random_state=0,
        max_iter=2000,
        tol=1e-6,
        accelerate=True,
    ).fit(rows)
    assert (model.weights_ > 0.02).sum() == 3
    X, y = model.sample(500)
    assert X.shape == (500, 3)
    assert len(np.unique(y)) <= 8


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_from_files_dask_sparse_and_repeated_rows(rows, tmp_path, kind):
    pd.DataFrame(rows, columns=list("abc")).to_parquet(tmp_path / "rows.parquet")
    model = BayesianGaussianMixture(n_components=4, covariance_type=kind, random_state=1, tol=0, max_iter=20)
    means = model.fit(rows).means_
    model.save(tmp_path / "model.epi")
    assert_array_equal(ep.load(tmp_path / "model.epi").predict_proba(rows), model.predict_proba(rows))
    for other in (ep.scan(tmp_path / "rows.parquet"), da.from_array(rows, chunks=(170, 3)), sp.csr_array(rows)):
        assert_allclose(model.fit(other).means_, means, rtol=1e-6, atol=1e-9)
    assert_allclose(model.fit(rows.astype(np.float32)).means_, means, rtol=1e-3, atol=1e-3)
    times = np.random.default_rng(0).integers(0, 3, len(rows))
    weighted = model.fit(rows, sample_weight=times).means_
    assert_allclose(model.fit(np.repeat(rows, times, axis=0)).means_, weighted, rtol=1e-5)


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(1, 30),
    p=st.integers(1, 3),
    share=st.floats(0, 1),
    scale=st.sampled_from([1e-4, 1.0, 1e4]),
    offset=st.sampled_from([0.0, 1e5]),
    ties=st.booleans(),
    constant=st.booleans(),
    kind=st.sampled_from(KINDS),
    prior_type=st.sampled_from(TYPES),
)
def test_any_rows_are_fitted_without_a_fall_or_nan(seed, n, p, share, scale, offset, ties, constant, kind, prior_type):
    rng = np.random.default_rng(seed)
    X = scale * ((rng.integers(0, 2, (n, p)) if ties else rng.normal(size=(n, p))) + offset)
    if constant:
        X[:, 0] = X[0, 0]
    model = BayesianGaussianMixture(
        n_components=max(1, round(share * n)),
        covariance_type=kind,
        weight_concentration_prior_type=prior_type,
        random_state=seed,
        max_iter=15,
        reg_covar=1e-6 * scale**2,
    )
    with ep.config(on_nonconvergence="ignore"):
        model.fit(X)
    L = model.history_.log_likelihood
    assert np.isfinite(L).all()
    assert (np.diff(L) >= -1e-6 * (np.abs(L[:-1]) + n)).all()
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_bad_priors_are_named(rows):
    with pytest.raises(DataError, match="'degrees_of_freedom_prior' should be greater than 2, but got 1"):
        BayesianGaussianMixture(degrees_of_freedom_prior=1.0).fit(rows)
    with pytest.raises(DataError, match=r"'means' should have the shape of \(3,\)"):
        BayesianGaussianMixture(mean_prior=[0.0]).fit(rows)
    with pytest.raises(DataError, match="'full covariance_prior' should be symmetric, positive-definite"):
        BayesianGaussianMixture(covariance_prior=-np.eye(3)).fit(rows)
    with pytest.raises(DataError, match="'diag covariance_prior' should be positive"):
        BayesianGaussianMixture(covariance_type="diag", covariance_prior=[1.0, 0.0, 1.0]).fit(rows)
    with pytest.raises(DataError, match="contains NaN"):
        BayesianGaussianMixture().fit(np.where(np.eye(450, 3) > 0, np.nan, rows))
