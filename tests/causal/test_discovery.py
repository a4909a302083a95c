"""Discovery: exact recovery with an oracle of separation, all ancestral graphs of four nodes, simulated data."""

from functools import cache
from itertools import combinations, pairwise, permutations, product

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from epicycle.causal import CausalGraph, discover
from epicycle.causal.discovery._ges import GaussianScore, ges
from epicycle.causal.discovery._marks import ARROW, CIRCLE, TAIL, topological_order
from epicycle.exceptions import DataError, ParameterError


def random_dag(rng, p, share):
    order = rng.permutation(p)
    A = np.triu(rng.random((p, p)) < share, 1)
    return A[np.ix_(np.argsort(order), np.argsort(order))]


def as_graph(A):
    return CausalGraph([(f"x{i}", f"x{j}") for i, j in np.argwhere(A)], nodes=[f"x{i}" for i in range(len(A))])


def oracle(A):
    graph = as_graph(A)

    def p_value(i, j, given):
        return float(graph.d_separated(f"x{i}", f"x{j}", given=[f"x{k}" for k in given]))

    return p_value


def true_class(A):
    """Edges of the class of equivalent graphs, from the graph package."""
    found = as_graph(A).markov_equivalence()
    return {f"{a} -> {b}" for a, b in found.directed} | {" -- ".join(sorted(edge)) for edge in found.undirected}


def noise(rng, p, n=20):
    return rng.normal(size=(n, p))


@given(st.integers(0, 2**32), st.integers(3, 8), st.floats(0.1, 0.7))
def test_pc_with_an_oracle_is_the_class_of_the_graph(seed, p, share):
    rng = np.random.default_rng(seed)
    A = random_dag(rng, p, share)
    found = discover(noise(rng, p), "pc", independence=oracle(A))
    assert set(found.edges) == true_class(A)
    assert "0 colliders" in found.certificate.meaning


@given(st.integers(0, 2**32), st.integers(3, 7), st.floats(0.2, 0.6))
def test_ges_with_the_true_covariance_is_the_class_of_the_graph(seed, p, share):
    rng = np.random.default_rng(seed)
    A = random_dag(rng, p, share)
    W = A * rng.uniform(0.5, 1.5, (p, p)) * rng.choice([-1, 1], (p, p))
    inverse = np.linalg.inv(np.eye(p) - W)
    S = inverse.T @ inverse
    score = GaussianScore(S / np.sqrt(np.outer(np.diag(S), np.diag(S))), 10**8, 1.0)
    marks, values, left = ges(p, score, p)
    assert (np.diff(values) > 0).all()
    assert left == 0
    edges = {f"x{i} -> x{j}" for i, j in np.argwhere((marks == ARROW) & (marks.T == TAIL))}
    edges |= {f"x{i} -- x{j}" for i, j in np.argwhere(np.triu((marks == TAIL) & (marks.T == TAIL)))}
    # Effects that nearly cancel need more rows than these: then another class costs no more than some edges.
    true_score = sum(score(j, frozenset(np.flatnonzero(A[:, j]).tolist())) for j in range(p))
    empty_score = sum(score(j, frozenset()) for j in range(p))
    assert edges == true_class(A) or true_score - empty_score - (values[-1] - values[0]) < p * np.log(1e8)


# ------------------------------------------------------------------------------------------------ ancestral graphs


def reached(D):
    R = np.eye(len(D), dtype=bool) | D
    for _ in range(len(D)):
        R = R | ((R.astype(int) @ R.astype(int)) > 0)
    return R


def separated(D, B, ancestor, i, j, given):
    """m-separation by going through every path, as in its definition."""
    p = len(D)
    into = D | B  # an arrow at the second node
    joined = into | into.T
    given = list(given)
    for size in range(p - 1):
        for inner in permutations([v for v in range(p) if v not in (i, j)], size):
            path = (i, *inner, j)
            if not all(joined[a, b] for a, b in pairwise(path)):
                continue
            is_open = True
            for a, v, b in zip(path, path[1:], path[2:], strict=False):
                collider = into[a, v] and into[b, v]
                if collider:
                    is_open &= bool(ancestor[v, given].any()) if given else False
                else:
                    is_open &= v not in given
                if not is_open:
                    break
            if is_open:
                return False
    return True


