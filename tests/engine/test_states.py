"""States that stay with the partitions of a Dask collection, on the local scheduler and on two processes."""

import sys

import cloudpickle
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from epicycle import engine
from epicycle.data import as_data

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test

X = np.arange(40.0).reshape(20, 2)
CHUNKS = (7, 0, 1, 12)

pytestmark = pytest.mark.usefixtures("where")


def first_column(part, number, start, factor):
    assert_array_equal(part.X[:, 0], 2 * np.arange(start, start + part.n_rows))
    return None if number == 3 and factor == 0 else factor * part.X[:, 0]


def plus(state, other, shift):
    return state + other + shift


def total(state, *others):
    return state.sum(), np.array([len(state)]), len(others)


def failing(state):
    raise ZeroDivisionError("planted")


@pytest.mark.parametrize("unknown", [False, True])
def test_states_are_mapped_and_summed(unknown):
    lazy = da.from_array(X, chunks=(CHUNKS, 2))
    if unknown:
        lazy = lazy[lazy[:, 0] >= 0]
    states = engine.make_states(as_data(lazy), first_column, 1.0)
    assert states.sum(total) == (X[:, 0].sum(), 20, 0)
    other = states.map(plus, 5.0, beside=[states])
    assert other.sum(total, beside=[states]) == (2 * X[:, 0].sum() + 100, 20, 3)
    assert states.sum(total)[0] == X[:, 0].sum()  # never changed in place
    large = np.zeros(20_000)  # travels once to each worker
    assert states.sum(total, large)[2] == 3


def test_frames_without_known_sizes():
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=3).clear_divisions()
    assert engine.row_starts(as_data(frame)) == [0, 7, 14]
    assert engine.make_states(as_data(frame), first_column, 2.0).sum(total)[0] == 2 * X[:, 0].sum()


def test_a_state_may_be_nothing():
    states = engine.make_states(as_data(da.from_array(X, chunks=(CHUNKS, 2))), first_column, 0)
    assert states.sum(total)[1] == 8
    assert states.map(plus, 1.0, beside=[states]).sum(total)[0] == 8
    nobody = states.map(lambda state: None)
    assert nobody.sum(total) == ()


def test_an_error_keeps_its_type():
    states = engine.make_states(as_data(da.from_array(X, chunks=(CHUNKS, 2))), first_column, 1.0)
    with pytest.raises(ZeroDivisionError, match="planted"):
        states.map(failing).sum(total)
    assert states.sum(total)[1] == 20
