"""Estimates of identified effects: influence functions, resamples, models against tables; implied independences."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from statsmodels.stats.multitest import multipletests

from epicycle.causal import CausalGraph, check_implications, identify, implied_independences
from epicycle.causal.identification._check_implications import adjusted, g_test, wilks_test
from epicycle.causal.identification._independence import Independence
from epicycle.exceptions import DataError, ParameterError
from epicycle.linear import LogisticRegression

BACK = CausalGraph("z -> x -> y; z -> y")
FRONT = CausalGraph("x -> m -> y; x <-> y")


def back_door_rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.random(n) < 0.4
    x = rng.random(n) < 0.25 + 0.5 * z
    y = (rng.random(n) < 0.2 + 0.3 * x + 0.4 * z).astype(float)
    return {"z": z.astype(int), "x": x.astype(int), "y": y}  # effect 0.3


def front_door_rows(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.random(n) < 0.5
    x = (rng.random(n) < 0.2 + 0.6 * u).astype(int)
    m = (rng.random(n) < 0.1 + 0.7 * x).astype(int)
    y = (rng.random(n) < 0.1 + 0.4 * m + 0.4 * u).astype(float)
    return {"x": x, "m": m, "y": y}  # effect 0.28


@pytest.fixture(scope="module")
def rows():
    return back_door_rows()


def test_influence_intervals_are_those_of_the_saturated_doubly_robust_estimator(rows):
    """In a table the efficient influence function has a closed form: the rows' own averages in it."""
    found = identify(BACK, "x", "y").estimate(rows)
    x, y, z = rows["x"], rows["y"], rows["z"]
    psi, mean = [], []
    for a in (0, 1):
        mu = np.array([y[(x == a) & (z == k)].mean() for k in (0, 1)])[z]
        pi = np.array([(x[z == k] == a).mean() for k in (0, 1)])[z]
        mean.append(mu.mean())
        psi.append(mu - mu.mean() + (x == a) * (y - mu) / pi)
    assert_allclose(found.mean, mean, rtol=1e-12)
    assert_allclose(found.covariance, np.cov(psi, ddof=0) / len(y), rtol=1e-9)
    assert_allclose(found.distribution.sum(axis=1), 1.0)
    effect = found.effect(1, 0)
    assert effect.low < 0.3 < effect.high
    assert_allclose(effect.error, np.std(psi[1] - psi[0]) / np.sqrt(len(y)), rtol=1e-9)
    assert str(found).startswith("E(y | do(x)) by tables, 95% influence intervals")


def test_models_agree_with_tables_where_they_are_saturated(rows):
    tables = identify(BACK, "x", "y").estimate(rows)
    regression = identify(BACK, "x", "y").estimate(rows, method="regression")
    assert_allclose(regression.mean, tables.mean, rtol=1e-9)
    assert_allclose(regression.covariance, tables.covariance, rtol=1e-3)
    assert regression.adjusted_for == ("z",)
    free = LogisticRegression(C=np.inf, tol=1e-12)
    weighting = identify(BACK, "x", "y").estimate(rows, method="weighting", classifier=free)
    assert_allclose(weighting.mean, tables.mean, rtol=1e-6)
    data = front_door_rows()
    question = identify(FRONT, "x", "y")
    by_models = question.estimate(data, method="regression", n_resamples=20, random_state=0)
    assert_allclose(by_models.mean, question.estimate(data).mean, rtol=1e-9)
    assert (by_models.interval, by_models.adjusted_for) == ("bootstrap", ("m",))


