"""Structural models: interventions, counterfactuals by hand, causation, mediation, equations that are learnt."""

from inspect import Parameter, Signature
from itertools import product

import numpy as np
import pytest
from diagrams import discrete_model, do_table, random_edges
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import linprog

from epicycle.causal import AdditiveNoise, CausalGraph, StructuralCausalModel, causation_bounds, identify
from epicycle.exceptions import DataError, ParameterError
from epicycle.linear import LogisticRegression
from epicycle.tree import DecisionTreeClassifier, DecisionTreeRegressor

# Homework: encouragement x, homework h, score y (Pearl, Glymour and Jewell, 2016, section 4.2).
SCHOOL = {
    "x": AdditiveNoise(lambda: 0.0),
    "h": AdditiveNoise(lambda x: 0.5 * x),
    "y": AdditiveNoise(lambda x, h: 0.7 * x + 0.4 * h),
}
# The firing squad: captain c, riflemen a and b, death d; the second chance is a's nerves.
P_ORDER, P_NERVES = 0.3, 0.2
SQUAD = StructuralCausalModel(
    {"c": lambda u: u, "a": lambda c, w: c | w, "b": lambda c: c, "d": lambda a, b: a | b},
    exogenous={"u": {0: 1 - P_ORDER, 1: P_ORDER}, "w": {0: 1 - P_NERVES, 1: P_NERVES}},
)


def tabulated(nodes, factors, cards):
    """The model of a table of probabilities: quantiles of a fine finite noise, shared noise for bidirected edges."""
    equations, exogenous = {}, {}
    for name, (axes, table) in factors.items():
        if name not in nodes:
            exogenous[name] = dict(enumerate(table.tolist()))
            continue
        edges = np.cumsum(table, axis=-1)[..., :-1]
        cuts = np.unique(np.r_[0.0, edges.ravel(), 1.0])
        exogenous[f"q_{name}"] = dict(zip(((cuts[1:] + cuts[:-1]) / 2).tolist(), np.diff(cuts).tolist(), strict=True))
        equations[name] = quantile_function(edges, [*axes[:-1], f"q_{name}"])
    return StructuralCausalModel(equations, exogenous)


def quantile_function(edges, names):
    """A function of parents and a quantile with these names; equations are read by the names of their arguments."""
    *parents, q = names

    def choose(*values):
        cut = np.broadcast_to(edges[(*values[:-1], ...)], (len(values[-1]), edges.shape[-1]))
        return (cut < values[-1][:, None]).sum(axis=1)

    choose.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in (*parents, q)])
    return choose


def test_simulated_interventions_equal_the_truth_exactly():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        nodes, edges = random_edges(rng, 4, directed=0.6, bidirected=0.15)
        cards, factors = discrete_model(rng, nodes, edges)
        model = tabulated(nodes, factors, cards)
        assert model.graph == CausalGraph(edges, nodes=nodes)
        for x, y in (("v0", "v3"), ("v3", "v1")):
            table = do_table(factors, nodes, (x,), (x, y))
            found = model.effect(x, y)
            assert found.error == 0.0
            assert_allclose(found.value, table[1, 1] - table[0, 1], atol=1e-12)


def test_draws_of_an_intervention_have_its_distribution():
    model = StructuralCausalModel(SCHOOL)
    n = 40_000
    seen = model.sample(n, random_state=0)
    assert_allclose(np.polyfit(seen["x"], seen["y"], 1)[0], 0.9, atol=0.03)
    shifted = model.do({"h": lambda h: h + 1}).sample(n, random_state=0)
    assert_allclose(shifted["y"] - seen["y"], 0.4, atol=1e-12)  # the same units, one hour more
    policy = model.do({"h": lambda x: np.where(x > 0, 2.0, 0.0)})
    assert policy.graph == model.graph
    assert_allclose(policy.sample(n, random_state=0)["h"][seen["x"] > 0], 2.0)
    law = model.do({"h": stats.uniform(1, 1)}).sample(n, random_state=0)
    assert stats.kstest(law["h"], stats.uniform(1, 1).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(law["x"], law["h"])[0, 1]) < 0.02
    assert_allclose(model.do({"h": {1: 0.5, 3: 0.5}}).sample(n, random_state=1)["h"].mean(), 2.0, atol=0.03)
    assert model.do({"h": 3.0}).graph.parents("h") == ()


