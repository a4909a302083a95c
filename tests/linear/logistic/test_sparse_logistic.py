"""L1 and elastic net penalties of logistic regression: optimality, forms of the data, weights, names of penalties."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression as Sklearn
from sparse_logistic_reference import gradient, kkt_residual, lower, objective

import epicycle as ep
from epicycle import LogisticRegression
from epicycle.exceptions import DataError, ParameterError
from epicycle.linear.logistic import _l1 as logistic_sparse, _working_sets as logistic_l1

FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csc matrix": sp.csc_matrix,
}


def problem(n=150, p=40, n_classes=2, seed=0, density=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < density) + 0.2
    scores = X[:, :6] @ rng.normal(size=(6, n_classes)) * 1.5 + rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1), rng.uniform(0.2, 2, size=n)


# ------------------------------------------------------------------------------------------------ optimality


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("p", [12, 40, 300])
@pytest.mark.parametrize("intercept", [True, False])
def test_optimality_conditions(n_classes, l1_ratio, p, intercept):
    X, y, weight = problem(p=p, n_classes=n_classes)
    C = 0.3
    model = LogisticRegression(C=C, l1_ratio=l1_ratio, tol=1e-11, fit_intercept=intercept).fit(X, y, weight)
    assert model.certificate_.kind == "duality gap"
    assert model.certificate_.holds
    l1, l2 = l1_ratio / C, (1 - l1_ratio) / C
    assert kkt_residual(X, y, weight, l1, l2, model.coef_, model.intercept_, intercept) <= 1e-4 * l1
    assert 0 < np.count_nonzero(model.coef_) < model.coef_.size or p == 12
    assert intercept or not model.intercept_.any()
    assert model.n_iter_ == model.history_.n_iter
    assert (np.diff(model.history_.objective) <= 1e-12 * model.history_.objective[0]).all()
    value = objective(X, y, weight, l1, l2, model.coef_, model.intercept_)
    assert model.history_.objective[-1] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_agrees_with_scikit_learn(n_classes, l1_ratio):
    X, y, weight = problem(n=200, p=15, n_classes=n_classes)
    with ep.config(on_nonconvergence="raise"):
        model = LogisticRegression(C=0.7, l1_ratio=l1_ratio, tol=1e-11).fit(X, y, weight)
    other = Sklearn(C=0.7, l1_ratio=l1_ratio, solver="saga", tol=1e-9, max_iter=100_000).fit(X, y, weight)
    if n_classes == 2 or l1_ratio < 1:
        assert_allclose(model.coef_, other.coef_, atol=1e-5)
    assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-5)
    assert_array_equal(model.coef_ != 0, np.abs(other.coef_) > 1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_zero_exactly_while_the_penalty_is_strong(n_classes):
    """W = 0 iff every |x_j'(y_k - mean(y_k))| <= 1 / C."""
    X, y, weight = problem(n_classes=n_classes)
    Y = (y[:, None] == np.arange(n_classes)).astype(float)
    largest = np.abs((weight[:, None] * (Y - weight @ Y / weight.sum())).T @ X).max()
    for form in FORMS.values():
        assert not LogisticRegression(C=0.9999 / largest, l1_ratio=1).fit(form(X), y, weight).coef_.any()
        some = LogisticRegression(C=1.001 / largest, l1_ratio=1, tol=1e-12).fit(form(X), y, weight).coef_
        assert np.count_nonzero(some) in (1, 2)  # for several classes a pair may enter together


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_ways_lead_to_the_same_minimum(n_classes, monkeypatch):
    """Summed Hessians, working sets of columns, all classes together and class by class."""
    X, y, weight = problem(n=300, p=25, n_classes=n_classes)
    make = LogisticRegression(C=0.4, l1_ratio=0.8, tol=1e-12)
    sums = make.fit(X, y, weight).coef_.copy()
    monkeypatch.setattr(logistic_sparse, "FEW", 0)
    columns = make.fit(X, y, weight).coef_.copy()
    assert_allclose(columns, sums, atol=2e-6)
    monkeypatch.setattr(logistic_l1, "MAX_JOINT", 0)
    assert_allclose(make.fit(X, y, weight).coef_, sums, atol=2e-6)
    assert make.certificate_.holds


