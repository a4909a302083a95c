"""Kernel principal components: scikit-learn, the primal, low rank and Lanczos roads, bad kernels."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA, KernelPCA as SklearnKernelPCA

import epicycle as ep
from epicycle import KernelPCA
from epicycle.exceptions import DataError, NotFittedError, ParameterError
from epicycle.kernel import Gaussian, Matern, Sigmoid, Spectrum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [3, 2, 1, 0.5]
NEW = RNG.normal(size=(12, 4))


def up_to_sign(found, expected, atol):
    signs = np.sign((found * expected).sum(axis=0))
    assert_allclose(found * signs, expected, atol=atol)


@pytest.mark.parametrize(
    ("kernel", "more"), [("linear", {}), ("rbf", {"gamma": 0.1}), ("poly", {"degree": 2, "gamma": 0.2}), ("cosine", {})]
)
def test_agrees_with_scikit_learn(kernel, more):
    mine = KernelPCA(3, kernel=kernel, **more).fit(X)
    theirs = SklearnKernelPCA(3, kernel=kernel, **more).fit(X)
    assert_allclose(mine.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    assert_allclose(mine.transform(X), theirs.transform(X), atol=1e-7)  # with the same signs
    assert_allclose(mine.transform(NEW), theirs.transform(NEW), atol=1e-7)
    assert mine.certificate_.holds


def test_linear_kernel_is_principal_component_analysis():
    primal = PCA(4).fit(X)
    dual = KernelPCA(kernel="linear").fit(X)
    assert dual.eigenvalues_.shape == (4,)  # no component of rounding errors
    up_to_sign(dual.transform(NEW), primal.transform(NEW), 1e-9)
    assert_allclose(dual.explained_variance_ratio_, primal.explained_variance_ratio_, rtol=1e-9)


def test_every_road_gives_the_same_components():
    """All eigenvalues, Lanczos, and a factor of low rank, on the same 500 rows."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(500, 3))
    for kernel in (Gaussian(3.0), Matern(0.5, nu=0.5)):  # nearly low rank, and not at all
        K = kernel(rows)
        centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        values, vectors = np.linalg.eigh(centred)
        for model in (KernelPCA(5, kernel=kernel).fit(rows), KernelPCA(5, kernel="precomputed").fit(K)):
            assert_allclose(model.eigenvalues_, values[::-1][:5], rtol=1e-8)
            up_to_sign(model.eigenvectors_, vectors[:, ::-1][:, :5], 1e-5)
            assert model.certificate_.holds
            residual = np.linalg.norm(centred @ model.eigenvectors_ - model.eigenvectors_ * model.eigenvalues_, axis=0)
            assert residual.max() / values[-1] <= model.certificate_.value + 1e-13
    everything = KernelPCA(kernel=Matern(0.5, nu=0.5)).fit(rows)
    Z = everything.transform(rows)
    assert_allclose(Z @ Z.T, centred, atol=1e-8)
    assert_allclose(everything.explained_variance_ratio_.sum(), 1.0)


def test_back_from_components():
    rng = np.random.default_rng(2)
    t = rng.uniform(0, 2 * np.pi, 150)
    circle = np.column_stack([np.cos(t), np.sin(t)])
    noisy = circle + 0.1 * rng.normal(size=circle.shape)
    options = {"kernel": "rbf", "gamma": 1.0, "alpha": 0.1}
    model = KernelPCA(4, fit_inverse_transform=True, **options).fit(noisy)
    back = model.inverse_transform(model.transform(noisy))
    assert np.square(back - circle).mean() < 0.8 * np.square(noisy - circle).mean()  # nearer to the truth
    theirs = SklearnKernelPCA(4, fit_inverse_transform=True, **options).fit(noisy)
    assert_allclose(back, theirs.inverse_transform(theirs.transform(noisy)), atol=1e-7)
    with pytest.raises(NotFittedError, match="fit_inverse_transform"):
        KernelPCA(4, **options).fit(noisy).inverse_transform(back)
    with pytest.raises(ParameterError, match="precomputed"):
        KernelPCA(kernel="precomputed", fit_inverse_transform=True).fit(Gaussian()(noisy))


