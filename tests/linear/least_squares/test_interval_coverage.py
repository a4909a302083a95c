"""Every interval and p-value that least squares prints does in simulations what it says.

The rows are fixed and the noise is drawn many times, one target for each draw, so that one fit serves all draws. The
bounds are four Monte Carlo standard errors wide for what is exact; for what holds for many rows they allow for the few.
"""

import numpy as np
import pytest

from epicycle import LinearRegression

DRAWS, COEF = 1500, np.array([1.0, 0.0, -2.0])
EXACT = 4 * np.sqrt(0.05 * 0.95 / DRAWS)


def noise_of(kind, n, rng):
    e = rng.normal(size=(n, DRAWS))
    if kind == "grouped":
        return e + rng.normal(size=(n // 5, DRAWS)).repeat(5, axis=0)
    if kind == "moving":
        return np.apply_along_axis(
            lambda v: np.convolve(v, [1, 1, 1], mode="valid"), 0, rng.normal(size=(n + 2, DRAWS))
        )
    return e


def problem(kind, n, seed):
    """(X, targets with the given noise): x2 follows its own groups or past, so that plain errors would be wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    if kind == "grouped":
        X[:, 1] = rng.normal(size=n // 5).repeat(5)
    if kind == "moving":
        X[:, 1] = np.convolve(rng.normal(size=n + 5), np.ones(6), mode="valid")
    spread = np.exp(0.7 * X[:, 1])[:, None] if kind == "unequal" else 1.0
    return X, (X @ COEF)[:, None] + 4.0 + spread * noise_of(kind, n, rng)


def shares(model, use_t):
    """(share of intervals of each coefficient that hold the truth, share of p-values of x1, which is 0, below 5 %)."""
    held, rejected = np.zeros(4), 0
    truth = np.append(4.0, COEF)
    for t in range(DRAWS):
        table = model.summary(target=t, use_t=use_t)
        held += (table["[0.025"] <= truth) & (truth <= table["0.975]"])
        rejected += next(v for k, v in table.columns.items() if k.startswith("P>"))[2] < 0.05
    return held / DRAWS, rejected / DRAWS


def test_plain_standard_errors_are_exact_for_normal_noise():
    X, Y = problem("equal", 12, 0)  # few rows: Student's t matters
    held, rejected = shares(LinearRegression().fit(X, Y), None)
    assert np.abs(held - 0.95).max() < EXACT
    assert abs(rejected - 0.05) < EXACT


def test_weights_are_inverse_variances():
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(15, 3)), rng.uniform(0.1, 5, size=15)
    Y = (X @ COEF)[:, None] + 4.0 + rng.normal(size=(15, DRAWS)) / np.sqrt(w)[:, None]
    model = LinearRegression().fit(X, Y, w)
    held, rejected = shares(model, None)
    assert np.abs(held - 0.95).max() < EXACT
    assert abs(rejected - 0.05) < EXACT
    new, weight = rng.normal(size=(1, 3)), np.array([0.3])
    y = new @ COEF + 4.0 + rng.normal(size=(1, DRAWS)) / np.sqrt(0.3)
    _, low, high = model.predict_interval(new, sample_weight=weight)
    assert abs(((low <= y) & (y <= high)).mean() - 0.95) < EXACT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "cov_type", "n", "options"),
    [
        ("unequal", "HC0", 400, {}),
        ("unequal", "HC1", 400, {}),
        ("unequal", "HC2", 400, {}),
        ("unequal", "HC3", 100, {}),
        ("grouped", "cluster", 300, {}),
        ("moving", "HAC", 1200, {"maxlags": 16}),
    ],
)
def test_robust_standard_errors_hold_where_plain_ones_do_not(noise, cov_type, n, options):
    X, Y = problem(noise, n, 2)
    groups = {"groups": np.arange(n) // 5} if cov_type == "cluster" else {}
    held, rejected = shares(LinearRegression(cov_type=cov_type, **options).fit(X, Y, **groups), True)
    assert held.min() > 0.92
    assert held.max() < 0.97
    assert 0.03 < rejected < 0.08
    plain, wrong = shares(LinearRegression().fit(X, Y), None)
    assert plain[2] < 0.9
    assert wrong > 0.1


@pytest.mark.parametrize("cov_type", ["nonrobust", "HC3"])
def test_intervals_of_predictions(cov_type):
    X, Y = problem("equal" if cov_type == "nonrobust" else "unequal", 12 if cov_type == "nonrobust" else 150, 3)
    rng = np.random.default_rng(4)
    new = rng.normal(size=(3, 3))
    mean = (new @ COEF + 4.0)[:, None]
    model = LinearRegression(cov_type=cov_type).fit(X, Y)
    for level in (0.8, 0.95):
        _, low, high = model.predict_interval(new, kind="confidence", level=level, use_t=True)
        held = ((low <= mean) & (mean <= high)).mean(axis=1)
        assert np.abs(held - level).max() < (
            4 * np.sqrt(level * (1 - level) / DRAWS) if cov_type == "nonrobust" else 0.03
        )
    if cov_type == "nonrobust":
        y = mean + rng.normal(size=(3, DRAWS))
        _, low, high = model.predict_interval(new, level=0.95)
        assert np.abs(((low <= y) & (y <= high)).mean(axis=1) - 0.95).max() < EXACT


def test_p_values_are_uniform_where_nothing_is_there():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 3))
    model = LinearRegression().fit(X, rng.normal(size=(20, DRAWS)))
    tables = [model.summary(target=t) for t in range(DRAWS)]
    for values in (np.array([t["P>|t|"][1] for t in tables]), np.array([t.facts["P>F"] for t in tables])):
        counts = np.histogram(values, bins=10, range=(0, 1))[0]
        assert ((counts - DRAWS / 10) ** 2 / (DRAWS / 10)).sum() < 33.7  # chi-square, 9 degrees of freedom, p = 1e-4


def test_deleted_residuals_are_students_t():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(15, 2))
    Y = rng.normal(size=(15, 1500))
    model = LinearRegression().fit(X, Y)
    values = np.array([model.influence(X, Y, target=t).deleted_residual[3] for t in range(1500)])
    share = (np.abs(values) > 2.200985).mean()  # the 97.5 % point of Student's t with 11 degrees of freedom
    assert abs(share - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 1500)