def test_counterfactual_of_a_linear_model_by_hand():
    model = StructuralCausalModel(SCHOOL)
    joe = model.counterfactual({"x": 0.5, "h": 1.0, "y": 1.5}, {"h": 2.0})
    assert joe.exact
    assert_allclose(joe.mean("y"), 1.9, atol=1e-12)  # the book's answer
    many = {"x": np.array([0.5, 0.0]), "h": np.array([1.0, 1.0]), "y": np.array([1.5, 0.0])}
    assert_allclose(model.counterfactual(many, {"h": 2.0}).mean("y"), [1.9, 0.4], atol=1e-12)
    assert_allclose(model.counterfactual(many, {}).mean("y"), many["y"], atol=1e-12)  # nothing is changed


def test_counterfactual_from_part_of_the_evidence_is_the_normal_posterior():
    """Given y alone the noises are jointly normal; so is the score with one hour more of homework."""
    model = StructuralCausalModel(SCHOOL)
    found = model.counterfactual({"y": 2.0}, {"h": 1.0}, n_samples=200_000, random_state=0)
    # y = 0.9 u_x + 0.4 u_h + u_y is seen; asked for is 0.7 u_x + 0.4 + u_y.
    variance = 0.81 + 0.16 + 1.0
    share = (0.9 * 0.7 + 1.0) / variance
    spread = 0.49 + 1.0 - (0.9 * 0.7 + 1.0) ** 2 / variance
    assert not found.exact
    assert_allclose(found.mean("y"), 0.4 + share * 2.0, atol=0.01)
    assert_allclose(found.standard_deviation("y"), np.sqrt(spread), atol=0.01)
    assert 1_000 < found.effective_size[0] < 200_000
    again = model.counterfactual({"y": 2.0}, {"h": 1.0}, n_samples=200_000, random_state=0)
    assert again.mean("y") == found.mean("y")


def test_the_firing_squad():
    """The prisoner is dead; had the first rifleman not shot, he would live with the book's probability."""
    alive = SQUAD.counterfactual({"d": 1}, {"a": 0})
    expected = (1 - P_ORDER) * P_NERVES / (1 - (1 - P_ORDER) * (1 - P_NERVES))
    assert alive.exact
    assert_allclose(alive.probability("d", 0), expected, atol=1e-12)
    found = SQUAD.causation("a", "d")
    assert_allclose(found.necessity, expected, atol=1e-12)
    assert_allclose(found.sufficiency, 1.0)  # whoever is shot dies
    assert_allclose(found.both, 1 - P_ORDER, atol=1e-12)
    assert found.both_error == 0.0
    with pytest.raises(DataError, match="no draw of the noise gives d=1, a=0, b=0"):
        SQUAD.counterfactual({"d": 1, "a": 0, "b": 0}, {"a": 1})


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("with_experiment", [False, True])
def test_bounds_of_causation_are_those_of_linear_programs(with_experiment, monotonic):
    types = [(x, a, b) for x, a, b in product((0, 1), repeat=3) if not (monotonic and a > b)]  # x, y under 0, y under 1
    for seed in range(4):
        q = np.random.default_rng(seed).dirichlet(np.ones(len(types)))
        joint = np.zeros((2, 2))
        for (x, a, b), p in zip(types, q, strict=True):
            joint[x, b if x else a] += p
        rows = [[float(x == i and (b if x else a) == j) for x, a, b in types] for i in (0, 1) for j in (0, 1)]
        sides = list(joint.ravel())
        experiment = None
        if with_experiment:
            experiment = tuple(float(q @ [t[k] for t in types]) for k in (1, 2))
            rows += [[float(t[k]) for t in types] for k in (1, 2)]
            sides += experiment
        found = causation_bounds(joint, experiment, monotonic=monotonic)
        helped = np.array([a == 0 and b == 1 for _, a, b in types])
        events = {"necessity": (1, joint[1, 1]), "sufficiency": (0, joint[0, 0]), "both": (None, 1.0)}
        for name, (x, scale) in events.items():
            c = np.array([float(h and x in (None, t[0])) for h, t in zip(helped, types, strict=True)]) / scale
            ends = [s * linprog(s * c, A_eq=rows, b_eq=sides, bounds=(0, 1)).fun for s in (1, -1)]
            assert_allclose(getattr(found, name), ends, atol=1e-8, err_msg=name)