@pytest.mark.parametrize(("interval", "prior"), [("bootstrap", 0.0), ("posterior", 0.5)])
def test_resamples_and_posterior_agree_with_influence_functions(interval, prior):
    data = front_door_rows()
    question = identify(FRONT, "x", "y")
    by_influence = question.estimate(data).effect(1, 0)
    other = question.estimate(data, interval=interval, prior=prior, n_resamples=400, random_state=1).effect(1, 0)
    assert by_influence.low < 0.28 < by_influence.high
    assert_allclose(other.error, by_influence.error, rtol=0.15)
    assert_allclose([other.low, other.high], [by_influence.low, by_influence.high], atol=by_influence.error / 2)
    again = question.estimate(data, interval=interval, prior=prior, n_resamples=400, random_state=1)
    assert again.effect(1, 0) == other


@pytest.mark.parametrize(
    ("graph", "draw", "options"),
    [
        (BACK, back_door_rows, {}),
        (FRONT, front_door_rows, {}),
        (BACK, back_door_rows, {"method": "regression"}),
        (BACK, back_door_rows, {"method": "weighting"}),
        (FRONT, front_door_rows, {"method": "regression", "n_resamples": 2, "random_state": 0}),
    ],
    ids=["tables", "front door", "regression", "weighting", "front door by regression"],
)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.sampled_from([-3.0, 0.5, 100.0]))
def test_weights_count_rows_and_order_and_scale_do_not_matter(graph, draw, options, seed, scale):
    data = draw(300, seed)
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, size=300)
    question = identify(graph, "x", "y")
    weighted = question.estimate(data, sample_weight=weight, **options)
    order = rng.permutation(np.repeat(np.arange(300), weight))
    repeated = question.estimate({name: c[order] for name, c in data.items()}, **options)
    assert_allclose(weighted.mean, repeated.mean, rtol=1e-6)
    if weighted.interval == "influence":
        assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-4)
    scaled = question.estimate({**data, "y": scale * data["y"]}, sample_weight=weight, **options)
    assert_allclose(scaled.mean, scale * weighted.mean, rtol=1e-6)


def test_smoking_tar_and_cancer():
    """The example of Pearl, Glymour and Jewell (2016, section 3.4), in thousands: smokers have less cancer in every
    column of the table, and by the front door 54.75% would have it if all smoked, 50.25% if nobody did."""
    cells = [(1, 1, 0, 323), (1, 1, 1, 57), (1, 0, 0, 18), (1, 0, 1, 2), (0, 1, 0, 1), (0, 1, 1, 19), (0, 0, 0, 38)]
    smoking, tar, cancer, count = np.array([*cells, (0, 0, 1, 342)]).T
    graph = CausalGraph("smoking -> tar -> cancer; smoking <-> cancer")
    data = {"smoking": smoking, "tar": tar, "cancer": cancer.astype(float)}
    found = identify(graph, "smoking", "cancer").estimate(data, sample_weight=count)
    # P(tar | do(smoking)) times the mean over smokers and others, half of all each, of P(cancer | tar, smoking)
    with_tar, without = (57 / 380 + 19 / 20) / 2, (2 / 20 + 342 / 380) / 2
    assert_allclose(found.effect(1, 0).value, (0.95 - 0.05) * (with_tar - without), rtol=1e-12)
    assert_allclose(found.mean, [0.5025, 0.5475], rtol=1e-12)
    assert (57 + 2) / 400 < (19 + 342) / 400  # what is seen points the other way


