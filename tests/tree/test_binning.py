"""Cuts and bins against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

import epicycle as ep
from epicycle import _native
from epicycle.data import as_data
from epicycle.tree._binning import (
    RowSample,
    bin_data,
    bin_edges,
    bin_matrix,
    padded_edges,
    priority_limit,
    row_priorities,
)

NUMBERS = st.floats(allow_nan=False, width=64)


@settings(max_examples=200)
@given(x=arrays(np.float64, st.integers(0, 60), elements=NUMBERS), max_bins=st.integers(2, 255))
def test_cuts_tell_numbers_apart(x, max_bins):
    x = np.sort(x)
    cuts = _native.tree.quantile_cuts(x, None, max_bins)
    distinct = np.unique(x)
    assert len(cuts) < max_bins
    assert (np.diff(cuts) > 0).all()
    if len(distinct) <= max_bins:
        assert_array_equal(np.searchsorted(cuts, distinct), np.arange(len(distinct)))
    if len(cuts):
        assert distinct[0] <= cuts[0]
        assert cuts[-1] < distinct[-1]


@pytest.mark.parametrize("max_bins", [2, 7, 64, 255])
def test_bins_of_a_continuous_column_are_of_equal_size(max_bins):
    x = np.sort(np.random.default_rng(0).standard_cauchy(20_000))
    cuts = _native.tree.quantile_cuts(x, None, max_bins)
    assert len(cuts) == max_bins - 1
    sizes = np.bincount(np.searchsorted(cuts, x))
    assert abs(sizes - 20_000 / max_bins).max() <= 2


@pytest.mark.parametrize("seed", range(40))
def test_a_number_that_outweighs_two_bins_has_one_of_its_own(seed):
    rng = np.random.default_rng(seed)
    max_bins = int(rng.integers(2, 256))
    counts = rng.integers(1, 2000, size=rng.integers(256, 600))
    counts[rng.choice(len(counts), rng.integers(0, 130), replace=False)] *= 1000
    cuts = _native.tree.quantile_cuts(np.arange(len(counts), dtype=float), counts.astype(float), max_bins)
    bins = np.searchsorted(cuts, np.arange(len(counts)))
    heavy = np.flatnonzero(counts * max_bins >= 2 * counts.sum())
    assert max_bins / 3 <= len(cuts) + 1 <= max_bins
    assert (np.bincount(bins)[bins[heavy]] == 1).all()


def test_weights_repeat_numbers():
    rng = np.random.default_rng(1)
    x, w = np.sort(rng.normal(size=2000).round(2)), rng.integers(1, 6, 2000)
    weighted = _native.tree.quantile_cuts(x, w.astype(float), 50)
    assert_array_equal(weighted, _native.tree.quantile_cuts(np.repeat(x, w), None, 50))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_bins_are_what_searchsorted_says(dtype, order):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1111, 5)).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:3, 0] = [np.inf, -np.inf, 0.0]
    cuts = [np.sort(rng.normal(size=k)) for k in (254, 10, 1, 0, 100)]
    X[5, 1] = cuts[1][4] if dtype is np.float64 else X[5, 1]  # a number at a cut belongs below it
    laid = {"C": X, "F": np.asfortranarray(X), "strided": np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]}[
        order
    ]
    for threads in (1, 3):
        bins = bin_matrix(laid, padded_edges(cuts), threads)
        for j, c in enumerate(cuts):
            there = ~np.isnan(X[:, j])
            assert_array_equal(bins[there, j], np.searchsorted(c, X[there, j]))
            assert (bins[~there, j] == 255).all()


def test_sparse_bins_are_those_of_the_dense_matrix():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 6)) * (rng.random((300, 6)) < 0.2)
    X[0, 1] = np.nan
    data, dense = as_data(sp.csr_array(X), check_finite=False), as_data(X, check_finite=False)
    cuts = bin_edges(data, {}, max_bins=20, seed=0)
    for mine, theirs in zip(cuts, bin_edges(dense, {}, max_bins=20, seed=0), strict=True):
        assert_array_equal(mine, theirs)
    assert_array_equal(bin_matrix(sp.csr_array(X), padded_edges(cuts), 1), bin_matrix(X, padded_edges(cuts), 1))


def test_the_sample_is_the_same_from_memory_and_from_files(tmp_path, monkeypatch):
    monkeypatch.setattr("epicycle.tree._binning.SAMPLE_ROWS", 700)
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=(5000, 3)), rng.normal(size=5000)])
    np.save(tmp_path / "rows.npy", X)
    scan = ep.scan(tmp_path / "rows.npy", target=3, batch_rows=333)
    in_memory = as_data(X[:, :3].copy(), X[:, 3], target="numeric")
    on_disk = as_data(scan, target="numeric")
    for mine, theirs in zip(
        bin_edges(in_memory, {}, max_bins=30, seed=5), bin_edges(on_disk, {}, max_bins=30, seed=5), strict=True
    ):
        assert len(mine) == 29
        assert_array_equal(mine, theirs)
    cuts = bin_edges(in_memory, {}, max_bins=30, seed=5)
    for mine, theirs in zip(bin_data(in_memory, cuts), bin_data(on_disk, cuts), strict=True):
        assert_array_equal(mine, theirs)
    other = bin_edges(in_memory, {}, max_bins=30, seed=6)
    assert any(not np.array_equal(a, b) for a, b in zip(cuts, other, strict=True))


def test_priorities_depend_on_the_row_alone_and_are_spread_out():
    p = row_priorities(0, 100_000, 7)
    assert_array_equal(p[1234:5678], row_priorities(1234, 5678, 7))
    assert len(np.unique(p)) == 100_000
    counts = np.histogram(p.astype(float), bins=20, range=(0, 2.0**64))[0]
    assert abs(counts - 5000).max() < 5 * np.sqrt(5000)


@pytest.mark.parametrize("size", [1, 500, 4999, 5000, 6000])
def test_the_limit_of_priorities(size):
    priority = row_priorities(0, 5000, 3)
    assert (priority <= np.uint64(priority_limit(5000, size, 3))).sum() == min(size, 5000)


def test_samples_add_up_to_those_of_smallest_priority():
    priority = row_priorities(0, 100, 0)
    samples = [RowSample(30, priority[i::4], np.arange(100)[i::4], np.ones(25), np.ones((25, 1))) for i in range(4)]
    chosen = (samples[0] + samples[1]) + (samples[2] + samples[3])
    assert_array_equal(np.sort(chosen.number), np.sort(np.argsort(priority)[:30]))
