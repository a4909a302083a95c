"""Bad input to graphs, formulas, effects, designs and discovery is refused with the name of the argument; what random
inputs had broken."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from epicycle import TreatmentEffect
from epicycle.causal import (
    AdditiveNoise,
    CausalGraph,
    DifferenceInDifferences,
    InstrumentalVariables,
    OmittedVariableBias,
    RegressionDiscontinuity,
    StructuralCausalModel,
    SyntheticControl,
    causation_bounds,
    check_implications,
    discover,
    e_value,
    identify,
    omitted_variable_bias,
    rosenbaum_bounds,
)
from epicycle.causal.discovery._independence import PartialCorrelation
from epicycle.causal.effects._overlap import crump_threshold
from epicycle.exceptions import DataError, EpicycleError, MemoryBudgetError, ParameterError

CHAIN = CausalGraph("x -> m -> y")


def rng():
    return np.random.default_rng(0)


def study(n=60):
    r = rng()
    X, Z, u = r.normal(size=(n, 2)), r.normal(size=(n, 2)), r.normal(size=n)
    d = Z.sum(axis=1) + u + r.normal(size=n)
    return {"X": X, "y": d + u + r.normal(size=n), "treatment": d, "instruments": Z}


def panel(units=12, T=6, start=3):
    r = rng()
    unit, time = np.repeat(np.arange(units), T), np.tile(np.arange(T), units)
    treatment = ((unit < units // 2) & (time >= start)).astype(float)
    return {"y": r.normal(size=units * T), "unit": unit, "time": time, "treatment": treatment}


# ---------------------------------------------------------------- graphs


@pytest.mark.parametrize(
    "names",
    [
        ("a b", "x;", "->"),
        ("node", "graph", '"q"'),
        ("it's", "a\\b", "{"),
        ("#c", "//d", "/*e*/"),
        ("a,b", " lead", "tail "),
        ("'", "é", "a-b"),
        ("}", "digraph {", "[x=y]"),
    ],
)
def test_any_name_comes_back_from_text_and_dot(names):
    graph = CausalGraph([(names[0], names[1]), (names[1], "<->", names[2])], nodes=[*names, "alone; #"])
    assert CausalGraph(graph.to_text()) == graph == CausalGraph(graph.to_dot())


def test_quotation_marks_hold_names_together():
    assert CausalGraph("it's -> that's; 'a b' -> \"c->d\" # x").nodes == ("it's", "that's", "a b", "c->d")
    with pytest.raises(DataError, match="not empty"):
        CausalGraph([("a", "")])


@pytest.mark.parametrize("given", [3, 1.5, None, True, object(), 1j])
def test_what_is_no_name_of_a_node_is_refused_everywhere(given):
    for ask in (
        lambda: CHAIN.d_separated("x", given),
        lambda: CHAIN.d_connected(given),
        lambda: CHAIN.parents(given),
        lambda: CHAIN.descendants(given),
        lambda: CHAIN.latent_projection([given]),
        lambda: identify(CHAIN, given, "y"),
        lambda: CausalGraph("a -> b", nodes=[given]),
        lambda: CausalGraph("a -> b", latent=[given]),
        lambda: CHAIN.mutilated(into=given),
    ):
        with pytest.raises(ParameterError, match="expected"):
            ask()


def test_a_single_node_is_asked_for_by_its_name():
    for given in (["x"], ("x", "y"), "nope"):
        with pytest.raises(ParameterError, match="expected"):
            CHAIN.children(given)


# ---------------------------------------------------------------- formulas and models


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (np.array([1.0, np.inf] * 20), r"data\['m'\]: row 1 is infinite"),
        (np.array([1j] * 40), r"data\['m'\]: holds complex numbers"),
        (np.array(["a", 1] * 20, dtype=object), r"data\['m'\]: mixes text"),
        (np.linspace(-1e200, 1e200, 40), r"data\['m'\]: holds 1.0e\+200, whose square"),
    ],
)
def test_columns_of_a_diagram(column, says):
    data = {"x": rng().normal(size=40), "m": column, "y": rng().normal(size=40)}
    with pytest.raises(DataError, match=says):
        check_implications(CHAIN, data)


@pytest.mark.parametrize("total", [1e300, 1e-300])
def test_weights_that_stand_for_no_number_of_rows(total):
    data = {v: np.arange(40) % 2 for v in "xmy"}
    for options in ({"interval": "bootstrap"}, {"method": "regression"}):
        with pytest.raises(DataError, match="sample_weight: adds up to"):
            identify(CHAIN, "x", "y").estimate(data, sample_weight=np.full(40, total / 40), **options)


def test_structural_models_refuse_what_their_equations_cannot_take():
    r = rng()
    x = r.normal(size=60)
    group = np.where(x > 0, "a", "b")
    model = StructuralCausalModel.from_data({"x": x, "y": group}, CausalGraph("x -> y"), random_state=0)
    with pytest.raises(ParameterError, match=r"outcome='y': has values such as .* expected a variable of numbers"):
        model.effect("x", "y", n_samples=20, random_state=0)
    with pytest.raises(ParameterError, match=r"x=.*'a'.*; expected numbers"):
        model.do({"x": "a"}).sample(5, random_state=0)
    with pytest.raises(ParameterError, match="along=3; expected a sequence"):
        model.effect("x", "y", along=3)
    for evidence in (np.nan, 1j, None):
        with pytest.raises(DataError, match=r"evidence\['x'\]=.*; expected finite numbers or categories"):
            model.counterfactual({"x": evidence}, {})
    with pytest.raises(MemoryBudgetError, match="units would need"):
        model.sample(10**40)


@pytest.mark.parametrize("value", [[1, 2], (), None, np.nan, np.inf, 1j, {"a": 1}, [[1], [2, 3]], object()])
def test_values_that_no_variable_can_be_set_to(value):
    model = StructuralCausalModel({"x": AdditiveNoise(lambda: 0.0), "y": AdditiveNoise(lambda x: 2 * x)})
    for name, ask in {
        "treated": lambda: model.effect("x", "y", value),
        "control": lambda: model.mediation("x", "y", (), 1, value),
        "absent": lambda: model.causation("x", "y", absent=value),
        "outcome": lambda: model.causation("x", "y", outcome=value),
    }.items():
        with pytest.raises(ParameterError, match=rf"{name}=.*; expected a finite number or a category"):
            ask()


@pytest.mark.parametrize("given", [None, ["x"], "x", 3])
def test_actions_and_evidence_are_dicts(given):
    model = StructuralCausalModel({"x": AdditiveNoise(lambda: 0.0), "y": AdditiveNoise(lambda x: 2 * x)})
    for ask in (
        lambda: model.do(given),
        lambda: model.counterfactual(given, {}),
        lambda: model.mediation("x", "y", (), levels=given or 3),
    ):
        with pytest.raises(ParameterError, match="expected a dict from variables to values"):
            ask()


def test_effects_of_huge_values_are_numbers_or_refused():
    model = StructuralCausalModel({"x": AdditiveNoise(lambda: 0.0), "y": AdditiveNoise(lambda x: x)})
    large = model.effect("x", "y", 1e200, 0.0, n_samples=50, random_state=0)
    assert large.value == pytest.approx(1e200)
    assert large.error < 1e187
    with pytest.raises(DataError, match="the effect is inf"):
        model.effect("x", "y", 1e308, -1e308, n_samples=50, random_state=0)


@pytest.mark.parametrize("method", ["tables", "regression", "weighting"])
def test_rows_of_weight_zero_are_no_rows(method):
    r = rng()
    z, x = r.integers(0, 2, 90), r.integers(0, 3, 90)
    data = {"z": z, "x": x, "y": z + x + r.normal(size=90).round()}
    question, kept = identify(CausalGraph("z -> x -> y; z -> y"), "x", "y"), x < 2
    weighted = question.estimate(data, method=method, sample_weight=kept.astype(float))
    without = question.estimate({name: column[kept] for name, column in data.items()}, method=method)
    assert weighted.levels == without.levels == [0, 1]
    assert_allclose(weighted.intervals, without.intervals)
    with pytest.raises(ParameterError, match="n_resamples=1; expected an integer of at least 2"):
        question.estimate(data, method=method, interval="bootstrap", n_resamples=1)


def test_a_table_with_too_many_cells_for_influences_is_refused():
    levels = np.arange(200)
    data = {"z": levels, "x": levels % 40, "y": levels % 20}
    question = identify(CausalGraph("z -> x -> y; z -> y"), "x", "y")
    with pytest.raises(DataError, match=r"takes 2\.6e.10 steps; expected variables with fewer values, or interval="):
        question.estimate(data, method="tables", prior=0.5)


# ---------------------------------------------------------------- designs


@pytest.mark.parametrize("design", [InstrumentalVariables, RegressionDiscontinuity, DifferenceInDifferences])
@pytest.mark.parametrize(
    ("values", "says"),
    [
        (np.full(72, 1j), "Complex data not supported"),
        (np.full(72, "a"), "holds strings"),
        (np.full(72, 1e200), "y: holds 1.0e.200, whose square is no number"),
        (3.0, "y should be a 1d array"),
        (np.full((72, 2), 1.0), "y: expected one number for each row"),
    ],
)
def test_outcomes_of_designs(design, values, says):
    columns = {
        InstrumentalVariables: study(72),
        RegressionDiscontinuity: {"running": rng().normal(size=72)},
        DifferenceInDifferences: panel() | {"X": None},
    }[design]
    with pytest.raises(DataError, match=says):
        design().fit(**columns | {"y": values})


def test_tables_of_designs_are_named_and_may_be_sparse():
    data = study()
    with pytest.raises(DataError, match="instruments: it contains NaN"):
        InstrumentalVariables().fit(**data | {"instruments": np.full((60, 1), np.nan)})
    plain = InstrumentalVariables().fit(**data)
    found = plain.effect_
    sparse = InstrumentalVariables().fit(**data | {"X": sp.csr_array(data["X"])})
    assert sparse.effect_ == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("method", ["2sls", "liml", "fuller"])
@pytest.mark.parametrize("covariance", ["robust", "classical"])
def test_instruments_that_leave_no_noise_are_named(method, covariance):
    data, model = study(), InstrumentalVariables(method, covariance=covariance)
    with pytest.raises(DataError, match="treatment: is a combination of the instruments"):
        model.fit(**data | {"treatment": data["instruments"][:, 0]})
    with pytest.raises(DataError, match="y: is a combination of treatment, instruments and X"):
        model.fit(**data | {"y": 2 * data["treatment"]})
    with pytest.raises(DataError, match=r"y: the effect is .*whose squares are no numbers"):
        model.fit(**data | {"y": data["y"] * 1e150, "treatment": data["treatment"] * 1e-150})


def test_few_groups_do_not_determine_the_covariance_of_many_instruments():
    data = study() | {"instruments": rng().normal(size=(60, 5)) + study()["instruments"][:, :1]}
    with pytest.raises(DataError, match="groups: 3 do not determine the covariance of 5 instruments"):
        InstrumentalVariables().fit(**data, groups=np.arange(60) % 3)


def test_a_discontinuity_of_any_bandwidth_and_without_noise():
    x = np.linspace(-1, 1, 201)
    y = x + 0.5 * (x >= 0)
    for order in (1, 2):
        wide = RegressionDiscontinuity(bandwidth=1e300, kernel="uniform", order=order).fit(x, y)
        assert_allclose([wide.effect_, wide.effect_bias_corrected_], 0.5, atol=1e-9)
    assert np.isfinite(wide.summary().columns["P>|z|"]).all()
    flat = RegressionDiscontinuity().fit(x, np.zeros(201))
    assert (flat.effect_, flat.p_value_) == (0, 1)
    for order in (1, 2):
        level = RegressionDiscontinuity(order=order).fit(rng().uniform(-1, 1, 60), np.full(60, 7.0))
        assert level.effect_ == pytest.approx(0, abs=1e-12)
    with pytest.raises(DataError, match="bandwidth: "):
        RegressionDiscontinuity(bandwidth=1e-300).fit(x, y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("order", [1, 2])
def test_units_of_an_outcome_at_a_cutoff_do_not_matter(order):
    r = rng()
    x = r.uniform(-1, 1, 300)
    y = x**2 + 0.5 * (x >= 0) + 0.1 * r.normal(size=300)
    plain = RegressionDiscontinuity(order=order).fit(x, y)
    expected = plain.bandwidth_, plain.effect_, plain.p_value_
    for unit in (2.0**500, 2.0**-500):
        scaled = RegressionDiscontinuity(order=order).fit(x, y * unit)
        assert (scaled.bandwidth_, scaled.effect_ / unit, scaled.p_value_) == expected
    wide = RegressionDiscontinuity(bandwidth=1e10).fit(x * 2.0**-1030, y)
    assert np.isfinite(wide.effect_)
    with pytest.raises(DataError, match="beyond the range of numbers"):
        RegressionDiscontinuity().fit(x, y, treatment=(x >= 0) * 1e-320)


def test_anticipation_of_any_length():
    with pytest.raises(DataError, match="no unit is seen before its treatment begins"):
        DifferenceInDifferences(anticipation=10**30).fit(**panel() | {"X": None})


def test_panels_are_checked_before_rows_of_weight_zero_are_left_out():
    data = panel()
    w = np.repeat((np.arange(12) > 0).astype(float), 6)
    for name in ("unit", "time", "treatment", "clusters"):
        with pytest.raises(DataError, match=rf"{name}: has shape \(71,\)"):
            DifferenceInDifferences().fit(**data | {"X": None, name: np.zeros(71)}, sample_weight=w)
    with pytest.raises(DataError, match="unit: row 0 is not finite"):
        DifferenceInDifferences().fit(**data | {"X": None, "unit": np.full(72, np.nan)})


def test_a_synthetic_control_of_any_penalty():
    data = panel()
    data["treatment"] *= data["unit"] == 0
    heavy = SyntheticControl(ridge=1e300).fit(**data)
    assert_allclose(heavy.weights_, 1 / 11, rtol=1e-6)
    assert heavy.certificate_.holds


# ---------------------------------------------------------------- effects, sensitivity, discovery


def test_effects_of_tables_with_nothing_to_match_on_or_no_noise():
    t = np.arange(40) % 2
    with pytest.raises(DataError, match="X: no covariate varies"):
        TreatmentEffect(method="matching").fit(np.ones((40, 2)), rng().normal(size=40), treatment=t)
    assert TreatmentEffect(method="difference").fit(np.ones((40, 1)), np.zeros(40), treatment=t).summary()["z"][0] == 0
    many = TreatmentEffect(method="strata", n_strata=10**30)
    with pytest.raises(DataError, match="no stratum"):
        many.fit(rng().normal(size=(40, 1)), rng().normal(size=40), treatment=t)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_covariates_whose_squares_are_no_numbers(form):
    X, t = rng().normal(size=(60, 2)) * [1.0, 1e200], np.arange(60) % 2
    with pytest.raises(DataError, match=r"X: 'x1' holds \d\.\de\+200, whose square is no number"):
        TreatmentEffect(method="ipw").fit(form(X), X[:, 0], treatment=t)


def test_scores_in_two_clusters_are_trimmed_to_the_one_with_overlap():
    """Where nearly all scores are as good as zero, keeping all meets the condition too, with far more variance."""
    e = np.concatenate([np.full(950, 1e-9), rng().uniform(0.3, 0.7, 50)])
    threshold = crump_threshold(e, np.ones(1000))
    assert 1e-9 < threshold < 0.3
    r = rng()
    far = r.random(2000) < 0.9
    t = (r.random(2000) < np.where(far, 0.0, 0.5)).astype(int)
    model = TreatmentEffect("att", "ipw").fit(far[:, None].astype(float), r.normal(size=2000), treatment=t)
    assert model.overlap_["outside"] == pytest.approx(far.mean())
    assert "x0 > 0.5 (100% of" in model.overlap_["region"]


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: e_value(2.0, 3), "interval=3; expected a sequence"),
        (lambda: e_value(1e308), "estimate=1e.308; expected a finite number in"),
        (lambda: rosenbaum_bounds([1.0, 2.0], gamma="a"), "gamma should be a 1d array"),
        (lambda: rosenbaum_bounds([1.0, 2.0], gamma=[1j]), "Complex data not supported: gamma"),
        (lambda: causation_bounds(3, None), "joint should be a 1d array"),
        (lambda: causation_bounds([[0.4, 0.1], [0.4, 0.1]], 0.5), "experiment=0.5; expected a sequence"),
        (lambda: causation_bounds([[0.4, 0.1], [0.4, 0.1]], (0.2,)), "expected two probabilities"),
        (lambda: discover(np.eye(9)[:, :2], "ges", penalty=1e300), "penalty=1e.300"),
        (lambda: discover(np.eye(9)[:, :2], names=3), "names=3; expected a sequence"),
        (lambda: discover(np.eye(9)[:, :2] * 1e200), r"data: column 'x0' varies by .*e\+199; divide it"),
        (
            lambda: omitted_variable_bias(np.eye(9)[:, :1], np.arange(9.0), np.arange(9.0) ** 2, benchmarks=0),
            "benchmarks=0; expected a sequence",
        ),
    ],
)
def test_arguments_are_named(ask, says):
    with pytest.raises(EpicycleError, match=says):
        ask()


@pytest.mark.filterwarnings("error")
def test_strengths_of_any_size():
    for estimate, error, value in ((1e300, 1e-300, 1.0), (1e-300, 1e300, 0.0), (0.0, 1.0, 0.0), (1e154, 1.0, 1.0)):
        found = OmittedVariableBias(estimate, error, 100)
        assert found.robustness_value() == pytest.approx(value, abs=1e-9)
        assert found.partial_r2 == pytest.approx(value, abs=1e-9)
        assert 0 <= found.robustness_value(q=1e300, alpha=0.05) <= 1
    f = 0.3
    assert OmittedVariableBias(f * 10, 1.0, 100).robustness_value() == pytest.approx(
        (np.sqrt(f**4 + 4 * f**2) - f**2) / 2
    )
    for strength in ("a", {}, 1j, object()):
        with pytest.raises(ParameterError, match="r2_outcome"):
            found.adjusted(0.1, strength)
    assert found.adjusted([0.1, 0.2], 0.3)[0].shape == (2,)
    with pytest.raises(DataError, match="expected that of r2_treatment"):
        found.adjusted([0.1, 0.2], [0.1, 0.2, 0.3])


def test_a_control_that_others_determine_explains_nothing_more():
    r = rng()
    X, t = r.normal(size=(60, 2)), r.normal(size=60)
    y = t + X[:, 0]
    found = omitted_variable_bias(X, y + r.normal(size=60), t, benchmarks=[0])
    again = omitted_variable_bias(X, np.full(60, 2.0) + 1e-9 * t, t, benchmarks=[0])
    assert 0 < found.benchmarks["X0"][1] < 1
    assert np.isfinite(again.benchmarks["X0"]).all()
    with pytest.raises(DataError, match="of which nothing follows; y may be a combination"):
        omitted_variable_bias(X, np.full(60, 1e-310), t, benchmarks=[0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["pc", "fci", "ges", "notears"])
def test_graphs_of_few_rows_and_of_equal_columns(method):
    for seed in range(4):
        few = np.random.default_rng(seed).normal(size=(8, 4))
        assert len(discover(few, method, alpha=0.5).names) == 4
    z = PartialCorrelation(np.ones((4, 4)), 9, 0.05).statistics(0, 1, np.array([[2, 3]]))
    assert np.isfinite(z).all()


@pytest.mark.filterwarnings("error")
def test_sums_beyond_the_range_of_numbers_are_refused_in_silence():
    r = rng()
    X, t, y = np.exp(20 * r.normal(size=(40, 4))), np.arange(40) % 2, r.normal(size=40) * 1e150
    for method in ("regression", "s_learner"):
        for n_jobs in (1, 2):
            model = TreatmentEffect("cate", method, n_jobs=n_jobs)
            with pytest.raises(DataError, match=r"expected finite numbers|overflow"):
                model.fit(X, y, treatment=t)
    with pytest.raises(DataError, match="stands for"):
        TreatmentEffect(method="matching").fit(np.log(X), y * 1e-150, treatment=t, sample_weight=np.full(40, 1e90))


def test_bounds_of_any_gamma():
    found = rosenbaum_bounds([1.0, 2.0, 3.0, 4.0], gamma=[1, 1e100])
    assert_allclose(found.upper[1], 0.5)  # all signs may be positive for a reason that is hidden
    assert found.lower[1] < 1e-30
    assert e_value(1e30, kind="hazard_ratio").risk_ratio > 1e10
