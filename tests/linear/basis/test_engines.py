"""The same answer from memory, files and Dask, and the same bits on any number of threads."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle.data import as_data
from epicycle.linear.basis._ranges import column_quantiles

MODELS = {
    "polynomial": ep.PolynomialRegression(4, 0.5, interactions=False),
    "loo": ep.PolynomialRegression("loo", interactions=False),
    "spline": ep.LinearSpline(7, 0.1),
    "uniform": ep.LinearSpline(7, "loo", knots="uniform"),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(5000, 2)) * [1, 1e3] + [0, 1e5], columns=["a", "b"])
    frame["b"] = frame["b"].round(-1)  # with ties
    frame["y"] = np.sin(frame["a"]) + (frame["b"] - 1e5) / 1e3 + 0.1 * rng.normal(size=5000)
    frame["w"] = rng.integers(0, 3, size=5000)
    folder = tmp_path_factory.mktemp("table")
    for i in range(4):
        frame[i * 1250 : (i + 1) * 1250].to_parquet(folder / f"part-{i}.parquet")
    return frame, str(folder / "part-*.parquet")


@pytest.mark.parametrize("name", MODELS)
def test_memory_files_and_dask(table, name):
    from sklearn.base import clone

    frame, files = table
    X, y, w = frame[["a", "b"]], frame["y"], frame["w"]
    expected = clone(MODELS[name]).fit(X, y, w)
    scanned = clone(MODELS[name]).fit(ep.scan(files, target="y", weight="w"))
    X_dask = da.from_array(X.to_numpy(), chunks=(1100, 2))
    on_dask = clone(MODELS[name]).fit(
        X_dask, da.from_array(y.to_numpy(), chunks=1100), da.from_array(w.to_numpy(), chunks=1100)
    )
    values = expected.predict(X)
    assert_allclose(scanned.predict(X), values, rtol=1e-8, atol=1e-8)
    assert_allclose(on_dask.predict(X_dask).compute(), values, rtol=1e-8, atol=1e-8)
    if name == "spline":
        assert all(np.array_equal(a, b) for a, b in zip(scanned.knots_, expected.knots_, strict=True))


def test_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600_000, 1))
    y = np.sin(X[:, 0])
    fits = [ep.LinearSpline(5, [0.1, 1.0], n_jobs=jobs).fit(X, y) for jobs in (1, 2, 3)]
    assert all(np.array_equal(fits[0].coef_, fit.coef_) for fit in fits)
    assert all(np.array_equal(fits[0].loo_errors_, fit.loo_errors_) for fit in fits)


def test_transformers_on_files_and_dask(table):
    frame, files = table
    X = frame[["a", "b"]]
    for transformer in (ep.HingeFeatures(3), ep.FourierFeatures(2)):
        expected = transformer.fit(X.to_numpy()).transform(X.to_numpy())
        scan = ep.scan(files, columns=["a", "b"])
        assert_allclose(
            type(transformer)(3 if isinstance(transformer, ep.HingeFeatures) else 2).fit(scan).transform(scan), expected
        )
        X_dask = da.from_array(X.to_numpy(), chunks=(1100, 2))
        assert_allclose(transformer.transform(X_dask).compute(), expected)


@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 60), wild=st.booleans(), weighted=st.booleans())
def test_quantiles_by_counting_are_those_of_a_sort(seed, n, wild, weighted):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, size=n) if wild else rng.integers(-2, 3, size=n) * 1.0
    w = rng.integers(0, 3, size=n) if weighted else None
    if weighted:
        w[0] = 1
    shares = np.array([0.1, 0.5, 0.77])
    (expected,) = column_quantiles(as_data(x[:, None], None, w), shares, None)
    chunked = as_data(da.from_array(x[:, None], chunks=(7, 1)), None, None if w is None else da.from_array(w, chunks=7))
    (found,) = column_quantiles(chunked, shares, None)
    assert np.array_equal(found, expected)
    repeated = x if w is None else np.repeat(x, w)
    assert np.array_equal(expected, np.quantile(repeated, shares, method="inverted_cdf"))
