"""Mixtures of normals: scikit-learn from the same start, closed forms, missing entries, engines, odd rows, errors."""

import os
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn import mixture as peer
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

import epicycle as ep
from epicycle import BayesianGaussianMixture, Checkpoint, GaussianMixture
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.mixture._normal_model import NormalModel

KINDS = ["full", "tied", "diag", "spherical"]


def planted(n=600, seed=0, p=3):
    rng = np.random.default_rng(seed)
    weights, means = np.array([0.5, 0.3, 0.2]), 4 * rng.normal(size=(3, p))
    shapes = np.stack([np.linalg.qr(rng.normal(size=(p, p)))[0] * rng.uniform(0.5, 1.5, p) for _ in range(3)])
    label = rng.choice(3, n, p=weights)
    X = means[label] + np.einsum("ijk,ik->ij", shapes[label], rng.normal(size=(n, p)))
    return X, label, weights, means, shapes @ np.swapaxes(shapes, 1, 2)


@pytest.fixture(scope="module")
def rows():
    return planted()[0]


@pytest.fixture(scope="module")
def start(rows):
    return {"means_init": rows[:3], "weights_init": np.full(3, 1 / 3)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reg_covar", [0.0, 1e-6])
def test_from_the_same_start_it_is_scikit_learns(rows, start, kind, reg_covar):
    shapes = {"full": (3, 1, 1), "tied": (1, 1)}
    given_precisions = np.tile(np.eye(3), shapes[kind]) if kind in shapes else np.ones((3, 3))
    options = {**start, "covariance_type": kind, "tol": 1e-7, "max_iter": 3000, "reg_covar": reg_covar}
    options["precisions_init"] = given_precisions[:, 0] if kind == "spherical" else given_precisions
    ours, theirs = GaussianMixture(3, **options).fit(rows), peer.GaussianMixture(3, **options).fit(rows)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-8, err_msg=name)
    assert ours.n_iter_ == theirs.n_iter_
    assert_allclose(ours.score_samples(rows), theirs.score_samples(rows), rtol=1e-8)
    assert_allclose(ours.predict_proba(rows), theirs.predict_proba(rows), atol=1e-8)
    assert_array_equal(ours.predict(rows), theirs.predict(rows))
    for criterion in ("bic", "aic"):
        assert getattr(ours, criterion)(rows) == pytest.approx(getattr(theirs, criterion)(rows), rel=1e-9)
    assert ours.certificate_.holds
    assert (np.diff(ours.history_.log_likelihood) >= 0).all()
    assert ours.lower_bound_ == pytest.approx(ours.score(rows), rel=1e-12)
    assert len(ours.lower_bounds_) == ours.n_iter_


def test_it_recovers_a_planted_mixture():
    X, label, weights, means, covariances = planted(20_000, seed=5)
    model = GaussianMixture(3, n_init=3, random_state=0, tol=1e-7, max_iter=500).fit(X)
    order = [int(np.argmin(((model.means_ - m) ** 2).sum(axis=1))) for m in means]
    assert sorted(order) == [0, 1, 2]
    assert_allclose(model.weights_[order], weights, atol=0.02)
    assert_allclose(model.means_[order], means, atol=0.06)
    assert_allclose(model.covariances_[order], covariances, atol=0.12)
    assert adjusted_rand_score(label, model.predict(X)) > 0.9
    assert model.score(X) >= np.mean(
        np.log(sum(w * multivariate_normal(m, C).pdf(X) for w, m, C in zip(weights, means, covariances, strict=True)))
    )


def test_iris_by_full_and_diagonal_components():
    """Three components with full covariances find the species but for five flowers (97 %)."""
    flowers, species = load_iris(return_X_y=True)
    model = GaussianMixture(3, n_init=5, random_state=0, tol=1e-6, max_iter=500).fit(flowers)
    table = pd.crosstab(model.predict(flowers), species).to_numpy()
    assert table.max(axis=0).sum() >= 145
    assert model.score(flowers) == pytest.approx(-180.185 / 150, abs=1e-3)  # as mclust's VVV model with 3 components


