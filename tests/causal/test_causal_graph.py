"""Diagrams: reading and writing, separation, adjustment, projection, equivalence, pictures."""

import warnings
from itertools import combinations, permutations, product

import matplotlib.pyplot as plt
import numpy as np
import pytest
from diagrams import random_edges, separated_by_paths, subsets
from hypothesis import given, settings, strategies as st

from epicycle.causal import CausalGraph
from epicycle.exceptions import DataError, ParameterError

FRONT = "x -> m -> y; x <-> y"
GRAPHS = [random_edges(np.random.default_rng(seed), 6) for seed in range(12)]


def as_graph(nodes, edges):
    return CausalGraph(edges, nodes=nodes)


# ---------------------------------------------------------------- reading and writing


@pytest.mark.parametrize(
    "source",
    [
        "smoking -> tar -> cancer; smoking <-> cancer",
        "cancer <- tar\n smoking -> tar  # the mechanism\n cancer <-> smoking",
        'digraph g { rankdir=LR; "smoking" -> tar -> cancer [weight=2]; smoking -> cancer [dir=both, style=dashed] }',
        'digraph { node [shape=box]; smoking -> {tar}; tar->cancer; /* hidden */ cancer -> smoking [dir="both"]; }',
        'graph [ directed 1 node [ id 0 label "smoking" ] node [ id 1 label "tar" ] node [ id 2 label "cancer" ] '
        'edge [ source 0 target 1 ] edge [ source 1 target 2 ] edge [ source 0 target 2 dir "both" ] ]',
        [("smoking", "tar"), ("tar", "->", "cancer"), ("cancer", "<->", "smoking")],
    ],
)
def test_every_form_gives_the_same_diagram(source):
    graph = CausalGraph(source)
    assert graph == CausalGraph([("smoking", "tar"), ("tar", "cancer"), ("smoking", "<->", "cancer")])
    assert CausalGraph(graph.to_text()) == graph == CausalGraph(graph.to_dot())


def test_addresses_in_quotation_marks_are_no_comments():
    text = 'digraph g { // causes\n "http://x.org/a" -> b [url="http://x.org/b"]; b -> c }'
    assert set(CausalGraph(text).nodes) == {"http://x.org/a", "b", "c"}


def test_networkx_goes_in_and_comes_out():
    pytest.importorskip("networkx")
    graph = CausalGraph("a -> b -> c; a <-> c; u -> a", latent="u")
    assert CausalGraph(graph.to_networkx()) == graph


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("a -> b; b -> c -> d -> b", "no cycles; got (b -> c -> d -> b|c -> d -> b -> c|d -> b -> c -> d)"),
        ("a -> a", "'a' has an edge to itself"),
        ("a -- b", "expected one of ->, <-, <->"),
        ("a -> ; b", "lacks a name"),
        ("digraph { a -> b", "ends before its closing brace"),
        ("graph { a -- b }", "undirected graph"),
        ([("a", "b", "c", "d")], "expected pairs of names"),
        (3, "expected text, DOT"),
        ("graph [ node 5 ]", r"node '5' in the GML text; expected node \[ ... \]"),
        ('digraph /* { */ a -> b; "{" -> c', "no opening brace|ends"),
    ],
)
def test_refuses_what_is_no_diagram(source, says):
    with pytest.raises(DataError, match=says):
        CausalGraph(source)


def test_an_unknown_node_and_shared_nodes_are_named():
    graph = CausalGraph(FRONT)
    with pytest.raises(ParameterError, match=r"y='q'.*expected some of x, m, y"):
        graph.d_separated("x", "q")
    with pytest.raises(ParameterError, match=r"given and x share \['x'\]"):
        graph.d_separated("x", "y", given=["x", "m"])


# ---------------------------------------------------------------- separation


@pytest.mark.parametrize("case", range(len(GRAPHS)))
def test_separation_and_minimal_separators_are_those_of_the_definition(case):
    nodes, edges = GRAPHS[case]
    graph = as_graph(nodes, edges)
    for x, y in combinations(nodes, 2):
        rest = set(nodes) - {x, y}
        works = [z for z in subsets(rest) if separated_by_paths(edges, x, y, z)]
        assert [z for z in subsets(rest) if graph.d_separated(x, y, z)] == works
        minimal = [z for z in works if not any(w < z for w in works)]
        assert set(graph.minimal_separators(x, y)) == {frozenset(z) for z in minimal}
        inside = [z for z in works if "v0" in z and "v1" not in z]  # one node has to be there, another may not
        if {x, y}.isdisjoint({"v0", "v1"}):
            best = {frozenset(z) for z in inside if not any(w < z for w in inside)}
            assert set(graph.minimal_separators(x, y, include="v0", restrict=set(nodes) - {"v1"})) == best


