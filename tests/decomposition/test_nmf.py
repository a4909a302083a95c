"""Non-negative factors: closed forms, other solvers of the same problem, descent at every round, engines, weights."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from sklearn import decomposition as peer
from sklearn.decomposition._nmf import _beta_divergence

import epicycle as ep
from epicycle import NMF, MiniBatchNMF, non_negative_factorization
from epicycle._native import decomposition as native
from epicycle.data import Batch
from epicycle.decomposition.nmf._divergence import divergence_of
from epicycle.exceptions import ConvergenceWarning, DataError, DataTypeError, ParameterError

RNG = np.random.default_rng(0)
PARTS = RNG.gamma(0.4, size=(4, 24))
X = RNG.gamma(0.5, size=(150, 4)) @ PARTS + 0.05 * RNG.random((150, 24))
HOLES = np.where(RNG.random(X.shape) < 0.6, 0.0, X)


def objective(table, W, H, beta=2.0, alpha_W=0.0, alpha_H=None, l1_ratio=0.0, v=None):
    """The function that is minimised, from its definition."""
    v = np.ones(len(table)) if v is None else v
    alpha_H = alpha_W if alpha_H is None else alpha_H
    d = np.array([_beta_divergence(x[None], w[None], H, beta) for x, w in zip(table, W, strict=True)])
    on_W = l1_ratio * W.sum(axis=1) + (1 - l1_ratio) / 2 * (W**2).sum(axis=1)
    on_H = l1_ratio * H.sum() + (1 - l1_ratio) / 2 * (H**2).sum()
    return v @ (d + table.shape[1] * alpha_W * on_W) + v.sum() * alpha_H * on_H


def test_one_component_is_the_leading_singular_pair():
    _, s, V = np.linalg.svd(X, full_matrices=False)
    model = NMF(1, init="random", random_state=0, tol=1e-9).fit(X)
    assert_allclose(model.components_[0] / np.linalg.norm(model.components_), np.abs(V[0]), rtol=1e-6)
    assert model.reconstruction_err_ == pytest.approx(np.sqrt((s[1:] ** 2).sum()), rel=1e-9)


def test_rows_are_those_of_non_negative_least_squares():
    model = NMF(4, random_state=0, max_iter=5000).fit(X).set_params(tol=1e-10)
    new = RNG.gamma(0.5, size=(20, 24))
    expected = np.array([nnls(model.components_.T, row)[0] for row in new])
    assert_allclose(model.transform(new), expected, atol=1e-7)
    assert_allclose(model.transform(sp.csr_array(new)), expected, atol=1e-7)
    assert_allclose(model.transform(new)[:3], model.transform(new[:3]), rtol=1e-11, atol=1e-14)
    H = model.components_
    W, same, _ = non_negative_factorization(new, H=H, update_H=False, tol=1e-10, max_iter=5000)
    assert_allclose(W, expected, atol=1e-7)
    assert same is H


@pytest.mark.parametrize(
    "settings", [{}, {"alpha_W": 0.01}, {"alpha_W": 0.02, "alpha_H": 0.01, "l1_ratio": 0.7}], ids=str
)
def test_stationary_points_are_those_of_scikit_learn(settings):
    """Neither library goes on from where the other ended; which point that is depends on the start and the solver."""
    rng = np.random.default_rng(1)
    ends = {"init": "custom", "tol": 1e-7, "max_iter": 5000, **settings}
    for table in (X, HOLES):
        ours, theirs = NMF(4, **ends), peer.NMF(4, **ends)
        W, H = rng.random((150, 4)), rng.random((4, 24))
        mine = ours.fit_transform(table, W=W, H=H)
        other = theirs.fit_transform(table, W=W.copy(), H=H.copy())
        reached = [
            objective(table, mine, ours.components_, **settings),
            objective(table, other, theirs.components_, **settings),
        ]
        assert ours.history_.objective[-1] == pytest.approx(reached[0], rel=1e-9)
        assert ours.reconstruction_err_ == pytest.approx(np.linalg.norm(table - mine @ ours.components_), rel=1e-9)
        on, back = peer.NMF(4, **ends | {"max_iter": 50}), NMF(4, **ends | {"max_iter": 50})
        with ep.config(on_nonconvergence="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from_ours = on.fit_transform(table, W=mine.copy(), H=ours.components_.copy())
            from_theirs = back.fit_transform(table, W=other.copy(), H=theirs.components_.copy())
        assert objective(table, from_ours, on.components_, **settings) >= reached[0] * (1 - 1e-6)
        assert objective(table, from_theirs, back.components_, **settings) >= reached[1] * (1 - 1e-6)


@pytest.mark.parametrize("penalty", [(0.0, 0.0), (0.01, 0.0), (0.01, 0.6)], ids=str)
@pytest.mark.parametrize("beta", ["cd", -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
def test_no_round_raises_the_objective(beta, penalty):
    chosen = {"solver": "cd"} if beta == "cd" else {"solver": "mu", "beta_loss": beta}
    b = 2.0 if beta == "cd" else beta
    table = X if b <= 0 else HOLES
    alpha, l1 = penalty
    model = NMF(3, alpha_W=alpha, l1_ratio=l1, max_iter=60, tol=0, random_state=1, init="random", **chosen)
    sparse = NMF(**model.get_params())
    with ep.config(on_nonconvergence="ignore"):
        W = model.fit_transform(table)
        also = sparse.fit_transform(sp.csr_array(table))
    falls = -np.diff(model.history_.objective)
    assert falls.min() >= -1e-13 * model.history_.objective[0]
    assert falls[:3].min() > 0
    reached = objective(table, W, model.components_, b, alpha, l1_ratio=l1)
    assert reached <= model.history_.objective[-1] * (1 + 1e-9)
    assert_allclose(also, W, rtol=1e-6, atol=1e-8)
    assert_allclose(sparse.components_, model.components_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("beta", [-0.5, 0.0, 0.5, 1.0, 1.7, 2.0, 2.5])
def test_divergence_is_that_of_scikit_learn(beta):
    W, H = RNG.random((150, 3)), RNG.random((3, 24))
    table = X if beta <= 0 else HOLES
    v = RNG.random(150)
    expected = objective(table, W, H, beta, v=v)
    Ht = np.ascontiguousarray(H.T)
    for rows in (table, sp.csr_array(table)):
        assert divergence_of(Batch(rows, weight=v), W, Ht, beta, 1e-9)[0] == pytest.approx(expected, rel=1e-9)


def test_certificate_is_the_projected_gradient():
    """Against finite differences of the objective: none of them points downhill by more than the certificate says."""
    model = NMF(2, tol=1e-8, max_iter=5000, random_state=0, alpha_W=0.001)
    W = model.fit_transform(X[:30])
    H, h = model.components_, 1e-6
    assert model.certificate_.holds
    assert "no proof of a global optimum" in model.certificate_.meaning
    start = objective(X[:30], W, H, alpha_W=0.001)
    for A in (W, H):
        for at in [(0, 0), (0, 1), (1, 1)]:
            A[at] += h
            up = (objective(X[:30], W, H, alpha_W=0.001) - start) / h
            A[at] -= h
            assert up > -1e-3
            assert A[at] < 1e-9 or up < 1e-3
    with pytest.warns(ConvergenceWarning, match="stationarity"):
        assert not NMF(3, max_iter=1, random_state=0, init="random").fit(X).certificate_.holds


def test_sums_of_a_kullback_leibler_fit_are_those_of_the_rows():
    """A stationary point of the divergence keeps the sums of every row and of every column."""
    model = NMF(3, solver="auto", beta_loss="kullback-leibler", random_state=0, tol=1e-9, max_iter=3000)
    with ep.config(on_nonconvergence="ignore"):
        W = model.fit_transform(sp.csr_array(HOLES))
    fitted = model.inverse_transform(W)
    assert model.solver_ == "mu"
    assert_allclose(fitted.sum(axis=0), HOLES.sum(axis=0), rtol=1e-9)
    assert_allclose(fitted.sum(axis=1), HOLES.sum(axis=1), rtol=1e-3)


def test_planted_parts_are_found():
    parts = np.kron(np.eye(5), np.ones(6)) * RNG.uniform(0.5, 1.5, 30)
    table = RNG.gamma(0.3, size=(400, 5)) @ parts
    model = NMF(5, random_state=0, tol=1e-6, max_iter=2000).fit(table)
    found = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    cosine = found @ (parts / np.linalg.norm(parts, axis=1, keepdims=True)).T
    assert_allclose(np.sort(cosine.max(axis=0)), 1.0, atol=1e-6)


SETTINGS = [{}, {"solver": "mu", "beta_loss": 1.0}, {"alpha_W": 0.01, "l1_ratio": 0.5, "shuffle": True}]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_weights_are_repetitions(settings):
    times = RNG.integers(0, 4, 60)
    model = NMF(3, random_state=0, tol=1e-3, max_iter=500, **settings)
    weighted = NMF(**model.get_params()).fit(HOLES[:60], sample_weight=times)
    repeated = model.fit(np.repeat(HOLES[:60], times, axis=0))
    assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-9)
    assert weighted.reconstruction_err_ == pytest.approx(repeated.reconstruction_err_, rel=1e-9)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_engines_and_threads_agree(settings, tmp_path):
    model = NMF(3, random_state=0, tol=1e-3, max_iter=500, **settings)
    own = NMF(**model.get_params())
    rows = own.fit_transform(X)
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(24)])
    table.to_parquet(tmp_path / "x.parquet")
    sources = ((ep.scan(tmp_path / "x.parquet"), rows), (da.from_array(X, chunks=(40, 24)), own.transform(X)))
    for source, expected in sources:
        other = NMF(**model.get_params())
        W = other.fit_transform(source)
        assert_allclose(other.components_, own.components_, rtol=1e-7, atol=1e-10)
        assert_allclose(np.asarray(W), expected, rtol=1e-5, atol=1e-8)
        assert other.n_iter_ == own.n_iter_
    big = sp.random_array((9000, 60), density=0.6, rng=0, format="csr")
    found = [NMF(3, random_state=0, max_iter=5, n_jobs=jobs, **settings) for jobs in (1, 2, 4)]
    with ep.config(on_nonconvergence="ignore"):
        rows = [fit.fit_transform(big) for fit in found]
    for fit, W in zip(found[1:], rows[1:], strict=True):
        assert_array_equal(fit.components_, found[0].components_)
        assert_array_equal(W, rows[0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_mini_batches():
    settings = {"batch_size": 30, "random_state": 0, "tol": 1e-5, "max_iter": 500, "max_no_improvement": None}
    model = MiniBatchNMF(4, **settings).fit(X)
    theirs = peer.MiniBatchNMF(4, **settings).fit(X)
    assert model.reconstruction_err_ == pytest.approx(theirs.reconstruction_err_, rel=1e-2)
    assert model.history_.n_iter == model.n_steps_
    stream = MiniBatchNMF(4, batch_size=30, random_state=0, forget_factor=0.9)
    for _ in range(40):
        for start in range(0, 150, 30):
            stream.partial_fit(HOLES[start : start + 30])
    lost = np.linalg.norm(HOLES - stream.inverse_transform(stream.transform(HOLES)))
    assert stream.n_steps_ == 200
    assert lost < 1.15 * NMF(4, random_state=0).fit(HOLES).reconstruction_err_
    with pytest.raises(DataTypeError, match="partial_fit takes a stream"):
        MiniBatchNMF(4).fit(da.from_array(X))


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 20),
    p=st.integers(1, 8),
    scale=st.sampled_from([1e-60, 1.0, 1e60]),
    ties=st.booleans(),
    settings=st.sampled_from([{}, {"solver": "mu"}, {"solver": "mu", "beta_loss": 1}]),
)
def test_any_rows(seed, n, p, scale, ties, settings):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 2, (n, p)).astype(float) if ties else rng.gamma(0.5, size=(n, p))
    k = int(rng.integers(1, min(n, p) + 1))
    model = NMF(k, random_state=0, max_iter=20, init="nndsvda", **settings)
    scaled = NMF(**model.get_params())
    with ep.config(on_nonconvergence="ignore"):
        W = model.fit_transform(table)
        other = scaled.fit_transform(table * scale)
    assert W.min(initial=0) >= 0
    assert np.isfinite(W).all()
    assert np.isfinite(scaled.components_).all()
    error, size = np.linalg.norm(table - W @ model.components_), np.linalg.norm(table)
    assert error <= size * (1 + 1e-9) + 1e-12 or settings.get("beta_loss") == 1
    again = np.linalg.norm(table - (other / scale) @ scaled.components_)
    assert again <= size * (1 + 1e-6) + 1e-9 or settings.get("beta_loss") == 1


def test_frames_types_and_refusals():
    frame = pd.DataFrame(HOLES.astype(np.float32), columns=[f"w{j}" for j in range(24)])
    model = NMF(3, random_state=0).fit(frame)
    assert model.components_.dtype == np.float32
    assert model.transform(frame).dtype == np.float32
    assert list(model.get_feature_names_out()) == ["nmf0", "nmf1", "nmf2"]
    assert_allclose(model.components_, NMF(3, random_state=0).fit(HOLES).components_, rtol=1e-3, atol=1e-4)
    assert NMF(2, random_state=0).fit(np.zeros((5, 3))).reconstruction_err_ == 0
    for bad, words in (
        (-X, "Negative values in data passed to NMF"),
        (X * 1e150, r"X: a largest entry .* 1e\+70"),
        (X * 1e-150, "1e-70"),
    ):
        with pytest.raises(DataError, match=words):
            NMF(2).fit(bad)
    with pytest.raises(DataError, match="Negative"):
        NMF(2, random_state=0).fit(X).transform(-X)
    with pytest.raises(DataError, match="zeros"):
        NMF(2, solver="mu", beta_loss=0).fit(HOLES)
    with pytest.raises(ParameterError, match="does not handle beta_loss = 1"):
        NMF(2, beta_loss=1).fit(X)
    with pytest.raises(ParameterError, match="n_components <= min"):
        NMF(10**9, init="nndsvd").fit(X)
    with pytest.raises(MemoryError):
        NMF(10**9).fit(X)
    with pytest.raises(DataError, match="H: none was given"):
        NMF(2, init="custom").fit(X)
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        model.inverse_transform(np.ones(3))


def test_kernels_check_what_they_are_given():
    G, order, W = np.eye(2), np.arange(2), np.zeros((3, 2))
    table = sp.csr_array(np.ones((3, 4)))
    with pytest.raises(ValueError, match="descend_products: expected"):
        native.descend_products(np.ones((3, 2)), G, 0.0, np.array([0, 2]), 1, 0.0, None, W)
    with pytest.raises(ValueError, match="descend_sparse: expected"):
        native.descend_sparse(table, np.ones((3, 2)), G, 0.0, order, 1, 0.0, None, W)
    table.indices[5] = 9
    with pytest.raises(ValueError, match="products_at: expected"):
        native.products_at(table, W, np.ones((4, 2)))