def test_old_faithful_has_the_published_likelihood():
    """mclust, two components of any shape: log-likelihood -1130.264, and BIC 2322.192 with the other sign."""
    checkout = Path(__file__).resolve().parents[2]
    path = Path(os.environ.get("EPICYCLE_DATA", checkout.parent / "shared" / "data")) / "old_faithful.csv.gz"
    if not path.exists():
        pytest.skip(
            "old_faithful.csv.gz is neither in the folder EPICYCLE_DATA nor in shared/data next to the checkout"
        )
    eruptions = pd.read_csv(path)
    model = GaussianMixture(2, random_state=0, tol=1e-9, max_iter=1000, reg_covar=0).fit(eruptions)
    assert 272 * model.score(eruptions) == pytest.approx(-1130.264, abs=5e-4)
    assert model.bic(eruptions) == pytest.approx(2322.192, abs=5e-4)
    assert GaussianMixture(n_init=3, random_state=0, max_iter=500).choose_k(eruptions, range(1, 5)).k == 2


@pytest.mark.parametrize("kind", KINDS)
def test_missing_entries_equal_a_sum_over_densities_of_what_is_there(kind):
    """One step by hand: densities of the columns that are there, completed means, and what is uncertain added."""
    rng = np.random.default_rng(3)
    X = planted(60, seed=2)[0]
    X[rng.random(X.shape) < 0.3] = np.nan
    X[0] = np.nan
    full = GaussianMixture(2, covariance_type=kind, random_state=0, max_iter=1, tol=1e9)
    with ep.config(on_nonconvergence="ignore"):
        model = full.fit(X)
    parameters = model._fitted_parameters()
    inner = NormalModel(2, 3, kind, 0.0, ["a", "b", "c"], missing=True)
    found = inner.expectation(ep.data.as_data(X, check_finite=False), parameters)
    matrices = {
        "full": lambda a: model.covariances_[a],
        "tied": lambda a: model.covariances_,
        "diag": lambda a: np.diag(model.covariances_[a]),
        "spherical": lambda a: model.covariances_[a] * np.eye(3),
    }
    joint, completed, spread = np.zeros((60, 2)), np.zeros((2, 60, 3)), np.zeros((2, 60, 3, 3))
    for i, x in enumerate(X):
        o, u = np.flatnonzero(~np.isnan(x)), np.flatnonzero(np.isnan(x))
        for a in range(2):
            C, m = matrices[kind](a), model.means_[a]
            joint[i, a] = model.weights_[a]
            completed[a, i, o] = x[o] - m[o]
            if len(o):
                joint[i, a] *= multivariate_normal(m[o], C[np.ix_(o, o)]).pdf(x[o])
                A = C[np.ix_(u, o)] @ np.linalg.inv(C[np.ix_(o, o)])
                completed[a, i, u] = A @ (x[o] - m[o])
                spread[(a, i, *np.ix_(u, u))] = C[np.ix_(u, u)] - A @ C[np.ix_(o, u)]
            else:
                spread[a, i] = C
    assert found.log_likelihood == pytest.approx(np.log(joint.sum(axis=1)).sum(), rel=1e-10)
    assert_allclose(model.score_samples(X), np.log(joint.sum(axis=1)), rtol=1e-9, atol=1e-12)
    r = joint / joint.sum(axis=1, keepdims=True)
    scatter = np.einsum("ia,aij,aik->ajk", r, completed, completed) + np.einsum("ia,aijk->ajk", r, spread)
    if kind == "tied":
        scatter = scatter.sum(axis=0)
    elif kind != "full":
        scatter = np.diagonal(scatter, axis1=1, axis2=2)
    counts, sums, ours = found.statistics
    assert_allclose(counts, r.sum(axis=0), rtol=1e-9)
    assert_allclose(sums, np.einsum("ia,aij->aj", r, completed), atol=1e-9)
    assert_allclose(ours, scatter, atol=1e-9)


