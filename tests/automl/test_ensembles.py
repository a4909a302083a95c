"""Ensembles: greedy weights, what they are worth on other folds, the model, its file and its script."""

import math
import runpy
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.optimize import minimize
from sklearn.metrics import log_loss

import epicycle as ep
from epicycle.automl._metrics import metric_for
from epicycle.automl.ensembles._greedy_selection import Fold, greedy_selection
from epicycle.cli import main
from epicycle.exceptions import NotFittedError, ParameterError

RMSE = metric_for("rmse", "regression", np.zeros(0))


def noisy_folds(deviations, n=2_000, folds=4, seed=0):
    """Members whose predictions are the target plus independent noise."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(folds):
        y = rng.normal(size=n)
        made.append(Fold(y, None, [y + s * rng.normal(size=n) for s in deviations]))
    return made


def test_weights_are_nearly_the_best_linear_ones():
    """Independent errors of variance s^2 are combined best with weights proportional to 1 / s^2."""
    deviations = [1.0, 0.7, 1.4]
    found = greedy_selection(noisy_folds(deviations), RMSE)
    best = 1 / np.square(deviations)
    assert np.abs(found.weights - best / best.sum()).max() < 0.06
    # Half the harmonic sum: sqrt(1 / sum 1 / s^2).
    assert -found.scores.mean() == pytest.approx(1 / math.sqrt(best.sum()), rel=0.03)
    gain, error = found.gain_over(
        np.array([RMSE.score({"predict": f.members[1]}, f.y) for f in noisy_folds(deviations)])
    )
    assert gain > 5 * error > 0


def test_probabilities_are_mixed_as_their_log_loss_asks():
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"])
    metric = metric_for("log_loss", "classification", classes)
    folds = []
    for _ in range(3):
        logits = rng.normal(size=(1_500, 3))
        p = np.exp(2 * logits) / np.exp(2 * logits).sum(axis=1, keepdims=True)
        y = classes[(p.cumsum(axis=1) > rng.random((1_500, 1))).argmax(axis=1)]
        members = []
        for _ in range(2):
            noisy = np.exp(2 * logits + 1.5 * rng.normal(size=logits.shape))
            members.append(noisy / noisy.sum(axis=1, keepdims=True))
        folds.append(Fold(y, None, members))
    found = greedy_selection(folds, metric)

    def loss(w):
        return np.mean([log_loss(f.y, w * f.members[0] + (1 - w) * f.members[1], labels=classes) for f in folds])

    best = minimize(lambda w: loss(w[0]), [0.5], bounds=[(0.0, 1.0)])
    assert loss(found.weights[0]) < best.fun + 1e-3
    assert found.weights[0] == pytest.approx(best.x[0], abs=0.08)


@pytest.mark.parametrize("name", ["log_loss", "accuracy"])
def test_direct_scores_of_classes_are_those_of_the_metric(name):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    p[0] = [1.0, 0.0, 0.0]
    y = np.array(["a", "b", "c"])[np.r_[1, rng.integers(0, 3, 199)]]
    metric = metric_for(name, "classification", np.array(["a", "b", "c"]))
    expected = metric.score({"predict": metric.classes[p.argmax(axis=1)], "predict_proba": p}, y)
    assert Fold(y, None, [p]).score(p, metric) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["r2", "rmse", "mse", "mae"])
def test_direct_scores_of_numbers_are_those_of_the_metric(name):
    rng = np.random.default_rng(0)
    y, said = rng.normal(size=(2, 100))
    metric = metric_for(name, "regression", y)
    assert Fold(y, None, [said]).score(said, metric) == pytest.approx(metric.score({"predict": said}, y), rel=1e-12)


def test_a_member_that_adds_nothing_has_no_weight():
    rng = np.random.default_rng(0)
    folds = []
    for _ in range(4):
        y = rng.normal(size=1_000)
        good = y + 0.1 * rng.normal(size=1_000)
        folds.append(Fold(y, None, [good, good + rng.normal(size=1_000)]))
    found = greedy_selection(folds, RMSE)
    assert found.weights.tolist() == [1.0, 0.0]


def test_the_gain_over_equal_members_is_not_by_choice():
    """Members of pure noise: the weights fit the folds that chose them, not those that did not."""
    rng = np.random.default_rng(0)
    metric = metric_for("accuracy", "classification", np.array([0, 1]))
    gains = []
    for _ in range(20):
        folds = []
        for _ in range(4):
            y = rng.integers(0, 2, 40)
            p = rng.random((6, 40))
            folds.append(Fold(y, None, [np.column_stack([1 - q, q]) for q in p]))
        gains.append(greedy_selection(folds, metric).scores.mean() - 0.5)
    assert abs(np.mean(gains)) < 3 * np.std(gains) / math.sqrt(20)


def both_kinds(n=400, seed=0):
    """A table of which one part is linear and one is steps: neither method is the best alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    y = X @ np.array([2.0, -1.0, 0.5, 1.0, -0.5, 0.2]) + 3 * (X[:, 0] * X[:, 1] > 0) + 2 * (X[:, 2] > 0.5)
    names = [f"x{j}" for j in range(6)]
    return pa.table({**{name: X[:, j] for j, name in enumerate(names)}, "y": y + 0.5 * rng.normal(size=n)})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ensembles")
    pa.parquet.write_table(both_kinds(), folder / "t.parquet")
    found = ep.train(
        folder / "t.parquet", "y", metric="rmse", time=12, models=["ridge", "decisiontree"], out=folder / "run"
    )
    return found, folder


