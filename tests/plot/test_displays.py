"""The numbers in the figures are right, by hand and by scikit-learn; figures of large data are small."""

import io

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest, norm
from sklearn.metrics import average_precision_score, confusion_matrix, precision_recall_curve, r2_score, roc_auc_score

from epicycle import plot
from epicycle.exceptions import DataError, DataTypeError, ParameterError


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(400), 2)
    return (rng.random(400) < p**2).astype(int), p, rng.integers(1, 4, 400)


def test_curves_have_the_areas_of_scikit_learn(scored):
    y, p, w = scored
    for weight in (None, w):
        drawn = plot.precision_recall(y, p, sample_weight=weight, threshold=0.5)
        assert_allclose(drawn.numbers["average_precision"], average_precision_score(y, p, sample_weight=weight))
        assert_allclose(plot.roc(y, p, sample_weight=weight).numbers["area"], roc_auc_score(y, p, sample_weight=weight))
    precision, _, cuts = precision_recall_curve(y, p)
    assert_allclose(drawn.data["threshold"], cuts[::-1])
    assert_allclose(plot.precision_recall(y, p).data["precision"], precision[:-1][::-1])
    words = np.where(y == 1, "a", "b")
    assert plot.roc(words, p, positive="a").numbers == plot.roc(y, p).numbers
    assert np.isnan(plot.roc(y, p, sample_weight=w).numbers["area_error"])


@pytest.mark.slow
def test_the_standard_error_of_the_area_is_right():
    """Scores N(1, 1) and N(0, 1): the area is Phi(1 / sqrt 2), and 95% intervals cover it."""
    rng, hits, errors, areas = np.random.default_rng(0), 0, [], []
    truth = norm.cdf(1 / np.sqrt(2))
    ax = plot.axes_of(None)
    y = np.repeat([0, 1], [60, 40])
    for _ in range(120):
        found = plot.roc(y, rng.normal(size=100) + y, ax).numbers
        ax.clear()
        hits += abs(found["area"] - truth) <= 1.96 * found["area_error"]
        areas.append(found["area"])
        errors.append(found["area_error"])
    assert 0.85 < np.mean(errors) / np.std(areas) < 1.15
    assert hits / 120 >= 0.9


def test_calibration_by_hand(scored):
    y, p, w = scored
    drawn = plot.calibration(y, p, n_bins=5)
    assert drawn.data["rows"].sum() == 400
    for i in range(5):
        k, n = round(drawn.data["share"][i] * drawn.data["rows"][i]), int(drawn.data["rows"][i])
        interval = binomtest(k, n).proportion_ci(0.95, "exact")
        assert_allclose([drawn.data["lower"][i], drawn.data["upper"][i]], interval, atol=1e-10)
    by_hand = drawn.data["rows"] @ np.abs(drawn.data["probability"] - drawn.data["share"]) / 400
    assert_allclose(drawn.numbers["calibration_error"], by_hand)
    assert "calibration error" in drawn.ax_.get_title()
    one = plot.calibration(y, np.full(400, 0.5))
    assert_allclose(one.data["share"], y.mean())
    a = plot.calibration(y, p, sample_weight=w, n_bins=4)
    b = plot.calibration(np.repeat(y, w), np.repeat(p, w), n_bins=4)
    assert_allclose(a.data["share"], b.data["share"])
    assert np.all(a.data["upper"] - a.data["lower"] >= b.data["upper"] - b.data["lower"] - 1e-12)


def test_confusion_is_scikit_learns():
    rng = np.random.default_rng(0)
    y, said = rng.choice(list("abc"), 100), rng.choice(list("abc"), 100)
    w = rng.random(100)
    drawn = plot.confusion(y, said, sample_weight=w)
    assert_allclose(drawn.data["count"].reshape(3, 3), confusion_matrix(y, said, sample_weight=w))
    swapped = plot.confusion(y, said, labels=["c", "a"])
    assert_allclose(swapped.data["count"].reshape(2, 2), confusion_matrix(y, said, labels=["c", "a"]))
    assert drawn.table.columns.tolist() == ["true", "predicted", "count", "share"]
    many = plot.confusion(np.arange(40), np.arange(40)[::-1])
    assert len(many.ax_.texts) == 0
    assert many.numbers["accuracy"] == 0


