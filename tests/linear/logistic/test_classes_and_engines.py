"""Coefficients wherever the rows are, classes without rows, and scikit-learn's remaining arguments."""

import time
import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.linear_model as reference
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold

import epicycle as ep
from epicycle import LogisticRegression, LogisticRegressionCV
from epicycle.exceptions import EpicycleWarning, ParameterError


def problem(n=400, p=4, K=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.3, 3, size=p) + 1
    return X, np.argmax(X @ rng.normal(size=(p, K)) + 2 * rng.gumbel(size=(n, K)), axis=1)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    def write(X, y):
        path = tmp_path_factory.mktemp("rows") / "rows.parquet"
        pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y).to_parquet(path, row_group_size=150)
        return path

    return write


@pytest.mark.parametrize(("n", "K", "C"), [(5000, 2, 1.0), (5000, 2, 1e3), (3000, 3, 1.0), (300, 2, np.inf)])
def test_the_same_coefficients_in_memory_from_files_and_on_dask(parquet, n, K, C):
    """In memory a subsample gives the start, elsewhere zero: only settled coefficients do not show it."""
    X, y = problem(n, 4, K)
    path = parquet(X, y)
    memory = LogisticRegression(C=C).fit(X, y)
    files = LogisticRegression(C=C).fit(ep.scan(path, target="y"))
    frame = dd.read_parquet(path)
    cluster = LogisticRegression(C=C).fit(frame[[f"x{j}" for j in range(4)]], frame["y"])
    for other in (files, cluster, LogisticRegression(C=C, solver="lbfgs").fit(X, y)):
        assert_allclose(other.coef_, memory.coef_, rtol=0, atol=1e-8 * np.abs(memory.coef_).max())
        assert_allclose(other.intercept_, memory.intercept_, rtol=0, atol=1e-8 * np.abs(memory.coef_).max())


