"""Passes over files: what memory gives, the same bits on any number of threads, and little memory."""

import threading

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import engine
from epicycle.data import as_data, scan
from epicycle.exceptions import DataError


def moments(batch, shift):
    X = np.asarray(batch.X, np.float64) - shift
    w = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    return X.T @ (w[:, None] * X), X.T @ (w * batch.y), w.sum()


def first(batch):
    return batch.X[:, 0].copy()


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    return rng.normal(size=(50_000, 6)), rng.normal(size=50_000), rng.uniform(size=50_000)


@pytest.fixture(scope="module")
def files(problem, tmp_path_factory):
    """Seven uneven files."""
    X, y, w = problem
    folder = tmp_path_factory.mktemp("parts")
    table = pa.table({**{f"x{j}": X[:, j] for j in range(6)}, "y": y, "w": w})
    cuts = [0, 1, 700, 20_000, 20_003, 35_000, 49_000, 50_000]
    for i in range(7):
        part = table.slice(cuts[i], cuts[i + 1] - cuts[i])
        pq.write_table(part, folder / f"part-{i}.parquet", row_group_size=9_999)
    return scan(folder / "part-*.parquet", target="y", weight="w", batch_rows=1_717)


def test_sum_and_map_are_those_of_memory_on_any_number_of_threads(problem, files):
    X, y, w = problem
    data, shift = as_data(files, target="numeric"), np.full(6, 0.25)
    states = [engine.sum(moments, data, shift, n_jobs=k) for k in (1, 2, 4)]
    for other in states[1:]:
        for a, b in zip(states[0], other, strict=True):
            assert_array_equal(a, b)
    expected = engine.sum(moments, as_data(X, y, w, target="numeric"), shift)
    for a, b in zip(states[0], expected, strict=True):
        assert_allclose(a, b, rtol=1e-12)
    for k in (1, 2, 4):
        assert_array_equal(engine.map(first, data, n_jobs=k), X[:, 0])


def test_map_over_rows_that_were_never_counted(tmp_path, problem):
    X = problem[0][:5_000]
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", header="a,b,c,d,e,f", comments="")
    data = as_data(scan(tmp_path / "t.csv", batch_rows=999))
    assert data.n_rows is None
    assert_allclose(engine.map(first, data), X[:, 0], rtol=1e-15)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_bad_row_or_a_failing_statistic_ends_the_pass_and_the_reader(tmp_path, files, n_jobs):
    values = np.zeros(20_000)
    values[15_000] = np.nan
    pq.write_table(pa.table({"a": values, "y": np.zeros(20_000)}), tmp_path / "t.parquet")
    data = as_data(scan(tmp_path / "t.parquet", target="y", batch_rows=1_000), target="numeric")
    with pytest.raises(DataError, match=r"Input X contains NaN \(first at row 15000, column 'a'\)"):
        engine.sum(moments, data, 0.0, n_jobs=n_jobs)
    with pytest.raises(ZeroDivisionError):
        engine.sum(lambda b: (1 // b.start,), as_data(files), n_jobs=n_jobs)
    assert not [t for t in threading.enumerate() if t.name == "epicycle-reader"]


@pytest.mark.serial
def test_memory_does_not_grow_with_the_file(tmp_path):
    n, rng = 200_000, np.random.default_rng(0)
    X = rng.standard_normal((n, 20), dtype=np.float32)
    for i in range(5):
        table = pa.table({f"x{j}": X[:, j] for j in range(20)})
        pq.write_table(table, tmp_path / f"{i}.parquet", compression="none", use_dictionary=False)
    process, seen = psutil.Process(), []

    def size(batch):
        seen.append(process.memory_info().rss)
        return (batch.n_rows,)

    assert engine.sum(size, as_data(scan(tmp_path / "0.parquet"))) == (n,)
    one_file = max(seen)
    del X, table
    seen.clear()
    assert engine.sum(size, as_data(scan(tmp_path))) == (5 * n,)
    assert max(seen) < one_file + (24 << 20)  # the other files hold 64 MB
