"""The right answer from awkward arrays: dependent columns, bad condition, large offsets, any memory layout and type."""

import mmap

import extended_precision as exact
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle import LinearRegression, LogisticRegression, Ridge

pytestmark = pytest.mark.filterwarnings("ignore::epicycle.exceptions.CollinearityWarning")  # it is on purpose
EPS = np.finfo(float).eps
MODELS = [LinearRegression(), Ridge(2.0), LogisticRegression(C=0.7), LogisticRegression(C=np.inf)]


def name(model):
    return f"{type(model).__name__}{'' if getattr(model, 'C', 1) != np.inf else '-unpenalised'}"


each = pytest.mark.parametrize("model", MODELS, ids=name)


def new(model, **parameters):
    return type(model)(**{**model.get_params(), **parameters})


def problem(model, n=300, p=6, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, p)), 3)
    Z = X @ rng.normal(size=(p, classes)) + rng.logistic(size=(n, classes)) * 2
    return X, Z.argmax(axis=1) if isinstance(model, LogisticRegression) else Z[:, 0]


# ------------------------------------------------------------------------------------------------ rank and condition


def centred_minimum_norm(X, y):
    A = X - X.mean(axis=0)
    coef = np.linalg.lstsq(A, y - y.mean(axis=0), rcond=EPS * max(X.shape))[0].T
    return coef, y.mean(axis=0) - coef @ X.mean(axis=0)


WIDE = {
    "fewer rows than columns": lambda rng: rng.normal(size=(7, 20)),
    "one row": lambda rng: rng.normal(size=(1, 3)),
    "as many rows as columns": lambda rng: rng.normal(size=(9, 9)),
    "a copied column": lambda rng: rng.normal(size=(40, 4))[:, [0, 1, 2, 3, 1]],
    "a sum of columns": lambda rng: np.column_stack([A := rng.normal(size=(40, 4)), A[:, 0] + A[:, 1]]),
    "a constant column": lambda rng: np.column_stack([rng.normal(size=(40, 4)), np.full(40, 3.7)]),
    "all dummies": lambda rng: np.eye(4)[rng.integers(0, 4, 50)],
    "columns of zeros": lambda rng: np.column_stack([rng.normal(size=(40, 2)), np.zeros((40, 3))]),
    "nothing but zeros": lambda rng: np.zeros((5, 3)),
    "rank two": lambda rng: rng.normal(size=(60, 2)) @ rng.normal(size=(2, 7)),
}


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("solver", ["auto", "qr", "cholesky"])
@pytest.mark.parametrize("vector", [True, False])
def test_solution_of_minimum_norm(kind, solver, vector):
    rng = np.random.default_rng(11)
    X = WIDE[kind](rng)
    y = rng.normal(size=len(X)) if vector else rng.normal(size=(len(X), 2))
    coef, intercept = centred_minimum_norm(X, y)
    model = LinearRegression(solver=solver).fit(X, y)
    accuracy = 1e-6 if solver == "cholesky" else 1e-9
    assert_allclose(model.coef_, coef, rtol=0, atol=accuracy * max(1, np.abs(coef).max()))
    assert_allclose(model.intercept_, intercept, rtol=0, atol=accuracy * max(1, np.abs(coef).max()))
    A = X - X.mean(axis=0)
    assert model.rank_ == np.linalg.matrix_rank(A, tol=1e-10 * max(np.abs(A).max(), 1e-300))


@pytest.mark.parametrize("solver", ["auto", "qr"])
def test_solution_of_minimum_norm_without_intercept(solver):
    rng = np.random.default_rng(12)
    X = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 8))
    y = rng.normal(size=30)
    model = LinearRegression(solver=solver, fit_intercept=False).fit(X, y)
    assert_allclose(model.coef_, np.linalg.lstsq(X, y, rcond=EPS * 30)[0], atol=1e-9)
    assert model.intercept_ == 0.0
    assert model.rank_ == 3


