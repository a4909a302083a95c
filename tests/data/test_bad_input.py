"""What cannot be fitted is refused before any work, by an error that names the argument and what is wrong with it."""

import datetime
import decimal

import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from epicycle.data import as_data
from epicycle.exceptions import DataError, DataTypeError

GOOD = np.arange(12.0).reshape(4, 3)
NAMES = ["a", "b", "c"]


def with_value(value, dtype=float):
    X = GOOD.astype(dtype)
    X[2, 1] = value
    return X


def frame(**columns):
    return pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], **columns})


def dask_array(n=4, p=3, chunks=2):
    return da.from_array(np.arange(float(n * p)).reshape(n, p), chunks=(chunks, p))


FEATURES = {
    "NaN": (lambda: with_value(np.nan), DataError, ["Input X contains NaN", "row 2, column 1"]),
    "infinity": (lambda: with_value(np.inf), DataError, ["Input X contains infinity", "float64"]),
    "float32 infinity": (lambda: with_value(-np.inf, np.float32), DataError, ["infinity", "float32"]),
    "float16 overflow": (lambda: with_value(np.inf, np.float16), DataError, ["X", "infinity"]),
    "None among objects": (lambda: with_value(None, object), DataError, ["X", "NaN"]),
    "NaN in a list": (lambda: [[1.0, float("nan")], [2.0, 3.0]], DataError, ["X", "NaN", "row 0, column 1"]),
    "strings": (lambda: np.array([["a", "b"], ["c", "d"]]), DataTypeError, ["X", "strings"]),
    "numbers as strings": (lambda: np.array([["1", "2"], ["3", "4"]]), DataTypeError, ["X", "strings"]),
    "a string among objects": (lambda: with_value("12", object), DataTypeError, ["X", "string", "'12'"]),
    "bytes": (lambda: np.array([[b"a"], [b"b"]]), DataTypeError, ["X", "strings"]),
    "a dict among objects": (lambda: with_value({"k": 1}, object), DataTypeError, ["X", "dict", "real number"]),
    "complex": (lambda: GOOD + 1j, DataTypeError, ["Complex data not supported", "X"]),
    "complex objects": (lambda: with_value(1j, object), DataTypeError, ["Complex data not supported", "X"]),
    "dates": (lambda: GOOD.astype("datetime64[s]"), DataTypeError, ["X", "dates"]),
    "time differences": (lambda: GOOD.astype("timedelta64[s]"), DataTypeError, ["X", "time differences"]),
    "a date object": (lambda: with_value(datetime.date(2020, 1, 1), object), DataTypeError, ["X", "date"]),
    "records": (lambda: np.zeros((4, 1), dtype=[("u", float)]), DataTypeError, ["X", "records"]),
    "ragged list": (lambda: [[1.0, 2.0], [3.0]], DataError, ["X", "inhomogeneous"]),
    "ragged objects": (lambda: with_value([1, 2], object), DataError, ["X", "ragged"]),
    "one-dimensional": (lambda: GOOD[0], DataError, ["X", "Expected 2D array", "Reshape your data"]),
    "zero-dimensional": (lambda: np.float64(3), DataError, ["X", "Expected 2D array", "Reshape your data"]),
    "three-dimensional": (lambda: GOOD[None], DataError, ["X", "dim 3"]),
    "no rows": (lambda: GOOD[:0], DataError, ["X", "0 sample(s)", "minimum of 1 is required"]),
    "no columns": (
        lambda: GOOD[:, :0],
        DataError,
        ["X", "0 feature(s) (shape=(4, 0)) while a minimum of 1 is required"],
    ),
    "empty list": (lambda: [], DataError, ["X", "Reshape your data"]),
    "None": (lambda: None, DataTypeError, ["X", "NoneType"]),
    "a string": (lambda: "table.csv", DataTypeError, ["X", "str", "ep.scan"]),
    "a dict": (lambda: {"a": [1, 2]}, DataTypeError, ["X", "dict"]),
    "a number": (lambda: 3, DataError, ["X", "Expected 2D array"]),
    "a function": (lambda: len, DataTypeError, ["X", "builtin_function_or_method"]),
    "np.matrix": (lambda: GOOD.view(np.matrix), DataTypeError, ["X", "np.matrix is not supported"]),
    "integers beyond 2**53": (lambda: with_value(2**60, np.int64), DataError, ["X", "2**53", str(2**60)]),
    "unsigned beyond 2**53": (lambda: with_value(2**63 + 1, np.uint64), DataError, ["X", "2**53"]),
    "Python integers": (lambda: [[10**30, 1], [2, 3]], DataError, ["X", "2**53"]),
    "a decimal infinity": (lambda: with_value(decimal.Decimal("inf"), object), DataError, ["X", "infinity"]),
    "sparse NaN": (lambda: sp.csr_array(with_value(np.nan)), DataError, ["Input X contains NaN", "stored entry"]),
    "sparse complex": (lambda: sp.csr_array(GOOD + 1j), DataTypeError, ["Complex data not supported", "X"]),
    "sparse without rows": (lambda: sp.csr_array((0, 3)), DataError, ["X", "0 sample(s)"]),
    "sparse vector": (lambda: sp.coo_array(GOOD[0]), DataError, ["X", "Reshape your data"]),
    "pandas column of strings": (lambda: frame(b=list("wxyz")), DataTypeError, ["X", "column 'b'", "numbers"]),
    "pandas category": (lambda: frame(b=pd.Categorical(list("wxyz"))), DataTypeError, ["column 'b'", "category"]),
    "pandas dates": (lambda: frame(b=pd.date_range("2020", periods=4)), DataTypeError, ["column 'b'", "datetime"]),
    "pandas complex": (lambda: frame(b=[1j] * 4), DataTypeError, ["Complex data not supported", "'b'"]),
    "pandas object": (lambda: frame(b=pd.Series([1, "x", 2, 3], dtype=object)), DataTypeError, ["column 'b'", "'x'"]),
    "pandas NA": (lambda: frame(b=pd.array([1, None, 2, 3], "Int64")), DataError, ["NaN", "row 1, column 'b'"]),
    "pandas NaN": (lambda: frame(b=[1, 2, 3, np.nan]), DataError, ["NaN", "row 3, column 'b'"]),
    "pandas huge integers": (lambda: frame(b=[2**60, 0, 1, 2]), DataError, ["column 'b'", "2**53"]),
    "pandas mixed names": (lambda: pd.DataFrame(GOOD, columns=["a", 1, 2]), DataTypeError, ["string names", "'int'"]),
    "pandas names twice": (lambda: pd.DataFrame(GOOD, columns=["a", "a", "b"]), DataError, ["X", "'a'", "unique"]),
    "pandas series": (lambda: pd.Series([1.0, 2.0]), DataError, ["X", "Series", "Reshape your data"]),
    "pandas no rows": (lambda: frame().iloc[:0], DataError, ["X", "0 sample(s)"]),
    "polars strings": (lambda: pl.DataFrame({"a": ["x", "y"]}), DataTypeError, ["column 'a'", "String"]),
    "polars null": (lambda: pl.DataFrame({"a": [1, None]}), DataError, ["NaN", "row 1, column 'a'"]),
    "polars null boolean": (lambda: pl.DataFrame({"a": [True, None]}), DataError, ["NaN", "row 1, column 'a'"]),
    "polars lazy": (lambda: pl.LazyFrame({"a": [1.0]}), DataTypeError, ["X", "lazy", "collect()"]),
    "polars series": (lambda: pl.Series([1.0, 2.0]), DataError, ["X", "Series", "Reshape your data"]),
    "arrow strings": (lambda: pa.table({"a": ["x", "y"]}), DataTypeError, ["column 'a'", "String"]),
    "arrow null": (lambda: pa.table({"a": pa.array([1.0, None])}), DataError, ["NaN", "row 1, column 'a'"]),
    "arrow lists": (lambda: pa.table({"a": [[1.0], [2.0]]}), DataTypeError, ["column 'a'", "List"]),
    "arrow names twice": (lambda: pa.table([[1], [2]], names=["a", "a"]), DataError, ["X", "'a'", "unique"]),
    "arrow array": (lambda: pa.array([1.0, 2.0]), DataError, ["X", "Reshape your data"]),
    "Dask bag": (lambda: dask.bag.from_sequence([1, 2]), DataTypeError, ["X", "Dask", "Bag"]),
    "Dask vector": (lambda: dask_array()[:, 0], DataError, ["X", "1D", "Reshape your data"]),
    "Dask complex": (lambda: dask_array() + 1j, DataTypeError, ["Complex data not supported", "X"]),
    "Dask strings": (lambda: dd.from_pandas(frame(b=list("wxyz")), npartitions=2), DataTypeError, ["column 'b'"]),
    "Dask no columns": (lambda: dask_array()[:, :0], DataError, ["X", "0 feature(s)"]),
    "Dask series": (lambda: dd.from_pandas(frame(), npartitions=1)["a"], DataError, ["X", "1D", "Reshape your data"]),
}


