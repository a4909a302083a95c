"""Error analysis and ablation: the faulty stage, the feature group that carries the score, tables as in the lecture."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import epicycle as ep
from epicycle import diagnose
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError

# ------------------------------------------------------------------- error analysis


def three_stages(faulty, n=600, seed=0):
    """Denoise, square, classify; the faulty stage gets a large error."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=n)
    size = {"denoise": 0.02, "square": 0.02, "classify": 0.02} | {faulty: 0.6}
    error = {name: s * rng.normal(size=n) for name, s in size.items()}
    stages = [
        ("denoise", lambda x: x + error["denoise"]),
        ("square", lambda x: x**2 + error["square"]),
        ("classify", lambda x: x + error["classify"] > 1),
    ]
    truth = {"denoise": signal, "square": signal**2}
    return stages, signal, signal**2 > 1, truth


@pytest.mark.parametrize("faulty", ["denoise", "square", "classify"])
def test_the_faulty_stage_is_found(faulty):
    stages, X, y, truth = three_stages(faulty)
    found = diagnose.error_analysis(stages, X, y, truth=truth)
    assert found.worst == faulty
    assert found.verdict.startswith(f"{faulty} loses most")
    assert found.gains[faulty] > 2 * found.gain_errors[faulty]
    assert found.table["component"].tolist() == ["overall system", "denoise", "square", "classify"]
    assert found.table["score"].iloc[-1] == 1.0
    assert_allclose(sum(found.gains.values()), 1 - found.score)
    assert found.plot().get_xlabel().startswith("accuracy gained")


def test_stages_that_lose_the_same_are_not_put_in_order():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    spoil = [np.flatnonzero(rng.permutation(300) < 30) for _ in range(2)]

    def stage(rows):
        def work(values):
            out = np.array(values)
            out[rows] = 1 - y[rows]
            return out

        return work

    found = diagnose.error_analysis([("a", stage(spoil[0])), ("b", stage(spoil[1]))], y, y, truth={"a": y, "b": y})
    assert "cannot be ruled out" in found.verdict


def test_the_table_of_the_lecture():
    """Accuracies of 85, 85.1, 91, 95, 96, 97 and 100 per cent, by stages that each lose what the lecture says."""
    n, names = 1000, ["background", "face", "eyes", "nose", "mouth", "logistic"]
    lost = dict(zip(names, [1, 59, 40, 10, 10, 30], strict=True))  # rows that each stage spoils
    y = np.ones(n, dtype=int)
    spoilt, begin = {}, 0
    for name in names:
        spoilt[name] = np.arange(begin, begin + lost[name])
        begin += lost[name]

    def stage(name):
        def work(rows):
            out = rows.copy()
            out[spoilt[name]] = 0
            return out

        return work

    stages = [(name, stage(name)) for name in names]
    found = diagnose.error_analysis(stages, y, y, truth={name: y for name in names})
    assert_allclose(found.table["score"], [0.85, 0.851, 0.91, 0.95, 0.96, 0.97, 1.0])
    assert found.worst == "face"
    assert [step.split(":")[0] for step in found.next_steps[:2]] == ["work on face", "work on eyes"]


def test_stages_that_branch_and_stages_without_truth():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + X[:, 1]
    stages = [
        ("left", lambda X: X[:, 0] + rng.normal(size=300), ("X",)),
        ("right", lambda X: X[:, 1], ("X",)),
        ("sum", lambda a, b: a + b, ("left", "right")),
    ]
    found = diagnose.error_analysis(stages, X, y, truth={"left": X[:, 0]})
    assert found.metric == "r2"
    assert found.worst == "left"
    assert found.gains["sum"] == pytest.approx(0)
    assert "right" in found.notes[0]


def test_a_fitted_pipeline():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    pipeline = make_pipeline(StandardScaler(), PolynomialFeatures(1), ep.LogisticRegression()).fit(X, y)
    found = diagnose.error_analysis(pipeline, X, y, truth={})
    assert found.score == pipeline.score(X, y)
    assert found.worst == "logisticregression"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"stages": []}, ParameterTypeError, "stages="),
        ({"stages": [("a", 3)]}, ParameterTypeError, "stages: 'a' is 3"),
        ({"stages": [("a", abs), ("a", abs)]}, ParameterError, "the name 'a' is taken"),
        ({"stages": [("a", abs, ("b",))]}, ParameterError, "'a' takes 'b', which is no earlier stage"),
        ({"truth": {"z": np.ones(5)}}, ParameterError, "truth: 'z' is no stage"),
        ({"truth": {"a": np.ones(4)}}, DataError, r"truth\['a'\]: 4 rows; X has 5"),
        ({"truth": 3}, ParameterTypeError, "truth=3"),
        ({"y": np.ones(4)}, DataError, "y: 4 values; X has 5 rows"),
        ({"stages": [("a", lambda x: x[:2])]}, DataError, "the last one gave shape"),
    ],
)
def test_bad_stages(change, error, message):
    given = {"stages": [("a", abs)], "X": np.ones(5), "y": np.arange(5.0), "truth": {}, **change}
    with pytest.raises(error, match=message):
        diagnose.error_analysis(given.pop("stages"), given.pop("X"), given.pop("y"), **given)


