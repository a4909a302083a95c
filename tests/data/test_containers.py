"""Every container that holds the same numbers becomes the same batches, and none is copied without need."""

import decimal
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_array_equal

from epicycle.data import ArrayData, as_data
from epicycle.data._array_data import block_rows
from epicycle.exceptions import DataError

NAMES = ["a", "b", "c"]


@pytest.fixture
def table():
    return np.arange(36.0).reshape(12, 3) % 7 - 2


def dense(data):
    return np.vstack([b.X.toarray() if sp.issparse(b.X) else b.X for b in data.batches()])


def readonly(X):
    X = X.copy()
    X.flags.writeable = False
    return X


CONTAINERS = {
    "C order": lambda X: X,
    "Fortran order": np.asfortranarray,
    "non-contiguous": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": readonly,
    "list": lambda X: X.tolist(),
    "list of arrays": list,
    "objects": lambda X: X.astype(object),
    "decimals": lambda X: np.array([[decimal.Decimal(v) for v in row] for row in X.tolist()]),
    "int8": lambda X: X.astype(np.int8),
    "int64": lambda X: X.astype(np.int64),
    "uint16 shifted": lambda X: (X + 2).astype(np.uint16),
    "float16": lambda X: X.astype(np.float16),
    "big endian": lambda X: X.astype(">f8"),
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "pandas mixed": lambda X: pd.DataFrame(X, columns=NAMES).astype({"a": "int32", "b": "float32"}),
    "pandas nullable": lambda X: pd.DataFrame(X, columns=NAMES).astype({"a": "Int64", "b": "Float32", "c": "Float64"}),
    "pandas arrow": lambda X: pd.DataFrame(X, columns=NAMES).astype("double[pyarrow]"),
    "pandas objects": lambda X: pd.DataFrame(X, columns=NAMES).astype(object),
    "pandas sparse": lambda X: pd.DataFrame(X, columns=NAMES).astype(pd.SparseDtype("float64", 0.0)),
    "pandas slice": lambda X: pd.DataFrame(np.hstack([X, X]), columns=[*NAMES, "d", "e", "f"])[NAMES],
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "polars mixed": lambda X: pl.DataFrame(X, schema=NAMES).with_columns(pl.col("a").cast(pl.Int16)),
    "arrow table": lambda X: pa.table({n: X[:, j] for j, n in enumerate(NAMES)}),
    "arrow chunks": lambda X: pa.concat_tables(
        pa.table({n: h[:, j] for j, n in enumerate(NAMES)}) for h in (X[:5], X[5:])
    ),
    "arrow record batch": lambda X: pa.record_batch({n: X[:, j] for j, n in enumerate(NAMES)}),
    "arrow decimals": lambda X: pa.table(
        {n: pa.array(X[:, j]).cast(pa.decimal128(10, 2)) for j, n in enumerate(NAMES)}
    ),
    "csr array": sp.csr_array,
    "csr matrix": sp.csr_matrix,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "lil": sp.lil_array,
    "dok": sp.dok_array,
    "dia": sp.dia_array,
    "bsr": sp.bsr_array,
    "csr of integers": lambda X: sp.csr_array(X.astype(np.int32)),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_gives_the_same_numbers(kind, table):
    X = CONTAINERS[kind](table)
    data = as_data(X)
    expected = table + 2 if kind == "uint16 shifted" else table
    assert isinstance(data, ArrayData)
    assert_array_equal(dense(data), expected)
    assert data.dtype == (np.float32 if kind == "float16" else np.float64)
    assert (data.n_rows, data.n_features, data.n_targets) == (12, 3, 0)
    frame = kind.startswith(("pandas", "polars", "arrow"))
    assert data.feature_names == (tuple(NAMES) if frame else None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["C order", "Fortran order", "non-contiguous", "reversed", "read-only", "pandas"])
def test_floating_arrays_are_not_copied(kind, dtype, table):
    X = CONTAINERS[kind](table.astype(dtype))
    data = as_data(X)
    assert data.dtype == dtype
    assert np.shares_memory(data.X, X.to_numpy() if isinstance(X, pd.DataFrame) else X)


def test_unaligned_arrays_are_put_right(table):
    packed = np.zeros(12, dtype=[("tag", "u1"), ("x", "f8", 3), ("y", "f8")])
    packed["x"], packed["y"] = table, table[:, 0]
    data = as_data(packed["x"], packed["y"], packed["y"] + 2, target="numeric")
    assert data.X.flags.aligned
    assert data.y.flags.aligned
    assert data.weight.flags.aligned
    assert_array_equal(data.X, table)


def test_memory_map_is_used_in_place(tmp_path, table):
    np.save(tmp_path / "x.npy", table)
    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    data = as_data(X)
    assert np.shares_memory(data.X, X)
    assert_array_equal(dense(data), table)


def test_csr_is_not_copied_and_keeps_its_indices(table):
    X = sp.csr_array(table)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    data = as_data(X)
    block = data.rows(3, 9)
    for part in (data.X, block.X):
        assert np.shares_memory(part.data, X.data)
        assert part.indices.dtype == part.indptr.dtype == np.int64
    assert_array_equal(block.X.toarray(), table[3:9])
    assert_array_equal((block.X @ np.ones(3)), table[3:9].sum(axis=1))


def test_duplicate_and_unsorted_entries_are_put_in_order_in_a_copy():
    X = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    data = as_data(X)
    assert_array_equal(data.X.toarray(), [[2, 0, 5]])
    assert data.X.has_canonical_format
    assert X.nnz == 3  # the caller's is as it was
    assert_array_equal(X.indices, [2, 0, 2])


def test_blocks_depend_on_the_data_alone_and_cover_it():
    for n, p, dtype in [
        (1, 1, np.float64),
        (5_000, 3, np.float32),
        (120_000, 40, np.float64),
        (9_001, 600, np.float64),
    ]:
        data = as_data(np.zeros((n, p), dtype))
        blocks = [data.block(i) for i in range(data.n_blocks)]
        assert [b.start for b in blocks] == np.cumsum([0] + [b.n_rows for b in blocks])[:-1].tolist()
        assert sum(b.n_rows for b in blocks) == n
        assert all(b.n_rows % 256 == 0 for b in blocks[:-1])
        if data.n_blocks > 1:
            assert min(b.n_rows for b in blocks[:-1]) >= max(1024, 4 * p)
            assert (
                max(b.X.nbytes for b in blocks) <= 2 * max(2 << 20, 4 * p * p * np.dtype(dtype).itemsize) + 256 * p * 8
            )


def test_sparse_blocks_follow_the_stored_entries():
    X = sp.random_array((50_000, 1_000), density=0.01, random_state=np.random.default_rng(0), format="csr")
    data = as_data(X)
    stored = [b.X.nnz for b in data.batches()]
    assert sum(stored) == X.nnz
    assert data.n_blocks > 1
    assert max(stored) * 12 < 5 << 20
    assert block_rows(X) % 256 == 0


def test_sparse_blocks_are_made_once_and_do_not_travel():
    X = sp.random_array((30_000, 40), density=0.6, rng=0, format="csr")
    data = ArrayData(X)
    assert data.n_blocks > 2
    first = [batch.X for batch in data.batches()]
    assert all(batch.X is part for batch, part in zip(data.batches(), first, strict=True))
    assert all(np.shares_memory(part.data, X.data) for part in first)
    stored = pickle.dumps(data)
    assert len(stored) < 1.1 * (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    assert_array_equal(dense(pickle.loads(stored)), X.toarray())


def test_head_is_a_bounded_view():
    X = np.random.default_rng(0).normal(size=(5_000, 2))
    head = as_data(X).head()
    assert 0 < head.n_rows <= 1024
    assert np.shares_memory(head.X, X)


@pytest.mark.parametrize("n", [10, 4_000_000])
def test_targets_and_weights(n):
    X = np.broadcast_to(np.float32(1), (n, 1))
    y, w = np.arange(n) % 5, np.ones(n, np.float32)
    data = as_data(X, y, w, target="numeric")
    batch = data.block(data.n_blocks - 1)
    assert batch.y.dtype == batch.weight.dtype == np.float64
    assert_array_equal(batch.y, y[batch.start :])
    assert (data.n_targets, data.target_is_vector, data.has_weight) == (1, True, True)


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        np.array,
        pd.Series,
        pl.Series,
        pa.array,
        lambda v: pa.chunked_array([v[:2], v[2:]]),
        lambda v: pd.Series(v).astype("Int64"),
    ],
)
def test_target_containers(wrap, table):
    values = [3, 1, 2, 0] * 3
    numeric = as_data(table, wrap(values), wrap(values), target="numeric")
    assert_array_equal(numeric.y, values)
    assert_array_equal(numeric.weight, values)
    assert_array_equal(as_data(table, wrap(values), target="labels").y, values)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["u", "v", "w"] * 4),
        np.array(["u", "v", "w"] * 4, dtype=object),
        pd.Series(["u", "v", "w"] * 4),
        pd.Series(["u", "v", "w"] * 4, dtype="category"),
        pl.Series(["u", "v", "w"] * 4),
        pa.array(["u", "v", "w"] * 4),
        np.array([True, False, True] * 4),
        np.array([1.0, 2.0, 3.0] * 4),
    ],
    ids=lambda v: f"{type(v).__module__}.{v.dtype if hasattr(v, 'dtype') else v.type}",
)
def test_labels_stay_as_they_are(labels, table):
    data = as_data(table, labels, target="labels")
    assert data.y.ndim == 1
    assert list(data.y) == list(labels.to_pylist() if isinstance(labels, pa.Array) else labels)
    codes = data.encode_target(lambda y: (y == y[0]).astype(np.int64))
    assert codes.y.sum() == sum(v == data.y[0] for v in data.y)
    assert codes.X is data.X