def test_bounds_refuse_an_experiment_that_contradicts_the_observations():
    with pytest.raises(DataError, match=r"experiment\[1\]=0.9 contradicts"):
        causation_bounds([[0.4, 0.1], [0.4, 0.1]], (0.2, 0.9))


MEDIATED = StructuralCausalModel(
    {
        "x": AdditiveNoise(lambda: 0.0),
        "m": AdditiveNoise(lambda x: 0.5 + 2 * x),
        "k": AdditiveNoise(lambda m: 3 * m),
        "y": AdditiveNoise(lambda x, m, k: 1.5 * x + m + 0.25 * x * m + k),
    }
)


def test_mediation_with_an_interaction_by_hand():
    found = MEDIATED.mediation("x", "y", ["m", "k"], 1.0, 0.0, levels={"m": 2.0, "k": 0.0}, random_state=0)
    assert_allclose(found.total.value, 1.5 + 2 + 0.25 * 2.5 + 6, atol=4 * found.total.error)
    assert_allclose(found.natural_direct.value, 1.5 + 0.25 * 0.5, atol=4 * found.natural_direct.error)
    assert_allclose(found.natural_indirect.value, 2 + 6, atol=1e-9)  # the same for each unit, so without error
    assert_allclose(found.controlled_direct.value, 1.5 + 0.25 * 2, atol=1e-9)


def test_effects_along_paths_by_hand():
    def along(*paths):
        return MEDIATED.effect("x", "y", 1.0, 0.0, along=paths, random_state=0).value

    assert_allclose(along("x -> m -> k -> y"), 6, atol=1e-9)
    assert_allclose(along(("x", "m", "y")), 2, atol=1e-9)
    total = MEDIATED.effect("x", "y", 1.0, 0.0, random_state=0).value
    every = [p for p in MEDIATED.graph.open_paths("x", "y") if p.causal]
    assert_allclose(along(*every), total, atol=1e-12)
    direct = MEDIATED.mediation("x", "y", ["m", "k"], 1.0, 0.0, random_state=0).natural_direct.value
    assert_allclose(along("x -> y"), direct, atol=1e-12)
    with pytest.raises(ParameterError, match="no causal path"):
        along("x -> k -> y")
    diamonds = StructuralCausalModel(
        {"x": lambda u: u, "a": lambda x: x, "b": lambda x: x, "c": lambda a, b: a + b}
        | {"d": lambda c: c, "e": lambda c: c, "y": lambda d, e: d + e},
        exogenous={"u": stats.norm()},
    )
    with pytest.raises(ParameterError, match="also make"):
        diamonds.effect("x", "y", along=["x -> a -> c -> d -> y", "x -> b -> c -> e -> y"])


# ---------------------------------------------------------------- equations that are learnt


