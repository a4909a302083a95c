"""Kernel densities: sums over all rows, integrals, the promised bound, weights, tails, draws."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.spatial.distance import cdist
from scipy.special import gamma, logsumexp
from scipy.stats import kstest
from sklearn.neighbors import KernelDensity as Peer

import epicycle as ep
from epicycle import KernelDensity
from epicycle.exceptions import DataError, ParameterError
from epicycle.neighbors._kernel_density import log_normaliser

KERNELS = ["gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"]
PROFILE = {
    "gaussian": lambda r: -(r**2) / 2,
    "tophat": lambda r: np.where(r < 1, 0.0, -np.inf),
    "epanechnikov": lambda r: np.log(np.where(r < 1, 1 - r**2, 0.0)),
    "exponential": lambda r: -r,
    "linear": lambda r: np.log(np.where(r < 1, 1 - r, 0.0)),
    "cosine": lambda r: np.log(np.where(r < 1, np.cos(np.pi * r / 2), 0.0)),
}
RNG = np.random.default_rng(0)
X, Q = RNG.normal(size=(700, 3)), 2 * RNG.normal(size=(60, 3))
WEIGHT = RNG.integers(0, 4, 700).astype(float)


def brute_force(kernel, h, metric="euclidean", weight=None, table=X, queries=Q):
    """log of the weighted mean of kernels, from all distances."""
    w = np.ones(len(table)) if weight is None else weight
    with np.errstate(divide="ignore"):
        logs = logsumexp(PROFILE[kernel](cdist(queries, table, metric) / h), axis=1, b=w[None, :])
    return logs - np.log(w.sum()) - log_normaliser(kernel, table.shape[1], h)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "chebyshev", "canberra"])
def test_densities_are_sums_over_all_rows(kernel, metric):
    for h in (0.1, 1.0, 30.0):
        model = KernelDensity(kernel=kernel, bandwidth=h, metric=metric).fit(X, sample_weight=WEIGHT)
        assert_allclose(model.score_samples(Q), brute_force(kernel, h, metric, WEIGHT), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("p", [1, 2, 3, 8])
def test_kernels_integrate_to_one(kernel, p):
    surface = 2 * np.pi ** (p / 2) / gamma(p / 2)
    with np.errstate(divide="ignore"):
        total, _ = quad(
            lambda r: np.exp(PROFILE[kernel](r)) * r ** (p - 1), 0, 60 if kernel != "tophat" else 1, points=[1]
        )
    assert_allclose(log_normaliser(kernel, p, 0.7), np.log(surface * total * 0.7**p), rtol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_error_is_within_the_bound(kernel):
    exact = np.exp(brute_force(kernel, 0.8))
    for tolerance in ({"rtol": 0.05}, {"atol": 1e-3}, {"atol": 1e-4, "rtol": 1e-2}):
        model = KernelDensity(kernel=kernel, bandwidth=0.8, **tolerance).fit(X)
        allowed = tolerance.get("atol", 0.0) + tolerance.get("rtol", 0.0) * exact
        error = np.abs(np.exp(model.score_samples(Q)) - exact)
        assert (error <= allowed * (1 + 1e-9) + 1e-15).all()
        assert model.certificate_.tolerance == max(tolerance.values())
    # and the tolerance is used: with much of it sums are no longer exact
    exact = np.exp(brute_force(kernel, 3.0))
    error = np.abs(np.exp(KernelDensity(kernel=kernel, bandwidth=3.0, rtol=0.5).fit(X).score_samples(Q)) - exact)
    assert (error <= 0.5 * exact).all()
    assert error.max() > 1e-6 * exact.max() or kernel == "tophat"  # whose values are 0 and 1: no mean is near both


def test_far_tails_have_logarithms():
    far = np.array([[1e3, 0, 0], [1e8, 0, 0], [0, 1e150, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = KernelDensity(bandwidth=0.5).fit(X).score_samples(far)
    assert_allclose(found[0], brute_force("gaussian", 0.5, queries=far[:1])[0], rtol=1e-12)
    assert found[1] < -1e15
    assert np.isneginf(found[2]) or found[2] < -1e299
    assert np.isneginf(KernelDensity(kernel="tophat").fit(X).score_samples(far)).all()


@given(seed=st.integers(0, 99), kernel=st.sampled_from(KERNELS), power=st.integers(-20, 20))
@settings(deadline=None)
def test_weights_scale_and_order(seed, kernel, power):
    rng = np.random.default_rng(seed)
    table, weight, queries = rng.normal(size=(50, 2)), rng.integers(0, 3, 50), rng.normal(size=(10, 2))
    weight[0] = 1
    base = KernelDensity(kernel=kernel, bandwidth="scott").fit(table, sample_weight=weight)
    scores = base.score_samples(queries)
    repeated = np.repeat(table, weight, axis=0)
    again = KernelDensity(kernel=kernel, bandwidth="scott").fit(rng.permutation(repeated))
    assert_allclose(again.score_samples(queries), scores, rtol=1e-10, atol=1e-11)
    s = 2.0**power  # a change of units: the density changes by s^-p
    scaled = KernelDensity(kernel=kernel, bandwidth=s * base.bandwidth_).fit(s * table, sample_weight=weight)
    assert_allclose(scaled.score_samples(s * queries) + 2 * np.log(s), scores, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_draws_have_the_density(kernel):
    point = KernelDensity(kernel=kernel, bandwidth=0.5).fit(np.full((1, 2), 3.0))
    drawn = point.sample(3000, random_state=1)
    radius = np.linalg.norm(drawn - 3.0, axis=1) / 0.5
    top = 40.0 if kernel in ("gaussian", "exponential") else 1.0
    grid = np.linspace(0, top, 20_001)
    with np.errstate(divide="ignore"):
        mass = np.exp(PROFILE[kernel](np.minimum(grid, top * (1 - 1e-12)))) * grid
    total = np.concatenate([[0.0], np.cumsum((mass[1:] + mass[:-1]) / 2)])
    assert kstest(radius, lambda r: np.interp(r, grid, total / total[-1])).pvalue > 1e-3
    angle = np.arctan2(*(drawn - 3.0).T)
    assert kstest(angle, "uniform", args=(-np.pi, 2 * np.pi)).pvalue > 1e-3


def test_threads_files_sparse_and_errors(tmp_path):
    models = [KernelDensity(bandwidth=0.4, n_jobs=k).fit(X) for k in (1, 2, 4)]
    scores = models[0].score_samples(Q)
    for model in models[1:]:
        assert_array_equal(model.score_samples(Q), scores)
    models[0].save(tmp_path / "kde.epi")
    assert_array_equal(ep.load(tmp_path / "kde.epi").score_samples(Q), scores)
    assert_allclose(
        KernelDensity(bandwidth=0.4).fit(sp.csr_array(X)).score_samples(sp.csr_array(Q)), scores, rtol=1e-12
    )
    assert_allclose(
        models[0].tree_.kernel_density(Q[:5], 0.4) / 700 / 1,
        Peer(bandwidth=0.4).fit(X).tree_.kernel_density(Q[:5], 0.4) / 700,
    )
    assert models[0].score(Q) == pytest.approx(scores.sum())
    with pytest.raises(ParameterError, match="kd_tree"):
        KernelDensity(algorithm="kd_tree", metric="haversine").fit(X[:, :2])
    with pytest.raises(DataError, match="sample_weight"):
        KernelDensity().fit(X, sample_weight=np.zeros(700))
    tiny = KernelDensity(bandwidth=1e-300).fit(1e-150 * X).score_samples(1e-150 * X[:3])
    assert not np.isnan(tiny).any()