def with_condition(n, p, condition, rng):
    U, _ = np.linalg.qr(rng.normal(size=(n, p)))
    V, _ = np.linalg.qr(rng.normal(size=(p, p)))
    return (U * np.geomspace(1, 1 / condition, p)) @ V.T


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6, 1e7, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_accuracy_of_qr_at_any_condition(condition, noise):
    """The error against extended precision is that of a QR factorisation of the centred columns, or close to it."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = with_condition(200, 6, condition, rng) + rng.normal(size=6)
        y = X @ rng.normal(size=6) + noise * rng.normal(size=200)
        truth = exact.least_squares(X, y)[0].astype(float)
        A = X - X.mean(axis=0)
        Q, R = np.linalg.qr(A)
        by_qr = np.linalg.norm(np.linalg.solve(R, Q.T @ (y - y.mean())) - truth)
        with ep.config(on_nonconvergence="ignore"):  # the intercept of coefficients of 1e9 is not stored to 1e-10
            ours = np.linalg.norm(LinearRegression().fit(X, y).coef_ - truth)
        assert ours <= 10 * by_qr + 100 * EPS * np.linalg.norm(truth) * condition


@pytest.mark.parametrize("closeness", range(18, 30))
def test_two_columns_that_are_almost_the_same(closeness):
    """Second moments see a condition of 1e12 to 1e16 here, around the edge of what they can tell from dependence."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X = rng.integers(-8, 9, size=(19, 5)) * 2.0 ** rng.integers(-5, 6, size=5)
        X[:, 1] = X[:, 0] + rng.integers(-8, 9, size=19) * X[:, 0].std() * 2.0 ** -float(closeness)
        y, w = rng.normal(size=19), rng.integers(1, 4, size=19) * 0.7
        truth, _, minimum = exact.least_squares(X, y, w)
        model = LinearRegression().fit(X, y, w)
        reached = exact.squares_objective(X, y, w, 0, model.coef_, model.intercept_)
        assert float(reached - minimum) <= 1e-10 * float(minimum), seed
        assert_allclose(model.coef_, truth.astype(float), rtol=1e-4, atol=1e-4 * float(np.abs(truth).max()))


def test_badly_scaled_columns_do_not_look_dependent():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 4)) * [1e-120, 1.0, 1e60, 1e-9]
    w = np.array([1e120, 2.0, 3e-60, 4e9])
    y = X @ w + 5
    model = LinearRegression().fit(X, y)
    assert model.rank_ == 4
    assert_allclose(model.coef_, w, rtol=1e-10)
    assert_allclose(model.intercept_, 5, rtol=1e-10)


# ------------------------------------------------------------------------------------------------ far from the origin


@each
@pytest.mark.parametrize("where", ["memory", "batches"])
def test_data_shifted_by_1e8(model, where):
    """Whole multiples of 2^-20, so that the shift itself loses nothing: the slopes must not change."""
    X, y = problem(model)
    X = np.round(X * 2**20) / 2**20
    if where == "batches" and isinstance(model, LogisticRegression):
        y = np.random.default_rng(0).integers(0, 3, size=len(y))  # three classes instead
    near, far = new(model, tol=1e-13), new(model, tol=1e-13)
    if where == "batches" and not isinstance(model, LogisticRegression):
        for rows in np.array_split(np.arange(300), 7):
            near.partial_fit(X[rows], y[rows])
            far.partial_fit(X[rows] + 2.0**27, y[rows])
    else:
        near.fit(X, y)
        far.fit(X + 2.0**27, y)
    assert far.certificate_.holds
    assert_allclose(far.coef_, near.coef_, rtol=1e-6, atol=1e-8)
    if isinstance(model, LogisticRegression):
        assert_allclose(far.predict_proba(X + 2.0**27), near.predict_proba(X), atol=1e-5)
    else:
        assert_allclose(far.predict(X + 2.0**27), near.predict(X), atol=1e-5)