@pytest.mark.parametrize("kind", FEATURES)
def test_features(kind):
    make, error, words = FEATURES[kind]
    with pytest.raises(error) as caught:
        as_data(make(), estimator_name="Ridge")
    for word in words:
        assert word in str(caught.value)


TARGETS = {
    "None": ("numeric", lambda: None, DataError, ["Ridge requires y to be passed, but the target y is None"]),
    "no labels": ("labels", lambda: None, DataError, ["Ridge requires y to be passed, but the target y is None"]),
    "too short": ("numeric", lambda: [1, 2, 3], DataError, ["y", "inconsistent numbers of samples", "4", "3"]),
    "too long": ("labels", lambda: list("abcde"), DataError, ["y", "inconsistent numbers of samples"]),
    "NaN": ("numeric", lambda: [1, np.nan, 2, 3], DataError, ["Input y contains NaN", "row 1"]),
    "infinity": ("numeric", lambda: [1, np.inf, 2, 3], DataError, ["Input y contains infinity"]),
    "NaN labels": ("labels", lambda: [1, np.nan, 2, 3], DataError, ["Input y contains NaN"]),
    "infinite labels": ("labels", lambda: np.full(4, np.inf), DataError, ["Input y contains infinity"]),
    "missing label": (
        "labels",
        lambda: np.array(["a", None, "b", "c"], object),
        DataError,
        ["y contains NaN", "row 1"],
    ),
    "missing pandas label": (
        "labels",
        lambda: pd.Series(["a", None, "b", "c"]),
        DataError,
        ["y contains NaN", "row 1"],
    ),
    "missing nullable": ("numeric", lambda: pd.array([1, None, 2, 3], "Int64"), DataError, ["y contains NaN", "row 1"]),
    "strings": ("numeric", lambda: list("abcd"), DataTypeError, ["y", "strings"]),
    "string objects": ("numeric", lambda: np.array(list("abcd"), object), DataTypeError, ["y", "string"]),
    "complex": ("numeric", lambda: np.ones(4) * 1j, DataTypeError, ["Complex data not supported", "y"]),
    "complex labels": ("labels", lambda: np.ones(4) * 1j, DataTypeError, ["Complex data not supported", "y"]),
    "dates as labels": ("labels", lambda: np.zeros(4, "datetime64[D]"), DataTypeError, ["y", "dates"]),
    "continuous labels": ("labels", lambda: [0.5, 1, 2, 3], DataError, ["y", "Unknown label type", "continuous"]),
    "mixed labels": ("labels", lambda: np.array(["a", 1, 2, 3], object), DataTypeError, ["y", "Unknown label type"]),
    "two columns": ("numeric", lambda: np.ones((4, 2)), DataError, ["y should be a 1d array", "(4, 2)"]),
    "indicator labels": ("labels", lambda: np.ones((4, 2), int), DataError, ["y should be a 1d array"]),
    "a number": ("numeric", lambda: 3.0, DataTypeError, ["y should be a 1d array", "float"]),
    "a name": ("labels", lambda: "target", DataTypeError, ["y should be a 1d array", "str"]),
    "ragged": ("numeric", lambda: [1, [2, 3], 4, 5], DataError, ["y", "inhomogeneous"]),
    "huge integers": ("numeric", lambda: [2**60, 1, 2, 3], DataError, ["y", "2**53"]),
    "sparse": ("numeric", lambda: sp.csr_array(np.ones((4, 1))), DataTypeError, ["y", "parse"]),
    "Dask for an array": ("numeric", lambda: da.ones(4), DataTypeError, ["y", "Dask", "compute()"]),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_targets(kind):
    target, make, error, words = TARGETS[kind]
    with pytest.raises(error) as caught:
        as_data(GOOD, make(), target=target, estimator_name="Ridge")
    for word in words:
        assert word in str(caught.value)


WEIGHTS = {
    "negative": (lambda: [1, 2, -1, 3], DataError, ["-1", "row 2"]),
    "NaN": (lambda: [1, 2, np.nan, 3], DataError, ["NaN", "row 2"]),
    "infinity": (lambda: [1, 2, np.inf, 3], DataError, ["infinity"]),
    "all zero": (lambda: np.zeros(4), DataError, ["zero", "weight"]),
    "zero": (lambda: 0, DataError, ["zero"]),
    "too short": (lambda: [1.0, 2.0], DataError, ["inconsistent numbers of samples", "2"]),
    "two columns": (lambda: np.ones((4, 2)), DataError, ["1D", "(4, 2)"]),
    "strings": (lambda: list("abcd"), DataTypeError, ["strings"]),
    "complex": (lambda: np.ones(4) * 1j, DataTypeError, ["Complex"]),
    "a word": (lambda: "balanced", DataTypeError, ["str"]),
    "missing": (lambda: pd.array([1.0, None, 2.0, 3.0], "Float64"), DataError, ["NaN"]),
    "Dask": (lambda: da.ones(4), DataTypeError, ["Dask"]),
}


@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights(kind):
    make, error, words = WEIGHTS[kind]
    with pytest.raises(error) as caught:
        as_data(GOOD, [1, 2, 3, 4], make(), target="numeric", estimator_name="Ridge")
    for word in ["sample_weight", *words]:
        assert word in str(caught.value)


DASK_PARTNERS = {
    "array in memory": (lambda: np.ones(4), DataTypeError, ["Dask", "ndarray"]),
    "other chunks": (lambda: da.ones(4, chunks=4), DataError, ["chunks", "rechunk"]),
    "other length": (lambda: da.ones(6, chunks=2), DataError, ["inconsistent numbers of samples", "[4, 6]"]),
    "other partitions": (lambda: dd.from_pandas(frame(), npartitions=1)["a"], DataError, ["1 partitions", "X has 2"]),
    "unknown and other chunks": (lambda: da.ones(6, chunks=2)[da.ones(6, chunks=2) > 0], DataError, ["3 partitions"]),
}


@pytest.mark.parametrize("argument", ["y", "sample_weight"])
@pytest.mark.parametrize("kind", DASK_PARTNERS)
def test_dask_partners_have_the_same_partitions(kind, argument):
    make, error, words = DASK_PARTNERS[kind]
    values = {"y": da.ones(4, chunks=2), "sample_weight": da.ones(4, chunks=2), argument: make()}
    with pytest.raises(error) as caught:
        as_data(dask_array(), **values, target="numeric")
    for word in [argument, *words]:
        assert word in str(caught.value)


def test_dask_frames_with_other_divisions():
    X, y = (
        dd.from_pandas(frame(), npartitions=2),
        dd.from_pandas(frame().set_index(pd.Index([0, 1, 7, 9])), npartitions=2),
    )
    with pytest.raises(DataError, match="y: its divisions are not those of X"):
        as_data(X, y["a"], target="numeric")


def test_sparse_where_only_dense_is_taken():
    with pytest.raises(DataTypeError, match=r"Sparse.*X.*dense"):
        as_data(sp.csr_array(GOOD), accept_sparse=False)


def test_the_check_can_be_left_out():
    assert as_data(with_value(np.nan), check_finite=False).n_rows == 4
