"""The same coefficients from memory, batches, files and a cluster; the same bits for any number of threads."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

import epicycle as ep
from epicycle import LinearRegression, LogisticRegression, Ridge

N, P = 20_000, 60
CUTS = [37, 4000, 4001, 9000, 16_500, 19_999]  # seven uneven parts, one of a single row


def tight(cls, **parameters):
    return cls(**{"tol": 1e-21, "C": 0.5} if cls is LogisticRegression else {}, **parameters)


def models():
    """Name: (a new estimator, which target)."""
    return {
        "LinearRegression": (tight(LinearRegression), "y"),
        "LinearRegression-qr": (tight(LinearRegression, solver="qr"), "y"),
        "LinearRegression-origin": (tight(LinearRegression, fit_intercept=False), "y"),
        "Ridge": (tight(Ridge, alpha=3.0), "y"),
        "Ridge-cg": (Ridge(alpha=3.0, solver="cg", tol=1e-22), "y"),
        "LogisticRegression": (tight(LogisticRegression), "two"),
        "LogisticRegression-three": (LogisticRegression(C=0.5, tol=1e-15, solver="newton"), "three"),
        "LogisticRegression-lbfgs": (tight(LogisticRegression, solver="lbfgs"), "two"),
        "LogisticRegression-balanced": (
            LogisticRegression(C=0.5, tol=1e-15, solver="newton", class_weight="balanced"),
            "three",
        ),
    }


every = pytest.mark.parametrize(
    "name", ["LinearRegression", "LinearRegression-qr", "Ridge-cg", "LogisticRegression", "LogisticRegression-three"]
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P)) * rng.uniform(0.5, 2, size=P) + rng.normal(size=P)
    z = X @ rng.normal(size=(P, 3)) / 8 + rng.gumbel(size=(N, 3))
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(P)])
    return frame.assign(
        y=z[:, 0] + 2,
        two=np.where(z[:, 0] > z[:, 1], "yes", "no"),
        three=z.argmax(axis=1),
        w=rng.uniform(0.1, 2, size=N),
    )


@pytest.fixture(scope="module")
def arrays(table):
    return table.iloc[:, :P].to_numpy(), table


@pytest.fixture(scope="module")
def in_memory(arrays):
    X, table = arrays
    fits = {}
    for name, (model, target) in models().items():
        fits[name] = model.fit(X, table[target].to_numpy(), table["w"].to_numpy())
        assert fits[name].certificate_.holds
    return fits


def assert_same_fit(model, expected, digits=1e-10):
    scale = np.abs(expected.coef_).max()
    assert_allclose(model.coef_, expected.coef_, rtol=0, atol=digits * scale)
    assert_allclose(
        model.intercept_, expected.intercept_, rtol=0, atol=digits * max(scale, np.abs(expected.intercept_).max())
    )
    assert model.certificate_.holds


# ------------------------------------------------------------------------------------------------ files


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    """Seven uneven files of every kind."""
    folder = tmp_path_factory.mktemp("parts")
    codes = table.assign(two=(table["two"] == "yes").astype(float))
    for i, rows in enumerate(np.split(np.arange(N), CUTS)):
        part = table.iloc[rows]
        part.to_parquet(folder / f"{i}.parquet", row_group_size=1500, index=False)
        pa.feather.write_feather(pa.Table.from_pandas(part, preserve_index=False), folder / f"{i}.feather")
        np.save(folder / f"{i}.npy", codes.iloc[rows].to_numpy())
        if i < 2:
            part.to_csv(folder / f"{i}.csv", index=False)
    return folder


def scan(folder, kind, target):
    names = [*(f"f{j}" for j in range(P)), "y", "two", "three", "w"]
    columns, target, weight = names[:P], target, "w"
    if kind == "npy":
        columns, target, weight = list(range(P)), names.index(target), names.index("w")
    return ep.scan(str(folder / f"*.{kind}"), target=target, weight=weight, columns=columns)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("LinearRegression-qr", "parquet"),
        ("LogisticRegression", "parquet"),
        *((name, "npy") for name in models()),
        ("LinearRegression", "feather"),
    ],
)
def test_seven_uneven_files(files, in_memory, name, kind):
    model, target = models()[name]
    source = scan(files, kind, target)
    model.fit(source)
    assert_same_fit(model, in_memory[name])
    if kind == "parquet":
        assert model.feature_names_in_.tolist() == [f"f{j}" for j in range(P)]
        again = models()[name][0].set_params(n_jobs=1).fit(source)
        assert_array_equal(model.coef_, again.coef_)


@pytest.mark.parametrize("name", ["LinearRegression", "LogisticRegression-three"])
def test_csv(files, table, name):
    model, target = models()[name]
    model.fit(scan(files, "csv", target))
    part = table.iloc[: CUTS[1]]
    expected = models()[name][0].fit(part.iloc[:, :P].to_numpy(), part[target].to_numpy(), part["w"].to_numpy())
    assert_same_fit(model, expected)


@pytest.mark.parametrize("name", ["Ridge", "LogisticRegression-three"])
def test_predictions_from_files_are_those_from_memory(files, arrays, in_memory, name):
    X, table = arrays
    frame = table.iloc[:, :P]
    model = models()[name][0].fit(frame, table[models()[name][1]], table["w"])
    source = ep.scan(str(files / "*.parquet"), columns=[f"f{j}" for j in range(P)])
    assert_allclose(*map(as_numbers, (model.predict(source), model.predict(frame))), rtol=1e-12)
    if hasattr(model, "predict_proba"):
        assert_allclose(model.predict_proba(source), model.predict_proba(frame), rtol=1e-12)
        assert_allclose(model.predict_proba(source), in_memory[name].predict_proba(X), atol=1e-10)


def as_numbers(values):
    return values if values.dtype.kind != "U" and values.dtype != object else (values == "yes").astype(float)


# ------------------------------------------------------------------------------------------------ batches


@pytest.mark.parametrize("name", ["LinearRegression", "LinearRegression-origin", "Ridge"])
def test_seven_uneven_batches(arrays, in_memory, name):
    X, table = arrays
    model, target = models()[name]
    for rows in np.split(np.arange(N), CUTS):
        model.partial_fit(X[rows], table[target].to_numpy()[rows], table["w"].to_numpy()[rows])
    assert_same_fit(model, in_memory[name])
    continued, _ = models()[name]
    first = slice(0, 12_000)
    continued.fit(X[first], table[target][first], table["w"][first])
    continued.partial_fit(X[12_000:], table[target][12_000:], table["w"][12_000:])
    assert_same_fit(continued, in_memory[name])


def test_batches_after_a_fit_by_qr_or_on_few_rows(arrays):
    X, table = arrays
    y = table["y"].to_numpy()
    expected = LinearRegression().fit(X[:3000], y[:3000])
    for first in (20, 61, 1500):
        for solver in ("auto", "qr"):
            model = LinearRegression(solver=solver).fit(X[:first], y[:first])
            assert_same_fit(model.partial_fit(X[first:3000], y[first:3000]), expected)


# ------------------------------------------------------------------------------------------------ a cluster


@every
def test_a_cluster_of_two_processes(client, arrays, in_memory, name):
    X, table = arrays
    chunks = tuple(int(n) for n in np.diff([0, *CUTS, N]))
    model, target = models()[name]
    features = da.from_array(X, chunks=(chunks, 25))
    y, w = (da.from_array(table[c].to_numpy(), chunks=(chunks,)) for c in (target, "w"))
    model.fit(features, y, w)
    assert_same_fit(model, in_memory[name])
    lazy = model.predict(features)
    assert isinstance(lazy, da.Array)
    assert_allclose(*map(as_numbers, (lazy.compute(), in_memory[name].predict(X))), rtol=1e-9, atol=1e-9)
    if isinstance(model, LogisticRegression):
        assert_allclose(model.predict_proba(features).compute(), in_memory[name].predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("name", ["LinearRegression", "LogisticRegression"])
def test_a_frame_of_unknown_divisions(client, files, arrays, in_memory, name):
    """As it is read from Parquet: Dask may read narrow columns in fewer, larger pieces than wide ones."""
    X, _ = arrays
    frame = dd.read_parquet(str(files / "*.parquet"))
    assert frame.divisions[0] is None
    features = frame[[f"f{j}" for j in range(P)]]
    model, target = models()[name]
    model.fit(features, frame[target], frame["w"])
    assert_same_fit(model, in_memory[name])
    assert model.feature_names_in_[0] == "f0"
    values = model.predict(features).compute()
    assert_allclose(*map(as_numbers, (values, in_memory[name].predict(X))), rtol=1e-9, atol=1e-9)


def test_sparse_partitions(client, arrays):
    X, table = arrays
    X = np.where(np.abs(X[:6000]) < 1, 0.0, X[:6000])
    y, two = table["y"].to_numpy()[:6000], table["two"].to_numpy()[:6000]
    blocks = da.from_array(X, chunks=(1500, P)).map_blocks(sp.csr_array, meta=sp.csr_array((0, P)))
    for model, target in ((LinearRegression(), y), (LogisticRegression(tol=1e-21), two)):
        expected = type(model)(**model.get_params()).fit(X, target)
        assert_same_fit(model.fit(blocks, da.from_array(target, chunks=1500)), expected)


def test_without_a_cluster_dask_computes_here(arrays, in_memory):
    X, table = arrays
    for name in ("LinearRegression", "LogisticRegression"):
        model, target = models()[name]
        collections = (
            da.from_array(v, chunks=(3000, *([P] if v.ndim == 2 else [])))
            for v in (X, table[target].to_numpy(), table["w"].to_numpy())
        )
        assert_same_fit(model.fit(*collections), in_memory[name])


# ------------------------------------------------------------------------------------------------ threads


@every
def test_the_same_bits_for_any_number_of_threads(arrays, name):
    X, table = arrays
    model, target = models()[name]
    y, w = table[target].to_numpy(), table["w"].to_numpy()
    if isinstance(model, LogisticRegression):
        model.set_params(solver="auto", tol=1e-8)

    def fit(n_jobs=None):
        return type(model)(**{**model.get_params(), "n_jobs": n_jobs}).fit(X, y, w)

    fits = [fit(1), fit(4)]
    with threadpool_limits(1):
        fits.append(fit())
    with ep.config(n_jobs=3):
        fits.append(fit())
    for other in fits[1:]:
        assert_array_equal(other.coef_, fits[0].coef_)
        assert_array_equal(other.intercept_, fits[0].intercept_)
        assert other.certificate_ == fits[0].certificate_
        assert_array_equal(other.history_.objective, fits[0].history_.objective)
        assert_array_equal(other.predict(X), fits[0].predict(X))
    if hasattr(model, "predict_proba"):
        assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))


@pytest.mark.parametrize("kind", ["float32", "Fortran", "sparse", "strided"])
def test_the_same_bits_for_other_kinds_of_arrays(arrays, kind):
    X, table = arrays
    A = {
        "float32": lambda: X.astype(np.float32),
        "Fortran": lambda: np.asfortranarray(X),
        "sparse": lambda: sp.csr_array(np.where(np.abs(X) < 1, 0, X)),
        "strided": lambda: np.repeat(X, 2, axis=0)[::2],
    }[kind]()
    names = ["LinearRegression", "LogisticRegression", *(["LogisticRegression-three"] if kind == "float32" else [])]
    for name in names:
        y = table[models()[name][1]].to_numpy()
        one, four = (models()[name][0].set_params(n_jobs=n, tol=1e-8).fit(A, y) for n in (1, 4))
        assert_array_equal(one.coef_, four.coef_)
        assert_array_equal(one.intercept_, four.intercept_)


@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_stochastic_bits_do_not_depend_on_threads(arrays, solver):
    X, table = arrays
    with ep.config(on_nonconvergence="ignore"):
        fits = [
            LogisticRegression(solver=solver, random_state=4, max_iter=2, n_jobs=n).fit(X, table["three"])
            for n in (1, 4)
        ]
    assert_array_equal(fits[0].coef_, fits[1].coef_)
