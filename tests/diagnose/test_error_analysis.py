"""Error analysis: the faulty stage is found, and the table is that of the lecture."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import epicycle as ep
from epicycle import diagnose
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError


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
