"""Identification: formulas against random models, derivations step by step, hedges by pairs of models."""

import numpy as np
import pytest
from diagrams import discrete_model, do_table, random_edges, table_of

from epicycle.causal import CausalGraph, identify
from epicycle.causal.identification._expression import Named, Probability, Product, Quotient, Sum, total
from epicycle.exceptions import DataError, ParameterError


def question(seed, cards=None):
    """A random diagram of up to seven nodes, a random question, and a random model."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    nodes, edges = random_edges(rng, n, directed=0.45, bidirected=0.25)
    names = rng.permutation(nodes).tolist()
    a = int(rng.integers(1, 3))
    b = a + int(rng.integers(1, 3)) if n > a + 1 else a + 1
    c = b + int(rng.integers(0, 2))
    found = identify(CausalGraph(edges, nodes=nodes), names[:a], names[a:b], names[b:c])
    sizes = dict(zip(nodes, rng.integers(2, cards + 1, size=n), strict=True)) if cards else None
    return found, nodes, discrete_model(rng, nodes, edges, sizes)[1]


def truth(found, nodes, factors):
    axes = [*found.treatment, *found.given, *found.outcome]
    table = do_table(factors, nodes, found.treatment, axes)
    over = tuple(range(len(axes) - len(found.outcome), len(axes)))
    return axes, table / table.sum(axis=over, keepdims=True)


def value_in_model(expression, factors, nodes):
    """Value of a formula with actions in it: as the simulator of interventions sees it."""
    if isinstance(expression, Probability):
        axes = (*expression.action, *expression.given, *expression.of)
        joint = do_table(factors, nodes, expression.action, axes)
        over = tuple(range(len(axes) - len(expression.of), len(axes)))
        return Named(axes, joint / joint.sum(axis=over, keepdims=True))
    if isinstance(expression, Quotient):
        top, bottom = (value_in_model(e, factors, nodes) for e in (expression.top, expression.bottom))
        return Named(top.axes, top.values / bottom.moved(top.axes))
    parts = expression.factors if isinstance(expression, Product) else (expression.inside,)
    values = [value_in_model(e, factors, nodes) for e in parts]
    if isinstance(expression, Sum):
        return total(values, tuple(a for a in values[0].axes if a not in expression.over))
    return total(values, tuple(dict.fromkeys(a for v in values for a in v.axes)))


def check(seeds, cards=None):
    kinds = {True: 0, False: 0}
    for seed in seeds:
        found, nodes, factors = question(seed, cards)
        kinds[found.identifiable] += 1
        if found.identifiable:
            axes, expected = truth(found, nodes, factors)
            P = table_of(list(factors.values()), nodes)
            every = found.estimand.value(Named(tuple(nodes), P)).moved((*found.any_value, *axes))
            assert np.abs(every - expected).max() < 1e-12, (seed, str(found))
            assert np.abs(found.evaluate(P, nodes) - expected).max() < 1e-12
        else:
            check_hedge(found, nodes)
    return kinds


def conditionals(found, model):
    """P(outcome | do(treatment = 0), given) for each value of what is given that can come."""
    joint = model.distribution([*found.given, *found.outcome], dict.fromkeys(found.treatment, 0))
    k, effects = len(found.given), {}
    for values, p in joint.items():
        effects.setdefault(values[:k], {})[values[k:]] = p
    return {z: {y: p / sum(q.values()) for y, p in q.items()} for z, q in effects.items()}


def check_hedge(found, nodes):
    """The two models of a hedge agree on what is seen and differ on the effect; both have the diagram they claim."""
    one, other = found.hedge.models(found.treatment, found.outcome, found.given)
    assert one.distribution(nodes) == other.distribution(nodes)
    effects = [conditionals(found, model) for model in (one, other)]
    both = effects[0].keys() & effects[1].keys()
    assert both
    assert any(effects[0][given] != effects[1][given] for given in both), str(found)
    for model in (one, other):  # a node changes only with its parents and the coins at it
        base = model.values()
        for v in nodes:
            moved = model.values({v: 1})
            changed = {u for u in nodes if u != v and (moved[u] != base[u]).any()}
            assert changed <= found.graph.descendants(v)
        assert all(set(edge) in map(set, found.graph.bidirected) for edge in model.hedge.coins())


def test_formulas_equal_the_interventional_distribution_in_300_random_diagrams():
    kinds = check(range(300))
    assert kinds[True] > 200
    assert kinds[False] > 50


@pytest.mark.slow
def test_formulas_equal_the_interventional_distribution_in_many_more():
    kinds = check(range(1000, 1900), cards=3)
    assert min(kinds.values()) > 100


def test_every_step_of_a_derivation_is_true():
    steps = 0
    for seed in range(80):
        found, nodes, factors = question(seed)
        for step in found.steps:
            left, right = (value_in_model(e, factors, nodes) for e in (step.left, step.right))
            axes = tuple(dict.fromkeys((*left.axes, *right.axes)))
            assert np.allclose(left.moved(axes), right.moved(axes), atol=1e-12, rtol=0), (seed, str(step))
            steps += 1
    assert steps > 150


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("z -> x -> y; z -> y", "sum_{z} P(z) P(y | z, x)"),
        ("x -> m -> y; x <-> y", "sum_{m} P(m | x) sum_{x'} P(x') P(y | x', m)"),
        (
            "w -> r -> x -> y; w <-> x; w <-> y",
            "(sum_{w} P(w) P(x | w, r) P(y | w, r, x)) / (sum_{w} P(w) P(x | w, r))",
        ),
        ("x -> y; x <-> m; m <-> y", "P(y | x)"),
        ("y -> x", "P(y)"),
    ],
    ids=["back door", "front door", "napkin", "M-bias", "effect before cause"],
)
def test_formulas_of_the_books(text, formula):
    found = identify(CausalGraph(text), "x", "y")
    assert found.formula == formula
    assert formula in str(found)
    assert found.derivation().startswith("1. ")
    nodes = list(found.graph.nodes)
    arrows = [(a, "->", b) for a, b in found.graph.directed] + [(a, "<->", b) for a, b in found.graph.bidirected]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        factors = discrete_model(rng, nodes, arrows, dict(zip(nodes, rng.integers(2, 4, len(nodes)), strict=True)))[1]
        axes, expected = truth(found, nodes, factors)
        P = table_of(list(factors.values()), nodes)
        every = found.estimand.value(Named(tuple(nodes), P)).moved((*found.any_value, *axes))
        assert np.abs(every - expected).max() < 1e-12


@pytest.mark.parametrize(
    ("text", "outer"),
    [("x -> y; x <-> y", "xy"), ("z -> x -> y; x <-> y", "xy"), ("x -> m -> y; x <-> m", "xm")],
    ids=["bow", "instrument", "confounded mediator"],
)
def test_hedges_of_the_books(text, outer):
    found = identify(CausalGraph(text), "x", "y")
    assert not found.identifiable
    assert found.hedge.outer == set(outer)
    check_hedge(found, list(found.graph.nodes))
    with pytest.raises(ParameterError, match=r"P\(y \| do\(x\)\) is not identifiable: hedge: F = "):
        _ = found.formula
    assert "no formula exists" in found.derivation()


@pytest.mark.parametrize(
    ("text", "given", "relays"),
    [
        ("x -> z; x <-> z; a -> z; a -> b -> y", "z", 0),
        ("x -> z; x <-> z; a -> z; y -> a", "z", 0),
        ("x -> z; x <-> z; a -> z; a -> c; b -> c; b -> y", "zc", 0),
        ("x -> z; x <-> z; a -> z; a -> c; b -> c; b -> y; c -> e -> d", "zd", 1),
        ("x -> z; x <-> z; a -> z; a -> c; b <-> c; b -> y; c -> d", "zd", 1),
        ("x -> z; x <-> z; a -> z; a -> c; b -> c; b -> e; f -> e; f -> y; c -> d; e -> g", "zdg", 2),
    ],
)
def test_hedges_that_end_in_given_nodes(text, given, relays):
    """Their parity is told from the outcome along an open path, over colliders and what follows from them, too."""
    found = identify(CausalGraph(text), "x", "y", list(given))
    assert not found.identifiable
    check_hedge(found, list(found.graph.nodes))
    link = found.hedge.models("x", "y", list(given))[0].link
    assert link.end == "z"
    assert len(link.relays) == relays


def test_a_latent_node_is_a_bidirected_edge():
    hidden = CausalGraph("u -> x; u -> y; x -> m -> y", latent="u")
    assert hidden.identify("x", "y").formula == identify(CausalGraph("x -> m -> y; x <-> y"), "x", "y").formula


def test_latex_has_the_formula_and_the_rules():
    found = identify(CausalGraph("smoking -> tar -> cancer; smoking <-> cancer"), "smoking", "cancer")
    assert found.latex().startswith(r"P(\mathit{cancer} \mid \mathrm{do}(\mathit{smoking})) = \sum_{\mathit{tar}}")
    text = found.derivation(latex=True)
    assert text.startswith("\\begin{align*}")
    assert r"\text{(rule 2)}" in text
    assert text.count("{") == text.count("}")


def test_evaluate_refuses_tables_that_do_not_fit_and_marks_what_is_not_defined():
    found = identify(CausalGraph("z -> x -> y; z -> y"), "x", "y")
    with pytest.raises(DataError, match=r"also has \['z'\]"):
        found.evaluate(np.full((2, 2), 0.25), ["x", "y"])
    p = np.zeros((2, 2, 2))
    p[0], p[1, 1] = 0.125, 0.25  # z = 1 never has x = 0
    effect = found.evaluate(p, ["z", "x", "y"])
    assert np.isnan(effect[0]).all()
    assert np.allclose(effect[1], 0.5)