def test_given_values_and_several_treatments():
    rng = np.random.default_rng(0)
    n = 20_000
    a, b = rng.integers(2, size=n), rng.integers(2, size=n)
    y = (rng.random(n) < 0.2 + 0.2 * a + 0.3 * b).astype(int)
    graph = CausalGraph("a -> y; b -> y")
    both = identify(graph, ["a", "b"], "y").estimate({"a": a, "b": b, "y": y})
    assert both.levels == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert_allclose(both.mean, [0.2, 0.5, 0.4, 0.7], atol=0.02)
    given = identify(graph, "a", "y", given="b").estimate({"a": a, "b": b, "y": y})
    assert_allclose(given.mean, both.mean, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        ({"x": lambda d: np.where(d["z"] == 1, 1, d["x"])}, {}, "effect at x = 0 depends on combinations"),
        ({"y": lambda d: np.where(d["y"] > 0, "yes", "no")}, {}, r"data\['y'\]: expected numbers"),
        ({"z": lambda d: np.where(d["z"] > 0, np.nan, 0.0)}, {}, r"data\['z'\]: \d+ missing values"),
        ({"z": lambda d: d["z"][:-1]}, {}, "columns have lengths"),
        ({}, {"interval": "posterior"}, "prior=0: expected a positive number"),
        ({}, {"method": "magic"}, "method='magic'"),
        ({}, {"sample_weight": [1.0, -1.0]}, "sample_weight"),
        ({"x": lambda d: d["z"] + np.arange(len(d["z"]))}, {"method": "weighting"}, "expected at most 20"),
    ],
)
def test_refusals_name_what_is_wrong(rows, change, options, says):
    data = {**rows, **{name: make(rows) for name, make in change.items()}}
    with pytest.raises((DataError, ParameterError), match=says):
        identify(BACK, "x", "y").estimate(data, **options)


def test_a_missing_column_is_named(rows):
    with pytest.raises(DataError, match="a column 'z'"):
        identify(BACK, "x", "y").estimate({"x": rows["x"], "y": rows["y"]})
    napkin = identify(CausalGraph("w -> r -> x -> y; w <-> x; w <-> y"), "x", "y")
    with pytest.raises(ParameterError, match="identified neither by adjustment nor"):
        napkin.estimate(dict.fromkeys("wrxy", np.arange(50.0)), method="regression")


# ---------------------------------------------------------------- implied independences


def test_tests_of_independence_are_the_known_ones():
    rng = np.random.default_rng(0)
    n = 400
    z = rng.integers(3, size=n)
    data = {"z": z, "x": (rng.random(n) < 0.2 + 0.2 * z).astype(int), "y": rng.integers(3, size=n)}
    found = g_test(data, Independence("x", "y", ("z",)))
    expected = [
        stats.chi2_contingency(
            [[((data["x"] == a) & (data["y"] == b) & (z == k)).sum() for b in range(3)] for a in range(2)],
            correction=False,
            lambda_="log-likelihood",
        )
        for k in range(3)
    ]
    assert_allclose(found, [sum(e.statistic for e in expected), sum(e.dof for e in expected)])

    w = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3))
    table = dict(zip("abc", w.T, strict=True))
    statistic, freedom = wilks_test(table, Independence("a", "b", ("c",)))
    inverse = np.linalg.inv(np.cov(w.T))
    partial = -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1])
    assert freedom == 1
    assert_allclose(statistic, -(n - 2 - 1.5) * np.log(1 - partial**2), rtol=1e-9)


def test_corrections_are_those_of_statsmodels():
    p = np.random.default_rng(1).random(12) ** 3
    assert_allclose(adjusted(p, "holm"), multipletests(p, method="holm")[1])
    assert_allclose(adjusted(p, "fdr"), multipletests(p, method="fdr_by")[1])


def test_right_diagrams_pass_and_wrong_ones_are_contradicted():
    alarms = 0
    right = CausalGraph("a -> b -> d; a -> c -> d; d -> e")
    for seed in range(100):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=300)
        b, c = a + rng.normal(size=300), (rng.random(300) < 1 / (1 + np.exp(-a))).astype(int)
        d = b + c + rng.normal(size=300)
        data = {"a": a, "b": b, "c": c, "d": d, "e": d + rng.normal(size=300)}
        alarms += not check_implications(right, data).holds
    assert alarms <= 10  # at most 5 in 100 on average; 11 or more has probability 0.01
    wrong = check_implications(CausalGraph("a -> b -> d; c -> d -> e"), data, correction="fdr")
    assert Independence("a", "c", ()) in wrong.contradicted
    assert "contradicted" in str(wrong)
    assert implied_independences(CausalGraph("x -> m -> y; x <-> y")) == []