def test_large_supports_of_many_classes(monkeypatch):
    """More coefficients than are finished together: class by class still reaches the gap."""
    monkeypatch.setattr(logistic_l1, "MAX_JOINT", 50)
    X, y, weight = problem(n=250, p=400, n_classes=5, density=1.0)
    model = LogisticRegression(C=1.0, l1_ratio=1.0, tol=1e-8).fit(X, y, weight)
    assert model.certificate_.holds
    value = objective(X, y, weight, 1.0, 0.0, model.coef_, model.intercept_)
    assert lower(X, y, weight, 1.0, 0.0, model.coef_, model.intercept_) >= value * (1 - 1e-8)


def test_an_elastic_net_is_unique_in_every_gauge():
    """With an L2 part the optimum is unique; shifting a column of W by a constant can only raise the penalty."""
    X, y, weight = problem(n_classes=3)
    model = LogisticRegression(C=0.5, l1_ratio=0.5, tol=1e-12).fit(X, y, weight)
    value = objective(X, y, weight, 1.0, 1.0, model.coef_, model.intercept_)
    assert abs(model.intercept_.sum()) < 1e-10
    for shift in (-1e-3, 1e-3):
        moved = model.coef_ + shift * (np.arange(X.shape[1]) == 2)
        assert objective(X, y, weight, 1.0, 1.0, moved, model.intercept_) > value


# ------------------------------------------------------------------------------------------------ forms


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_forms_of_the_data(n_classes, dtype):
    X, y, weight = problem(p=300, n_classes=n_classes)
    X = (X - 0.2).astype(dtype)
    fits = {
        name: LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-10).fit(form(X), y, weight) for name, form in FORMS.items()
    }
    fits["frame"] = LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-10).fit(pd.DataFrame(X), y, weight)
    reference = fits["F"]
    for name, model in fits.items():
        assert model.coef_.dtype == dtype, name
        assert_allclose(model.coef_, reference.coef_, atol=1e-5 if dtype == np.float64 else 1e-4)
        assert_allclose(model.predict_proba(FORMS["csr"](X)), reference.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_files_and_dask(n_classes, tmp_path):
    X, y, weight = problem(n=600, p=20, n_classes=n_classes)
    model = LogisticRegression(C=0.2, l1_ratio=0.9, tol=1e-12, class_weight={0: 2.0})
    expected = model.fit(X, y, weight).coef_.copy()
    frame = pd.DataFrame(X).rename(columns=str).assign(y=y, w=weight)
    frame.iloc[:350].to_parquet(tmp_path / "a.parquet")
    frame.iloc[350:].to_parquet(tmp_path / "b.parquet")
    model.fit(ep.scan(tmp_path / "*.parquet", target="y", weight="w"))
    assert_allclose(model.coef_, expected, atol=1e-7)
    assert model.certificate_.holds
    model.fit(da.from_array(X, chunks=(200, 20)), da.from_array(y, chunks=200), da.from_array(weight, chunks=200))
    assert_allclose(model.coef_, expected, atol=1e-7)


def test_too_many_features_for_a_hessian():
    X = da.zeros((10, 6000), chunks=(5, 6000))
    with pytest.raises(DataError, match=r"6000 features.*Load the data into memory"):
        LogisticRegression(l1_ratio=1.0).fit(X, da.from_array(np.arange(10) % 2, chunks=5))


def test_the_same_bits_for_any_number_of_threads():
    X, y, weight = problem(n=400, p=800, density=0.1)
    for form in ("F", "csc"):
        one, two = (LogisticRegression(C=1.0, l1_ratio=1.0, n_jobs=k).fit(FORMS[form](X), y, weight) for k in (1, 2))
        assert_array_equal(one.coef_, two.coef_)


def test_far_from_the_origin():
    X, y, weight = problem(p=60)
    near = LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-11).fit(X, y, weight)
    for order in ("C", "F"):
        far = LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-11).fit(np.array(X + 1e6, order=order), y, weight)
        assert_allclose(far.coef_, near.coef_, atol=1e-5)
        assert far.certificate_.holds


