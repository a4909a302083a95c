"""Classes of a handful of rows: every fit knows them, scores are over all of them, and the user is told."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

import epicycle as ep
from epicycle.automl._evaluation import Evaluation, Facts
from epicycle.automl._metrics import metric_for
from epicycle.automl._parts import folds, rare_classes, split_rows
from epicycle.exceptions import DataError

LABELS = np.array(["a", "b", "c", "d"])


def labels(counts=(600, 300, 5, 1), seed=0):
    return np.random.default_rng(seed).permutation(np.repeat(LABELS[: len(counts)], counts))


@pytest.mark.parametrize("counts", [(600, 300, 5, 1), (40, 3), (30, 30, 2), (12, 4, 1, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_every_class_is_in_every_training_part(counts, seed):
    y = labels(counts, seed)
    train, test, how = split_rows(y, task="classification", test_size=0.2, seed=seed)
    assert how == "stratified by class"
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
    assert set(y[train]) == set(y)
    assert abs(len(test) - 0.2 * len(y)) <= len(counts)
    splits = folds(y, task="classification", groups=None, ordered=False, seed=seed)
    assert splits
    tested = np.concatenate([part for _, part in splits])
    assert len(np.unique(tested)) == len(tested)
    for fitted, held in splits:
        assert set(y[fitted]) == set(y)
        assert np.intersect1d(fitted, held).size == 0
        shares = [np.mean(y[held] == label) for label in LABELS[:2]]
        assert np.allclose(shares, [np.mean(y == label) for label in LABELS[:2]], atol=2 / len(held))


@pytest.mark.parametrize("ordered", [False, True])
def test_a_part_of_the_rows_has_every_class(ordered):
    y = labels()
    splits = folds(y, task="classification", groups=None, ordered=False, seed=0)
    facts = Facts("classification", len(y), 1, ordered=ordered)
    evaluation = Evaluation(None, {}, y, None, splits, facts, metric_for("log_loss", "classification", y), 0)
    for fold, (train, _) in enumerate(splits):
        part, _ = evaluation.part(fold, 50)
        assert set(y[part]) == set(y)
        assert np.isin(part, train).all()
        assert 50 <= len(part) <= 52
        assert np.array_equal(part, np.unique(part))


def test_scores_are_over_all_known_classes():
    """Rows that lack a class, or a fit that does: the value is scikit-learn's with all labels given."""
    rng = np.random.default_rng(1)
    y, p = rng.choice(LABELS[:3], 60), rng.dirichlet(np.ones(4), 60)
    responses = {"predict_proba": p, "predict": LABELS[p.argmax(axis=1)]}
    metrics = {name: metric_for(name, "classification", LABELS) for name in ("log_loss", "brier", "roc_auc")}
    found = {name: metric.score(responses, y) for name, metric in metrics.items()}
    assert found["log_loss"] == pytest.approx(-log_loss(y, p, labels=LABELS), rel=1e-12)
    assert found["brier"] == pytest.approx(-brier_score_loss(y, p, labels=LABELS), rel=1e-12)
    areas = [roc_auc_score(y == label, p[:, k]) for k, label in enumerate(LABELS[:3])]
    shares = [np.mean(y == label) for label in LABELS[:3]]
    assert found["roc_auc"] == pytest.approx(np.average(areas, weights=shares), rel=1e-12)
    weight = rng.integers(0, 3, 60).astype(float)
    again = {name: values.repeat(weight.astype(int), axis=0) for name, values in responses.items()}
    for metric in metrics.values():
        assert metric.score(responses, y, weight) == pytest.approx(metric.score(again, y.repeat(weight.astype(int))))
    model = ep.GaussianNB().fit(rng.normal(size=(60, 2)), y)
    X = rng.normal(size=(20, 2))
    given = metrics["log_loss"].scoring_argument(model, X, y[:20])
    assert given == pytest.approx(-log_loss(y[:20], model.predict_proba(X), labels=LABELS[:3]), rel=1e-9)


def test_log_loss_of_rows_of_one_class_of_two():
    p = np.random.default_rng(2).dirichlet(np.ones(2), 30)
    for label in LABELS[:2]:
        y = np.full(30, label)
        found = metric_for("log_loss", "classification", LABELS[:2]).score({"predict_proba": p}, y)
        assert found == pytest.approx(-log_loss(y, p, labels=LABELS[:2]), rel=1e-12)


def test_a_metric_without_a_value_is_named(monkeypatch):
    """Where no candidate has a score it is not the time that was too short."""
    monkeypatch.setattr("epicycle.automl._metrics.Metric.score", lambda *_: float("nan"))
    with pytest.raises(DataError, match="metric='roc_auc': has no value"):
        ep.train(table_of(labels((60, 40))), time=1, models="decisiontree", metric="roc_auc")


def test_classes_too_rare_to_be_judged_are_named():
    (issue,) = rare_classes(np.repeat(LABELS, [80, 60, 24, 4]), np.repeat(LABELS[:3], [20, 6, 5]), "kind")
    assert "d (4 training and 0 test rows), c (24 training and 5 test rows)" in issue.text
    assert " a (" not in issue.text
    assert " b (" not in issue.text
    assert issue.kind == "rare classes"
    assert rare_classes(np.repeat(LABELS, 24), np.repeat(LABELS, 6), "kind") == []


def table_of(y, seed=0):
    rng = np.random.default_rng(seed)
    x = np.unique(y, return_inverse=True)[1] + rng.normal(size=len(y))
    return pa.table({"x": x, "z": rng.normal(size=len(y)), "y": y.tolist()})


def test_a_table_with_rare_classes_trains():
    run = ep.train(table_of(labels()), time=1.5, models=["logistic", "decisiontree"])
    assert run.metric.name == "log_loss"
    assert np.isfinite(run.test.score)
    assert run.test.score < run.baseline_test
    assert all(np.isfinite(row["score_mean"]) for row in run.leaderboard if row["score_mean"] is not None)
    assert list(run.model_.classes_) == list(LABELS)
    assert [w.kind for w in run.warnings] == ["rare classes"]


def test_a_class_of_the_test_rows_alone_is_scored_too():
    """In order of time the last class may be new; its rows are errors, not an error of the program."""
    y = np.concatenate([labels((60, 60)), np.repeat(["a", "b", "new"], 10)])
    table = table_of(y).append_column("day", pa.array(np.arange(len(y)).astype("datetime64[D]")))
    run = ep.train(table, "y", time=1, models="logistic", metric="log_loss")
    assert run.how == "in order of time"
    assert np.isfinite(run.test.score)
    # Ten rows are evaluated: all of them are wrong.
    assert all("new (0 training and 10 test rows)" not in warning.text for warning in run.warnings)
    assert run.tests["accuracy"].score <= 20 / 30
