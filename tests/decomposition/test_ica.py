"""Independent components: scikit-learn's fixed points, maxima of the likelihood, engines, weights, the Amari index."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate
from sklearn import decomposition as peer

import epicycle as ep
from epicycle import ICA, FastICA, fastica
from epicycle.data import ArrayData, Batch
from epicycle.decomposition.ica import _likelihood
from epicycle.decomposition.ica._contrasts import Contrast, sums_of
from epicycle.decomposition.ica._ica import _constant, _densities
from epicycle.exceptions import ConvergenceWarning, DataError, DataTypeError, ParameterError
from epicycle.metrics import amari_index

A = np.array([[1.0, 0.6, -0.3, 0.2], [-0.4, 1.0, 0.5, 0.1], [0.2, -0.7, 1.0, 0.4], [0.3, 0.1, -0.2, 1.0]])


def signals(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.laplace(size=n), rng.uniform(-2, 2, n), rng.logistic(size=n), rng.laplace(size=n) ** 3])


SOURCES = signals()
X = SOURCES / SOURCES.std(axis=0) @ A.T + 5.0
PEAKED = np.random.default_rng(1).laplace(size=(3000, 4)) @ A.T + 5.0


def matched(B, C):
    """The largest distance of the rows of B from those of C, after order and signs."""
    found = np.abs(B @ np.linalg.pinv(C))
    return float(np.abs(found - (found == found.max(axis=1, keepdims=True))).max())


def cubed(y):
    return y**3, 3 * y**2


@pytest.mark.parametrize("algorithm", ["parallel", "deflation"])
@pytest.mark.parametrize("fun", ["logcosh", "exp", "cube", cubed])
def test_fixed_points_are_those_of_scikit_learn(algorithm, fun):
    found = FastICA(algorithm=algorithm, fun=fun, tol=1e-12, random_state=0, max_iter=500).fit(X)
    # From where ours ended: if it is a fixed point of theirs too, they do not move.
    start = found.components_ @ np.linalg.pinv(np.sqrt(len(X)) * peer.FastICA(random_state=0).fit(X).whitening_)
    reference = fun if isinstance(fun, str) else lambda y: (y**3, (3 * y**2).mean(axis=-1))
    theirs = peer.FastICA(algorithm=algorithm, fun=reference, tol=1e-10, w_init=start).fit(X)
    assert theirs.n_iter_ <= 3
    assert matched(found.components_, theirs.components_) < 1e-5
    assert found.certificate_.holds
    assert found.certificate_.value < 1e-5
    assert amari_index(found.components_, A) < (0.15 if fun in ("cube", cubed) else 0.06)  # rows far out count most
    assert_allclose(found.inverse_transform(found.transform(X)), X, rtol=1e-9)


def test_whitening_as_in_scikit_learn():
    for whiten in ("unit-variance", "arbitrary-variance"):
        model = FastICA(3, whiten=whiten, random_state=0).fit(X)
        theirs = peer.FastICA(3, whiten=whiten, random_state=0).fit(X)
        assert_allclose(np.abs(model.whitening_), np.abs(theirs.whitening_), rtol=1e-8)
        assert_allclose(np.cov(model.transform(X).T, ddof=0), np.cov(theirs.transform(X).T, ddof=0), atol=1e-8)
        assert_allclose(model.mixing_, np.linalg.pinv(model.components_), rtol=1e-8, atol=1e-12)
    pca = peer.PCA(whiten=True).fit(X)
    rows_as_they_are = FastICA(whiten=False, random_state=0).fit(pca.transform(X))
    assert not hasattr(rows_as_they_are, "mean_")
    unmixing = rows_as_they_are.components_ @ (pca.components_ / np.sqrt(pca.explained_variance_)[:, None])
    assert amari_index(unmixing, A) < 0.06
    K, W, S, mean, n_iter = fastica(X, random_state=0, return_X_mean=True, return_n_iter=True)
    assert_allclose((X - mean) @ (W @ K).T, S, atol=1e-9)
    assert n_iter == FastICA(random_state=0).fit(X).n_iter_
    small = np.column_stack([X, X[:, 0] + 1e-7 * np.random.default_rng(9).laplace(size=len(X))])
    assert_allclose(np.cov(FastICA(random_state=0).fit_transform(small).T, ddof=0), np.eye(5), atol=1e-5)


@pytest.mark.parametrize("sources", ["logistic", "laplace"])
def test_gradient_and_blocks_of_the_likelihood(sources):
    rng = np.random.default_rng(0)
    Z, w = rng.logistic(size=(200, 3)), rng.uniform(0.5, 2, 200)
    contrast = Contrast(sources, 0.05 if sources == "laplace" else 1.0)
    evaluate = _likelihood.likelihood(ArrayData(Z, weight=w), None, contrast, _constant(sources), None)
    W, h = rng.normal(size=(3, 3)), 1e-6
    at = evaluate(W)
    for i, j in ((0, 0), (0, 2), (2, 1)):
        D = np.zeros((3, 3))
        D[i, j] = h
        up, down = evaluate((np.eye(3) + D) @ W), evaluate((np.eye(3) - D) @ W)
        assert (up.value - down.value) / (2 * h) == pytest.approx(at.G[i, j], abs=1e-7)
    Y = Z @ W.T
    log_density = np.log(integrate_one(sources, Y)) @ np.ones(3) + np.linalg.slogdet(W)[1]
    assert at.value == pytest.approx(-np.average(log_density, weights=w), rel=1e-9)
    D = rng.normal(size=(3, 3))
    a = 1.5 + rng.uniform(0, 2, (3, 3))  # blocks with eigenvalues above the floor
    assert_allclose(_likelihood._solved(a, a * D + D.T), D, atol=1e-10)
    assert float(_likelihood._solved(a * 0.1, D).ravel() @ D.ravel()) > 0  # a direction of descent with any blocks


def integrate_one(sources, Y):
    """The density of a source by formulas that share nothing with the fit."""
    if sources == "logistic":
        return np.exp(-Y) / (1 + np.exp(-Y)) ** 2
    total = integrate.quad(lambda y: np.exp(-np.sqrt(y * y + 0.0025)), 0, 60, points=[0.1])[0] * 2
    return np.exp(-np.sqrt(Y * Y + 0.0025)) / total


def test_solvers_end_at_one_maximum():
    found = {s: ICA(solver=s, random_state=0).fit(PEAKED) for s in ("picard", "natural-gradient", "stochastic")}
    best = found["picard"]
    assert best.n_iter_ < found["natural-gradient"].n_iter_
    assert_allclose(found["natural-gradient"].log_likelihood_, best.log_likelihood_, rtol=1e-10)
    assert 0 < best.log_likelihood_ - found["stochastic"].log_likelihood_ < 30  # of 3,000 rows
    for model in found.values():
        assert model.certificate_.holds
        assert amari_index(model.components_, A) < 0.06
        assert model.score(PEAKED) * len(PEAKED) == pytest.approx(model.log_likelihood_, rel=1e-9)
    # the maximum by another optimiser, in W itself and without whitening
    D = PEAKED - PEAKED.mean(axis=0)

    def negative(b):
        B = b.reshape(4, 4)
        value = np.logaddexp(D @ B.T / 2, -D @ B.T / 2).sum() * 2 / len(D) - np.linalg.slogdet(B)[1]
        return value, (np.tanh(D @ B.T / 2).T @ D / len(D) - np.linalg.inv(B).T).ravel()

    start = best.components_ * 1.05 + 0.01
    theirs = scipy.optimize.minimize(negative, start.ravel(), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert_allclose(theirs.x.reshape(4, 4), best.components_, atol=1e-5)
    assert -theirs.fun * len(D) == pytest.approx(best.log_likelihood_, rel=1e-9)
    unlike = ICA(random_state=0).fit(np.random.default_rng(0).uniform(size=(2000, 2)))
    assert amari_index(unlike.components_, np.eye(2)) > 0.5  # uniform sources are none of a logistic density


def test_few_iterations_are_said_to_be_few():
    for model in (FastICA(max_iter=1, random_state=0), ICA(max_iter=2, random_state=0)):
        with pytest.warns(ConvergenceWarning, match="did not converge"):
            model.fit(X)
        assert not model.converged_


@pytest.mark.parametrize(
    "model", [FastICA(random_state=0), FastICA(3, fun="exp", random_state=0), ICA(2, random_state=0)]
)
def test_memory_files_and_dask(model, tmp_path):
    table = PEAKED
    frame = pd.DataFrame(table, columns=list("abcd"))
    frame.to_parquet(tmp_path / "x.parquet")
    own = model.fit(frame)
    for source in (ep.scan(tmp_path / "x.parquet"), da.from_array(table, chunks=(900, 4)), sp.csr_array(table)):
        other = type(model)(**model.get_params()).fit(source)
        assert_allclose(other.components_, own.components_, rtol=1e-5, atol=1e-6)
    assert_allclose(np.asarray(other.transform(sp.csr_array(table))), own.transform(frame), atol=1e-5)
    assert list(own.get_feature_names_out()) == [
        f"{type(model).__name__.lower()}{i}" for i in range(len(own.components_))
    ]
    stochastic = ICA(2, solver="stochastic", random_state=0).fit(ep.scan(tmp_path / "x.parquet"))
    assert stochastic.certificate_.holds
    path = tmp_path / "model.epi"
    own.save(path)
    assert_array_equal(ep.load(path).transform(frame), own.transform(frame))


def test_threads_give_the_same_bits():
    large = np.random.default_rng(0).laplace(size=(60_000, 8)) @ np.random.default_rng(1).normal(size=(8, 8))
    for model in (FastICA(random_state=0), ICA(random_state=0)):
        found = [type(model)(**{**model.get_params(), "n_jobs": j}).fit(large).components_ for j in (1, 2, 4)]
        assert_array_equal(found[0], found[1])
        assert_array_equal(found[0], found[2])


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(3, 30),
    p=st.integers(1, 5),
    scale=st.sampled_from([1e-140, 1.0, 1e140]),
    cls=st.sampled_from([FastICA, ICA]),
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_any_rows(seed, n, p, scale, cls):
    rng = np.random.default_rng(seed)
    table = rng.laplace(size=(n, p)) * scale
    times = rng.integers(1, 4, n)
    k = min(n - 1, p)
    start = np.linalg.qr(rng.normal(size=(k, k)))[0]
    options = {"w_init": start, "max_iter": 3, "n_components": k}  # later steps of few rows may go either way
    model = cls(**options).fit(table, sample_weight=times)
    again = cls(**options).fit(np.repeat(table, times, axis=0))
    S = model.transform(table)
    assert np.isfinite(S).all()
    assert_allclose(np.abs(again.transform(table)), np.abs(S), rtol=1e-5, atol=1e-6)
    order = rng.permutation(n)
    moved = cls(**options).fit(table[order], sample_weight=times[order])
    assert_allclose(moved.transform(table), S, rtol=1e-5, atol=1e-6)
    unit = cls(**options).fit(table / scale, sample_weight=times)
    assert_allclose(unit.transform(table / scale), S, rtol=1e-5, atol=1e-6)


def test_types_and_refusals():
    single = FastICA(random_state=0).fit(X.astype(np.float32))
    assert (
        single.components_.dtype == single.mixing_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    )
    assert matched(single.components_.astype(float), FastICA(random_state=0).fit(X).components_) < 1e-2
    with pytest.raises(ParameterError, match=r"alpha must be in \[1,2\]"):
        FastICA(fun_args={"alpha": 3}).fit(X)
    with pytest.raises(DataError, match="w_init"):
        ICA(w_init=np.eye(3)).fit(X)
    with pytest.raises(DataError, match="constant"):
        FastICA().fit(np.ones((5, 2)))
    with pytest.raises((DataError, DataTypeError), match="fun"):
        FastICA(fun=np.tanh).fit(X)
    with pytest.raises(DataError, match="sample_weight"):
        FastICA(fun=lambda y: (y**3, (3 * y**2).mean(axis=-1))).fit(X, sample_weight=np.ones(len(X)))
    with pytest.raises(DataError, match=r"shape \(3000, 2\)"):
        single.inverse_transform(X[:, :2])
    with pytest.warns(UserWarning, match="small singular values"):
        assert len(FastICA(3, random_state=0).fit(X[:, [0, 1, 1]]).components_) == 2
    assert len(ICA(random_state=0).fit(PEAKED[:, [0, 1, 1]]).components_) == 2
    with pytest.warns(UserWarning, match="too large"):
        FastICA(10**9, random_state=0).fit(X)


def test_amari_index():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(4, 4))
    P = np.abs(B @ A)
    by_hand = sum(P[i].sum() / P[i].max() - 1 for i in range(4)) + sum(
        P[:, j].sum() / P[:, j].max() - 1 for j in range(4)
    )
    assert amari_index(B, A) == pytest.approx(by_hand / (2 * 4 * 3))
    assert amari_index(-1e200 * B[[2, 0, 3, 1]], 1e150 * A) == pytest.approx(amari_index(B, A))
    assert amari_index(np.linalg.inv(A), A) < 1e-12
    for bad, message in ((np.ones((3, 4)), "shape"), (np.zeros((4, 4)), "zeros"), (np.full((4, 4), np.nan), "finite")):
        with pytest.raises(DataError, match=message):
            amari_index(bad, A)


def test_sums_by_hand():
    rng = np.random.default_rng(0)
    Z, W, w = rng.normal(size=(900, 3)), rng.normal(size=(3, 3)), rng.uniform(0, 2, 900)
    Y = Z @ W.T
    found = sums_of(ArrayData(Z, weight=w), None, W, Contrast("logcosh", 1.5), values=True, squares=True)
    g = np.tanh(1.5 * Y)
    assert_allclose(found.values, np.average(np.log(np.cosh(1.5 * Y)) / 1.5, axis=0, weights=w), rtol=1e-12)
    assert_allclose(found.products, (g * w[:, None]).T @ Z / w.sum(), rtol=1e-11, atol=1e-14)
    slopes = 1.5 * (1 - g**2)
    assert_allclose(found.slopes, np.average(slopes, axis=0, weights=w), rtol=1e-12)
    assert_allclose(found.squares, (slopes * w[:, None]).T @ Y**2 / w.sum(), rtol=1e-11)
    density = _densities(Batch(Z), np.zeros(3), W, "laplace")
    assert_allclose(density, np.log(integrate_one("laplace", Y)).sum(axis=1) + np.linalg.slogdet(W)[1], rtol=1e-9)
