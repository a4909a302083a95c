"""Intervals and standard errors by simulation, and the resampling behind them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer

import epicycle as ep
from epicycle import select
from epicycle.core._random import stream
from epicycle.select._scorers import Replay, _on, on_test_part, resampled


@pytest.mark.parametrize(
    "scoring", ["accuracy", "r2", "neg_mean_squared_error", "neg_mean_absolute_error", "neg_root_mean_squared_error"]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_resampling_by_sums_equals_the_scorer(scoring, weighted):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40) if scoring == "accuracy" else rng.normal(size=40) + 5
    said = np.where(rng.random(40) < 0.8, y, 1 - y) if scoring == "accuracy" else y + rng.normal(size=40)
    weight = rng.uniform(0.5, 2, 40) if weighted else None
    model = ep.LogisticRegression() if scoring == "accuracy" else ep.Ridge()
    replay = Replay(model, {"predict": said}, np.array([0, 1]) if scoring == "accuracy" else None)
    draws = resampled(get_scorer(scoring), replay, y, weight, 3, 20)
    rng = stream(3, "resample")
    expected = [_on(get_scorer(scoring), replay, y, weight, rng.integers(0, 40, 40)) for _ in range(20)]
    assert_allclose(draws, expected, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scoring", "noise"),
    [("neg_mean_squared_error", "normal"), ("r2", "normal"), ("neg_mean_absolute_error", "laplace")],
)
def test_the_interval_of_a_test_score_covers_the_truth(scoring, noise):
    """y = f + e with var f = 3: the mean of e^2 is 1, R2 is 0.75, and the mean of |e| is 1 for a Laplace law."""
    truth = {"neg_mean_squared_error": -1.0, "r2": 0.75, "neg_mean_absolute_error": -1.0}[scoring]
    rng, hits, runs = np.random.default_rng(0), 0, 200
    model = ep.LinearRegression().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    for i in range(runs):
        f = np.sqrt(3) * rng.normal(size=(100, 1))
        e = rng.normal(size=100) if noise == "normal" else rng.laplace(size=100)
        score = on_test_part(get_scorer(scoring), scoring, model, f, f[:, 0] + e, level=0.95, seed=i, n_draws=300)
        hits += score.lower <= truth <= score.upper
    assert hits / runs >= 0.935  # of 200 runs at 0.95 fewer than that happen once in 8 times


def test_the_interval_of_accuracy_is_exact():
    from scipy.stats import beta

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    found = select.k_fold(ep.LogisticRegression(), X[:100], y[:100], test=(X[100:], y[100:]))
    right = round(found.test.score * 200)
    assert found.test.method == "binomial"
    assert_allclose(found.test.lower, beta.ppf(0.025, right, 200 - right + 1))
    assert_allclose(found.test.upper, beta.ppf(0.975, right + 1, 200 - right))
    assert found.test.lower < found.test.score < found.test.upper
    assert str(found.test) in found.verdict


def test_equal_models_are_told_apart_no_more_often_than_promised():
    """Two columns of the same quality: 'not within noise' should happen in at most 5% of data sets."""
    rng, apart, runs = np.random.default_rng(0), 0, 100
    for i in range(runs):
        z = rng.normal(size=100)
        X = z[:, None] + rng.normal(size=(100, 2))
        y = z + rng.normal(size=100)
        models = {"a": _OnColumn(0), "b": _OnColumn(1)}
        found = select.k_fold(models, X, y, cv=5, random_state=i, refit=False, n_jobs=1)
        apart += not all(found.columns["within_noise"])
    assert apart / runs <= 0.08


class _OnColumn(RegressorMixin, BaseEstimator):
    """Least squares on one column, by hand: what is tested is the comparison."""

    def __init__(self, j=0):
        self.j = j

    def fit(self, X, y):
        x = X[:, self.j]
        self.slope_ = (x - x.mean()) @ y / ((x - x.mean()) ** 2).sum()
        self.intercept_ = y.mean() - self.slope_ * x.mean()
        return self

    def predict(self, X):
        return self.intercept_ + self.slope_ * X[:, self.j]


def test_the_standard_error_of_hold_out_is_that_of_repeated_draws():
    rng, scores, errors = np.random.default_rng(0), [], []
    for i in range(60):
        x = rng.normal(size=(200, 1))
        y = x[:, 0] + rng.normal(size=200)
        found = select.hold_out(
            ep.LinearRegression(), x, y, scoring="neg_mean_squared_error", random_state=i, refit=False, n_jobs=1
        )
        scores.append(found.score)
        errors.append(found.std_error)
    assert 0.8 < np.mean(errors) / np.std(scores) < 1.25
