"""Discriminant analysis against formulas, scikit-learn, scipy's densities and the table of a book."""

import copy

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn import covariance, discriminant_analysis
from sklearn.datasets import load_iris, load_wine

import epicycle as ep
from epicycle.core._monitor import Monitor
from epicycle.data import as_data
from epicycle.discriminant._incomplete import Structure, complete
from epicycle.exceptions import DataError, ParameterError

STRUCTURES = ["shared", "per-class", "diagonal", "spherical"]
NAMES = ["GaussianDiscriminantAnalysis", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"]


def table(seed=0, n=400, p=4, classes=3):
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    mix = random.normal(size=(classes, p, p)) / 5 + np.eye(p)
    X = np.einsum("ij,ijk->ik", random.normal(size=(n, p)), mix[y]) + random.normal(size=(classes, p))[y] * 2
    return X, y, random.integers(0, 4, n).astype(np.float64)


def covariances(model):
    """One matrix for each class, whatever the structure."""
    K, p = model.means_.shape
    C = model.covariance_
    match model.covariance:
        case "shared":
            return [C] * K
        case "diagonal":
            return [np.diag(c) for c in C]
        case "spherical":
            return [c * np.eye(p) for c in C]
    return list(C)


# ------------------------------------------------------------------------------------------------ against references


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_maximum_of_the_likelihood(structure):
    X, y, _ = table()
    model = ep.GaussianDiscriminantAnalysis(structure).fit(X, y)
    own = [np.cov(X[y == k].T, bias=True) for k in range(3)]
    share = np.bincount(y) / len(y)
    expected = {
        "shared": np.tensordot(share, own, axes=1),
        "per-class": own,
        "diagonal": [np.diag(c) for c in own],
        "spherical": [np.trace(c) / 4 for c in own],
    }
    assert_allclose(model.covariance_, expected[structure], rtol=1e-11, atol=1e-13)
    assert_allclose(model.means_, [X[y == k].mean(axis=0) for k in range(3)])
    assert_allclose(model.priors_, share)
    joint = np.stack(
        [multivariate_normal(m, C).logpdf(X) for m, C in zip(model.means_, covariances(model), strict=True)], axis=1
    ) + np.log(share)
    assert_allclose(model.predict_log_proba(X), joint - logsumexp(joint, axis=1, keepdims=True), atol=1e-9)
    assert_allclose(model.history_.objective[-1], -joint[np.arange(len(y)), y].mean())
    assert model.certificate_.holds
    # Any other mean or covariance is less likely.
    worse = multivariate_normal(model.means_[0] + 0.01, covariances(model)[0]).logpdf(X[y == 0]).sum()
    assert worse < multivariate_normal(model.means_[0], covariances(model)[0]).logpdf(X[y == 0]).sum()


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("LinearDiscriminantAnalysis", {}),
        ("LinearDiscriminantAnalysis", {"priors": [0.5, 0.3, 0.2], "store_covariance": True, "n_components": 1}),
        ("LinearDiscriminantAnalysis", {"solver": "lsqr", "priors": [0.5, 0.3, 0.2]}),
        ("LinearDiscriminantAnalysis", {"solver": "lsqr", "shrinkage": "auto"}),
        ("LinearDiscriminantAnalysis", {"solver": "eigen"}),
        ("LinearDiscriminantAnalysis", {"solver": "eigen", "shrinkage": 0.3, "priors": [0.5, 0.3, 0.2]}),
        ("LinearDiscriminantAnalysis", {"solver": "eigen", "shrinkage": "auto"}),
        ("LinearDiscriminantAnalysis", {"solver": "eigen", "covariance_estimator": covariance.OAS()}),
        ("QuadraticDiscriminantAnalysis", {"tol": 0, "store_covariance": True}),
        ("QuadraticDiscriminantAnalysis", {"tol": 0, "reg_param": 0.2, "priors": [0.5, 0.3, 0.2]}),
        ("QuadraticDiscriminantAnalysis", {"tol": 0, "solver": "eigen", "shrinkage": 0.2}),
        ("QuadraticDiscriminantAnalysis", {"solver": "eigen", "shrinkage": "auto", "store_covariance": True}),
    ],
    ids=str,
)
def test_agrees_with_scikit_learn(load, name, options):
    X, y = load(return_X_y=True)
    labels = np.array(["a", "b", "c"])[y]
    ours, theirs = (getattr(m, name)(**options).fit(X, labels) for m in (ep, discriminant_analysis))
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-6, atol=1e-9)
    for attribute in ("coef_", "intercept_", "covariance_", "means_", "priors_", "xbar_", "explained_variance_ratio_"):
        assert hasattr(ours, attribute) == hasattr(theirs, attribute), attribute
        if hasattr(theirs, attribute):
            assert_allclose(getattr(ours, attribute), getattr(theirs, attribute), rtol=1e-6, atol=1e-9)
    if name.startswith("Q"):
        for k in range(3):
            assert_allclose(ours.scalings_[k], theirs.scalings_[k], rtol=1e-6)
            assert_allclose(np.abs(ours.rotations_[k]), np.abs(theirs.rotations_[k]), atol=1e-6)
    elif options.get("solver") != "lsqr":
        assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("rule", ["ledoit-wolf", "oas"])
