"""Standard errors, tests and measures of fit: against statsmodels, a published table, and simulation."""

import numpy as np
import pandas as pd
import pytest
import saheart
import statsmodels.api as sm
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle import LogisticRegression


def problem(n_classes, n=300, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * [1, 10, 0.1, 1] + [0, 100, 0, 3]
    scores = (X - [0, 100, 0, 3]) / [1, 10, 0.1, 1] @ rng.normal(size=(p, n_classes)) * 0.4 + rng.gumbel(
        size=(n, n_classes)
    )
    return pd.DataFrame(X, columns=["a", "b", "c", "d"]), scores.argmax(axis=1)


@pytest.mark.parametrize("intercept", [True, False])
def test_equals_statsmodels_for_two_classes(intercept):
    X, y = problem(2)
    model = LogisticRegression(C=np.inf, fit_intercept=intercept).fit(X, y)
    table = model.summary(confidence=0.9)
    other = sm.Logit(y, sm.add_constant(X) if intercept else X).fit(disp=0, tol=1e-14)
    assert_allclose(table["coef"], other.params, rtol=1e-6, atol=1e-9)
    assert_allclose(table["std err"], other.bse, rtol=1e-6)
    assert_allclose(table["z"], other.tvalues, rtol=1e-6, atol=1e-9)
    assert_allclose(table["P>|z|"], other.pvalues, rtol=1e-6, atol=1e-12)
    low, high = list(table.columns)[-2:]
    assert_allclose(np.column_stack([table[low], table[high]]), other.conf_int(0.1), rtol=1e-6, atol=1e-9)
    assert table.facts["log-likelihood"] == pytest.approx(other.llf, rel=1e-9)
    assert table.facts["AIC"] == pytest.approx(other.aic, rel=1e-9)
    assert table.facts["BIC"] == pytest.approx(other.bic, rel=1e-9)
    if intercept:  # without one, statsmodels still compares with a model that has nothing else
        assert table.facts["null log-likelihood"] == pytest.approx(other.llnull, rel=1e-9)
        assert table.facts["LR chi2"] == pytest.approx(other.llr, rel=1e-6)
        assert table.facts["P(LR)"] == pytest.approx(other.llr_pvalue, rel=1e-6)
        assert table.facts["McFadden R2"] == pytest.approx(other.prsquared, rel=1e-6)
    else:
        assert table.facts["null deviance"] == pytest.approx(2 * len(y) * np.log(2))


@pytest.mark.parametrize("n_classes", [3, 4])
def test_equals_statsmodels_for_several_classes(n_classes):
    X, y = problem(n_classes)
    names = np.array(["east", "north", "south", "west"])[y]
    model = LogisticRegression(C=np.inf).fit(X, names)
    table = model.summary()
    other = sm.MNLogit(y, sm.add_constant(X)).fit(disp=0, tol=1e-14, method="newton")
    assert_allclose(table["coef"], other.params.to_numpy().T.ravel(), rtol=1e-6, atol=1e-9)
    assert_allclose(table["std err"], other.bse.to_numpy().T.ravel(), rtol=1e-6)
    assert_allclose(table["P>|z|"], other.pvalues.to_numpy().T.ravel(), rtol=1e-6, atol=1e-12)
    assert table.rows[:2] == ("north: intercept", "north: a")
    assert "log-odds against the class east" in str(table)
    for fact, value in (("LR chi2", other.llr), ("P(LR)", other.llr_pvalue), ("McFadden R2", other.prsquared)):
        assert table.facts[fact] == pytest.approx(value, rel=1e-6)
    assert table.facts["LR df"] == other.df_model
    assert table.facts["AIC"] == pytest.approx(other.aic, rel=1e-9)
    assert table.facts["BIC"] == pytest.approx(other.bic, rel=1e-9)
    assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-9)