@each
def test_targets_and_features_of_any_offset_in_a_file_order_that_misleads(model):
    """The first rows lie elsewhere than the rest."""
    X, y = problem(model, n=4000)
    X = X + np.where(np.arange(4000) < 1500, 0.0, 1e6)[:, None] * [1, 0, 0, 0, 0, 0]
    got = new(model, tol=1e-12).fit(X, y)
    scaled = (X - X.mean(axis=0)) / [1e6, 1, 1, 1, 1, 1]
    if isinstance(model, LinearRegression):
        expected = centred_minimum_norm(scaled, y)[0] / [1e6, 1, 1, 1, 1, 1]
        assert_allclose(got.coef_, expected, rtol=1e-9)
    assert got.certificate_.holds


# ------------------------------------------------------------------------------------------------ memory and types


def unaligned(X):
    buffer = bytearray(X.nbytes + 1)
    out = np.ndarray(X.shape, X.dtype, buffer=buffer, offset=1)
    out[...] = X
    return out


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def memory_mapped(X):
    pages = mmap.mmap(-1, X.nbytes)
    out = np.ndarray(X.shape, X.dtype, buffer=pages)
    out[...] = X
    return out


def strided(X):
    return np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]


LAYOUTS = {
    "Fortran": np.asfortranarray,
    "read-only": read_only,
    "memory-mapped": memory_mapped,
    "every second row, every third column": strided,
    "reversed rows": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "reversed columns": lambda X: np.ascontiguousarray(X[:, ::-1])[:, ::-1],
    "transposed slice": lambda X: np.ascontiguousarray(np.vstack([X.T, X.T]))[: X.shape[1]].T,
    "unaligned": unaligned,
    "other byte order": lambda X: X.astype(">f8"),
    "a list": lambda X: X.tolist(),
}


@each
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("classes", [2, 3])
def test_layouts(model, layout, classes):
    if classes == 3 and not isinstance(model, LogisticRegression):
        classes = 2
    X, y = problem(model, classes=classes)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2, size=600)
    expected = new(model).fit(X, y, weight[::2].copy())
    A = LAYOUTS[layout](X)
    before = np.array(A, copy=True)
    got = new(model).fit(A, y, weight[::2])  # a weight with strides, too
    assert_allclose(got.coef_, expected.coef_, rtol=1e-11, atol=1e-13)
    assert_allclose(got.intercept_, expected.intercept_, rtol=1e-11, atol=1e-13)
    assert_allclose(got.predict(A), expected.predict(X), rtol=1e-11)
    assert_array_equal(np.array(A), before)


def test_memory_map_from_a_file(tmp_path):
    X, y = problem(LinearRegression())
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for model in MODELS:
        X, y = problem(model)
        assert_array_equal(new(model).fit(mapped, y).coef_, new(model).fit(X, y).coef_)


def with_64_bit_indices(X):
    X = X.copy()
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def unsorted(X):
    X = X.copy()
    for i in range(X.shape[0]):
        rows = slice(X.indptr[i], X.indptr[i + 1])
        X.indices[rows], X.data[rows] = X.indices[rows][::-1].copy(), X.data[rows][::-1].copy()
    X.has_sorted_indices = False
    return X


def with_duplicates(X):
    coo = X.tocoo()
    half = np.concatenate([coo.data / 2, coo.data / 2])
    return sp.coo_array((half, (np.tile(coo.row, 2), np.tile(coo.col, 2))), shape=X.shape)


SPARSE = {
    "CSR array": sp.csr_array,
    "CSR matrix": sp.csr_matrix,
    "CSC": sp.csc_array,
    "COO": sp.coo_array,
    "LIL": sp.lil_array,
    "BSR": sp.bsr_array,
    "64-bit indices": lambda X: with_64_bit_indices(sp.csr_array(X)),
    "64-bit CSC": lambda X: with_64_bit_indices(sp.csc_array(X)),
    "unsorted": lambda X: unsorted(sp.csr_array(X)),
    "duplicates": lambda X: with_duplicates(sp.csr_array(X)),
    "stored zeros": lambda X: sp.csr_array((np.where(X == 0, 0.0, X).ravel(), np.indices(X.shape).reshape(2, -1))),
    "float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "whole numbers": lambda X: sp.csr_array(X).astype(np.int64),
}