def test_amounts_of_shrinkage_are_those_of_scikit_learn(rule):
    X, y, _ = table(1, n=60)
    model = ep.GaussianDiscriminantAnalysis("per-class", shrinkage=rule).fit(X, y)
    formula = {"ledoit-wolf": covariance.ledoit_wolf, "oas": covariance.oas}[rule]
    for k in range(3):
        expected, amount = formula(X[y == k])
        assert_allclose(model.shrinkage_[k], amount, rtol=1e-9)
        assert_allclose(model.covariance_[k], expected, rtol=1e-9)
    shared = ep.GaussianDiscriminantAnalysis(shrinkage=rule).fit(X, y)
    centred = X - np.stack([X[y == k].mean(axis=0) for k in range(3)])[y]
    assert_allclose(shared.covariance_, formula(centred)[0], rtol=1e-9)


@pytest.mark.parametrize("solver", ["svd", "lsqr", "eigen"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_posterior_is_a_logistic_regression(solver, classes):
    X, y, _ = table(2, classes=classes)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for model in (ep.LinearDiscriminantAnalysis(solver), ep.GaussianDiscriminantAnalysis()):
        logistic = model.fit(frame, y).as_logistic()
        assert isinstance(logistic, ep.LogisticRegression)
        assert_allclose(logistic.predict_proba(frame), model.predict_proba(frame), atol=1e-13)
        assert_array_equal(logistic.predict(frame), model.predict(frame))
    assert not hasattr(ep.GaussianDiscriminantAnalysis("per-class"), "as_logistic")


# ------------------------------------------------------------------------------------------------ missing entries


@pytest.mark.parametrize("structure", STRUCTURES)
def test_missing_entries_are_integrated_out_of_predictions(structure):
    X, y, _ = table(3)
    model = ep.GaussianDiscriminantAnalysis(structure).fit(X, y)
    row = np.array([[0.3, np.nan, -1.0, np.nan]])
    there = [0, 2]
    joint = np.log(model.priors_) + [
        multivariate_normal(m[there], C[np.ix_(there, there)]).logpdf(row[0, there])
        for m, C in zip(model.means_, covariances(model), strict=True)
    ]
    assert_allclose(model.predict_log_proba(row)[0], joint - logsumexp(joint), rtol=1e-9, atol=1e-12)
    assert_allclose(model.predict_proba(np.full((1, 4), np.nan))[0], model.priors_)
    mixed = np.vstack([X[:3], row])  # rows with and without missing entries together
    assert_allclose(model.predict_proba(mixed)[3:], model.predict_proba(row), rtol=1e-12)


def test_a_projection_of_missing_entries_is_the_expected_one():
    X, y, _ = table(4, n=300, classes=2)
    model = ep.LinearDiscriminantAnalysis(store_covariance=True).fit(X, y)
    random = np.random.default_rng(0)
    x, u, o = np.array([0.5, -0.2]), [1, 3], [0, 2]
    C = model.covariance_
    A = C[np.ix_(u, o)] @ np.linalg.inv(C[np.ix_(o, o)])
    row = np.array([[x[0], np.nan, x[1], np.nan]])
    weights = model.predict_proba(row)[0]
    n = 400_000
    which = random.random(n) < weights[1]
    centre = model.means_[which.astype(int)]
    spread = np.linalg.cholesky(C[np.ix_(u, u)] - A @ C[np.ix_(o, u)])
    drawn = np.tile(np.nan_to_num(row), (n, 1))
    drawn[:, u] = centre[:, u] + (x - centre[:, o]) @ A.T + random.normal(size=(n, 2)) @ spread.T
    projected = model.transform(drawn)
    error = projected.std() / np.sqrt(n)
    assert abs(model.transform(row)[0, 0] - projected.mean()) < 5 * error


def observed_likelihood(X, y, model):
    """Mean log density of what is there, with the classes."""
    total = 0.0
    for row, k in zip(X, y, strict=True):
        o = np.flatnonzero(~np.isnan(row))
        total += np.log(model.priors_[k])
        if len(o):
            C = covariances(model)[k]
            total += multivariate_normal(model.means_[k][o], C[np.ix_(o, o)]).logpdf(row[o])
    return total / len(X)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_em_reaches_a_maximum_and_never_falls(structure):
    X, y, _ = table(5, n=150)
    random = np.random.default_rng(1)
    X[random.random(X.shape) < 0.2] = np.nan
    model = ep.GaussianDiscriminantAnalysis(structure).fit(X, y)
    assert model.converged_
    assert model.certificate_.kind == "stationarity"
    assert np.all(np.diff(model.history_.objective) <= 1e-12)
    value = observed_likelihood(X, y, model)
    assert_allclose(-model.history_.objective[-1], value, rtol=1e-9)
    for _ in range(8):  # the maximum: steps in any direction, of both signs, lose
        moved = copy.copy(model)
        moved.means_ = model.means_ + 1e-3 * random.normal(size=model.means_.shape)
        assert observed_likelihood(X, y, moved) < value
        moved.means_ = model.means_
        moved.covariance_ = model.covariance_ * (1 + 1e-3 * random.choice([-1, 1]))
        assert observed_likelihood(X, y, moved) < value


def test_em_agrees_with_complete_rows_where_nothing_is_missing():
    X, y, w = table(6)
    found = complete(
        as_data(X, y.astype(float), w, target="numeric"),
        3,
        Structure("per-class"),
        pooled=False,
        log_prior=np.log,
        tol=1e-10,
        max_iter=5,
        monitor=Monitor(),
        n_jobs=1,
    )
    assert found.n_iter == 2
    expected = ep.QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y, w)
    assert_allclose(found.moments.scatter / found.moments.weight[:, None, None], expected.covariance_, rtol=1e-10)


def test_linear_and_quadratic_fits_take_missing_entries():
    X, y, _ = table(7)
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    gaussian = ep.GaussianDiscriminantAnalysis().fit(X, y)
    for solver in ("svd", "lsqr", "eigen"):
        model = ep.LinearDiscriminantAnalysis(solver).fit(X, y)
        assert_allclose(model.predict_proba(X), gaussian.predict_proba(X), atol=1e-8)
    quadratic = ep.QuadraticDiscriminantAnalysis().fit(X, y)
    own = ep.GaussianDiscriminantAnalysis("per-class").fit(X, y)
    assert_allclose(quadratic.predict_proba(X), own.predict_proba(X), atol=1e-8)


# ------------------------------------------------------------------------------------------------ one statistic


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("LinearDiscriminantAnalysis", {}),
        ("LinearDiscriminantAnalysis", {"solver": "eigen", "shrinkage": "auto"}),
        ("LinearDiscriminantAnalysis", {"solver": "lsqr", "priors": [0.2, 0.3, 0.5]}),
        ("QuadraticDiscriminantAnalysis", {"solver": "eigen", "shrinkage": "auto"}),
        ("GaussianDiscriminantAnalysis", {"shrinkage": "ledoit-wolf"}),
        ("GaussianDiscriminantAnalysis", {"covariance": "per-class"}),
    ],
    ids=str,
)
def test_the_same_in_memory_in_batches_from_files_and_on_dask(name, options, tmp_path, client):
    X, y, w = table(8, n=6000)
    X += 1e4  # far from zero
    make = getattr(ep, name)
    whole = make(**options).fit(X, y, w)
    expected = whole.predict_log_proba(X[:200])
    batches = make(**options)
    order = np.arange(len(y))
    if "priors" not in options:
        order = np.argsort(y == 2, kind="stable")  # the third class comes last
    for part in np.array_split(order, 5):
        batches.partial_fit(X[part], y[part], sample_weight=w[part])
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, w=w)
    for i, part in enumerate(np.array_split(np.arange(len(X)), 3)):
        frame.iloc[part].to_parquet(tmp_path / f"{i}.parquet")
    files = make(**options).fit(ep.scan(tmp_path / "*.parquet", target="y", weight="w"))
    cluster = make(**options).fit(*(da.from_array(a, chunks=(1700, *a.shape[1:])) for a in (X, y, w)))
    sparse = make(**options).fit(sp.csr_array(X), y, w)
    threads = make(**options, n_jobs=2).fit(X, y, w)
    for model, rows in ((batches, X), (files, frame[list("abcd")].to_numpy()), (cluster, X), (sparse, X), (threads, X)):
        model.__dict__.pop("feature_names_in_", None)
        assert_allclose(model.predict_log_proba(rows[:200]), expected, rtol=1e-6, atol=1e-6)
        assert_allclose(model.means_, whole.means_, rtol=1e-12)
    lazy = cluster.predict_proba(da.from_array(X[:200], chunks=(100, 4))).compute()
    assert_allclose(lazy, np.exp(expected), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(data=st.data())
def test_weights_order_batches_and_scale(name, data):
    n, p = data.draw(st.integers(30, 60)), data.draw(st.integers(1, 3))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    y = np.concatenate([np.repeat([0, 1], 8), random.integers(0, data.draw(st.integers(2, 4)), n - 16)])
    X = random.normal(size=(n, p)) + y[:, None]
    w = random.integers(0, 3, n)
    w[:16] = 1
    keep = np.isin(y, np.flatnonzero(np.bincount(y, weights=w > 0) > p + 3))
    X, y, w, n = X[keep], y[keep], w[keep], int(keep.sum())
    missing = data.draw(st.booleans()) and p > 1
    options = {"tol": 1e-9} if name.startswith("Q") else {}
    options |= {"covariance": data.draw(st.sampled_from(STRUCTURES))} if name.startswith("G") else {}
    if missing:
        X[random.random(n) < 0.1, 0] = np.nan
    make = getattr(ep, name)
    weighted = make(**options).fit(X, y, w)
    order = random.permutation(np.repeat(np.arange(n), w))
    repeated = make(**options).fit(X[order], y[order])
    scores = repeated.predict_log_proba(X)
    assert scores.shape == (n, len(np.unique(y[order])))
    tolerance = 1e-4 if missing else 1e-7  # EM ends at a step of 1e-6
    assert_allclose(weighted.predict_log_proba(X), scores, rtol=tolerance, atol=tolerance)
    if "covariance" not in options or options["covariance"] in ("shared", "per-class"):
        A = random.normal(size=(p, p)) / 4 + np.eye(p)  # posteriors do not depend on the coordinates
        if not missing and np.linalg.cond(A) < 50:
            turned = make(**options).fit(X @ A + 3, y, w)
            assert_allclose(turned.predict_log_proba(X @ A + 3), scores, rtol=1e-6, atol=1e-6)
    if not missing and name != "QuadraticDiscriminantAnalysis" and options.get("covariance", "shared") == "shared":
        late = make(**options)
        for part in np.array_split(order, 3):
            late.partial_fit(X[part], y[part])
        assert_allclose(late.predict_log_proba(X), scores, rtol=1e-7, atol=1e-7)


def test_columns_far_from_zero_keep_their_digits():
    X, y, _ = table(9, n=4000)
    far = 1e9 + np.round(1e3 * X) / 1e3  # spacing of float64 there: 1e-7
    model = ep.GaussianDiscriminantAnalysis("per-class")
    for part in np.array_split(np.arange(4000), 7):
        model.partial_fit(far[part], y[part])
    assert_allclose(
        model.covariance_, [np.cov((far - 1e9)[y == k].T, bias=True) for k in range(3)], rtol=1e-5, atol=1e-6
    )


def test_float32_is_fitted_in_double_precision():
    X, y, _ = table(10)
    single = X.astype(np.float32)
    for name in NAMES:
        model = getattr(ep, name)().fit(single, y)
        other = getattr(ep, name)().fit(single.astype(np.float64), y)
        assert_allclose(model.predict_proba(single), other.predict_proba(single), atol=1e-5)
    assert ep.LinearDiscriminantAnalysis().fit(single, y).coef_.dtype == np.float32


@pytest.mark.parametrize("name", NAMES)
def test_models_are_saved_and_more_rows_added(name, tmp_path):
    X, y, _ = table(11)
    model = getattr(ep, name)().fit(X[:300], y[:300])
    model.save(tmp_path / "model.epi")
    loaded = ep.load(tmp_path / "model.epi")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    loaded.partial_fit(X[300:], y[300:])
    assert_allclose(loaded.predict_proba(X), getattr(ep, name)().fit(X, y).predict_proba(X), atol=1e-10)


# ------------------------------------------------------------------------------------------------ singular, bad input


def test_collinear_columns_are_left_out_of_a_shared_covariance():
    X, y, _ = table(12)
    wide = np.hstack([X, X[:, :1] + X[:, 1:2], np.full((len(X), 1), 7.1)])
    expected = ep.LinearDiscriminantAnalysis().fit(X, y).predict_proba(X)
    for model in (ep.LinearDiscriminantAnalysis(), ep.GaussianDiscriminantAnalysis()):
        model.fit(wide, y)
        assert_array_equal(model.rank_, 4)
        assert_allclose(model.predict_proba(wide), expected, atol=1e-9)
    for model in (ep.QuadraticDiscriminantAnalysis(), ep.GaussianDiscriminantAnalysis("per-class")):
        with pytest.raises(np.linalg.LinAlgError, match="covariance"):
            model.fit(wide, y)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        ep.LinearDiscriminantAnalysis("eigen").fit(wide, y)


def test_a_floor_of_variances_admits_a_class_of_one_row():
    X, y, _ = table(13, classes=2)
    X, y = np.vstack([X, [[9.0, 9, 9, 9]]]), np.append(y, 2)
    model = ep.QuadraticDiscriminantAnalysis(variance_floor=0.25).fit(X, y)
    assert_allclose(model.scalings_[2], np.full(4, 0.25))
    assert model.predict([[9.0, 9, 9, 9.1]]) == [2]


def test_one_class_and_a_tolerance_beyond_everything():
    X, y, _ = table(15)
    for solver in ("svd", "lsqr", "eigen"):
        model = ep.LinearDiscriminantAnalysis(solver).fit(X, np.zeros(len(X)))
        assert_array_equal(model.predict(X), 0)
        assert_array_equal(model.predict_proba(X), 1)
    nothing_left = ep.GaussianDiscriminantAnalysis(tol=1e300).fit(X, y)
    assert_array_equal(nothing_left.rank_, 0)
    assert_allclose(nothing_left.predict_proba(X), np.tile(nothing_left.priors_, (len(X), 1)))


def test_bad_input():
    X, y, _ = table(14)
    with pytest.raises(DataError, match="infinity"):
        ep.GaussianDiscriminantAnalysis().fit(np.where(X > 2, np.inf, X), y)
    model = ep.GaussianDiscriminantAnalysis().fit(X, y)
    with pytest.raises(DataError, match="infinity"):
        model.predict(np.full((1, 4), np.inf))
    with pytest.raises(ParameterError, match="priors"):
        ep.GaussianDiscriminantAnalysis(priors=[0.5, 0.5]).fit(X, y)
    hole = X.copy()
    hole[0, 0] = np.nan
    with pytest.raises(DataError, match="partial_fit"):
        ep.GaussianDiscriminantAnalysis().partial_fit(hole, y)
    with pytest.raises(ParameterError, match="shrinkage"):
        ep.GaussianDiscriminantAnalysis(shrinkage="ledoit-wolf").fit(hole, y)
    with pytest.raises(DataError, match="partial_fit"):
        ep.GaussianDiscriminantAnalysis().fit(hole, y).partial_fit(X, y)
    with pytest.raises(DataError, match="column 2"):
        ep.GaussianDiscriminantAnalysis().fit(np.where(np.arange(4) == 2, np.nan, X), y)
    with pytest.raises(DataError, match="float32"):
        ep.LinearDiscriminantAnalysis().fit((X * 1e-44 + 1e-40 * y[:, None]).astype(np.float32), y)
    for rule in ("oas", "ledoit-wolf"):  # amounts do not depend on the scale
        amounts = [ep.GaussianDiscriminantAnalysis(shrinkage=rule).fit(X * s, y).shrinkage_ for s in (1.0, 1e70)]
        assert_allclose(*amounts, rtol=1e-9)
    with pytest.raises(DataError, match="overflow"):
        ep.GaussianDiscriminantAnalysis().fit(X * 1e200, y)
    with pytest.raises(DataError, match="sample_weight"):
        ep.LinearDiscriminantAnalysis("lsqr", covariance_estimator=covariance.OAS()).fit(X, y, 1.0 + (y == 1))
