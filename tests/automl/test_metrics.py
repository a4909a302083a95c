"""Intervals cover, quick scores are those of scikit-learn, comparisons keep their level."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import metrics

from epicycle.automl._metrics import bootstrap_interval, compare_losses, metric_for
from epicycle.stats._intervals import score_of_counts


def answers(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    p = np.round(1 / (1 + np.exp(-(1.5 * y - 0.75 + rng.normal(size=n)))), 2)  # with ties
    return y, {"predict": (p > 0.5).astype(int), "predict_proba": np.column_stack([1 - p, p])}


def test_scores_of_counts_are_scores_of_repeated_rows():
    y, said = answers(300, 0)
    counts = np.random.default_rng(1).integers(0, 4, 300)
    rows = np.repeat(np.arange(300), counts)
    p = said["predict_proba"][rows, 1]
    expected = {
        "accuracy": metrics.accuracy_score(y[rows], said["predict"][rows]),
        "balanced_accuracy": metrics.balanced_accuracy_score(y[rows], said["predict"][rows]),
        "roc_auc": metrics.roc_auc_score(y[rows], p),
        "average_precision": metrics.average_precision_score(y[rows], p),
        "log_loss": -metrics.log_loss(y[rows], np.clip(p, 1e-12, 1 - 1e-12)),
        "brier": -metrics.brier_score_loss(y[rows], p),
    }
    for name, value in expected.items():
        assert_allclose(score_of_counts(name, said, y, np.array([0, 1]), None)(counts), value, rtol=1e-12)
    target, guess = np.random.default_rng(2).normal(size=(2, 300))
    said = {"predict": guess}
    expected = {
        "r2": metrics.r2_score(target[rows], guess[rows]),
        "rmse": -metrics.root_mean_squared_error(target[rows], guess[rows]),
        "mae": -metrics.mean_absolute_error(target[rows], guess[rows]),
    }
    for name, value in expected.items():
        assert_allclose(score_of_counts(name, said, target, None, None)(counts), value, rtol=1e-10)


def test_the_brier_score_of_three_classes_is_the_same_with_and_without_an_interval():
    rng = np.random.default_rng(4)
    y, p = rng.integers(0, 3, 200), rng.dirichlet(np.ones(3), 200)
    found = metric_for("brier", "classification", y).with_bound({"predict_proba": p}, y, None, 0)
    assert_allclose(found.score, metrics.brier_score_loss(y, p, labels=[0, 1, 2]), rtol=1e-12)
    assert_allclose(found.score, -score_of_counts("brier", {"predict_proba": p}, y, np.arange(3))(np.ones(200)))
    assert 0.5 * found.score < found.lower < found.score < found.upper < 1.5 * found.score


@pytest.mark.slow
def test_bootstrap_intervals_cover_the_true_score():
    true = 0.0
    y, said = answers(200_000, 99)
    true = metrics.roc_auc_score(y, said["predict_proba"][:, 1])
    metric = metric_for("roc_auc", "classification", y)
    inside = 0
    for seed in range(150):
        y, said = answers(150, seed)
        found = metric.with_bound(said, y, None, seed, seconds=0.0)
        inside += found.lower <= true <= found.upper
    assert inside >= 0.90 * 150
    assert inside < 150  # and is no larger than it has to be


@pytest.mark.parametrize("metric", ["accuracy", "log_loss", "brier", "balanced_accuracy"])
def test_bounds_contain_the_score(metric):
    y, said = answers(200, 3)
    found = metric_for(metric, "classification", y).with_bound(said, y, None, 0)
    assert found.lower < found.score < found.upper
    assert found.method == ("binomial" if metric == "accuracy" else "bootstrap")


@pytest.mark.slow
def test_comparisons_keep_their_level():
    rng = np.random.default_rng(0)
    false, covered, runs = 0, 0, 400
    for _ in range(runs):
        a, b = rng.random(120) < 0.25, rng.random(120) < 0.25
        found = compare_losses(a, b, metric="error rate")
        false += found.p_value < 0.05
        covered += found.lower <= 0.0 <= found.upper
    assert false <= 0.05 * runs + 3 * np.sqrt(0.0475 * runs)
    assert covered >= 0.95 * runs
    false = covered = 0
    runs = 150
    for _ in range(runs):
        a, b = rng.exponential(size=(2, 60))
        found = compare_losses(a, b, metric="squared error", seed=1)
        false += found.p_value < 0.05
        covered += found.lower <= 0.0 <= found.upper
    assert false <= 0.05 * runs + 3 * np.sqrt(0.0475 * runs)
    assert covered >= 0.89 * runs


def test_comparison_finds_the_better_model():
    rng = np.random.default_rng(1)
    wrong = rng.random(400) < 0.1
    worse = wrong | (rng.random(400) < 0.1)
    found = compare_losses(wrong, worse, metric="error rate", names=("new", "old"))
    assert found.verdict.startswith("new is better than old")
    assert found.upper < 0
    assert (found.only_first, found.only_second) == (int((worse & ~wrong).sum()), 0)
    assert found.p_value == pytest.approx(2 * 0.5**found.only_first)
    same = compare_losses(wrong, wrong, metric="error rate")
    assert same.p_value == 1.0


def test_interval_of_a_mean_is_that_of_students_t_for_normal_values():
    x = np.random.default_rng(5).normal(size=400)
    low, high = bootstrap_interval(lambda c: float(c @ x / c.sum()), 400, 0.95, 0)
    mean, reach = x.mean(), 1.966 * x.std(ddof=1) / 20
    assert_allclose([low, high], [mean - reach, mean + reach], atol=0.012)
