"""Principal components and truncated SVD: LAPACK's subspaces by every solver, engines, weights, gaps, how many."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn import decomposition as peer
from sklearn.datasets import load_digits, load_iris

import epicycle as ep
from epicycle import PCA, TruncatedSVD, plot
from epicycle.decomposition.pca._number_of_components import log_evidence
from epicycle.exceptions import ConvergenceWarning, DataError, NotFittedError, ParameterError
from epicycle.linalg._leading_eigenpairs import largest_outside, leading_eigenpairs

SOLVERS = ["full", "covariance_eigh", "arpack", "randomized"]


def rows(n=400, p=30, seed=0, offset=50.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) * 0.8 ** np.arange(p) @ rng.normal(size=(p, p)) + offset


X = rows()
SPARSE = sp.csr_array(np.where(X > 51, X - 50, 0.0))


def lapack(table, weight=None):
    """(variances, axes as rows) by the singular value decomposition."""
    w = np.ones(len(table)) if weight is None else weight
    centred = (table - w @ table / w.sum()) * np.sqrt(w)[:, None]
    _, s, axes = np.linalg.svd(centred, full_matrices=False)
    return s**2 / (w.sum() - 1), axes


def largest_angle(A, B):
    return float(scipy.linalg.subspace_angles(A.T, B.T).max())


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "table", [X, X[:20], sp.csr_array(np.where(X > 51, X - 50, 0.0))], ids=["tall", "wide", "sparse"]
)
def test_subspaces_are_those_of_lapack(solver, table):
    dense = table.toarray() if sp.issparse(table) else table
    weight = np.random.default_rng(1).uniform(0.5, 3, len(dense))
    for w in (None, weight):
        model = PCA(5, svd_solver=solver, random_state=0).fit(table, sample_weight=w)
        variances, axes = lapack(dense, w)
        assert_allclose(model.explained_variance_, variances[:5], rtol=1e-9)
        assert_allclose(model.explained_variance_ratio_, variances[:5] / variances.sum(), rtol=1e-9)
        assert largest_angle(model.components_, axes[:5]) < (1e-4 if solver == "randomized" else 1e-9)
        assert model.certificate_.holds
        assert model.solver_ == solver
        Z = model.transform(table)
        assert_allclose(np.average(Z**2, axis=0, weights=w), variances[:5] * (1 - 1 / _size(dense, w)), rtol=1e-8)
        lost = ((dense - model.inverse_transform(Z)) ** 2).sum(axis=1)
        assert_allclose(model.reconstruction_error(table), lost, rtol=1e-6, atol=1e-7)


def _size(table, weight):
    return len(table) if weight is None else weight.sum()


def test_the_bound_on_what_is_left_out():
    model = PCA(3, svd_solver="randomized", random_state=0).fit(X)
    outside = float(np.sqrt(lapack(X)[0][3]))
    text = str(model.certificate_.meaning)
    stated = float(text.split("above ")[1].split()[0])
    assert outside <= stated < 100 * outside
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 40))
    V = np.linalg.qr(rng.normal(size=(40, 4)))[0].T
    assert largest_outside(lambda M: A @ M, V, rng) >= np.linalg.norm(A - A @ V.T @ V, 2)


def test_few_products_are_said_to_be_few():
    slow = np.random.default_rng(0).normal(size=(600, 500))  # no gap between eigenvalues
    with pytest.warns(ConvergenceWarning):
        model = PCA(20, svd_solver="randomized", iterated_power=1, random_state=0).fit(slow)
    assert not model.certificate_.holds
    assert model.n_iter_ == 2
    exact = PCA(20, svd_solver="arpack", random_state=0).fit(slow)
    assert largest_angle(exact.components_, lapack(slow)[1][:20]) < 1e-8


def test_number_of_components():
    digits = load_digits().data
    model = PCA(0.99).fit(digits)
    kept = np.cumsum(lapack(digits)[0]) / lapack(digits)[0].sum()
    assert kept[model.n_components_ - 1] > 0.99 >= kept[model.n_components_ - 2]
    for seed in range(3):
        few = rows(n=80, p=6, seed=seed)
        assert PCA("mle").fit(few).n_components_ == peer.PCA("mle").fit(few).n_components_
    rng = np.random.default_rng(0)
    planted = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 20)) * 2 + rng.normal(size=(300, 20))
    assert PCA("parallel", random_state=0).fit(planted).n_components_ == 3
    assert PCA("mle").fit(planted).n_components_ == 3
    assert PCA("parallel", random_state=0).fit(rng.normal(size=(300, 20))).n_components_ <= 1
    # Minka's evidence by another route: the ratio of two numbers of components for isotropic rows
    assert log_evidence(np.array([4.0, 1.0, 1.0]), 1, 100) > log_evidence(np.array([4.0, 1.01, 0.99]), 2, 100)


@pytest.mark.parametrize("k", [2, 5])
def test_density_is_that_of_scikit_learn_and_of_the_normal(k):
    table = rows(n=200, p=5)
    mine, theirs = PCA(k).fit(table), peer.PCA(k).fit(table)
    assert_allclose(mine.get_covariance(), theirs.get_covariance(), rtol=1e-8)
    assert_allclose(mine.get_precision(), theirs.get_precision(), rtol=1e-7, atol=1e-9)
    assert_allclose(mine.score_samples(table), theirs.score_samples(table), rtol=1e-8)
    expected = multivariate_normal(table.mean(axis=0), mine.get_covariance()).logpdf(table)
    assert_allclose(mine.score_samples(table), expected, rtol=1e-8)
    assert mine.score(table) == pytest.approx(expected.mean())


def test_whitening_and_types():
    model = PCA(4, whiten=True).fit(X.astype(np.float32))
    Z = model.transform(X.astype(np.float32))
    assert Z.dtype == model.components_.dtype == np.float32
    assert_allclose(np.cov(Z.T), np.eye(4), atol=1e-3)
    assert_allclose(model.inverse_transform(Z), PCA(4).fit(X).inverse_transform(PCA(4).fit(X).transform(X)), rtol=1e-3)


def test_missing_entries():
    rng = np.random.default_rng(0)
    low = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 7)) + 0.05 * rng.normal(size=(400, 7))
    gaps = np.where(rng.random(low.shape) < 0.2, np.nan, low)
    model = PCA(2).fit(gaps)
    assert model.solver_ == "em"
    assert largest_angle(model.components_, PCA(2).fit(low).components_) < 0.02
    assert_allclose(model.inverse_transform(model.transform(gaps)), low, atol=0.6)
    ppca = ep.ProbabilisticPCA(2).fit(gaps)
    assert_allclose(model.noise_variance_ * 399 / 400, ppca.noise_variance_, rtol=1e-8)
    with pytest.raises(ParameterError, match="missing"):
        PCA(0.9).fit(gaps)
    with pytest.raises(DataError, match="infinity"):
        PCA(2).fit(np.where(np.isnan(gaps), np.inf, gaps))


@pytest.mark.parametrize("model", [PCA(3), PCA(3, svd_solver="full"), TruncatedSVD(3, random_state=0)])
def test_memory_files_and_dask(model, tmp_path):
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    frame.to_parquet(tmp_path / "x.parquet")
    own = model.fit(frame)
    found = [own.components_, own.explained_variance_]
    for source in (ep.scan(tmp_path / "x.parquet"), da.from_array(X, chunks=(90, 30))):
        other = type(model)(**model.get_params()).fit(source)
        assert_allclose(other.components_, found[0], atol=1e-5)
        assert_allclose(other.explained_variance_, found[1], rtol=1e-8)
    assert list(own.get_feature_names_out()) == [f"{type(model).__name__.lower()}{i}" for i in range(3)]
    one = type(model)(**{**model.get_params(), "n_jobs": 1}).fit(X)
    two = type(model)(**{**model.get_params(), "n_jobs": 2}).fit(X)
    assert_array_equal(one.components_, two.components_)


def test_rows_that_come_in_batches(tmp_path):
    table, weight = rows(400, 12, offset=1e6), np.random.default_rng(2).uniform(0.5, 3, 400)
    stream = PCA(5)
    for start, stop in ((0, 7), (7, 8), (8, 250), (250, 400)):
        stream.partial_fit(table[start:stop], sample_weight=weight[start:stop])
        stream.save(tmp_path / "stream.epi")
        stream = ep.load(tmp_path / "stream.epi")
        variances, axes = lapack(table[:stop], weight[:stop])
        assert_allclose(stream.explained_variance_, variances[:5], rtol=1e-8)
        assert largest_angle(stream.components_, axes[:5]) < 1e-6
    assert stream.certificate_.holds
    whole = PCA(5, svd_solver="full").fit(table, sample_weight=weight)
    assert_allclose(stream.transform(table), whole.transform(table), rtol=1e-6, atol=1e-6)
    assert_allclose(stream.noise_variance_, whole.noise_variance_, rtol=1e-8)
    assert stream.n_samples_ == 400
    before = stream.components_.copy()
    with pytest.raises(DataError, match="X has 3 features"):
        stream.partial_fit(table[:, :3])
    assert_array_equal(stream.components_, before)
    with pytest.raises(ParameterError, match=r"n_components=5 must be .* of the rows so far"):
        PCA(5).partial_fit(table[:3])
    with pytest.raises(NotFittedError, match="from the first rows on"):
        PCA(5).fit(table).partial_fit(table)
    continued = PCA().fit(table[:100], sample_weight=weight[:100]).partial_fit(table[100:], sample_weight=weight[100:])
    assert_allclose(continued.explained_variance_, variances, rtol=1e-6)
    assert_allclose(stream.fit(table[:50]).mean_, table[:50].mean(axis=0))  # starts anew
    assert PCA(0.9).partial_fit(table).n_components_ == PCA(0.9).fit(table).n_components_


@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_give_the_same_bits(solver):
    table = rows(120_000, 8)  # some blocks, which threads take side by side
    fits = [PCA(3, svd_solver=solver, random_state=0, n_jobs=jobs).fit(table) for jobs in (1, 2, 4)]
    for fit in fits[1:]:
        assert_array_equal(fit.components_, fits[0].components_)
        assert_array_equal(fit.explained_variance_, fits[0].explained_variance_)
        assert_array_equal(fit.transform(table), fits[0].transform(table))


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(2, 25),
    p=st.integers(1, 12),
    scale=st.sampled_from([1e-150, 1.0, 1e150]),
    ties=st.booleans(),
    cls=st.sampled_from([PCA, TruncatedSVD]),
)
def test_any_rows(seed, n, p, scale, ties, cls):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 2, (n, p)).astype(float) if ties else rng.normal(size=(n, p))
    table *= scale
    times = rng.integers(1, 4, n)
    k = int(rng.integers(1, min(n, p) + 1))
    model = cls(k, random_state=0).fit(table, sample_weight=times)
    again = cls(k, random_state=0).fit(np.repeat(table, times, axis=0))
    Z = model.transform(table)
    assert np.isfinite(Z).all()
    assert_allclose(model.singular_values_, again.singular_values_, rtol=1e-6, atol=1e-7 * scale)
    assert_allclose(model.components_ @ model.components_.T, np.eye(k), atol=1e-10)
    order = rng.permutation(n)
    moved = cls(k, random_state=0).fit(table[order], sample_weight=times[order])
    assert_allclose(moved.singular_values_, model.singular_values_, rtol=1e-6, atol=1e-7 * scale)


def test_truncated_svd_is_that_of_lapack():
    S = sp.random_array((300, 500), density=0.05, rng=0, format="csr")
    _, s, V = np.linalg.svd(S.toarray(), full_matrices=False)
    for algorithm, angle in (("arpack", 1e-9), ("randomized", 1e-2)):
        model = TruncatedSVD(6, algorithm=algorithm, random_state=0).fit(S)
        assert_allclose(model.singular_values_, s[:6], rtol=1e-5)
        assert largest_angle(model.components_, V[:6]) < angle
        theirs = peer.TruncatedSVD(6, algorithm="arpack").fit(S)
        assert_allclose(model.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-3)
    with pytest.raises(ParameterError, match="n_features"):
        TruncatedSVD(501).fit(S)


def test_many_components_of_sparse_rows():
    """Narrow blocks, restarts, and the kernel for sparse rows: LAPACK's axes, the same bits on all threads."""
    S = sp.random_array((900, 700), density=0.03, rng=0, format="csr") @ sp.diags_array(0.99 ** np.arange(700))
    weight = np.random.default_rng(1).uniform(0.5, 3, 900)
    dense = S.toarray()
    s = np.linalg.svd(dense * np.sqrt(weight)[:, None], compute_uv=False)
    found = [TruncatedSVD(60, random_state=0, n_jobs=j).fit(S, sample_weight=weight) for j in (1, 2, 4)]
    assert_allclose(found[0].singular_values_, s[:60], rtol=1e-5)
    assert_array_equal(found[0].components_, found[1].components_)
    assert_array_equal(found[0].components_, found[2].components_)
    Z = found[0].transform(S)
    mean = np.average(Z, axis=0, weights=weight)
    assert_allclose(found[0].explained_variance_, np.average((Z - mean) ** 2, axis=0, weights=weight), rtol=1e-8)
    variances, axes = lapack(dense, weight)
    model = PCA(40, svd_solver="arpack", random_state=0).fit(S, sample_weight=weight)
    assert_allclose(model.explained_variance_, variances[:40], rtol=1e-9)
    assert largest_angle(model.components_, axes[:40]) < 1e-7