def test_rows_of_every_kind_and_files(tmp_path):
    model = KernelPCA(2, kernel=Gaussian(2.0)).fit(X)
    expected = model.transform(NEW)
    assert_allclose(KernelPCA(2, kernel=Gaussian(2.0)).fit(sp.csr_array(X)).transform(sp.csr_array(NEW)), expected)
    single = KernelPCA(2, kernel=Gaussian(2.0)).fit(X.astype(np.float32)).transform(NEW.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, expected, atol=1e-4)
    moved = KernelPCA(2, kernel=Gaussian(2.0)).fit(X + 1e7).transform(NEW + 1e7)
    assert_allclose(moved, expected, atol=1e-6)
    model.save(tmp_path / "m.epi")
    assert np.array_equal(ep.load(tmp_path / "m.epi").transform(NEW), expected)
    assert model.get_feature_names_out().tolist() == ["kernelpca0", "kernelpca1"]
    strings = KernelPCA(2, kernel=Spectrum(2).normalized()).fit(["abab", "abba", "", "bbbb", "baba"])
    assert strings.transform(["", "ab"]).shape == (2, 2)


def test_order_of_the_rows_and_equal_rows():
    order = RNG.permutation(60)
    first, second = (KernelPCA(2, kernel="rbf").fit(rows) for rows in (X, X[order]))
    up_to_sign(second.transform(NEW), first.transform(NEW), 1e-8)
    for n in (1, 5):
        flat = KernelPCA(kernel="rbf").fit(np.ones((n, 2)))  # all features equal: nothing varies
        assert flat.transform(np.ones((3, 2))).shape == (3, 0)
        kept = KernelPCA(1, kernel="rbf").fit(np.ones((n, 2)))
        assert_allclose(kept.transform(np.ones((3, 2))), np.zeros((3, 1)), atol=1e-12)
        assert KernelPCA(1, kernel="rbf", remove_zero_eig=True).fit_transform(np.ones((n, 2))).shape == (n, 0)
        assert flat.explained_variance_ratio_.sum() <= 1


def test_bad_input():
    with pytest.raises(DataError, match=r"no Mercer kernel.*significant negative eigenvalues.*-"):
        KernelPCA(kernel=Sigmoid(2.0, -1.0)).fit(X)
    assert KernelPCA(2, kernel=Sigmoid(2.0, -1.0)).fit(X).certificate_.holds  # the first components are real
    with pytest.raises(DataError, match="not symmetric"):
        KernelPCA(2, kernel="precomputed").fit(np.triu(np.ones((4, 4))))
    assert KernelPCA(61).fit(X).transform(NEW).shape == (len(NEW), 60)  # at most as many as rows
    with pytest.raises(DataError, match="NaN"):
        KernelPCA().fit(np.full((3, 2), np.nan))
    with pytest.raises(ParameterError, match="gamma"):
        KernelPCA(gamma=np.inf).fit(X)


@pytest.mark.parametrize("solver", ["auto", "dense", "arpack", "randomized"])
def test_every_solver_gives_the_components_of_scikit_learn(solver):
    options = {"kernel": "poly", "degree": 2, "gamma": 0.3}
    ours = KernelPCA(3, eigen_solver=solver, max_iter=500, tol=0, random_state=0, **options).fit(X)
    theirs = SklearnKernelPCA(3, eigen_solver="dense", **options).fit(X)
    up_to_sign(ours.transform(NEW), theirs.transform(NEW), 1e-8)
    assert ours.gamma_ == 0.3
    assert ours.certificate_.holds


def test_a_function_of_two_rows_is_a_kernel_too():
    def pair(x, z, power):
        return float(np.minimum(np.abs(x), np.abs(z)).sum()) ** power

    ours = KernelPCA(2, kernel=pair, kernel_params={"power": 1}).fit(X).transform(NEW)
    theirs = SklearnKernelPCA(2, kernel=pair, kernel_params={"power": 1}).fit(X).transform(NEW)
    up_to_sign(ours, theirs, 1e-8)
