"""Cross-validated lasso and elastic net: errors and choice against scikit-learn and against fits fold by fold."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model as sk
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.utils.estimator_checks import estimator_checks_generator

import epicycle as ep
from epicycle import ElasticNetCV, Lasso, LassoCV
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError


@pytest.mark.parametrize(
    ("estimator", "check"),
    [pair for model in (LassoCV(n_alphas=8), ElasticNetCV(n_alphas=8)) for pair in estimator_checks_generator(model)],
    ids=lambda part: part.func.__name__ if hasattr(part, "func") else str(part),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def problem(n=90, p=140, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 1.0
    y = X[:, :4] @ [3.0, -2.0, 1.0, 0.5] + rng.standard_normal(n) + 4.0
    return X, y, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("p", [10, 140])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_scikit_learn(p, weighted):
    X, y, weight = problem(p=p)
    weight = weight if weighted else None
    alphas = np.geomspace(2.0, 0.02, 15)
    cv = ShuffleSplit(4, random_state=0)
    ours = LassoCV(alphas=alphas, cv=cv, tol=1e-12).fit(X, y, weight)
    theirs = sk.LassoCV(alphas=alphas, cv=cv, tol=1e-10, max_iter=10**6).fit(X, y, sample_weight=weight)
    assert_array_equal(ours.alphas_, theirs.alphas_)
    assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-4)
    assert_allclose(ours.coef_, Lasso(ours.alpha_, tol=1e-12).fit(X, y, weight).coef_, rtol=0, atol=1e-6)
    if not weighted:  # with weights scikit-learn averages folds by their weight
        assert ours.alpha_ == theirs.alpha_


def test_agrees_with_scikit_learn_over_l1_ratios():
    X, y, _ = problem()
    ratios = [0.3, 0.9]
    ours = ElasticNetCV(l1_ratio=ratios, n_alphas=12, eps=1e-2, tol=1e-12).fit(X, y)
    theirs = sk.ElasticNetCV(l1_ratio=ratios, alphas=12, eps=1e-2, tol=1e-10, max_iter=10**6).fit(X, y)
    assert ours.mse_path_.shape == (2, 12, 5)
    assert_allclose(ours.alphas_, theirs.alphas_, rtol=1e-10)
    assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-4)
    assert_allclose([ours.alpha_, ours.l1_ratio_], [theirs.alpha_, theirs.l1_ratio_])


def test_errors_are_those_of_fits_to_the_rows_of_each_fold():
    X, y, weight = problem()
    folds = list(TimeSeriesSplit(3).split(X))  # training rows are not all but the test rows
    for form in (np.asfortranarray, np.ascontiguousarray, sp.csr_array):
        model = LassoCV(alphas=[0.5, 0.1], cv=folds, tol=1e-12).fit(form(X), y, weight)
        for f, (train, test) in enumerate(folds):
            for a, alpha in enumerate(model.alphas_):
                fit = Lasso(alpha, tol=1e-12).fit(X[train], y[train], weight[train])
                expected = np.average((y[test] - fit.predict(X[test])) ** 2, weights=weight[test])
                assert_allclose(model.mse_path_[a, f], expected, rtol=1e-5)


def test_the_rule_of_one_standard_error():
    X, y, _ = problem()
    least, simple = (LassoCV(rule=rule, n_alphas=30).fit(X, y) for rule in ("min", "1se"))
    mean, se = least.mse_mean_, least.mse_se_
    assert_allclose(mean, least.mse_path_.mean(axis=1))
    assert_allclose(se, least.mse_path_.std(axis=1, ddof=1) / np.sqrt(5))
    best = int(np.argmin(mean))
    assert least.alpha_ == least.alphas_[best]
    assert simple.alpha_ == least.alphas_[mean <= mean[best] + se[best]].max()
    assert simple.alpha_ > least.alpha_
    assert np.count_nonzero(simple.coef_) < np.count_nonzero(least.coef_)


def test_same_bits_for_any_number_of_threads():
    X, y, weight = problem()
    one, three = (LassoCV(n_alphas=10, n_jobs=jobs).fit(X, y, weight) for jobs in (1, 3))
    assert_array_equal(one.mse_path_, three.mse_path_)
    assert_array_equal(one.coef_, three.coef_)


def test_evidence_file_and_plot(tmp_path):
    X, y, _ = problem()
    for model in (LassoCV(n_alphas=10).fit(X, y), ElasticNetCV(l1_ratio=[0.5, 1.0], n_alphas=10).fit(X, y)):
        assert model.certificate_.kind == "duality gap"
        assert model.certificate_.holds
        assert f"alpha={model.alpha_:g}" in model.describe()
        model.save(tmp_path / "m.epi")
        back = ep.load(tmp_path / "m.epi")
        assert_array_equal(back.predict(X), model.predict(X))
        assert_array_equal(back.mse_path_, model.mse_path_)
        ax = back.plot()
        assert ax.get_xscale() == "log"
        assert len(ax.collections) == len(np.atleast_2d(model.alphas_))
        plt.close(ax.figure)


def test_folds_that_do_not_converge_are_named():
    X, y, _ = problem(p=2000)
    with pytest.warns(ConvergenceWarning, match="cross-validation did not reach"):
        LassoCV(alphas=[0.5, 0.001], max_iter=1, tol=1e-10, cv=KFold(2)).fit(X, y)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (LassoCV(cv=1), ParameterError, "cv=1"),
        (LassoCV(cv="five"), ParameterError, "cv="),
        (LassoCV(cv=1000), ParameterError, "cv=1000"),
        (LassoCV(rule="2se"), ParameterError, "rule="),
        (LassoCV(alphas=[-1.0]), ParameterError, "alphas"),
        (ElasticNetCV(l1_ratio=0.0), ParameterError, "pass alphas"),
        (ElasticNetCV(l1_ratio=[0.5, 1.5]), ParameterError, "l1_ratio"),
        (ElasticNetCV(l1_ratio=["a"]), ParameterError, "l1_ratio"),
    ],
)
def test_bad_parameters(model, error, message):
    X, y, _ = problem()
    with pytest.raises(error, match=message):
        model.fit(X, y)


def test_data_that_cannot_be_split(tmp_path):
    X, y, _ = problem()
    weight = np.ones(90)
    weight[:45] = 0.0
    with pytest.raises(DataError, match="weight zero"):
        LassoCV(cv=[(np.arange(45), np.arange(45, 90))]).fit(X, y, weight)
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(DataError, match="in memory"):
        LassoCV().fit(ep.scan(tmp_path / "x.npy", target="x0"))
    with pytest.raises(DataError, match="1d"):
        LassoCV().fit(X, np.column_stack([y, y]))
