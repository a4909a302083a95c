"""Coefficients, standard errors, tests and intervals equal statsmodels, and the tables of a book."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import scale

import epicycle as ep
from epicycle import LinearRegression, LogisticRegression
from epicycle.exceptions import CollinearityWarning


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return X, y, np.random.default_rng(0).uniform(0.1, 3, size=len(y))


@pytest.fixture(scope="module")
def tumours():
    """Four standardised columns in which the classes overlap."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X[["mean texture", "mean smoothness", "mean symmetry", "mean fractal dimension"]]
    return pd.DataFrame(scale(X), columns=X.columns), y


def compare(summary, theirs, statistic, confidence=0.95, rtol=1e-8):
    """Our table against a fitted statsmodels result, row by row, with the constant first."""
    low, high = theirs.conf_int(alpha=1 - confidence).to_numpy().T
    columns = {
        "coef": theirs.params,
        "std err": theirs.bse,
        statistic: theirs.tvalues,
        f"P>|{statistic}|": theirs.pvalues,
        f"[{(1 - confidence) / 2:.3g}": low,
        f"{(1 + confidence) / 2:.3g}]": high,
    }
    assert list(summary.columns) == list(columns)
    for name, values in columns.items():
        # A p-value far out in the tail multiplies the rounding of its statistic by the square of that.
        factor = 1 + np.max(theirs.tvalues**2) if name.startswith("P") else 1
        assert_allclose(summary[name], np.asarray(values), rtol=rtol * factor, atol=1e-300, err_msg=name)
    frame = summary.to_frame()
    assert frame.shape == (len(theirs.params), 6)
    assert [r.replace("const", "intercept") for r in theirs.params.index] == list(frame.index)


@pytest.mark.parametrize("solver", ["auto", "cholesky", "qr", "newton"])
@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares(diabetes, solver, weighted):
    X, y, w = diabetes
    model = LinearRegression(solver=solver).fit(X, y, w if weighted else None)
    theirs = sm.WLS(y, sm.add_constant(X), weights=w if weighted else 1.0).fit()
    compare(model.summary(), theirs, "t")
    compare(model.summary(confidence=0.8), theirs, "t", 0.8)
    assert_allclose(model.summary().facts["R2"], theirs.rsquared, rtol=1e-10)
    assert_allclose(model.summary().facts["residual std"], np.sqrt(theirs.scale), rtol=1e-10)
    assert model.summary().facts["degrees of freedom"] == theirs.df_resid


def test_least_squares_without_intercept(diabetes):
    X, y, _ = diabetes
    compare(LinearRegression(fit_intercept=False).fit(X, y).summary(), sm.OLS(y, X).fit(), "t")


def test_least_squares_of_each_target(diabetes):
    X, y, _ = diabetes
    model = LinearRegression().fit(X, np.column_stack([y, np.log(y)]))
    for target, values in enumerate((y, np.log(y))):
        compare(model.summary(target=target), sm.OLS(values, sm.add_constant(X)).fit(), "t")


def test_least_squares_from_anywhere(diabetes, tmp_path):
    """Batches, files and sparse matrices keep what inference needs."""
    X, y, w = diabetes
    theirs = sm.WLS(y, sm.add_constant(X), weights=w).fit()
    batches = LinearRegression()
    for rows in np.array_split(np.arange(len(y)), [3, 50, 51, 300]):
        batches.partial_fit(X.iloc[rows], y.iloc[rows], w[rows])
    compare(batches.summary(), theirs, "t")
    X.assign(target=y, w=w).to_parquet(tmp_path / "d.parquet")
    compare(LinearRegression().fit(ep.scan(tmp_path / "d.parquet", target="target", weight="w")).summary(), theirs, "t")
    sparse = LinearRegression().fit(sp.csr_array(X.to_numpy()), y, w).summary()
    assert_allclose(sparse["std err"], theirs.bse, rtol=1e-8)


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "bfgs"])
@pytest.mark.parametrize("shifted", [0.0, 1e4])
def test_logistic(tumours, solver, shifted):
    X, y = tumours
    model = LogisticRegression(C=np.inf, solver=solver).fit(X + shifted, y)
    theirs = sm.Logit(y, sm.add_constant(X)).fit(disp=0, tol=1e-14, maxiter=100)
    if shifted:  # the slopes are the same, the intercept is not
        for name, values in (("coef", theirs.params), ("std err", theirs.bse), ("P>|z|", theirs.pvalues)):
            assert_allclose(model.summary()[name][1:], values[1:], rtol=1e-7)
        back = np.append(1.0, np.full(4, -shifted))
        error = np.sqrt(back @ theirs.cov_params() @ back)
        assert_allclose(model.summary()["std err"][0], error, rtol=1e-7)
        return
    compare(model.summary(), theirs, "z")
    compare(model.summary(confidence=0.99), theirs, "z", 0.99)
    assert_allclose(model.summary().facts["log-likelihood"], theirs.llf, rtol=1e-12)


def test_logistic_without_intercept(tumours):
    X, y = tumours
    model = LogisticRegression(C=np.inf, fit_intercept=False).fit(X, y)
    compare(model.summary(), sm.Logit(y, X).fit(disp=0, tol=1e-14), "z")


def test_logistic_with_whole_weights_equals_repeated_rows(tumours):
    X, y = tumours
    w = np.random.default_rng(0).integers(0, 4, size=len(y))
    theirs = sm.Logit(np.repeat(y, w), sm.add_constant(X.loc[np.repeat(X.index, w)])).fit(disp=0, tol=1e-14)
    compare(LogisticRegression(C=np.inf).fit(X, y, w).summary(), theirs, "z")


def test_where_standard_errors_do_not_exist(tumours, diabetes):
    X, y = tumours
    note = LogisticRegression(C=2.0).fit(X, y).summary().note
    assert "penalised" in note
    assert "naive standard errors do not hold" in note
    X, y, _ = diabetes
    with pytest.warns(CollinearityWarning, match="'again' = 2 age"):
        twice = LinearRegression().fit(X.assign(again=2 * X["age"]), y)
    assert "rank 10 of 11" in twice.summary().note
    assert list(twice.summary().columns) == ["coef[y]"]
    few = LinearRegression().fit(X[:11], y[:11])
    assert "0 degrees of freedom" in few.summary().note
    for text in (str(twice.summary()), twice.summary()._repr_html_()):
        assert "again" in text
        assert "rank 10 of 11" in text


# ------------------------------------------------------------------------------------------------ published tables


def test_south_african_heart_disease(book_data):
    """Hastie, Tibshirani and Friedman (2009), table 4.2."""
    table = book_data("esl_saheart.csv.gz")
    names = ["sbp", "tobacco", "ldl", "famhist", "obesity", "alcohol", "age"]
    X = table[names].assign(famhist=(table["famhist"] == "Present").astype(float))
    summary = LogisticRegression(C=np.inf).fit(X, table["chd"]).summary()
    assert_allclose(summary["coef"], [-4.130, 0.006, 0.080, 0.185, 0.939, -0.035, 0.001, 0.043], atol=0.00051)
    assert_allclose(summary["std err"], [0.964, 0.006, 0.026, 0.057, 0.225, 0.029, 0.004, 0.010], atol=0.00051)
    # The book's fit stopped a little earlier: its scores differ from converged ones by up to 0.0032.
    assert_allclose(summary["z"], [-4.285, 1.023, 3.034, 3.219, 4.178, -1.187, 0.136, 4.184], atol=0.0035)
