"""Graph kernels: hand-made graphs, and refusals at the boundary."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from epicycle._native import graph

# 0 -> 2 <- 1, 2 -> 3
PARENTS = np.array([0, 0, 0, 2, 3]), np.array([0, 1, 2], dtype=np.int32)
CHILDREN = np.array([0, 1, 2, 3, 3]), np.array([2, 2, 3], dtype=np.int32)


def mask(*nodes):
    out = np.zeros(4, dtype=np.uint8)
    out[list(nodes)] = 1
    return out


@pytest.mark.parametrize(("given", "reached"), [((), (0, 2, 3)), ((3,), (0, 1, 2)), ((2,), (0, 1))])
def test_a_collider_opens_when_it_or_a_descendant_is_given(given, reached):
    found = mask()
    zero = np.array([0], dtype=np.int32)
    assert graph.d_connected(*PARENTS, *CHILDREN, zero, mask(*given), mask(), found) is False
    assert_array_equal(found, mask(*reached))
    assert graph.d_connected(*PARENTS, *CHILDREN, zero, mask(*given), mask(1), mask()) == (1 in reached)


def test_reachable_is_closed():
    found = mask()
    graph.reachable(*CHILDREN, np.array([1], dtype=np.int32), found)
    assert_array_equal(found, mask(1, 2, 3))


def test_refuses_lists_and_nodes_that_do_not_fit():
    zero = np.array([0], dtype=np.int32)
    with pytest.raises(ValueError, match="rising from 0"):
        graph.reachable(np.array([0, 2, 1, 3, 3]), CHILDREN[1], zero, mask())
    with pytest.raises(ValueError, match="sources among the nodes"):
        graph.reachable(*CHILDREN, np.array([4], dtype=np.int32), mask())
    with pytest.raises(ValueError, match="parents and children"):
        graph.d_connected(*PARENTS, CHILDREN[0], CHILDREN[1] + np.int32(2), zero, mask(), mask(), mask())
