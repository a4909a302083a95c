"""Cross-validated logistic regression: against scikit-learn, plain loops over folds, and scorers."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegressionCV as Sklearn
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import StratifiedKFold

import epicycle as ep
from epicycle import LogisticRegression, LogisticRegressionCV
from epicycle.exceptions import ConvergenceWarning, ParameterError

CS = [0.01, 0.1, 1.0, 10.0]


def problem(n_classes=2, n=160, p=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5
    scores = X[:, :3] @ rng.normal(size=(3, n_classes)) + rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1), rng.uniform(0.3, 2, size=n)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_a_plain_loop(n_classes, weighted):
    X, y, weight = problem(n_classes)
    weight = weight if weighted else None
    ratios = [0.0, 0.5, 1.0]
    model = LogisticRegressionCV(Cs=CS, l1_ratios=ratios, cv=4, class_weight={0: 2.0}).fit(X, y, weight)
    scorer = get_scorer("neg_log_loss")
    for f, (train, test) in enumerate(StratifiedKFold(4).split(X, y)):
        for r, ratio in enumerate(ratios):
            for c, C in enumerate(CS):
                part = LogisticRegression(C=C, l1_ratio=ratio, class_weight={0: 2.0}, tol=1e-10)
                part.fit(X[train], y[train], None if weight is None else weight[train])
                given = {} if weight is None else {"sample_weight": weight[test]}
                assert model.scores_[f, r, c] == pytest.approx(scorer(part, X[test], y[test], **given), abs=1e-4)
                if n_classes == 2 or ratio < 1:
                    assert_allclose(model.coefs_paths_[f, r, c, :, :-1], part.coef_, atol=2e-3)
    mean = model.scores_.mean(axis=0)
    best = np.unravel_index(mean.argmax(), mean.shape)
    assert (model.l1_ratio_, model.C_) == (ratios[best[0]], CS[best[1]])
    last = LogisticRegression(C=model.C_, l1_ratio=model.l1_ratio_, class_weight={0: 2.0}).fit(X, y, weight)
    assert_allclose(model.coef_, last.coef_, atol=1e-7)
    assert model.certificate_.holds
    assert model.n_iter_.shape == model.scores_.shape
    assert (model.n_iter_ >= 0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_agrees_with_scikit_learn(n_classes):
    X, y, _ = problem(n_classes)
    model = LogisticRegressionCV(Cs=CS, scoring="accuracy").fit(X, y)
    other = Sklearn(
        Cs=CS, l1_ratios=(0.0,), scoring="accuracy", tol=1e-8, max_iter=10_000, use_legacy_attributes=False
    ).fit(X, y)
    assert model.scores_.shape == other.scores_.shape
    assert model.coefs_paths_.shape == other.coefs_paths_.shape
    assert_allclose(model.scores_, other.scores_)
    assert_allclose(model.coefs_paths_, other.coefs_paths_, atol=1e-3)
    assert model.C_ == other.C_
    assert_allclose(model.coef_, other.coef_, atol=1e-3)


def test_the_default_grid():
    X, y, _ = problem()
    assert_allclose(LogisticRegressionCV(Cs=5).fit(X, y).Cs_, np.logspace(-4, 4, 5))
    model = LogisticRegressionCV().fit(X, y)
    assert model.scores_.shape == (5, 1, 10)
    assert_array_equal(model.l1_ratios_, [0.0])


@pytest.mark.parametrize("scoring", ["neg_log_loss", "accuracy", "roc_auc", "f1", "neg_brier_score", None, "callable"])
def test_scorers(scoring):
    X, y, _ = problem()
    if scoring == "callable":
        scoring = make_scorer(lambda true, predicted: float((true == predicted).mean()))
    model = LogisticRegressionCV(Cs=CS, cv=3, scoring=scoring).fit(X, y)
    assert CS[model.scores_.mean(axis=0)[0].argmax()] == model.C_
    if scoring is None:
        assert_allclose(model.scores_, LogisticRegressionCV(Cs=CS, cv=3, scoring="accuracy").fit(X, y).scores_)


def test_order_of_the_grid_does_not_matter():
    X, y, _ = problem()
    one = LogisticRegressionCV(Cs=CS, l1_ratios=[1.0]).fit(X, y)
    two = LogisticRegressionCV(Cs=CS[::-1], l1_ratios=[1.0]).fit(X, y)
    assert_allclose(one.scores_, two.scores_[:, :, ::-1])
    assert one.C_ == two.C_


def test_forms_labels_and_threads():
    X, y, weight = problem(3)
    X[X < 0.3] = 0
    names = np.array(["x", "y", "z"])[y]
    reference = LogisticRegressionCV(Cs=CS, l1_ratios=[0.0, 1.0], n_jobs=1).fit(X, names, weight)
    two = LogisticRegressionCV(Cs=CS, l1_ratios=[0.0, 1.0], n_jobs=2).fit(X, names, weight)
    assert_array_equal(reference.scores_, two.scores_)
    assert_array_equal(reference.coef_, two.coef_)
    for form in (sp.csr_array, sp.csc_array, pd.DataFrame):
        other = LogisticRegressionCV(Cs=CS, l1_ratios=[0.0, 1.0]).fit(form(X), names, weight)
        assert_allclose(other.scores_, reference.scores_, atol=1e-5)
    single = LogisticRegressionCV(Cs=CS).fit(X.astype(np.float32), names)
    assert single.coef_.dtype == single.coefs_paths_.dtype == np.float32
    assert set(reference.predict(X)) <= {"x", "y", "z"}


def test_without_a_last_fit():
    X, y, _ = problem()
    model = LogisticRegressionCV(Cs=CS, cv=3, refit=False).fit(X, y)
    best = model.scores_[:, 0].argmax(axis=1)
    assert pytest.approx(np.mean(np.array(CS)[best])) == model.C_
    assert_allclose(model.coef_, model.coefs_paths_[np.arange(3), 0, best, :, :-1].mean(axis=0))
    assert model.certificate_.holds
    assert "averaged" in model.certificate_.meaning
    assert model.n_iter_.shape == (3, 1, len(CS))
    assert model.history_.n_iter == 3


def test_save_and_plot(tmp_path):
    mpl.use("Agg")
    X, y, _ = problem()
    model = LogisticRegressionCV(Cs=CS, l1_ratios=[0.0, 1.0]).fit(X, y)
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert_array_equal(loaded.scores_, model.scores_)
    ax = loaded.plot()
    assert len(ax.lines) == 3
    assert ax.get_xscale() == "log"
    assert len(loaded.plot("path").lines) == X.shape[1] + 2
    assert "by cross-validation" in model.describe()
    with pytest.raises(ParameterError, match="what='x'"):
        model.plot("x")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"Cs": [1.0, -1.0]}, r"Cs=\[1.0, -1.0\]; expected finite numbers > 0"),
        ({"Cs": []}, r"Cs=\[\]"),
        ({"Cs": 0}, "Cs=0"),
        ({"Cs": [np.inf]}, "Cs="),
        ({"l1_ratios": [2.0]}, r"l1_ratios=\[2.0\]"),
        ({"l1_ratios": "x"}, "l1_ratios='x'"),
        ({"scoring": "loss"}, "scoring='loss'"),
        ({"cv": 1}, "cv=1"),
    ],
)
def test_bad_arguments(parameters, words):
    X, y, _ = problem()
    with pytest.raises(ParameterError, match=words):
        LogisticRegressionCV(**parameters).fit(X, y)


def test_solutions_that_fall_short():
    X, y, _ = problem()
    with pytest.warns(ConvergenceWarning, match="solutions of the cross-validation did not reach"):
        LogisticRegressionCV(Cs=[1e3], l1_ratios=[1.0], max_iter=1).fit(X, y)