# ------------------------------------------------------------------------------------------------ properties


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6), n_classes=st.integers(2, 3), sparse=st.booleans(), l1_ratio=st.sampled_from([1.0, 0.4])
)
def test_weights_are_repetitions_and_order_does_not_matter(seed, n_classes, sparse, l1_ratio):
    X, y, _ = problem(n=40, p=30, n_classes=n_classes, seed=seed)
    if len(np.unique(y)) < n_classes:
        return
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, size=len(y))
    counts[[np.flatnonzero(y == k)[0] for k in range(n_classes)]] = 1
    form = FORMS["csc" if sparse else "C"]
    model = LogisticRegression(C=1.0, l1_ratio=l1_ratio, tol=1e-12)
    expected = model.fit(form(np.repeat(X, counts, axis=0)), np.repeat(y, counts)).predict_proba(form(X))
    rows, columns = rng.permutation(len(y)), rng.permutation(X.shape[1])
    assert_allclose(model.fit(form(X), y, counts.astype(float)).predict_proba(form(X)), expected, atol=1e-5)
    model.fit(form(X[rows][:, columns]), y[rows], counts[rows].astype(float))
    assert_allclose(model.predict_proba(form(X[:, columns])), expected, atol=1e-5)


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], ["no", "yes"], [False, True]])
def test_labels_and_class_weights(labels):
    X, y, weight = problem()
    names = np.array(labels)[y]
    model = LogisticRegression(C=0.5, l1_ratio=1.0, class_weight={labels[1]: 3.0}, tol=1e-11).fit(X, names, weight)
    other = LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-11).fit(X, y, weight * np.where(y == 1, 3.0, 1.0))
    assert_allclose(model.coef_, other.coef_, atol=1e-6)
    assert_array_equal(model.predict(X), np.array(labels)[other.predict(X)])
    totals = np.bincount(y, weight)
    balanced = LogisticRegression(C=0.5, l1_ratio=1.0, class_weight="balanced", tol=1e-11).fit(X, names, weight)
    other = LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-11).fit(X, y, weight * (weight.sum() / (2 * totals))[y])
    assert_allclose(balanced.coef_, other.coef_, atol=1e-6)


# ------------------------------------------------------------------------------------------------ names of penalties


def test_names_of_penalties():
    X, y, _ = problem(n=400, p=10)

    def coef(**parameters):
        return LogisticRegression(tol=1e-11, **parameters).fit(X, y).coef_

    assert_array_equal(coef(penalty="l1"), coef(l1_ratio=1.0))
    assert_array_equal(coef(penalty="l2"), coef())
    assert_array_equal(coef(penalty="elasticnet", l1_ratio=0.3), coef(l1_ratio=0.3))
    assert_array_equal(coef(penalty=None), coef(C=np.inf))
    assert_array_equal(coef(C=np.inf, l1_ratio=1.0), coef(C=np.inf))
    assert_allclose(coef(solver="proximal-newton"), coef(), atol=1e-5)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"penalty": "elasticnet", "l1_ratio": None}, r"l1_ratio=None; penalty='elasticnet' needs"),
        ({"penalty": "l3"}, r"penalty='l3'"),
        ({"l1_ratio": 1.5}, r"l1_ratio=1.5"),
        ({"l1_ratio": 1.0, "solver": "lbfgs"}, r"solver='lbfgs' takes smooth objectives.*'proximal-newton'"),
        ({"l1_ratio": 1.0, "solver_options": {"step": 1.0}}, "solver_options"),
        ({"C": np.inf, "solver": "proximal-newton"}, "needs a penalty; expected a finite C"),
    ],
)
def test_bad_penalties(parameters, words):
    X, y, _ = problem()
    with pytest.raises(ParameterError, match=words):
        LogisticRegression(**parameters).fit(X, y)


def test_the_penalty_shows():
    X, y, _ = problem(n=400, p=10)
    for parameters, words in (
        ({}, "L2 penalty ||W||^2 / (2 C), C=1"),
        ({"l1_ratio": 1.0, "C": 0.5}, "L1 penalty ||W||_1 / C, C=0.5"),
        ({"l1_ratio": 0.5}, "elastic net penalty (0.5 ||W||_1 + 0.25 ||W||^2) / C, C=1"),
        ({"C": np.inf}, "no penalty"),
    ):
        model = LogisticRegression(**parameters).fit(X, y)
        assert words in model.describe()
        assert words in str(model.summary())
        assert "C=" in repr(model)
        assert words in model._repr_html_()
        if words != "no penalty":
            assert "naive standard errors do not hold" in model.summary().note
    assert repr(LogisticRegression()) == "LogisticRegression(C=1.0)"


def test_gradient_of_the_reference_is_right():
    """The reference itself, against differences."""
    X, y, weight = problem(n=20, p=6, n_classes=3)
    rng = np.random.default_rng(1)
    W, b, D = rng.normal(size=(3, 6)), rng.normal(size=3), rng.normal(size=(3, 6))
    h = 1e-6
    slope = (objective(X, y, weight, 0, 0, W + h * D, b) - objective(X, y, weight, 0, 0, W - h * D, b)) / (2 * h)
    assert slope == pytest.approx((gradient(X, y, weight, W, b)[0] * D).sum(), rel=1e-6)