def test_one_component_with_a_monotone_pattern_has_its_closed_form():
    """Anderson 1957: y is missing for some rows. The mean of y is the regression's at the mean of all x."""
    rng = np.random.default_rng(1)
    x = rng.normal(2, 1.5, 200)
    y = 1 + 0.7 * x + rng.normal(0, 0.5, 200)
    X = np.column_stack([x, y])
    X[120:, 1] = np.nan
    model = GaussianMixture(1, reg_covar=0, tol=1e-14, max_iter=5000, accelerate=True).fit(X)
    seen = X[:120]
    slope = np.cov(seen.T, ddof=0)[0, 1] / seen[:, 0].var()
    mean = seen[:, 1].mean() + slope * (x.mean() - seen[:, 0].mean())
    residual = seen[:, 1].var() - slope**2 * seen[:, 0].var()
    assert_allclose(model.means_[0], [x.mean(), mean], rtol=1e-6)
    C = [[x.var(), slope * x.var()], [slope * x.var(), residual + slope**2 * x.var()]]
    assert_allclose(model.covariances_[0], C, rtol=1e-5)


def test_missing_at_random_recovers_the_mixture():
    X, _, _, means, _ = planted(4000, seed=5)
    gone = X.copy()
    gone[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    model = GaussianMixture(3, n_init=2, random_state=0, tol=1e-5, max_iter=300).fit(gone)
    order = [int(np.argmin(((model.means_ - m) ** 2).sum(axis=1))) for m in means]
    assert_allclose(model.means_[order], means, atol=0.2)
    assert np.isfinite(model.predict_proba(gone)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_from_files_dask_sparse_float32_and_repeated_rows(rows, tmp_path, kind):
    pd.DataFrame(rows, columns=list("abc")).to_parquet(tmp_path / "rows.parquet")
    model = GaussianMixture(3, covariance_type=kind, random_state=1, tol=1e-8, max_iter=1000)
    means = model.fit(rows).means_
    labels = model.predict(rows)
    assert_allclose(model.fit(ep.scan(tmp_path / "rows.parquet")).means_, means, rtol=1e-7)
    assert_allclose(model.fit(da.from_array(rows, chunks=(170, 3))).means_, means, rtol=1e-7)
    assert_array_equal(np.asarray(model.predict(da.from_array(rows, chunks=(170, 3)))), labels)
    assert_allclose(model.fit(sp.csr_array(rows)).means_, means, rtol=1e-7)
    single = model.fit(rows.astype(np.float32))
    assert single.means_.dtype == np.float32
    assert_allclose(single.means_, means, rtol=1e-3, atol=1e-3)
    times = np.random.default_rng(0).integers(0, 3, len(rows))
    weighted = model.fit(rows, sample_weight=times).means_
    assert_allclose(model.fit(np.repeat(rows, times, axis=0)).means_, weighted, rtol=1e-6)


@pytest.mark.parametrize("cls", [GaussianMixture, BayesianGaussianMixture])
def test_columns_that_nearly_agree_are_predicted_in_single_precision(cls):
    """Covariances in float32 have no Cholesky factor here; the factors of the precisions have been stored."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1)) + np.repeat([[0.0], [6.0]], 200, axis=0)
    X = np.hstack([x, x + 2e-4 * rng.normal(size=x.shape)]).astype(np.float32)
    model = cls(n_components=2, random_state=0, reg_covar=1e-12, max_iter=300).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert len(set(model.predict(X)[:200])) == 1


def test_acceleration_climbs_at_least_as_high_in_fewer_steps():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (500, 2)), rng.normal(1.5, 1, (500, 2))])
    options = {"means_init": [[0.0, 0.0], [1.0, 1.0]], "tol": 1e-10, "max_iter": 20_000}
    plain, fast = (GaussianMixture(2, accelerate=a, random_state=0, **options).fit(X) for a in (False, True))
    assert fast.n_iter_ < 0.5 * plain.n_iter_
    assert fast.lower_bound_ >= plain.lower_bound_ - 1e-6
    assert (np.diff(fast.history_.log_likelihood) >= -1e-9).all()


def test_restarts_keep_the_best_and_do_not_depend_on_threads(rows):
    fits = [
        GaussianMixture(4, n_init=6, init_params="random_from_data", random_state=0, n_jobs=j).fit(rows) for j in (1, 2)
    ]
    assert_array_equal(fits[0].means_, fits[1].means_)
    history = fits[0].history_
    ends = [history.log_likelihood[history.start == i][-1] for i in range(6)]
    assert fits[0].lower_bound_ * len(rows) == pytest.approx(max(ends))


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
def test_every_start_works_and_repeats(rows, init):
    with ep.config(on_nonconvergence="ignore"):
        one, two = (GaussianMixture(3, init_params=init, random_state=3, tol=1e-5).fit(rows) for _ in range(2))
    assert_array_equal(one.means_, two.means_)
    assert one.lower_bound_ > multivariate_normal(rows.mean(axis=0), np.cov(rows.T)).logpdf(rows).mean()


def test_choose_k_finds_the_planted_number(rows):
    chosen = GaussianMixture(random_state=0, n_init=2, max_iter=300).choose_k(rows, range(1, 6))
    assert chosen.k == chosen.model.n_components == 3
    assert set(chosen.scores) == {1, 2, 3, 4, 5}
    assert chosen.scores[3] == chosen.model.bic(rows)
    assert "3 components: BIC far better than with" in chosen.reason
    assert chosen.plot().get_ylabel() == "BIC"
    apart = GaussianMixture(random_state=0).choose_k(rows, [2, 3], criterion="icl")
    r = apart.model.predict_proba(rows)
    entropy = -(r * np.log(np.where(r > 0, r, 1))).sum()
    assert apart.scores[apart.k] == pytest.approx(apart.model.bic(rows) + 2 * entropy)
    few = GaussianMixture(reg_covar=0).choose_k(np.random.default_rng(0).normal(size=(4, 2)), [1, 3, 9])
    assert few.k == 1
    assert set(few.failed) == {3, 9}
    with pytest.raises(ParameterError, match="criterion='dic'"):
        GaussianMixture().choose_k(rows, criterion="dic")


def test_degenerate_covariances_are_named_with_component_and_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["height", "weight"]).assign(sum=lambda t: t.height + t.weight)
    with pytest.raises(DataError, match=r"In component 0 'sum' = height \+ weight, about its mean"):
        GaussianMixture(1, reg_covar=0).fit(X)
    X["unit"] = 1.0
    with pytest.raises(DataError, match=r"All components share a covariance in which .*'unit' is constant"):
        GaussianMixture(2, covariance_type="tied", reg_covar=0, random_state=0).fit(X)
    for kind in ("diag", "full"):
        with pytest.raises(DataError, match=r"In component \d .*'unit' is constant"):
            GaussianMixture(2, covariance_type=kind, reg_covar=0, random_state=0).fit(X[["height", "unit"]])


def test_bad_rows_and_starts_are_refused(rows):
    with pytest.raises(DataError, match="contains infinity, in column 'x1'"):
        GaussianMixture().fit(np.where(np.arange(3) == 1, np.inf, rows))
    with pytest.raises(DataError, match="column 'x2' has no value at all"):
        GaussianMixture().fit(np.where(np.arange(3) == 2, np.nan, rows))
    with pytest.raises(DataError, match="n_components = 7, n_samples = 3"):
        GaussianMixture(7).fit(rows[:3])
    with pytest.raises(DataError, match="contains infinity"):
        GaussianMixture().fit(rows).predict(np.full((1, 3), -np.inf))
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 iterations"):
        GaussianMixture(3, max_iter=2, tol=1e-9, random_state=0).fit(rows)


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(1, 40),
    p=st.integers(1, 4),
    share=st.floats(0, 1),
    scale=st.sampled_from([1e-6, 1.0, 1e4]),
    offset=st.sampled_from([0.0, 1e6]),
    ties=st.booleans(),
    constant=st.booleans(),
    missing=st.booleans(),
    kind=st.sampled_from(KINDS),
    accelerate=st.booleans(),
    init=st.sampled_from(["kmeans", "k-means++", "random", "random_from_data"]),
)
def test_any_rows_are_fitted_without_a_fall_or_nan(
    seed, n, p, share, scale, offset, ties, constant, missing, kind, accelerate, init
):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, p)).astype(float) if ties else rng.normal(size=(n, p))
    X = scale * (X + offset)
    if constant:
        X[:, 0] = X[0, 0]
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
        X[0] = np.where(np.isnan(X[0]), offset * scale, X[0])
    k = max(1, round(share * n))  # up to as many components as rows, and more than distinct ones
    model = GaussianMixture(
        k,
        covariance_type=kind,
        init_params=init,
        random_state=seed,
        accelerate=accelerate,
        max_iter=20,
        reg_covar=1e-6 * scale**2,
    )
    with ep.config(on_nonconvergence="ignore"):
        model.fit(X)
    L = model.history_.log_likelihood
    assert np.isfinite(L).all()
    assert (np.diff(L) >= -1e-6 * (np.abs(L[:-1]) + n)).all()
    assert np.isfinite(model.means_).all()
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert set(model.predict(X)) <= set(range(k))
    assert model.weights_.sum() == pytest.approx(1.0)


def test_rows_in_another_order_and_scale_give_the_same_components(rows):
    model = GaussianMixture(3, random_state=0, tol=1e-9, max_iter=1000, reg_covar=0.0)
    means = model.fit(rows).means_
    order = np.random.default_rng(0).permutation(len(rows))
    assert_allclose(model.fit(rows[order]).means_, means, rtol=1e-6)
    moved = model.fit(8 * rows + 64).means_
    at = [int(np.argmin(((moved - (8 * m + 64)) ** 2).sum(axis=1))) for m in means]
    assert_allclose(moved[at], 8 * means + 64, rtol=1e-5)


def test_samples_have_the_moments_of_the_mixture(rows):
    model = GaussianMixture(3, random_state=0).fit(rows)
    X, y = model.sample(40_000)
    for a in range(3):
        assert_allclose(X[y == a].mean(axis=0), model.means_[a], atol=0.05)
        assert_allclose(np.cov(X[y == a].T), model.covariances_[a], atol=0.1)
    assert_allclose(np.bincount(y) / 40_000, model.weights_, atol=0.01)


def test_files_warm_starts_and_checkpoints(rows, tmp_path):
    model = GaussianMixture(3, n_init=2, random_state=0, tol=1e-7, max_iter=500).fit(rows)
    model.save(tmp_path / "model.epi")
    assert_array_equal(ep.load(tmp_path / "model.epi").predict_proba(rows), model.predict_proba(rows))
    again = GaussianMixture(3, random_state=0, tol=1e-7, warm_start=True, max_iter=500)
    assert again.fit(rows).n_iter_ > again.fit(rows).n_iter_
    with pytest.warns(ConvergenceWarning):
        GaussianMixture(3, n_init=2, random_state=0, tol=1e-7, max_iter=5).set_callbacks(
            Checkpoint(tmp_path / "run.epi")
        ).fit(rows)
    resumed = Checkpoint.resume(tmp_path / "run.epi").set_params(max_iter=500, n_init=1)
    assert resumed.fit(rows).lower_bound_ == pytest.approx(model.lower_bound_, abs=1e-4)