def test_the_same_coefficients_where_no_hessian_pays(tmp_path):
    """L-BFGS ends with Newton steps by conjugate gradients, and those with settled coefficients."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(21_000, 13)) * rng.uniform(0.3, 3.0, 13) + rng.uniform(-2, 2, 13)
    y = np.argmax(X @ rng.normal(size=(13, 5)) / 4 + rng.gumbel(size=(21_000, 5)), axis=1)
    pd.DataFrame(X, columns=[f"x{j}" for j in range(13)]).assign(y=y).to_parquet(tmp_path / "rows.parquet")
    memory = LogisticRegression().fit(X, y)
    files = LogisticRegression().fit(ep.scan(tmp_path / "rows.parquet", target="y"))
    cluster = LogisticRegression().fit(da.from_array(X, chunks=(6000, 13)), da.from_array(y, chunks=6000))
    exact = LogisticRegression(solver="newton", tol=1e-14).fit(X, y)
    unsettled = LogisticRegression(tol=1.1e-8).fit(X, y)
    scale = np.abs(exact.coef_).max()
    for model in (memory, files, cluster):
        assert model.solver_ == "lbfgs"
        assert model.certificate_.holds
        assert_allclose(model.coef_, exact.coef_, rtol=0, atol=1e-8 * scale)
        assert_allclose(model.intercept_, exact.intercept_, rtol=0, atol=1e-8 * scale)
    assert np.abs(unsettled.coef_ - exact.coef_).max() > 1e-7 * scale  # the steps are needed


@pytest.mark.parametrize("sparse", [False, True])
def test_settled_coefficients_of_many_columns(sparse):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1200, 520)) * (rng.uniform(size=(1200, 520)) < (0.05 if sparse else 1.0))
    y = (X[:, :20].sum(axis=1) + rng.logistic(size=1200) > 0).astype(int)
    given, weight = sp.csr_array(X) if sparse else X + 3.0, rng.integers(1, 4, size=1200)
    model = LogisticRegression().fit(given, y, sample_weight=weight)
    exact = LogisticRegression(solver="newton", tol=1e-14).fit(given, y, sample_weight=weight)
    assert model.solver_ == "lbfgs"
    assert_allclose(model.coef_, exact.coef_, rtol=0, atol=1e-8 * np.abs(exact.coef_).max())
    assert_allclose(model.intercept_, exact.intercept_, rtol=0, atol=1e-8 * np.abs(exact.coef_).max())


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    "settings", [{}, {"l1_ratios": [0.0, 1.0], "scoring": "accuracy"}, {"refit": False, "class_weight": "balanced"}]
)
def test_cross_validation_on_files_and_dask(parquet, K, settings):
    X, y = problem(300, 4, K)
    path = parquet(X, y)
    memory = LogisticRegressionCV(Cs=3, cv=3, **settings).fit(X, y)
    frame = dd.read_parquet(path)
    files = LogisticRegressionCV(Cs=3, cv=3, **settings).fit(ep.scan(path, target="y"))
    cluster = LogisticRegressionCV(Cs=3, cv=3, **settings).fit(frame[[f"x{j}" for j in range(4)]], frame["y"])
    for other in (files, cluster):
        assert_allclose(other.scores_, memory.scores_, atol=1e-6)
        assert_allclose(other.coef_, memory.coef_, rtol=0, atol=1e-8 * np.abs(memory.coef_).max())
        assert (other.C_, other.l1_ratio_) == (memory.C_, memory.l1_ratio_)
        assert other.certificate_.holds


def test_scores_over_files_are_sums(parquet):
    X, y = problem(100, 2, 2)
    with pytest.raises(ParameterError, match=r"scoring='roc_auc': over files.*'neg_log_loss'"):
        LogisticRegressionCV(scoring="roc_auc").fit(ep.scan(parquet(X, y), target="y"))


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
@pytest.mark.parametrize("absent", [0, 1, 2])
def test_a_class_without_weight(absent, l1_ratio):
    """The other two are one row w for two classes with half the L2 penalty, split into -w/2 and w/2."""
    X, y = problem()
    model = LogisticRegression(class_weight={absent: 0}, l1_ratio=l1_ratio).fit(X, y)
    rest, present = y != absent, np.delete(np.arange(3), absent)
    C = 1 / (l1_ratio + (1 - l1_ratio) / 2)
    alone = LogisticRegression(C=C, l1_ratio=l1_ratio * C, tol=1e-12).fit(X[rest], y[rest] == present[1])
    assert_allclose(model.coef_[present[1]], alone.coef_[0] / 2, atol=1e-6)
    assert_allclose(model.coef_[present[0]], -alone.coef_[0] / 2, atol=1e-6)
    assert not model.coef_[absent].any()
    assert_allclose(model.predict_proba(X)[:, present[1]], alone.predict_proba(X)[:, 1], atol=1e-7)
    assert model.predict_proba(X)[:, absent].max() < 1e-300
    assert model.certificate_.holds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there = reference.LogisticRegression(
            class_weight={absent: 0}, l1_ratio=l1_ratio, solver="saga" if l1_ratio else "lbfgs", tol=1e-9, max_iter=3000
        ).fit(X, y)
    assert_allclose(there.predict_proba(X), model.predict_proba(X), atol=2e-3)  # which is still on its way there


def test_weights_that_leave_one_class():
    X, y = problem(K=2)
    with pytest.raises(ParameterError, match="fewer than 2 classes"):
        LogisticRegression(class_weight={0: 0}).fit(X, y)
    with pytest.raises(ParameterError, match=r"class_weight\[0\]=-1; expected a finite number >= 0"):
        LogisticRegression(class_weight={0: -1}).fit(X, y)


@pytest.mark.parametrize("K", [2, 3, 4])
def test_folds_without_a_class(K):
    X, y = problem(n=120, K=K)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    cuts = [np.flatnonzero(y == k) for k in range(K)]
    folds = [(np.setdiff1d(np.arange(len(y)), out), out) for out in cuts]
    model = LogisticRegressionCV(Cs=[0.1, 1.0], cv=folds, scoring="neg_brier_score").fit(X, y)
    assert model.certificate_.holds
    for k, (train, _) in enumerate(folds):
        path = model.coefs_paths_[k, 0]
        if K == 2:
            assert not path[..., :-1].any()  # the class that is there is certain
        else:
            assert not path[:, k, :-1].any()
        if K == 4:  # three classes are left: an ordinary fit to them
            alone = LogisticRegression(C=1.0).fit(X[train], y[train])
            assert_allclose(np.delete(path[1], k, axis=0)[:, :-1], alone.coef_, atol=1e-8)
    assert (model.scores_ <= -1).all()  # every test row is of a class that the fold has not seen


def test_iterations():
    X, y = problem()
    model = LogisticRegression().fit(X, y)
    assert model.n_iter_.shape == (1,)
    assert model.n_iter_.dtype == np.int32
    for settings in ({}, {"l1_ratio": 1.0}, {"solver": "liblinear"}, {"solver": "lbfgs"}):
        rows = y < 2
        with pytest.warns(SklearnConvergenceWarning):
            start = LogisticRegression(max_iter=0, **settings).fit(X[rows], y[rows])
        assert start.n_iter_[0] == (1 if "l1_ratio" in settings else 0)  # working sets count the look at the start
        assert not start.coef_.any()
        assert_allclose(start.predict_proba(X), 0.5)


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        ("lbfgs", "lbfgs failed to converge"),
        ("newton-cg", "newton-cg failed to converge.* Increase the number of iterations"),
        ("newton-cholesky", "Newton solver did not converge after 1 iterations"),
        ("liblinear", "Liblinear failed to converge, increase the number of iterations"),
        ("saga", "The max_iter was reached which means the coef_ did not converge"),
    ],
)
def test_first_words_of_warnings(solver, words):
    X, y = problem(K=2)
    with pytest.warns(SklearnConvergenceWarning, match=f"^{words}"):
        LogisticRegression(solver=solver, max_iter=1, tol=1e-12).fit(X, y)


def test_arguments_that_contradict_each_other():
    X, y = problem(K=2)
    with pytest.warns(EpicycleWarning, match=r"Inconsistent values: penalty=l2 with l1_ratio=1.0"):
        model = LogisticRegression(penalty="l2", l1_ratio=1.0).fit(X, y)
    assert_array_equal(model.coef_, LogisticRegression().fit(X, y).coef_)
    with pytest.warns(EpicycleWarning, match="penalty=None will ignore the C"):
        LogisticRegression(penalty=None, C=4).fit(X, y)
    with pytest.raises(ParameterError, match="l1_ratios=None; penalty='elasticnet'"):
        LogisticRegressionCV(penalty="elasticnet").fit(X, y)


def test_scores_and_routing():
    X, y = problem(K=2)
    groups, weight = np.arange(len(y)) % 7, np.linspace(0.1, 2, len(y))
    model = LogisticRegressionCV(Cs=2, scoring="roc_auc").fit(X, y, weight)
    assert model.score(X, y, sample_weight=weight) == get_scorer("roc_auc")(model, X, y, sample_weight=weight)
    assert LogisticRegressionCV(Cs=2).fit(X, y).score(X, y) > 0.5  # the accuracy by default
    with pytest.raises(ParameterError, match="only supported if enable_metadata_routing=True"):
        LogisticRegressionCV().fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = get_scorer("accuracy").set_score_request(sample_weight=True)
        routed = LogisticRegressionCV(Cs=2, cv=GroupKFold(7), scoring=scorer).set_fit_request(sample_weight=True)
        routed.fit(X, y, sample_weight=weight, groups=groups)
    assert routed.scores_.shape == (7, 1, 2)
    plain = LogisticRegressionCV(Cs=2, cv=list(GroupKFold(7).split(X, y, groups)), scoring="accuracy")
    assert_array_equal(plain.fit(X, y, weight).scores_, routed.scores_)


@pytest.mark.parametrize("kind", ["S1", object])
def test_labels_of_bytes(kind):
    X, y = problem(K=2)
    labels = np.array([b"a", b"b"], dtype=kind)[y]
    model = LogisticRegressionCV(Cs=2).fit(X, labels)
    assert_array_equal(model.scores_, LogisticRegressionCV(Cs=2).fit(X, y).scores_)
    assert set(model.predict(X).tolist()) <= {b"a", b"b"}


@pytest.mark.parametrize("powers", [(-8, 0, 8, 12), (100, 100, 100, 100), (-100, -5, 50, 100)])
def test_columns_of_wild_scales_take_no_longer(powers):
    """Thirty rows once took 40 seconds; where rounding hides the penalty, the fit says that it fell short."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = (X[:, 0] + rng.normal(size=30) > 0).astype(int)
    X *= 10.0 ** np.array(powers)
    began = time.process_time()
    with ep.config(on_nonconvergence="ignore"):
        smooth, sparse = LogisticRegressionCV().fit(X, y), LogisticRegressionCV(l1_ratios=[1.0]).fit(X, y)
        one = LogisticRegression(l1_ratio=1.0).fit(X, y)
    assert time.process_time() - began < 10
    assert smooth.certificate_.holds
    for model in (smooth, sparse, one):
        assert np.isfinite(model.predict_proba(X)).all()
        assert model.certificate_.holds == model.converged_