def test_eigenpairs_by_products_end_at_rounding():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(80, 60))
    S = A.T @ A
    values, vectors = np.linalg.eigh(S)
    found = leading_eigenpairs(lambda V: S @ V, 60, 4, rng, tol=1e-15, max_products=300)
    assert found.residual < 1e-13
    assert_allclose(found.values, values[::-1][:4], rtol=1e-12)
    assert largest_angle(found.vectors, vectors[:, ::-1][:, :4].T) < 1e-10
    zero = leading_eigenpairs(lambda V: 0 * V, 5, 2, rng, tol=1e-10, max_products=10)
    assert_array_equal(zero.values, 0)


def test_files_and_refusals(tmp_path):
    model = PCA(3).fit(X)
    path = tmp_path / "pca.epi"
    model.save(path)
    assert_array_equal(ep.load(path).transform(X), model.transform(X))
    with pytest.raises(ParameterError, match="must be between 0 and min"):
        PCA(31).fit(X)
    with pytest.raises(DataError, match="n_samples=1"):
        PCA().fit(X[:1])
    with pytest.raises(DataError, match=r"sum of 0\.4"):
        PCA().fit(X, sample_weight=np.full(400, 0.001))
    with pytest.raises(DataError, match=r"shape \(400, 2\)"):
        model.inverse_transform(model.transform(X)[:, :2])


def test_plots():
    iris = load_iris()
    model = PCA().fit(iris.data)
    drawn = plot.scree(model.explained_variance_ratio_)
    assert drawn.data["cumulative"][-1] == pytest.approx(1)
    both = plot.biplot(model.transform(iris.data), model.components_, iris.target, iris.feature_names)
    assert {text.get_text() for text in both.ax_.texts} >= set(iris.feature_names)
    with pytest.raises(DataError, match="k >= 2"):
        plot.biplot(model.transform(iris.data)[:, :1], model.components_[:1])


@pytest.mark.parametrize("seed", range(8))
def test_many_restarts_keep_the_vectors_orthonormal(seed):
    """Eigenvalues that lie close together need hundreds of products, and the space is cut back many times."""
    X = np.random.default_rng(0).normal(size=(100, 80))
    model = PCA(n_components=2, svd_solver="arpack", random_state=seed).fit(X)
    assert_allclose(model.singular_values_, np.linalg.svd(X - X.mean(0), compute_uv=False)[:2], rtol=1e-9)
    assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-9)
    assert model.certificate_.holds