def test_weights_are_repetitions_in_every_number(tmp_path):
    X, y = problem(3)
    counts = np.random.default_rng(1).integers(1, 4, len(y))
    one = LogisticRegression(C=np.inf).fit(X, y, counts.astype(float))
    two = LogisticRegression(C=np.inf).fit(X.loc[X.index.repeat(counts)], np.repeat(y, counts))
    for name in one.summary().columns:
        assert_allclose(one.summary()[name], two.summary()[name], rtol=1e-6, atol=1e-9)
    assert one.summary().facts == pytest.approx(two.summary().facts)
    one.save(tmp_path / "m.epi")
    assert str(ep.load(tmp_path / "m.epi").summary()) == str(one.summary())


def test_class_weights_are_noted():
    X, y = problem(2)
    assert "classes are weighted" in str(LogisticRegression(C=np.inf, class_weight="balanced").fit(X, y).summary())


# Table 4.2 and Table 4.3 of The Elements of Statistical Learning, second edition: coefficient, standard error, Z.
TABLE_4_2 = {
    "intercept": (-4.130, 0.964, -4.285),
    "sbp": (0.006, 0.006, 1.023),
    "tobacco": (0.080, 0.026, 3.034),
    "ldl": (0.185, 0.057, 3.219),
    "famhist": (0.939, 0.225, 4.178),
    "obesity": (-0.035, 0.029, -1.187),
    "alcohol": (0.001, 0.004, 0.136),
    "age": (0.043, 0.010, 4.184),
}
TABLE_4_3 = {
    "intercept": (-4.204, 0.498, -8.45),
    "tobacco": (0.081, 0.026, 3.16),
    "ldl": (0.168, 0.054, 3.09),
    "famhist": (0.924, 0.223, 4.14),
    "age": (0.044, 0.010, 4.52),
}


@pytest.mark.parametrize("published", [TABLE_4_2, TABLE_4_3], ids=["4.2", "4.3"])
def test_south_african_heart_disease(published):
    X, names, y = saheart.load()
    frame = pd.DataFrame(X, columns=names)
    table = LogisticRegression(C=np.inf).fit(frame[[n for n in published if n != "intercept"]], y).summary()
    assert X.shape == (462, 7)
    for row, (coef, error, z) in published.items():
        i = table.rows.index(row)
        assert table["coef"][i] == pytest.approx(coef, abs=6e-4)
        assert table["std err"][i] == pytest.approx(error, abs=6e-4)
        assert table["z"][i] == pytest.approx(z, abs=0.015)  # printed from rounded numbers


# ------------------------------------------------------------------------------------------------ simulation


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_intervals_cover_and_tests_keep_their_level(n_classes):
    """400 data sets from a known model: intervals of 90 % hold the truth in 90 %, tests of nulls reject in 10 %."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(200, 3))
    W = np.array([[0.0, 0.0, 0.0], [0.8, -0.5, 0.0], [-0.3, 0.6, 0.0]])[:n_classes]
    b = np.array([0.0, 0.4, -0.2])[:n_classes]
    truth = np.column_stack([b, W])[1:].ravel()
    covered, rejected, overall = [], [], []
    for _ in range(400):
        y = (X @ W.T + b + rng.gumbel(size=(200, n_classes))).argmax(axis=1)
        table = LogisticRegression(C=np.inf).fit(X, y).summary(confidence=0.9)
        low, high = list(table.columns)[-2:]
        covered.append((table[low] <= truth) & (truth <= table[high]))
        rejected.append(table["P>|z|"][truth == 0] < 0.1)
        null = (rng.gumbel(size=(200, n_classes)) + b).argmax(axis=1)  # no feature matters
        if len(overall) < 200:
            overall.append(LogisticRegression(C=np.inf).fit(X, null).summary().facts["P(LR)"] < 0.1)
    # Standard errors of the shares are 0.015 and 0.021.
    assert_allclose(np.mean(covered, axis=0), 0.9, atol=0.045)
    assert_allclose(np.mean(rejected, axis=0), 0.1, atol=0.045)
    assert np.mean(overall) == pytest.approx(0.1, abs=0.06)