@cache
def ancestral_graphs(p=4):
    """Every maximal ancestral graph of p nodes with directed and bidirected edges, by what it separates."""
    pairs = list(combinations(range(p), 2))
    classes = {}
    for kinds in product(range(4), repeat=len(pairs)):
        D, B = np.zeros((p, p), bool), np.zeros((p, p), bool)
        for (a, b), kind in zip(pairs, kinds, strict=True):
            if kind == 1:
                D[a, b] = True
            elif kind == 2:
                D[b, a] = True
            elif kind == 3:
                B[a, b] = B[b, a] = True
        R = reached(D)
        if (R & R.T & ~np.eye(p, dtype=bool)).any() or (R & B).any():
            continue  # a cycle, or an ancestor of a sibling
        model = frozenset(
            (a, b, given)
            for a, b in pairs
            for size in range(p - 1)
            for given in combinations([v for v in range(p) if v not in (a, b)], size)
            if separated(D, B, R, a, b, given)
        )
        apart = {(a, b) for a, b, _ in model}
        if any(kind == 0 and pair not in apart for pair, kind in zip(pairs, kinds, strict=True)):
            continue  # not maximal: a pair without an edge that nothing separates
        marks = np.where(D | B, ARROW, np.where(D.T, TAIL, 0))
        classes.setdefault(model, []).append(marks)
    return classes


@pytest.mark.slow
def test_fci_is_the_partial_ancestral_graph_of_every_class_of_four_nodes():
    """Marks that all members of a class of equivalent ancestral graphs share, and circles where they differ."""
    classes = ancestral_graphs()
    assert len(classes) > 100
    rng = np.random.default_rng(0)
    for model, members in classes.items():
        first, same = members[0], np.all([m == members[0] for m in members], axis=0)
        expected = np.where(same, first, CIRCLE)
        found = discover(noise(rng, 4), "fci", independence=lambda i, j, g, model=model: float((i, j, g) in model))
        assert np.array_equal(found.marks, expected), (members, found.marks)


@given(st.integers(0, 2**32))
def test_fci_with_hidden_causes_is_sound_and_finds_every_pair_that_is_joined(seed):
    rng = np.random.default_rng(seed)
    p, hidden = int(rng.integers(4, 6)), int(rng.integers(1, 3))
    A = random_dag(rng, p + hidden, 0.35)
    test = oracle(A)
    found = discover(noise(rng, p), "fci", independence=test)
    ancestor = reached(A)
    for i, j in combinations(range(p), 2):
        others = [v for v in range(p) if v not in (i, j)]
        apart = any(test(i, j, g) for size in range(p - 1) for g in combinations(others, size))
        assert (found.marks[i, j] == 0) == apart
        for a, b in ((i, j), (j, i)):
            if found.marks[a, b] == ARROW:
                assert not ancestor[b, a]
            elif found.marks[a, b] == TAIL:
                assert ancestor[b, a]


def test_rules_of_selection_make_undirected_edges():
    """Four variables in a ring whose opposite ends are independent given the others: selection alone explains it."""
    model = {(0, 2, (1, 3)), (1, 3, (0, 2))}
    found = discover(
        noise(np.random.default_rng(0), 4), "fci", independence=lambda i, j, g: float((i, j, tuple(sorted(g))) in model)
    )
    assert found.edges == ["x0 -- x1", "x0 -- x3", "x1 -- x2", "x2 -- x3"]


# ------------------------------------------------------------------------------------------------ data


def linear_data(rng, n, non_gaussian=False):
    """x0 -> x2 <- x1, x2 -> x3 -> x4."""
    e = rng.uniform(-1.7, 1.7, (5, n)) if non_gaussian else rng.normal(size=(5, n))
    x0, x1 = e[0], e[1]
    x2 = x0 - 0.9 * x1 + e[2]
    x3 = 0.8 * x2 + e[3]
    return np.column_stack([x0, x1, x2, x3, -x3 + e[4]])


TRUTH = ["x0 -> x2", "x1 -> x2", "x2 -> x3", "x3 -> x4"]


