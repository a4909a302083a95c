"""Splits by time: what comes later is tested on."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from epicycle.select import split_by_time


@given(st.lists(st.integers(0, 9), min_size=2, max_size=40), st.floats(0.05, 0.95))
def test_no_test_row_is_earlier_than_a_training_row(times, share):
    times = np.array(times)
    if len(set(times.tolist())) == 1:
        with pytest.raises(ValueError, match="times"):
            split_by_time(times, share)
        return
    try:
        train, test = split_by_time(times, share)
    except ValueError:  # the earliest time has so many rows that the cut falls into it
        assert np.mean(times > times.min()) < share + 0.5 / len(times)
        return
    assert sorted([*train, *test]) == list(range(len(times)))
    assert times[train].max() < times[test].min()
    assert len(test) >= min(len(times) - 1, max(1, np.floor(share * len(times) + 0.5)))
    assert np.sum(times[test] > times[test].min()) < max(1, share * len(times) + 0.5)


def test_each_group_is_split_by_itself():
    days = np.array(["2024-01-03", "2024-01-01", "2024-01-02", "2024-02-01", "2024-02-02", "2024-03-01"])
    train, test = split_by_time(days.astype("datetime64[D]"), 0.3, groups=list("aaabbc"))
    assert train.tolist() == [1, 2, 3, 5]  # the group of one time is learnt from
    assert test.tolist() == [0, 4]
    assert split_by_time(days, 0.3)[1].tolist() == [4, 5]
    with pytest.raises(ValueError, match="groups: 2 labels"):
        split_by_time(days, groups=["a", "b"])
    with pytest.raises(ValueError, match="times: the value of row 1 is missing"):
        split_by_time([1.0, np.nan])
    with pytest.raises(ValueError, match="test_size"):
        split_by_time([1, 2], 1.5)