def test_several_targets_and_the_column_vector(table):
    Y = np.arange(24).reshape(12, 2)
    data = as_data(table, Y, target="numeric", multi_output=True)
    assert (data.n_targets, data.target_is_vector) == (2, False)
    column = as_data(table, Y[:, :1], target="numeric", multi_output=True)
    assert (column.n_targets, column.target_is_vector) == (1, False)
    with pytest.warns(match="column-vector y"):
        data = as_data(table, Y[:, :1], target="numeric")
    assert data.target_is_vector


def test_scalar_weight_and_untouched_weights(table):
    assert_array_equal(as_data(table, sample_weight=2).weight, np.full(12, 2.0))
    w = np.arange(12.0)
    assert np.shares_memory(as_data(table, sample_weight=w).weight, w)


def test_numbered_pandas_columns_have_no_names(table):
    assert as_data(pd.DataFrame(table)).feature_names is None


def test_encoding_needs_a_target(table):
    with pytest.raises(DataError, match="y: there is no target"):
        as_data(table).encode_target(np.sign)


@settings(max_examples=30)
@given(st.integers(1, 3000), st.integers(1, 5), st.sampled_from([np.nan, np.inf, -np.inf]), st.data())
def test_a_single_bad_number_is_found_wherever_it_is(n, p, bad, draw):
    X = np.zeros((n, p), draw.draw(st.sampled_from([np.float32, np.float64])), order=draw.draw(st.sampled_from("CF")))
    i, j = draw.draw(st.integers(0, n - 1)), draw.draw(st.integers(0, p - 1))
    as_data(X)
    X[i, j] = bad
    with pytest.raises(DataError, match=rf"Input X contains (NaN|infinity).*row {i}, column {j}"):
        as_data(X)


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_a_bad_number_in_a_large_array_is_found(order):
    X = np.zeros((600_000, 8), order="C" if order == "strided" else order)
    X = X[:, ::2] if order == "strided" else X
    X[599_999, -1] = np.nan
    with pytest.raises(DataError, match="row 599999"):
        as_data(X)


def test_large_finite_numbers_are_fine():
    as_data(np.full((4, 2), np.finfo(np.float64).max))
    as_data(np.full((4, 2), np.finfo(np.float32).max, np.float32))
