"""Numbers that follow from rows: their distribution, and that the company of a row does not matter."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import kstest

from epicycle.generative._row_draws import RowDraws, _mixed

BITS = torch.from_numpy(np.random.default_rng(0).permutation(2**11)[:, None] >> np.arange(11) & 1)


@pytest.mark.parametrize("x", [BITS, BITS.double() / 3, 255 * BITS.to(torch.uint8), torch.randn(2048, 4, 5, 3)])
def test_rows_draws_and_entries_are_independent(x):
    u = RowDraws(x, 4).uniform(3)
    assert u.shape == (4, 2048, 3)
    assert kstest(u.numpy().ravel(), "uniform").pvalue > 1e-4
    e = RowDraws(x, 4).normal(3)
    assert kstest(e.numpy().ravel(), "norm").pvalue > 1e-4
    twelve = np.corrcoef(e.transpose(0, 1).flatten(1).T.numpy())  # draws and entries of a row
    assert np.abs(twelve - np.eye(12)).max() < 5 / np.sqrt(2048)
    beside = [np.corrcoef(e[0, :-d, 0], e[0, d:, 0])[0, 1] for d in range(1, 20)]
    assert np.abs(beside).max() < 5 / np.sqrt(2048)


@given(st.integers(0, 2**63), st.data())
def test_the_numbers_of_a_row_are_its_own(seed, data):
    x = BITS[:50].double()
    chosen = data.draw(st.lists(st.integers(0, 49), min_size=1, max_size=8))
    whole, some = RowDraws(x, 5, seed), RowDraws(x[chosen], 5, seed)
    for size in (2, 3):
        expected = whole.uniform(size)
        assert_array_equal(some.uniform(size), expected[:, chosen])
    assert_array_equal(RowDraws(x, 2, seed, first=3).uniform(2), RowDraws(x, 5, seed).uniform(2)[3:])
    assert not np.array_equal(RowDraws(x, 5, seed + 1).uniform(2), RowDraws(x, 5, seed).uniform(2))


def test_both_zeros_are_one():
    assert_array_equal(RowDraws(torch.zeros(1, 3), 2).uniform(2), RowDraws(-torch.zeros(1, 3), 2).uniform(2))


def test_words_are_those_of_splitmix64():
    """The first outputs from state 1234567, which is the generator's published example."""
    golden = 0x9E3779B97F4A7C15
    states = [(1234567 + i * golden) % 2**64 for i in (1, 2, 3)]
    words = torch.tensor([state - 2**64 if state >= 2**63 else state for state in states])
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert_array_equal(_mixed(words).numpy().view(np.uint64), np.array(expected, dtype=np.uint64))
