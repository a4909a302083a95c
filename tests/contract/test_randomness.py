"""Streams are named by seed and keys, and by nothing else."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from epicycle.core._random import seed_of, stream
from epicycle.exceptions import ParameterTypeError


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_the_same_for_any_number_of_threads(n_threads):
    alone = [stream(7, "block", i).standard_normal(5) for i in range(64)]
    with ThreadPoolExecutor(n_threads) as pool:
        shared = list(pool.map(lambda i: stream(7, "block", i).standard_normal(5), reversed(range(64))))
    assert np.array_equal(alone, shared[::-1])


def test_it_is_philox_seeded_by_the_spawn_key():
    expected = np.random.Generator(np.random.Philox(np.random.SeedSequence(3, spawn_key=(1, 4))))
    assert stream(3, 1, 4).integers(2**62) == expected.integers(2**62)


def test_different_keys_are_different_streams():
    keys = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), ("a",), ("b",), ("a", 0), ("b", 0)]
    first = {stream(0, *key).integers(2**62).item() for key in keys}
    assert len(first) == len(keys)
    draws = np.array([stream(0, "tree", i).standard_normal(4000) for i in range(20)])
    correlation = np.corrcoef(draws) - np.eye(20)
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


def test_seed_of():
    assert seed_of(5) == seed_of(np.int32(5)) == 5
    assert seed_of(None) != seed_of(None)
    a, b = np.random.default_rng(1), np.random.default_rng(1)
    assert [seed_of(a), seed_of(a)] == [seed_of(b), seed_of(b)]
    assert seed_of(a) != seed_of(a)
    c, d = np.random.RandomState(1), np.random.RandomState(1)
    assert [seed_of(c), seed_of(c)] == [seed_of(d), seed_of(d)]
    assert 0 <= seed_of(c) < 2**63


@pytest.mark.parametrize("bad", [-1, 1.5, "0", True])
def test_bad_seed(bad):
    with pytest.raises(ParameterTypeError, match="random_state"):
        seed_of(bad)