def learnable(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    t = np.where(rng.random(n) < 1 / (1 + np.exp(-z)), "drug", "none")
    y = 2.0 * (t == "drug") + z + 0.5 * rng.normal(size=n)
    return {"z": z, "t": t, "y": y}, CausalGraph("z -> t -> y; z -> y")


@pytest.mark.parametrize(
    "models",
    ["linear", "trees", {"y": DecisionTreeRegressor(max_depth=5), "t": LogisticRegression()}],
    ids=["linear", "trees", "dict"],
)
def test_learnt_equations_know_the_effect_and_reproduce_their_rows(models):
    data, graph = learnable()
    model = StructuralCausalModel.from_data(data, graph, models, random_state=0)
    found = model.effect("t", "y", "drug", "none", n_samples=5000, random_state=0)
    assert_allclose(found.value, 2.0, atol=0.1)
    rows = {name: column[:5] for name, column in data.items()}
    same = model.counterfactual(rows, {}, n_samples=20, random_state=0)
    for name in ("z", "y"):
        assert_allclose(same.mean(name), rows[name], atol=1e-9)
    assert (same.values["t"] == rows["t"][:, None]).all()
    other = model.counterfactual(rows, {"t": "drug"}, n_samples=20, random_state=0)
    assert_allclose((other.mean("y") - rows["y"])[rows["t"] == "drug"], 0.0, atol=1e-9)
    drawn = model.sample(4000, random_state=1)
    assert_allclose(drawn["y"].std(), data["y"].std(), rtol=0.06)
    assert set(drawn["t"]) == {"drug", "none"}


def test_learning_refuses_what_it_cannot_do():
    data, graph = learnable(100)
    with pytest.raises(ParameterError, match="t <-> y is an unseen cause"):
        StructuralCausalModel.from_data(data, CausalGraph("z -> t -> y; t <-> y"))
    with pytest.raises(ParameterError, match="models='forest'"):
        StructuralCausalModel.from_data(data, graph, "forest")
    with pytest.raises(ParameterError, match="'y' is a number, but its model"):
        StructuralCausalModel.from_data(data, graph, {"y": LogisticRegression()})
    model = StructuralCausalModel.from_data(data, graph, random_state=0)
    with pytest.raises(ParameterError, match="t='placebo'; expected one of"):
        model.do({"t": "placebo"}).sample(5, random_state=0)


@pytest.mark.parametrize(
    ("equations", "exogenous", "says"),
    [
        ({"x": lambda q: q}, {}, r"equations\['x'\] reads 'q'"),
        ({"x": lambda u: u}, {"u": 3}, r"exogenous\['u'\]=3"),
        ({"x": lambda u: u}, {"u": {0: 0.5, 1: 0.2}}, "add up to 0.7"),
        ({"x": lambda y: y, "y": lambda x: x}, {}, "no cycles"),
        ({"u": lambda u: u}, {"u": stats.norm()}, "also have equations"),
        ({"x": 3}, {}, r"equations\['x'\]=3; expected a function"),
        ({"x": lambda *a: a}, {}, "not \\*args"),
    ],
)
def test_models_that_make_no_sense_are_refused(equations, exogenous, says):
    with pytest.raises((ParameterError, DataError), match=says):
        StructuralCausalModel(equations, exogenous)


# ---------------------------------------------------------------- classics

# Admitted and rejected men, admitted and rejected women, by department (Bickel, Hammel and O'Connell, 1975).
BERKELEY = {
    "A": (512, 313, 89, 19),
    "B": (353, 207, 17, 8),
    "C": (120, 205, 202, 391),
    "D": (138, 279, 131, 244),
    "E": (53, 138, 94, 299),
    "F": (22, 351, 24, 317),
}


def test_berkeley_admissions_are_simpsons_paradox():
    rows = []
    for d, (ma, mr, fa, fr) in BERKELEY.items():
        rows += [("M", d, 1)] * ma + [("M", d, 0)] * mr + [("F", d, 1)] * fa + [("F", d, 0)] * fr
    data = dict(zip(("gender", "department", "admitted"), map(np.array, zip(*rows, strict=True)), strict=True))
    graph = CausalGraph("gender -> department -> admitted; gender -> admitted")
    total = identify(graph, "gender", "admitted").estimate(data).effect("F", "M")
    assert_allclose(total.value, 557 / 1835 - 1198 / 2691, atol=1e-12)
    assert total.high < 0  # women are admitted less often ...
    within = identify(graph, "gender", "admitted", given="department").estimate(data)
    better = [within.effect(("F", d), ("M", d)).value > 0 for d in BERKELEY]
    assert better == [True, True, False, True, False, True]  # ... and more often in four of six departments
    tree = {"admitted": DecisionTreeClassifier(), "department": DecisionTreeClassifier()}
    model = StructuralCausalModel.from_data(data, graph, tree, random_state=0)
    found = model.mediation("gender", "admitted", "department", "F", "M", random_state=0)
    men = np.array([c[0] + c[1] for c in BERKELEY.values()]) / 2691
    gap = np.array([c[2] / (c[2] + c[3]) - c[0] / (c[0] + c[1]) for c in BERKELEY.values()])
    assert_allclose(found.natural_direct.value, men @ gap, atol=4 * found.natural_direct.error)
    assert found.natural_direct.value > 0 > found.natural_indirect.value
