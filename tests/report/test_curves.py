"""The curves against scikit-learn, thinned ones against whole ones, and the coverage of the intervals."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import metrics

from epicycle.exceptions import DataError, ParameterError
from epicycle.report import curves
from epicycle.report._charts import comparable, search_progress


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(0)
    y = rng.random(3000) < 0.3
    return y, np.round(rng.normal(size=3000) + y, 2), rng.integers(0, 4, size=3000)


@pytest.mark.parametrize("weighted", [False, True])
def test_roc(scored, weighted):
    y, s, w = scored
    w = w if weighted else None
    found = curves.roc(y, s, most=10**6, sample_weight=w)
    fpr, tpr, _ = metrics.roc_curve(y, s, sample_weight=w, drop_intermediate=False)
    keep = np.append(True, (np.diff(fpr) > 0) | (np.diff(tpr) > 0))
    ours = np.array([found["fpr"], found["tpr"]])
    moved = np.append(True, (np.abs(np.diff(ours)) > 0).any(axis=0))
    assert_allclose(ours[:, moved], [fpr[keep], tpr[keep]], atol=1e-14)
    thin = curves.roc(y, s, sample_weight=w)
    assert len(thin["fpr"]) <= 200
    assert thin["auc"] == pytest.approx(metrics.roc_auc_score(y, s, sample_weight=w), abs=1e-12)
    assert (thin["fpr"][0], thin["tpr"][0], thin["fpr"][-1], thin["tpr"][-1]) == (0, 0, 1, 1)
    assert np.trapezoid(thin["tpr"], thin["fpr"]) == pytest.approx(thin["auc"], abs=2e-3)
    json.dumps(thin)


@pytest.mark.parametrize("weighted", [False, True])
def test_precision_recall(scored, weighted):
    y, s, w = scored
    w = np.maximum(w, 1) if weighted else None
    precision, recall, _ = metrics.precision_recall_curve(y, s, sample_weight=w)
    found = curves.precision_recall(y, s, most=10**6, sample_weight=w)
    assert_allclose(found["precision"], precision[::-1], atol=1e-14)
    assert_allclose(found["recall"], recall[::-1], atol=1e-14)
    thin = curves.precision_recall(y, s, sample_weight=w)
    assert len(thin["recall"]) <= 200
    assert thin["average_precision"] == pytest.approx(metrics.average_precision_score(y, s, sample_weight=w), abs=1e-12)
    assert thin["prevalence"] == pytest.approx(np.average(y, weights=w))


def test_operating_points(scored):
    y, s, _ = scored
    found = curves.operating_points(y, s, chosen=0.5, default=0.0)
    assert len(found["thresholds"]) <= 200
    assert found["thresholds"] == sorted(found["thresholds"])
    for i in (0, 40, 120, len(found["f1"]) - 1):
        predicted = s >= found["thresholds"][i]
        assert found["f1"][i] == pytest.approx(metrics.f1_score(y, predicted))
        assert found["precision"][i] == pytest.approx(metrics.precision_score(y, predicted))
        assert found["recall"][i] == pytest.approx(metrics.recall_score(y, predicted))
    assert (found["chosen"], found["default"]) == (0.5, 0.0)


def test_confusion():
    rng = np.random.default_rng(1)
    y, q = rng.integers(0, 5, 400), rng.integers(0, 6, 400)
    found = curves.confusion(y, q)
    assert found["labels"] == list("012345")
    assert found["counts"] == metrics.confusion_matrix(y, q).tolist()
    w = rng.random(400)
    weighted = curves.confusion(y, q, labels=[3, 1, 2], sample_weight=w)
    assert_allclose(weighted["counts"], metrics.confusion_matrix(y, q, labels=[3, 1, 2], sample_weight=w))
    # Many classes: the largest keep their rows, all others are one.
    y = np.minimum(rng.geometric(0.05, 5000), 60)
    q = np.where(rng.random(5000) < 0.7, y, rng.permutation(y))
    found = curves.confusion(y, q)
    assert len(found["labels"]) == 21
    assert found["labels"][-1] == f"other ({len(np.unique(y)) - 20})"
    assert np.sum(found["counts"]) == 5000
    kept = [int(label) for label in found["labels"][:-1]]
    assert set(kept) == set(np.argsort(-np.bincount(y), kind="stable")[:20])
    assert np.array(found["counts"])[:20, :20].tolist() == metrics.confusion_matrix(y, q, labels=kept).tolist()
    assert curves.confusion(np.array(["a", 1], dtype=object), np.array([1, 1], dtype=object))["labels"] == ["1", "a"]


def test_calibration_bins():
    rng = np.random.default_rng(2)
    p = rng.random(1000)
    y = rng.random(1000) < p
    found = curves.calibration(y, p)
    assert sum(found["counts"]) == 1000
    assert found["counts"] == [100] * 10
    order = np.argsort(p)
    assert_allclose(found["observed"], y[order].reshape(10, 100).mean(axis=1))
    assert_allclose(found["predicted"], p[order].reshape(10, 100).mean(axis=1))
    twice = curves.calibration(y, p, sample_weight=np.full(1000, 2.0))  # a common factor changes nothing
    assert_allclose(twice["lower"], found["lower"])
    assert curves.calibration([1, 1, 0], [0.5, 0.5, 0.5])["counts"] == [3]


def test_calibration_intervals_cover():
    rng = np.random.default_rng(3)
    hits = []
    for _ in range(400):
        p = np.repeat([0.1, 0.3, 0.5, 0.9], 80)
        found = curves.calibration(rng.random(320) < p, p, bins=4)
        hits.append(
            [low <= q <= high for q, low, high in zip(found["predicted"], found["lower"], found["upper"], strict=True)]
        )
    # Wilson's interval holds its level on average over the rates, not at each of them.
    assert 0.935 <= np.mean(hits) <= 0.975


def test_residuals():
    rng = np.random.default_rng(4)
    q = rng.normal(size=2000)
    y = q + rng.normal(size=2000) * (1 + (q > 0))
    found = curves.residuals(y, q)
    assert np.shape(found["quantiles"]) == (5, 20)
    assert found["counts"] == [100] * 20
    assert len(found["predicted_edges"]) == 21
    first = np.argsort(q)[:100]
    assert_allclose(np.array(found["quantiles"])[:, 0], np.quantile((y - q)[first], found["levels"]))
    assert np.all(np.diff(found["quantiles"], axis=0) >= 0)
    assert len(curves.residuals(y[:35], q[:35])["counts"]) == 3
    assert curves.residuals([1.0], [2.0])["quantiles"][2] == [-1.0]


def test_importances():
    found = curves.importances([f"x{i}" for i in range(500)], np.arange(500.0))
    assert len(found) == 200
    assert found[0] == {"name": "x499", "mean": 499.0, "se": None}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: curves.roc([1, 1], [0.1, 0.2]), DataError, "one class"),
        (lambda: curves.roc([0, 2], [0.1, 0.2]), DataError, "truth values"),
        (lambda: curves.roc([0, 1], [0.1]), DataError, "1 rows; y has 2"),
        (lambda: curves.roc([0, 1], [0.1, np.nan]), DataError, "finite"),
        (lambda: curves.roc([0, 1], [0.1, 0.2], sample_weight=[1, -1]), DataError, "sample_weight"),
        (lambda: curves.roc([0, 1], [0.1, 0.2], most=1), ParameterError, "most=1"),
        (lambda: curves.roc(["a", "b"], [0.1, 0.2]), DataError, "truth values or numbers"),
        (lambda: curves.precision_recall([0, 0], [0.1, 0.2]), DataError, "no row is positive"),
        (lambda: curves.calibration([0, 1], [0.1, 1.2]), DataError, "between 0 and 1"),
        (lambda: curves.calibration([0, 1], [0.1, 0.2], level=1), ParameterError, "level"),
        (lambda: curves.calibration([0, 1], [0.1, 0.2], bins=0), ParameterError, "bins=0"),
        (lambda: curves.confusion([1], [1, 2]), DataError, "2 rows; y has 1"),
        (lambda: curves.residuals([1.0], [1.0], levels=[2]), ParameterError, "levels"),
        (lambda: curves.importances(["a"], [1.0, 2.0]), DataError, "expected"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_best_so_far_is_of_scores_that_can_be_compared():
    points = [
        {"rows": 500, "folds": 2},
        {"rows": 900, "folds": 2},
        {"rows": 900, "folds": 5},
        {"rows": 900, "folds": 10},
    ]
    assert comparable(points) == [False, False, True, True]
    assert comparable(points[:2]) == [False, True]
    assert comparable([{}, {}]) == [True, True]
    scores = [0.9, 0.87, 0.8, 0.82]
    drawn = search_progress(
        [{**p, "seconds": float(i), "score": s} for i, (p, s) in enumerate(zip(points, scores, strict=True))],
        "R2",
        True,
    )
    assert "the best is 0.82" in str(drawn).replace("0.8200", "0.82")
    assert "on few rows or folds" in str(drawn)