@each
@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("intercept", [True, False])
def test_sparse(model, kind, intercept):
    classes = 3 if kind in ("CSR array", "64-bit indices", "CSC") else 2
    X, y = problem(model, classes=classes)
    X = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.6, 0.0, X)
    X = np.round(X * 4) if kind in ("whole numbers", "float32") else X
    weight = np.random.default_rng(2).uniform(0.5, 2, size=len(y))
    expected = new(model, fit_intercept=intercept, tol=1e-12).fit(X, y, weight)
    A = SPARSE[kind](X)
    got = new(model, fit_intercept=intercept, tol=1e-12).fit(A, y, weight)
    single = kind == "float32"
    assert got.coef_.dtype == (np.float32 if single else np.float64)
    assert_allclose(got.coef_, expected.coef_, rtol=1e-5 if single else 1e-8, atol=1e-6 if single else 1e-9)
    assert_allclose(got.predict(A), expected.predict(X), rtol=1e-5 if single else 1e-8, atol=1e-5 if single else 1e-8)


@each
@pytest.mark.parametrize("classes", [2, 3])
def test_float32_stays_float32_and_sums_run_in_float64(model, classes):
    X, y = problem(model, n=5000, classes=classes)
    X = X.astype(np.float32) + np.float32(100)
    single, double = new(model, tol=1e-12).fit(X, y), new(model, tol=1e-12).fit(X.astype(float), y)
    assert single.coef_.dtype == np.float32
    assert np.asarray(single.intercept_).dtype == np.float32
    assert_allclose(single.coef_, double.coef_, rtol=3e-7, atol=1e-7)
    assert_allclose(single.intercept_, double.intercept_, rtol=3e-7)
    assert single.predict(X).dtype == (np.float32 if not isinstance(model, LogisticRegression) else y.dtype)
    if isinstance(model, LogisticRegression):
        assert single.predict_proba(X).dtype == np.float32
        assert_allclose(single.predict_proba(X), double.predict_proba(X.astype(float)), atol=2e-3)


@each
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, bool, np.float16])
def test_whole_numbers_and_booleans(model, dtype):
    X, y = problem(model)
    X = (np.round(np.abs(X) * 2) % (2 if dtype is bool else 9)).astype(dtype)
    got = new(model, tol=1e-12).fit(X, y)
    assert_allclose(
        got.coef_, new(model, tol=1e-12).fit(X.astype(float), y).coef_, rtol=1e-3 if dtype == np.float16 else 1e-9
    )
    assert got.coef_.dtype == (np.float32 if dtype == np.float16 else np.float64)


def test_wide_sparse_is_never_made_dense():
    """50,000 features: a Gram matrix would take 20 GB, the dense data 2.4 GB."""
    X = sp.random_array((6000, 50_000), density=4e-4, rng=np.random.default_rng(0), format="csr")
    y = X @ np.random.default_rng(1).normal(size=50_000) + 1
    ridge = Ridge(1.0, tol=1e-14).fit(X, y)
    assert ridge.certificate_.kind == "duality gap"
    assert ridge.certificate_.holds
    residual = y - ridge.predict(X)
    assert_allclose(residual.sum(), 0, atol=1e-4)
    assert_allclose(ridge.coef_, X.T @ residual, atol=1e-3)
    labels = (y > 1).astype(int)
    model = LogisticRegression(C=1.0, tol=1e-6).fit(X, labels)
    assert model.certificate_.holds
    assert_allclose(model.coef_[0], X.T @ (labels - model.predict_proba(X)[:, 1]), atol=1e-2)