@pytest.mark.parametrize("method", ["pc", "ges", "notears", "lingam"])
def test_data_of_a_known_graph(method):
    X = linear_data(np.random.default_rng(1), 2000, non_gaussian=method == "lingam")
    found = discover(X, method)
    assert found.edges == TRUTH
    assert found.certificate.holds or found.certificate.kind == "none"
    assert found.kind == ("DAG" if found.weights is not None else "CPDAG")
    assert found.to_graph().directed == (("x0", "x2"), ("x1", "x2"), ("x2", "x3"), ("x3", "x4"))
    if found.weights is not None:
        weights = found.weights[[0, 1, 2, 3], [2, 2, 3, 4]]
        assert_allclose(weights, [1, -0.9, 0.8, -1], atol=0.15 if method == "notears" else 0.05)
        assert topological_order(found.weights != 0) is not None
    assert "assumptions" in str(found)
    order = [4, 2, 0, 1, 3]
    other = discover(X[:, order], method, names=[f"x{j}" for j in order])
    assert set(other.edges) == set(TRUTH)


def test_partial_correlations_are_those_of_regressions():
    X = linear_data(np.random.default_rng(0), 60)
    from epicycle.causal.discovery._independence import PartialCorrelation

    test = PartialCorrelation(np.corrcoef(X, rowvar=False), 60, 0.05)
    for given_set in ((), (1,), (1, 2), (1, 2, 3)):
        A = np.column_stack([np.ones(60), X[:, given_set]])
        left = X[:, [0, 4]] - A @ np.linalg.lstsq(A, X[:, [0, 4]], rcond=None)[0]
        r = np.corrcoef(left, rowvar=False)[0, 1]
        z = np.sqrt(60 - len(given_set) - 3) * np.arctanh(abs(r))
        got = test.statistics(0, 4, np.array([given_set], dtype=int).reshape(1, -1))[0]
        assert got == pytest.approx(z, rel=1e-9)


def test_bootstrap_confidence_and_a_picture():
    X = linear_data(np.random.default_rng(2), 300)
    found = discover(X, bootstrap=20, random_state=3)
    again = discover(X, bootstrap=20, random_state=3)
    assert np.array_equal(found.confidence, again.confidence)
    assert found.confidence[0, 2] == 1
    assert found.confidence[0, 1] < 0.3
    assert found.direction_confidence[0, 2] > 0.6
    assert "joined in 100% of samples" in str(found)
    ax = found.plot()
    assert len(ax.texts) >= 5
    plt.close(ax.figure)


def test_a_hidden_cause_is_two_arrows_for_fci():
    rng = np.random.default_rng(0)
    a, b, hidden, e1, e2 = rng.normal(size=(5, 5000))
    X = np.column_stack([a, a + hidden + e1, b + hidden + e2, b])
    found = discover(X, "fci", names=["a", "x", "y", "b"])
    assert found.edges == ["a o-> x", "x <-> y", "b o-> y"]
    with pytest.raises(DataError, match="a o-> x has no direction"):
        found.to_graph()


def test_options_have_their_effect_and_bad_ones_are_named():
    X = linear_data(np.random.default_rng(4), 150)
    assert len(discover(X, alpha=0.5).edges) > len(discover(X, alpha=1e-12).edges)
    assert len(discover(X, max_size=0).edges) > len(discover(X).edges)
    assert len(discover(X, "ges", penalty=0.01).edges) > len(discover(X, "ges", penalty=60.0).edges)
    assert len(discover(X, "notears", threshold=0.05, l1=0.0).edges) > len(discover(X, "notears", threshold=0.9).edges)
    with pytest.raises(DataError, match="column 'x1' is constant"):
        discover(np.column_stack([X[:, 0], np.ones(150)]))
    with pytest.raises(ParameterError, match="independence: given with method='ges'"):
        discover(X, "ges", independence=lambda i, j, g: 1.0)
    with pytest.raises(ParameterError, match="names: got 2"):
        discover(X, names=["a", "b"])


def test_a_search_of_a_dense_graph_ends(monkeypatch):
    """Twelve columns with one hidden cause: nothing separates any two of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1)) + 0.3 * rng.normal(size=(400, 12))
    monkeypatch.setattr("epicycle.causal.discovery._independence.MOST_TESTS", 2000)
    with pytest.raises(DataError, match="2,000 tests did not suffice; give max_size"):
        discover(X, alpha=0.5)
    assert len(discover(X, alpha=0.5, max_size=1).edges) > 40