def test_open_paths_are_there_where_nodes_are_connected():
    nodes, edges = GRAPHS[3]
    graph = as_graph(nodes, edges)
    for known in subsets(set(nodes[2:])):
        paths = graph.open_paths(nodes[0], nodes[1], known)
        assert bool(paths) != graph.d_separated(nodes[0], nodes[1], known)
        assert [len(p.nodes) for p in paths] == sorted(len(p.nodes) for p in paths)
    assert graph.d_connected("v0") == {v for v in nodes[1:] if not graph.d_separated("v0", v)}


def test_ten_thousand_nodes():
    rng = np.random.default_rng(0)
    n = 10_000
    edges = [(f"n{a}", f"n{b}") for b in range(1, n) for a in {int(rng.integers(b)) for _ in range(3)}]
    graph = CausalGraph(edges)
    assert not graph.d_separated("n0", f"n{n - 1}")
    parents = graph.parents(f"n{n - 1}")
    assert graph.d_separated(f"n{n - 1}", [v for v in graph.nodes[:-1] if v not in parents], parents)


def test_a_limit_is_kept_and_told():
    ladder = CausalGraph([(f"a{i}", f"b{i}") for i in range(12)] + [("x", f"a{i}") for i in range(12)])
    ladder = CausalGraph([*ladder.directed, *((f"b{i}", "y") for i in range(12))])
    with pytest.warns(UserWarning, match="more than limit=50"):
        found = ladder.minimal_separators("x", "y", limit=50)
    assert len(found) == 50
    assert all(ladder.d_separated("x", "y", z) for z in found)


# ---------------------------------------------------------------- adjustment


def is_adjustment(edges, nodes, x, y, z):
    """Criterion of the books on paths: no descendant of a causal node in z, and no open path that is not causal."""
    children = {v: {b for a, arrow, b in edges if arrow == "->" and a == v} for v in nodes}

    def below(v):
        return {v}.union(*(below(c) for c in children[v]))

    causal = {v for v in nodes if v != x and v in below(x) and y in below(v)}
    if z & set().union(*(below(v) for v in causal)):
        return False
    cut = [e for e in edges if not (e[1] == "->" and e[0] == x and e[2] in causal)]
    return separated_by_paths(cut, x, y, z)


@pytest.mark.parametrize("case", range(6))
def test_adjustment_sets_are_those_of_the_criterion(case):
    nodes, edges = GRAPHS[case]
    graph = as_graph(nodes, edges)
    for x, y in permutations(nodes[:4], 2):
        works = [z for z in subsets(set(nodes) - {x, y}) if is_adjustment(edges, nodes, x, y, z)]
        assert set(graph.adjustment_sets(x, y, "all")) == {frozenset(z) for z in works}
        assert set(graph.adjustment_sets(x, y)) == {frozenset(z) for z in works if not any(w < z for w in works)}


def test_front_door_sets_are_those_of_the_definition():
    found = 0
    for nodes, edges in [(["x", "m", "y"], [("x", "->", "m"), ("m", "->", "y"), ("x", "<->", "y")]), *GRAPHS]:
        graph = as_graph(nodes, edges)
        for x, y in permutations(nodes[:3], 2):
            works = []
            for m in subsets(set(nodes) - {x, y}):
                reach = {x}
                for _ in nodes:
                    reach |= {b for a, arrow, b in edges if arrow == "->" and a in reach and b not in m}
                no_x = [e for e in edges if not (e[1] == "->" and e[0] == x)]
                no_m = [e for e in edges if not (e[1] == "->" and e[0] in m)]
                second = all(separated_by_paths(no_x, x, v, set()) for v in m)
                if y not in reach and second and all(separated_by_paths(no_m, v, y, {x}) for v in m):
                    works.append(frozenset(m))
            minimal = {m for m in works if not any(w < m for w in works)}
            assert set(graph.front_door(x, y)) == minimal
            found += bool(minimal)
    assert found > 5


def test_optimal_set_has_the_least_variance_of_all_in_a_linear_model():
    graph = CausalGraph("a -> x -> m -> y; a -> b -> y; c -> m; d -> x; c -> e")
    rng = np.random.default_rng(0)
    coefficient = {edge: rng.uniform(0.5, 1.5) for edge in graph.directed}
    B = np.array([[coefficient.get((a, b), 0.0) for a in graph.nodes] for b in graph.nodes])
    A = np.linalg.inv(np.eye(len(B)) - B)
    S = A @ A.T
    place = {v: i for i, v in enumerate(graph.nodes)}

    def variance(z):  # of least squares of y on x and z: residual variance of y over that of x given z
        def residual(v, given):
            g = [place[u] for u in given]
            return S[place[v], place[v]] - S[place[v], g] @ np.linalg.solve(S[np.ix_(g, g)], S[g, place[v]])

        return residual("y", ["x", *z]) / residual("x", list(z))

    every = graph.adjustment_sets("x", "y", "all")
    (best,) = graph.adjustment_sets("x", "y", "optimal")
    assert best == {"b", "c"}
    assert len(every) > 10
    assert variance(best) == min(map(variance, every))
    with pytest.raises(ParameterError, match="causes that are not observed"):
        CausalGraph("z -> x -> m -> y; z -> m; m <-> y").adjustment_sets("x", "m", "optimal")