def test_coefficients_of_lbfgs_are_as_near_as_the_certificate_says(parquet):
    """Many features: no Hessian is formed, and the gap bounds |W - W*| by strong convexity, also between engines."""
    rng = np.random.default_rng(3)
    n, p, C = 400, 600, 0.5
    X = rng.normal(size=(n, p)) * rng.uniform(0.2, 3.0, p)
    y = (X[:, :5].sum(axis=1) + rng.normal(size=n) > 0).astype(int)
    exact = LogisticRegression(C=C, tol=1e-15, solver="newton").fit(X, y)
    fits = [LogisticRegression(C=C).fit(X, y), LogisticRegression(C=C).fit(ep.scan(parquet(X, y), target="y"))]
    fits.append(LogisticRegression(C=C, tol=1e-4).fit(X, y))
    distances, bounds = [], []
    for model in fits:
        assert model.solver_ == "lbfgs"
        assert model.certificate_.holds
        margin = (2 * y - 1) * (X @ model.coef_[0] + model.intercept_)
        F = np.logaddexp(0, -margin).sum() + (model.coef_**2).sum() / (2 * C)
        distances.append(np.linalg.norm(model.coef_ - exact.coef_))
        bounds.append(np.sqrt(2 * C * model.certificate_.value * F))
        assert distances[-1] <= bounds[-1] + 1e-9
    assert np.linalg.norm(fits[0].coef_ - fits[1].coef_) <= bounds[0] + bounds[1]
    assert distances[2] > 1e-8  # there is something to bound