def test_an_ensemble_is_chosen_where_it_wins(run):
    found, _ = run
    best = found.leaderboard[0]
    assert best["method"] == "Ensemble"
    assert best["status"] == "chosen"
    assert [row["status"] for row in found.leaderboard].count("chosen") == 1
    assert [row["status"] for row in found.leaderboard].count("member") == len(found.model_.models_)
    singles = [row["score_mean"] for row in found.leaderboard[1:] if row["n_folds"] >= best["n_folds"]]
    assert best["score_mean"] < min(singles)
    assert "Ensemble" in str(found)


def test_the_model_is_the_weighted_mean_of_its_members(run):
    found, folder = run
    model, table = found.model_, ep.training.read_table(folder / "t.parquet")
    by_hand = sum(w * m.predict(table) for w, m in zip(model.weights, model.models_, strict=True))
    assert np.array_equal(model.predict(table), by_hand)
    assert sum(model.weights) == pytest.approx(1)
    assert model.target == "y"
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "decision_function")
    assert model.certificate_.kind == "none"
    intervals = model.predict_interval(table, 0.9)
    assert np.allclose(intervals.mean(axis=1), by_hand)
    assert 0.8 <= found.interval["coverage"] <= 1


def test_file_and_script_give_the_same_bits(run, tmp_path, monkeypatch):
    found, folder = run
    table = ep.training.read_table(folder / "t.parquet")
    expected = found.model_.predict(table)
    assert np.array_equal(ep.load(folder / "run" / "model.epi").predict(table), expected)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    runpy.run_path(str(folder / "run" / "train.py"), run_name="__main__")
    assert np.array_equal(ep.load("reproduced.epi").predict(table), expected)


def test_commands_take_an_ensemble(run, tmp_path, capsys, monkeypatch):
    _, folder = run
    monkeypatch.chdir(tmp_path)
    model, data = str(folder / "run" / "model.epi"), str(folder / "t.parquet")
    assert main(["predict", model, data, "--interval", "0.9", "--out", "said.csv"]) == 0
    assert main(["report", model, data, "--out", "page"]) == 0
    assert main(["cv", model, data, "--folds", "3", "--metric", "rmse"]) == 0
    assert "root mean squared error" in capsys.readouterr().out


def test_classes_are_those_of_the_largest_mean_probability():
    table = ep.training.read_table("iris")
    kinds = {**dict.fromkeys(table.column_names, "number"), "species": "target"}
    members = [ep.TableModel(one, kinds) for one in (ep.LogisticRegression(), ep.DecisionTreeClassifier(max_depth=2))]
    model = ep.training.EnsembleTableModel(members, [0.6, 0.4])
    with pytest.raises(NotFittedError):
        model.predict(table)
    model.fit(table)
    p = 0.6 * model.models_[0].predict_proba(table) + 0.4 * model.models_[1].predict_proba(table)
    assert np.allclose(model.predict_proba(table), p)
    assert np.array_equal(model.predict(table), model.classes_[p.argmax(axis=1)])


@pytest.mark.parametrize(
    ("weights", "said"), [([0.5, 0.6], "whose sum is 1"), ([1.0], "2 positive"), ([1.5, -0.5], "2 pos")]
)
def test_weights_are_checked(weights, said):
    members = [ep.TableModel(ep.RidgeCV()), ep.TableModel(ep.RidgeCV())]
    with pytest.raises(ParameterError, match=said):
        ep.training.EnsembleTableModel(members, weights).fit(both_kinds())


def test_members_are_of_one_kind():
    members = [ep.TableModel(ep.RidgeCV()), ep.TableModel(ep.LogisticRegression())]
    with pytest.raises(ParameterError, match="some classes and some numbers"):
        ep.training.EnsembleTableModel(members, [0.5, 0.5]).fit(both_kinds())
    with pytest.raises(ParameterError, match="list of TableModel"):
        ep.training.EnsembleTableModel([ep.RidgeCV()], [1.0]).fit(both_kinds())


@pytest.mark.parametrize(
    ("options"), [{"models": ["ridge"]}, {"models": ["ridge", "decisiontree"], "interpretable": True}]
)
def test_one_model_is_kept_where_one_is_asked_for(options):
    found = ep.train(both_kinds(200), "y", time=1.5, **options)
    assert type(found.model_) is ep.TableModel


def test_a_model_of_one_scale_is_made_anew_with_it():
    model = ep.TableModel(ep.RidgeCV(), form="linear", scale="common")
    assert model.new_encoder().scale == "common"
