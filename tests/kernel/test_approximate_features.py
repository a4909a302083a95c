"""Random Fourier features, whose error falls as one over a root, and Nystrom features, exact on their landmarks."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.kernel_approximation import Nystroem as SklearnNystroem

import epicycle as ep
from epicycle import KernelRidge, Nystroem, RandomFourierFeatures, Ridge
from epicycle.exceptions import DataError, ParameterError
from epicycle.kernel import (
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
)

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(60, 3)), RNG.normal(size=(20, 3))
STATIONARY = [
    Gaussian(0.8),
    Gaussian((0.5, 1.0, 2.0)),
    Laplacian(1.5),
    Matern(0.7, nu=0.5),
    Matern((0.5, 1.0, 2.0), nu=1.5),
    Matern(0.7, nu=2.5),
    RationalQuadratic(0.9, alpha=0.7),
    2.0 * Gaussian(0.8) + 0.5,
    0.3 * Matern(1.0) + Laplacian(0.5),
    Gaussian(2.0) * Laplacian(1.0),
    Matern(1.5) ** 2,
]


# ------------------------------------------------------------------- random Fourier features


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_inner_products_are_the_kernel_on_average(kernel):
    """The error, over its standard error: neither too large nor, over all pairs, too small."""
    m = 20_000
    Z = RandomFourierFeatures(kernel, n_components=m, random_state=1).fit_transform(X)
    K = kernel(X)
    off = ~np.eye(60, dtype=bool)
    error = (Z @ Z.T - K)[off] / (K[0, 0] * np.sqrt(2 / m))
    assert np.abs(error).max() < 5
    assert 0.1 < np.sqrt(np.square(error).mean()) < 1.2
    assert_allclose(np.square(Z).sum(axis=1), K[0, 0], rtol=1e-9)  # cos^2 + sin^2


def test_the_error_falls_as_one_over_the_root():
    K = Gaussian(1.0)(X)
    sizes = np.array([50, 200, 800, 3200, 12_800])
    errors = []
    for size in sizes:
        found = [
            RandomFourierFeatures(Gaussian(1.0), n_components=size, random_state=s).fit_transform(X) for s in range(6)
        ]
        errors.append(np.mean([np.square(Z @ Z.T - K).mean() for Z in found]))
    slope = np.polyfit(np.log(sizes), np.log(errors) / 2, 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.08)


@pytest.mark.slow
def test_the_standard_error_that_is_said_holds():
    """Also for an odd number of features, the last of which has a random phase."""
    for size in (1, 2, 7, 40):
        samples = np.array(
            [
                (lambda Z: Z[0] @ Z[1])(
                    RandomFourierFeatures(Gaussian(2.0), n_components=size, random_state=s).fit_transform(X[:2])
                )
                for s in range(1500)
            ]
        )
        said = float(
            RandomFourierFeatures(Gaussian(2.0), n_components=size, random_state=0)
            .fit(X)
            .certificate_.meaning.rsplit(" ", 1)[1]
        )
        assert samples.std() <= said * 1.05
        assert abs(samples.mean() - Gaussian(2.0)(X[:2])[0, 1]) < 4 * samples.std() / np.sqrt(1500)


def test_a_linear_model_of_the_features_is_nearly_the_machine():
    y = np.sin(X[:, 0]) + X[:, 1]
    exact = KernelRidge(0.1, kernel=Gaussian(1.5)).fit(X, y).predict(NEW)
    features = RandomFourierFeatures(Gaussian(1.5), n_components=20_001, random_state=0).fit(X)
    near = Ridge(0.1, fit_intercept=False).fit(features.transform(X), y).predict(features.transform(NEW))
    assert_allclose(near, exact, atol=0.05)


def test_fourier_rows_of_every_kind_and_files(tmp_path):
    model = RandomFourierFeatures(gamma=0.3, n_components=31, random_state=3).fit(X)
    expected = model.transform(NEW)
    assert expected.shape == (20, 31)
    assert_allclose(model.transform(sp.csr_array(NEW)), expected, atol=1e-12)
    single = model.transform(NEW.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, expected, atol=1e-5)
    far = RandomFourierFeatures(gamma=0.3, n_components=31, random_state=3).fit(X + 1e8).transform(NEW + 1e8)
    assert_allclose(far @ far.T, expected @ expected.T, atol=0.2)
    assert_allclose(far[:, :30] @ far[:, :30].T, expected[:, :30] @ expected[:, :30].T, atol=1e-5)
    model.save(tmp_path / "m.epi")
    assert np.array_equal(ep.load(tmp_path / "m.epi").transform(NEW), expected)
    np.save(tmp_path / "rows.npy", X)
    scanned = RandomFourierFeatures(gamma=0.3, n_components=31, random_state=3).fit(ep.scan(tmp_path / "rows.npy"))
    assert_allclose(scanned.transform(NEW), expected, atol=1e-12)
    again = RandomFourierFeatures(gamma=0.3, n_components=31, random_state=4).fit(X)
    assert not np.allclose(again.transform(NEW), expected)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(), Periodic(), Gaussian() + Linear()], ids=repr)
def test_kernels_without_a_spectral_density_are_refused(kernel):
    with pytest.raises(ParameterError, match=r"no spectral density.*Nystroem"):
        RandomFourierFeatures(kernel).fit(X)


# ------------------------------------------------------------------- Nystrom


@pytest.mark.parametrize("landmarks", ["pivoted", "uniform"])
def test_exact_on_its_landmarks_and_never_too_large(landmarks):
    for kernel in (Gaussian(1.0), Matern(0.5, nu=0.5), Polynomial(2)):
        model = Nystroem(kernel, n_components=12, landmarks=landmarks, random_state=0).fit(X)
        K, Z = kernel(X), model.transform(X)
        chosen = model.component_indices_
        assert_allclose(model.components_, X[chosen])
        assert_allclose(Z @ Z[chosen].T, K[:, chosen], rtol=1e-6, atol=1e-6 * K.max())
        rest = K - Z @ Z.T
        assert np.linalg.eigvalsh(rest)[0] > -1e-8 * K.max()
        assert model.certificate_.value == pytest.approx(np.trace(rest) / np.trace(K), rel=1e-6, abs=1e-12)
        assert_allclose(model.transform(NEW) @ Z[chosen].T, kernel(NEW, X[chosen]), atol=1e-6 * K.max())


def test_the_features_of_scikit_learn():
    model = Nystroem(Gaussian(1.0), n_components=15, random_state=0).fit(X)
    basis = X[model.component_indices_]
    theirs = SklearnNystroem(gamma=0.5, n_components=15).fit(basis)  # the same landmarks
    assert_allclose(
        model.transform(NEW) @ model.transform(NEW).T, theirs.transform(NEW) @ theirs.transform(NEW).T, atol=1e-8
    )


def test_all_landmarks_give_the_kernel_and_few_pivots_suffice_for_low_rank():
    Z = Nystroem(Gaussian(1.0), n_components=60, landmarks="uniform", random_state=0).fit_transform(X)
    assert_allclose(Z @ Z.T, Gaussian(1.0)(X), atol=1e-7)
    low = Nystroem(Polynomial(2), n_components=60).fit(X)
    assert low.transform(X).shape[1] == 10  # monomials of three columns up to degree two
    assert low.certificate_.value < 1e-12
    errors = [Nystroem(Gaussian(1.0), n_components=m).fit(X).certificate_.value for m in (2, 5, 10, 20, 40)]
    assert (np.diff(errors) < 0).all()
    pivoted = Nystroem(Gaussian(2.0), n_components=20).fit(X).certificate_.value
    drawn = [Nystroem(Gaussian(2.0), n_components=20, landmarks="uniform", random_state=s).fit(X) for s in range(10)]
    assert pivoted < np.mean([model.certificate_.value for model in drawn])


def test_nystrom_rows_of_every_kind_and_files(tmp_path):
    model = Nystroem(Gaussian(1.0), n_components=9).fit(X)
    expected = model.transform(NEW)
    assert_allclose(Nystroem(Gaussian(1.0), n_components=9).fit(sp.csr_array(X)).transform(sp.csr_array(NEW)), expected)
    assert model.transform(NEW.astype(np.float32)).dtype == np.float32
    model.save(tmp_path / "m.epi")
    assert np.array_equal(ep.load(tmp_path / "m.epi").transform(NEW), expected)
    assert model.get_feature_names_out()[0] == "nystroem0"
    strings = ["".join(RNG.choice(list("ab"), 8)) for _ in range(20)]
    words = Nystroem(Spectrum(2).normalized(), n_components=20).fit_transform(strings)
    assert_allclose(words @ words.T, Spectrum(2).normalized()(strings), atol=1e-9)


def test_bad_input():
    with pytest.raises(ParameterError, match="Don't pass gamma"):
        Nystroem("precomputed", gamma=1.0).fit(Gaussian()(X))
    with pytest.raises(ParameterError, match="Don't pass gamma"):
        Nystroem(lambda A, B: A @ B.T, degree=2).fit(X)
    with pytest.raises(DataError, match="no Mercer kernel"):
        Nystroem(Sigmoid(2.0, -1.0), n_components=20, landmarks="uniform", random_state=0).fit(X)
    for estimator in (Nystroem, RandomFourierFeatures):
        with pytest.raises(ParameterError, match="gamma"):
            estimator(gamma=np.inf).fit(X)
        with pytest.raises(ParameterError, match="n_components"):
            estimator(n_components=0).fit(X)
        with pytest.raises(DataError, match="NaN"):
            estimator().fit(np.full((3, 2), np.nan))
        assert estimator(n_components=4).fit(X[:1]).transform(NEW).shape[0] == 20
    for flat in (Nystroem(n_components=3), Nystroem("linear", n_components=3)):
        assert np.isfinite(flat.fit(np.zeros((5, 2))).transform(np.ones((2, 2)))).all()


def test_landmarks_of_a_given_matrix():
    K, across = Gaussian(1.0)(X), Gaussian(1.0)(NEW, X)
    given, rows = (Nystroem(kernel, n_components=9) for kernel in ("precomputed", Gaussian(1.0)))
    assert_allclose(given.fit(K).transform(across), rows.fit(X).transform(NEW), atol=1e-10)
    assert np.array_equal(given.component_indices_, rows.component_indices_)


def test_powers_that_are_not_whole():
    rows = np.abs(X)
    Z = Nystroem("poly", degree=3.1, coef0=0.1, n_components=len(X)).fit_transform(rows)
    assert_allclose(Z @ Z.T, (rows @ rows.T / X.shape[1] + 0.1) ** 3.1, atol=1e-3)  # hardly no kernel
    with pytest.raises(DataError, match="negative"):
        Nystroem("poly", degree=3.1, coef0=0.1).fit(X)


def test_fourier_features_are_the_same_on_every_engine(tmp_path):
    """The rows are subtracted about a mean of all rows, not of the first batch."""
    import dask.array as da
    import pandas as pd

    rows = np.random.default_rng(3).normal(size=(5000, 3)) + np.linspace(0, 50, 5000)[:, None]
    expected = RandomFourierFeatures(n_components=20, random_state=7).fit_transform(rows)
    spread = RandomFourierFeatures(n_components=20, random_state=7).fit(da.from_array(rows, chunks=(400, 3)))
    assert_allclose(spread.transform(rows), expected, atol=1e-9)
    pd.DataFrame(rows, columns=list("abc")).to_parquet(tmp_path / "rows.parquet")
    scanned = RandomFourierFeatures(n_components=20, random_state=7)
    scanned.fit(ep.scan(tmp_path / "rows.parquet", batch_rows=600))
    assert_allclose(scanned.transform(pd.DataFrame(rows, columns=list("abc"))), expected, atol=1e-9)
