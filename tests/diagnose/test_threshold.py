"""Thresholds for skewed classes: by hand, against scikit-learn, and honest about rows that were used to choose."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.covariance import EllipticEnvelope
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    fbeta_score,
    matthews_corrcoef,
    precision_score,
    recall_score,
)
from sklearn.model_selection import KFold, cross_val_predict

import epicycle as ep
from epicycle import diagnose
from epicycle.diagnose import threshold_of_scores
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError


@pytest.fixture(scope="module")
def skewed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    return X, (rng.random(1500) < 1 / (1 + np.exp(3.5 - 2 * X[:, 0]))).astype(int)


def test_by_hand():
    """Scores 5 to 1 with labels + - + - -: cutting off two gives P = 1/2, R = 1/2; three P = 2/3, R = 1, F1 = 4/5."""
    found = threshold_of_scores([5, 4, 3, 2, 1], [1, 0, 1, 0, 0])
    assert found.threshold == 2.5
    assert (found.tp, found.fp, found.fn, found.tn) == (2, 1, 0, 2)
    assert_allclose([found.precision, found.recall, found.f1, found.value], [2 / 3, 1, 0.8, 0.8])
    assert found.prevalence == 0.4
    assert_allclose(found.average_precision, 1 / 2 * 1 + 1 / 2 * 2 / 3)
    at = np.searchsorted(-found.thresholds, -3.5)
    assert_allclose([found.precisions[at], found.recalls[at]], [1 / 2, 1 / 2])
    assert_allclose(threshold_of_scores([5, 4, 3, 2, 1], [1, 0, 1, 0, 0], metric="accuracy").threshold, 4.5)


def test_costs_by_hand():
    scores, y = [5, 4, 3, 2, 1], [1, 0, 1, 0, 0]
    dear_misses = threshold_of_scores(scores, y, costs=(1, 10))
    assert (dear_misses.threshold, dear_misses.value) == (2.5, -1)
    dear_alarms = threshold_of_scores(scores, y, costs=(10, 1))
    assert (dear_alarms.threshold, dear_alarms.value) == (4.5, -1)
    assert "cost 1" in dear_alarms.verdict
    assert dear_alarms.table["cost"].min() == 1
    assert dear_alarms.plot().get_legend() is not None


def test_the_error_of_a_cost_grows_with_the_rows():
    """Costs add up over folds, shares do not; either way the error is that of repeated draws."""
    rng = np.random.default_rng(0)
    for metric, costs in (("f1", None), ("f1", (1, 3)), (lambda tp, fp, fn, tn: -(fp + 3.0 * fn), None)):
        values, errors = [], []
        for i in range(40):
            y = rng.integers(0, 2, 300)
            found = threshold_of_scores(y + rng.normal(size=300), y, metric=metric, costs=costs, random_state=i)
            values.append(found.cv_value)
            errors.append(found.cv_error)
        assert 0.6 < np.mean(errors) / np.std(values) < 1.6


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), metric=st.sampled_from(["f1", "f2", "f0.5", "mcc", "balanced_accuracy"]))
def test_the_best_of_all_thresholds(seed, metric):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 8, size=30) / 8
    y = rng.integers(0, 2, size=30)
    y[:2] = 0, 1
    peer = {
        "f1": f1_score,
        "f2": lambda a, b: fbeta_score(a, b, beta=2),
        "f0.5": lambda a, b: fbeta_score(a, b, beta=0.5),
        "mcc": matthews_corrcoef,
        "balanced_accuracy": balanced_accuracy_score,
    }[metric]
    found = threshold_of_scores(scores, y, metric=metric)
    brute = max(peer(y, scores >= t) for t in [*np.unique(scores), 2.0])
    assert_allclose(found.value, brute, atol=1e-12)
    assert_allclose(peer(y, scores >= found.threshold), found.value, atol=1e-12)
    assert_allclose(found.average_precision, average_precision_score(y, scores))


def test_every_row_is_scored_by_a_model_that_has_not_seen_it(skewed):
    X, y = skewed
    cv = KFold(5, shuffle=True, random_state=0)
    found = diagnose.threshold(ep.LogisticRegression(), X, y, cv=cv)
    scores = cross_val_predict(ep.LogisticRegression(), X, y, cv=cv, method="predict_proba")[:, 1]
    said = scores >= found.threshold
    assert_allclose(found.precision, precision_score(y, said))
    assert_allclose(found.recall, recall_score(y, said))
    assert_allclose(found.value, f1_score(y, said))
    assert found.threshold < 0.5
    assert found.value > found.default_value
    assert np.array_equal(found.predict(X), found.model_.predict_proba(X)[:, 1] >= found.threshold)
    assert found.positive == 1


def test_the_honest_value_is_below_the_chosen_one_and_near_the_truth(skewed):
    rng = np.random.default_rng(5)
    chosen, honest, true = [], [], []
    X_new = rng.normal(size=(20_000, 3))
    y_new = rng.random(20_000) < 1 / (1 + np.exp(3.5 - 2 * X_new[:, 0]))
    for i in range(12):
        X = rng.normal(size=(250, 3))
        y = rng.random(250) < 1 / (1 + np.exp(3.5 - 2 * X[:, 0]))
        found = diagnose.threshold(ep.LogisticRegression(), X, y, random_state=i)
        chosen.append(found.value)
        honest.append(found.cv_value)
        true.append(f1_score(y_new, found.predict(X_new)))
    assert np.mean(chosen) > np.mean(honest)
    assert abs(np.mean(honest) - np.mean(true)) < abs(np.mean(chosen) - np.mean(true))


def test_a_precision_that_has_to_be_reached(skewed):
    found = diagnose.threshold(ep.LogisticRegression(), *skewed, min_precision=0.7)
    assert found.precision >= 0.7
    assert found.recall < diagnose.threshold(ep.LogisticRegression(), *skewed).recall
    with pytest.raises(ParameterError, match="no threshold reaches both"):
        diagnose.threshold(ep.LogisticRegression(), *skewed, min_precision=0.95, min_recall=0.95)


def test_labels_margins_and_fitted_models(skewed):
    X, y = skewed
    words = np.where(y == 1, "bad", "good")
    found = diagnose.threshold(ep.LogisticRegression(), X, words)
    assert found.positive == "bad"
    assert set(found.predict(X)) == {"bad", "good"}
    other = diagnose.threshold(ep.LogisticRegression(), X, words, positive="good")
    assert other.prevalence > 0.5
    margin = diagnose.threshold(ep.Perceptron(), X, words)
    assert margin.default_threshold == 0
    fitted = ep.LogisticRegression().fit(X[:700], words[:700])
    prefit = diagnose.threshold(fitted, X[700:], words[700:], cv="prefit")
    assert prefit.model_ is fitted
    assert np.isfinite(prefit.cv_value)


def test_densities_for_anomalies():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(300, 2)), rng.normal(size=(15, 2)) * 0.3 + 6])
    y = np.repeat([0, 1], [300, 15])
    model = EllipticEnvelope(random_state=0).fit(X[:200])
    found = diagnose.threshold(model, X[200:], y[200:], cv="prefit")
    assert found.f1 > 0.95


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    scores, y, w = rng.random(60), rng.integers(0, 2, 60), rng.integers(1, 4, 60)
    a = threshold_of_scores(scores, y, sample_weight=w)
    b = threshold_of_scores(np.repeat(scores, w), np.repeat(y, w))
    assert (a.threshold, a.tp, a.fp) == (b.threshold, b.tp, b.fp)
    assert_allclose(a.values, b.values)


def test_figures_and_words(skewed):
    found = diagnose.threshold(ep.LogisticRegression(), *skewed)
    assert found.plot().get_xlabel() == "threshold"
    assert found.plot(kind="precision-recall").get_xlabel() == "recall"
    assert "One row in" in found.verdict
    assert found.table["point"].tolist()[:2] == ["chosen", "default"]
    assert "always predicting the negative class" in found.next_steps[-1]


def test_the_same_for_any_number_of_threads(skewed):
    model = ep.RandomForestClassifier(n_estimators=5)
    one, two = (diagnose.threshold(model, *skewed, n_jobs=n) for n in (1, 2))
    assert np.array_equal(one.values, two.values)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"metric": "f"}, ParameterError, "metric='f'"),
        ({"metric": "cost"}, ParameterError, "costs: metric='cost'"),
        ({"costs": 3}, ParameterTypeError, "costs=3"),
        ({"positive": "x"}, ParameterError, "positive='x'"),
        ({"y": np.arange(1500) % 3}, DataError, "y: 3 classes"),
        ({"min_recall": 2}, ParameterError, "min_recall=2"),
        ({"model": ep.LogisticRegression}, ParameterTypeError, "model="),
    ],
)
def test_bad_input(skewed, change, error, message):
    given = {"model": ep.LogisticRegression(), "X": skewed[0], "y": skewed[1], **change}
    with pytest.raises(error, match=message):
        diagnose.threshold(given.pop("model"), given.pop("X"), given.pop("y"), **given)


def test_bad_scores():
    with pytest.raises(DataError, match="scores"):
        threshold_of_scores([1.0, np.nan], [0, 1])
    with pytest.raises(DataError, match="y: expected 0 and 1"):
        threshold_of_scores([1.0, 2.0], [0, 2])