# ------------------------------------------------------------------- ablation


@pytest.fixture(scope="module")
def grouped():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    return X, 3 * X[:, 0] + X[:, 3] + rng.normal(size=300)


GROUPS = {"strong": [0, 1], "weak": [2, 3], "noise": [4, 5]}


@pytest.mark.parametrize("order", [["strong", "weak", "noise"], ["noise", "weak", "strong"]])
def test_the_group_that_carries_the_score(grouped, order):
    found = diagnose.ablation(ep.Ridge(), *grouped, {name: GROUPS[name] for name in order})
    assert found.best == "strong"
    assert found.drops["strong"] > found.drops["weak"] > 0
    assert "try without noise" in found.next_steps[0]
    assert found.table["component"].tolist() == ["overall system", *order]
    assert found.cumulative[order[-1]] < 0.01  # nothing is left: the mean of y
    assert found.plot().get_xlabel().startswith("r2 lost")


def test_numbers_are_those_of_cross_validation(grouped):
    X, y = grouped
    cv = KFold(5, shuffle=True, random_state=0)
    found = diagnose.ablation(ep.Ridge(), X, y, GROUPS, cv=cv)
    whole = cross_val_score(ep.Ridge(), X, y, cv=cv)
    without = cross_val_score(ep.Ridge(), X[:, [0, 1, 4, 5]], y, cv=cv)
    both = cross_val_score(ep.Ridge(), X[:, [4, 5]], y, cv=cv)
    row = found.table.set_index("component").loc["weak"]
    assert_allclose(row["score_without"], without.mean())
    assert_allclose(row["drop"], (whole - without).mean())
    assert_allclose(row["drop_error"], (whole - without).std(ddof=1) * np.sqrt(1 / 5 + 1 / 4))
    assert_allclose(row["cumulative"], both.mean())


def test_components_that_carry_the_same_are_not_put_in_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=300)
    verdict = diagnose.ablation(ep.Ridge(), X, y).verdict
    assert "contributes as much cannot be ruled out" in verdict
    assert "x2" not in verdict
    one = diagnose.ablation(ep.Ridge(), X, y, cv=[(np.arange(200), np.arange(200, 300))])
    assert "no standard error is known" in one.notes[-1]


def test_components_of_a_pipeline_and_names_of_columns(grouped):
    X, y = grouped
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = make_pipeline(PolynomialFeatures(2), ep.Ridge())
    target = y + 4 * X[:, 4] * X[:, 5]
    parts = {"products": {"polynomialfeatures": "passthrough"}, "a": "a", "d and f": ["d", "f"]}
    found = diagnose.ablation(model, frame, target, parts)
    assert found.best in ("products", "d and f")
    assert found.drops["products"] > 0.3
    assert diagnose.ablation(ep.Ridge(), frame, y).table["component"].tolist() == ["overall system", *"abcdef"]


@pytest.mark.slow
def test_the_rate_of_false_alarms():
    """A column of noise is said to matter in at most about 1 in 40 data sets."""
    rng, alarms, runs = np.random.default_rng(0), 0, 60
    for i in range(runs):
        X = rng.normal(size=(80, 2))
        y = X[:, 0] + rng.normal(size=80)
        found = diagnose.ablation(ep.LinearRegression(), X, y, {"noise": [1]}, random_state=i, n_jobs=1)
        alarms += found.verdict.startswith("noise contributes")
    assert alarms <= 5


def test_components_that_stand_in_for_each_other(grouped):
    X, y = grouped
    doubled = np.column_stack([X[:, [0]], X[:, [0]] + 1e-3 * X[:, [5]], X[:, [3]]])
    found = diagnose.ablation(ep.Ridge(), doubled, y, {"one": [0], "twin": [1], "other": [2]})
    assert found.best == "other"
    assert found.table["cumulative_drop"].iloc[2] > 0.5


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ({}, "components="),
        ({"a": [9]}, r"components\['a'\]: 9"),
        ({"a": "x"}, "'x' is no column"),
        ({"a": []}, "no columns"),
        ({"a": {"nothing": 1}}, r"components\['a'\]"),
    ],
)
def test_bad_components(grouped, components, message):
    with pytest.raises(ParameterError, match=message):
        diagnose.ablation(ep.Ridge(), *grouped, components)