def test_back_door_and_instruments_of_textbook_graphs():
    m_bias = CausalGraph("u1 -> x; u1 -> m; u2 -> m; u2 -> y; x -> y", latent=["u1", "u2"])
    assert m_bias.back_door("x", "y") == [frozenset()]
    assert frozenset({"m"}) not in m_bias.adjustment_sets("x", "y", "all")
    assert CausalGraph("z -> x; z -> y; x -> y").back_door("x", "y") == [frozenset({"z"})]
    assert CausalGraph(FRONT).back_door("x", "y") == []
    assert CausalGraph("z -> x -> y; x <-> y; z -> y").instruments("x", "y") == []
    (conditional,) = CausalGraph("w -> z -> x -> y; w -> y; x <-> y; w <-> z").instruments("x", "y")
    assert (conditional.node, conditional.given) == ("z", {"w"})


# ---------------------------------------------------------------- other diagrams


def test_projection_keeps_the_separations_of_what_is_seen():
    for seed in range(8):
        nodes, edges = random_edges(np.random.default_rng(100 + seed), 7, directed=0.45, bidirected=0.1)
        graph = as_graph(nodes, edges)
        seen = nodes[:5]
        small = graph.latent_projection(seen)
        assert small.nodes == tuple(seen)
        for x, y in combinations(seen, 2):
            for z in subsets(set(seen) - {x, y}):
                assert small.d_separated(x, y, z) == graph.d_separated(x, y, z)
            assert (y in small.descendants(x)) == (y in graph.descendants(x))


def test_equivalence_classes_of_all_diagrams_of_four_nodes():
    names = "abcd"
    pairs = list(combinations(names, 2))
    classes = {}
    for marks in product((None, "->", "<-"), repeat=6):
        edges = [(a, m, b) for (a, b), m in zip(pairs, marks, strict=True) if m]
        try:
            graph = CausalGraph(edges, nodes=names)
        except DataError:
            continue
        key = tuple(graph.d_separated(a, b, z) for a, b in pairs for z in subsets(set(names) - {a, b}))
        classes.setdefault(key, []).append(graph)
    assert sum(map(len, classes.values())) == 543  # labelled acyclic graphs of four nodes
    assert len(classes) == 185  # and their classes (Gillispie and Perlman, 2001)
    for members in list(classes.values())[::4]:
        found = members[0].markov_equivalence()
        shared = set.intersection(*(set(g.directed) for g in members))
        assert set(found.directed) == shared
        assert all(g in found for g in members)
    one, other = (next(iter(group)) for group in list(classes.values())[:2])
    assert other not in one.markov_equivalence()


def test_districts_and_surgery():
    graph = CausalGraph("w -> r -> x -> y; w <-> x; w <-> y")
    assert set(graph.districts()) == {frozenset({"w", "x", "y"}), frozenset({"r"})}
    assert graph.mutilated(into="x", out_of="w") == CausalGraph("x -> y; w <-> y; r; w")
    assert graph.topological_order == ("w", "r", "x", "y")


def test_picture_has_a_box_for_each_node_and_marks_open_paths():
    ax = CausalGraph("z -> x -> y; z -> y; x <-> y; u -> y", latent="u").plot("x", "y", given="z")
    assert [t.get_text() for t in ax.texts if t.get_text()] == ["z", "x", "y", "u"]
    arrows = [t.arrow_patch for t in ax.texts if getattr(t, "arrow_patch", None) is not None]
    assert len(arrows) == 5
    colours = [a.get_edgecolor() for a in arrows]
    assert len(set(colours)) == 3  # causal, open but not causal, blocked
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.canvas.draw()
    plt.close(ax.figure)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_names_and_order_of_nodes_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    nodes, edges = random_edges(rng, 6)
    graph = as_graph(nodes, edges)
    new = dict(zip(nodes, (f"w{i}" for i in rng.permutation(6)), strict=True))
    shuffled = [edges[i] for i in rng.permutation(len(edges))]
    names = rng.permutation(list(new.values())).tolist()
    other = as_graph(names, [(new[a], arrow, new[b]) for a, arrow, b in shuffled])

    def renamed(sets):
        return {frozenset(new[v] for v in s) for s in sets}

    assert renamed(graph.districts()) == set(other.districts())
    for ask in ("adjustment_sets", "back_door", "front_door", "minimal_separators"):
        assert renamed(getattr(graph, ask)("v0", "v1")) == set(getattr(other, ask)(new["v0"], new["v1"]))
    assert graph.identify("v0", "v1").identifiable == other.identify(new["v0"], new["v1"]).identifiable
    assert len(graph.open_paths("v0", "v1", "v2")) == len(other.open_paths(new["v0"], new["v1"], new["v2"]))
