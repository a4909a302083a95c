"""Stein's estimator: below least squares in simulation, and the published numbers of Efron and Morris."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle import JamesStein, LinearRegression, shrink_means
from epicycle.exceptions import DataError, ParameterError

# Efron and Morris (1975), table 1: eighteen players of the 1970 season, hits in the first 45 times at bat, and the
# average over the rest of the season.
HITS = np.array([18, 17, 16, 15, 14, 14, 13, 12, 11, 11, 10, 10, 10, 10, 10, 9, 8, 7])
REST = np.array(
    [
        0.346,
        0.298,
        0.276,
        0.222,
        0.273,
        0.270,
        0.263,
        0.210,
        0.269,
        0.230,
        0.264,
        0.256,
        0.303,
        0.264,
        0.226,
        0.285,
        0.316,
        0.200,
    ]
)
PUBLISHED = np.array(
    [
        0.290,
        0.286,
        0.281,
        0.277,
        0.273,
        0.273,
        0.268,
        0.264,
        0.259,
        0.259,
        0.254,
        0.254,
        0.254,
        0.254,
        0.254,
        0.249,
        0.244,
        0.239,
    ]
)


def stabilised(average):
    """x = sqrt(45) arcsin(2 y - 1) has a variance of about one."""
    return np.sqrt(45) * np.arcsin(2 * average - 1)


def averages(x):
    return (np.sin(x / np.sqrt(45)) + 1) / 2


def test_baseball_table():
    x, theta = stabilised(HITS / 45), stabilised(REST)
    shrunken = shrink_means(x, variance=1.0)
    assert shrunken.factor == pytest.approx(0.209, abs=5e-4)  # "1 - 15 / 18.96"
    before, after = ((x - theta) ** 2).sum(), ((shrunken.values - theta) ** 2).sum()
    assert before == pytest.approx(17.56, abs=0.02)
    assert after == pytest.approx(5.01, abs=0.02)
    assert before / after == pytest.approx(3.50, abs=0.02)
    assert_allclose(averages(shrunken.values), PUBLISHED, atol=6e-4)  # the column of the table, in three digits


def test_baseball_as_a_regression():
    """One column for each player: the same factor, since the rank about the mean is 17 and 17 - 2 = 18 - 3."""
    x = stabilised(HITS / 45)
    model = JamesStein(variance=1.0).fit(np.eye(18), x)
    assert model.rank_ == 17
    assert model.shrinkage_ == pytest.approx(shrink_means(x, variance=1.0).factor, rel=1e-10)
    assert_allclose(model.predict(np.eye(18)), shrink_means(x, variance=1.0).values, rtol=1e-10)


@pytest.mark.parametrize("length", [0.0, 2.0, 10.0])
@pytest.mark.parametrize("known", [True, False])
def test_risk_below_that_of_the_means(length, known):
    """Ten means with variance one: the risk is below ten, most of all near the target, and the positive part helps."""
    rng = np.random.default_rng(0)
    p, freedom, repetitions = 10, 20, 4000
    theta = np.full(p, length / np.sqrt(p))
    losses = {"least squares": [], "plain": [], "positive": []}
    for _ in range(repetitions):
        x = theta + rng.normal(size=p)
        variance = 1.0 if known else rng.chisquare(freedom) / freedom
        settings = {"target": 0.0, "degrees_of_freedom": None if known else freedom}
        losses["least squares"].append(((x - theta) ** 2).sum())
        for name, positive in (("plain", False), ("positive", True)):
            values = shrink_means(x, variance, positive_part=positive, **settings).values
            losses[name].append(((values - theta) ** 2).sum())
    risk = {name: np.mean(values) for name, values in losses.items()}
    noise = np.std(np.subtract(losses["least squares"], losses["plain"])) / np.sqrt(repetitions)
    assert risk["plain"] < risk["least squares"] - 3 * noise
    assert risk["positive"] <= risk["plain"] + 1e-12
    if known and length == 0.0:
        assert risk["plain"] == pytest.approx(2.0, abs=0.15)  # Stein: exactly 2 at the target


@pytest.mark.slow
def test_regression_risk_below_least_squares():
    """Squared error of the fitted values at the rows of X, for correlated columns and an unknown variance."""
    rng = np.random.default_rng(1)
    n, p = 40, 8
    X = rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) + 5
    w = 0.02 * rng.normal(size=p)
    truth = X @ w + 3
    loss = np.zeros((500, 2))
    for k in range(500):
        y = truth + rng.normal(size=n)
        for m, model in enumerate((LinearRegression(), JamesStein())):
            loss[k, m] = ((model.fit(X, y).predict(X) - truth) ** 2).sum()
    gain = loss[:, 0] - loss[:, 1]
    assert gain.mean() > 4 * gain.std() / np.sqrt(500)
    assert loss[:, 1].mean() < 0.6 * loss[:, 0].mean()


def test_the_factor_by_hand():
    rng = np.random.default_rng(2)
    X, s = rng.normal(size=(50, 5)) + 3, rng.uniform(0.5, 2, size=50)
    y = X @ rng.normal(size=5) + 10 * rng.normal(size=50)
    least = LinearRegression().fit(X, y, s)
    centred = X - np.average(X, axis=0, weights=s)
    explained = (s * (centred @ least.coef_) ** 2).sum()
    freedom = 50 - 5 - 1
    noise = (s * (y - least.predict(X)) ** 2).sum() / (freedom + 2)
    model = JamesStein().fit(X, y, s)
    assert model.shrinkage_ == pytest.approx(1 - 3 * noise / explained, rel=1e-9)
    assert_allclose(model.coef_, model.shrinkage_ * least.coef_, rtol=1e-9)
    assert np.average(model.predict(X), weights=s) == pytest.approx(np.average(y, weights=s))
    m = np.arange(5.0)
    towards = JamesStein(target=m).fit(X, y, s)
    away = least.coef_ - m
    factor = 1 - 3 * noise / (s * (centred @ away) ** 2).sum()
    assert_allclose(towards.coef_, m + factor * away, rtol=1e-8)


def test_empirical_bayes():
    """The factor is that of the posterior mean under the prior whose variance is reported."""
    x = np.array([-3.0, 1.0, 4.0, 0.5, 2.0, -1.0])
    shrunken = shrink_means(x, variance=2.0, target=0.0)
    tau2 = shrunken.prior_variance
    assert shrunken.factor == pytest.approx(tau2 / (tau2 + 2.0))


@pytest.mark.parametrize("p", [1, 2])
def test_nothing_is_gained_in_one_or_two_dimensions(p):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, p)), rng.normal(size=20)
    model = JamesStein().fit(X, y)
    assert model.shrinkage_ == 1
    assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_)
    assert shrink_means(np.arange(p) + 1.0, variance=5.0, target=0.0).factor == 1
    assert shrink_means([1.0, 2.0, 5.0], variance=5.0).factor == 1  # their mean takes a dimension


def test_positive_part():
    x = np.array([0.1, -0.2, 0.1, 0.05])
    assert shrink_means(x, variance=1.0, target=0.0).factor == 0
    assert shrink_means(x, variance=1.0, target=0.0, positive_part=False).factor < 0


def test_everywhere_the_same(tmp_path):
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(300, 4)), rng.uniform(0.5, 2, size=300)
    y = X @ [0.1, 0.0, -0.1, 0.0] + rng.normal(size=300)
    expected = JamesStein().fit(X, y, s)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, w=s)
    for i in range(3):
        frame.iloc[i * 100 : (i + 1) * 100].to_parquet(tmp_path / f"{i}.parquet", index=False)
    files = JamesStein().fit(ep.scan(str(tmp_path / "*.parquet"), target="y", weight="w", columns=list("abcd")))
    dask = JamesStein().fit(*(da.from_array(v, chunks=(90, *v.shape[1:])) for v in (X, y, s)))
    for other in (files, dask):
        assert_allclose(other.coef_, expected.coef_, rtol=1e-9)
    assert JamesStein().fit(X.astype(np.float32), y).coef_.dtype == np.float32


def test_bad_arguments():
    with pytest.raises(DataError, match="x: expected a vector"):
        shrink_means([[1.0, 2.0]], variance=1.0)
    for arguments in ({"variance": -1.0}, {"variance": np.nan}, {"target": "median"}, {"degrees_of_freedom": 0}):
        with pytest.raises(ParameterError):
            shrink_means([1.0, 2.0, 3.0, 4.0], **{"variance": 1.0, **arguments})
    with pytest.raises(ParameterError, match="target: expected 2"):
        JamesStein(target=[1.0, 2.0, 3.0]).fit([[1.0, 2.0], [2.0, 1.0]], [1.0, 2.0])