def test_residuals():
    rng = np.random.default_rng(0)
    said = rng.normal(size=5000)
    y = said + rng.normal(size=5000) * (1 + (said > 0))
    drawn = plot.residuals(y, said)
    assert_allclose(drawn.numbers["r2"], r2_score(y, said))
    assert drawn.data["rows"].sum() == 5000
    inner = drawn.data["predicted"] > 0.3
    assert_allclose(drawn.data["upper"][inner], 2 * norm.ppf(0.9), atol=0.5)
    w = rng.integers(1, 3, 50)
    a = plot.residuals(y[:50], said[:50], sample_weight=w)
    b = plot.residuals(np.repeat(y[:50], w), np.repeat(said[:50], w))
    assert_allclose(list(a.numbers.values()), list(b.numbers.values()))


def test_importances_and_curves():
    drawn = plot.importances([0.1, -0.2, 0.6], errors=[0.1, 0.1, 0.2])
    assert drawn.data["feature"].tolist() == ["x2", "x0", "x1"]
    assert "two standard errors" in drawn.ax_.get_xlabel()
    many = plot.importances(np.arange(100.0), most=5)
    assert [t.get_text() for t in many.ax_.get_yticklabels()][-1] == "95 others together"
    curve = plot.learning_curve(["a", "b"], [0.9, 0.8], [[0.5, 0.7], [0.6, 0.8]], desired=0.9)
    assert_allclose(curve.data["validation_error"], [0.1, 0.1])
    assert np.isnan(curve.data["train_error"]).all()
    assert plot.learning_curve([1, 100], [1, 1], [0, 1]).ax_.get_xscale() == "log"


def test_a_million_rows_make_a_small_file():
    rng = np.random.default_rng(0)
    p = rng.random(300_000)
    y = rng.random(300_000) < p
    for drawn in (plot.precision_recall(y, p), plot.roc(y, p), plot.residuals(p + y, p), plot.calibration(y, p)):
        assert len(drawn.table) <= 502
        file = io.BytesIO()
        drawn.figure_.savefig(file, format="svg")
        assert len(file.getvalue()) < 200_000
    assert_allclose(plot.roc(y, p).numbers["area"], roc_auc_score(y, p))


def test_labels_do_not_overlap():
    names = [f"a class with a long name {i}" for i in range(12)]
    ax = plot.confusion(names, names).ax_
    ax.figure.canvas.draw()
    for labels in (ax.get_yticklabels(), plot.importances(np.arange(40.0), most=30).ax_.get_yticklabels()):
        labels[0].figure.canvas.draw()
        boxes = [label.get_window_extent() for label in labels]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plot.calibration([0, 1], [0.5, 1.5]), DataError, "p: from 0.5 to 1.5; expected probabilities"),
        (lambda: plot.calibration([0, 1, 2], [0.5] * 3), DataError, "y: 3 different labels"),
        (lambda: plot.calibration([0, 1], [0.5]), DataError, "p: 1 values; expected 2"),
        (lambda: plot.calibration([0, 1], ["a", "b"]), DataTypeError, "p=.*expected numbers"),
        (lambda: plot.calibration([0, 1], [0, 1], n_bins=0), ParameterError, "n_bins=0"),
        (lambda: plot.calibration([0, 1], [0, 1], level=1), ParameterError, "level=1"),
        (lambda: plot.roc([0, 1], [0, np.nan]), DataError, "score: shape"),
        (lambda: plot.roc([0, 1], [0, 1], positive=3), DataError, "positive=3"),
        (lambda: plot.roc([0, 1], [0, 1], sample_weight=[0, 1]), DataError, "one of the classes has no weight"),
        (lambda: plot.roc([0, 1], [0, 1], sample_weight=[-1, 1]), DataError, "sample_weight: Negative values"),
        (lambda: plot.confusion([0, 1], [0]), DataError, "y, predicted: shapes"),
        (lambda: plot.confusion([0, 1], [0, 1], labels=[1, 1]), ParameterError, "labels="),
        (lambda: plot.residuals([0, 1], [0, 1], n_bins=1.5), ParameterError, "n_bins=1.5"),
        (lambda: plot.importances([1, 2], ["a"]), DataError, "names: 1; expected one for each of 2"),
        (lambda: plot.importances([1, 2], errors=[1]), DataError, "errors: shape"),
        (lambda: plot.importances([1, 2], most=0), ParameterError, "most=0"),
        (lambda: plot.learning_curve([1, 2], [1], [1, 2]), DataError, "train: shape"),
        (lambda: plot.learning_curve([], [], []), DataError, "x: shape"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
