"""Cross-validated lasso and elastic net: errors and choice against scikit-learn and against fits fold by fold."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model as sk
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit
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
        (ElasticNetCV(l1_ratio=0.0), ParameterError, "Please supply a grid"),
        (ElasticNetCV(l1_ratio=[0.5, 1.5]), ParameterError, "l1_ratio"),
        (ElasticNetCV(l1_ratio=["a"]), ParameterError, "l1_ratio"),
    ],
)
def test_bad_parameters(model, error, message):
    X, y, _ = problem()
    with pytest.raises(error, match=message):
        model.fit(X, y)


def test_data_that_cannot_be_split():
    X, y, _ = problem()
    weight = np.ones(90)
    weight[:45] = 0.0
    with pytest.raises(DataError, match="weight zero"):
        LassoCV(cv=[(np.arange(45), np.arange(45, 90))]).fit(X, y, weight)
    with pytest.raises(DataError, match="1d"):
        LassoCV().fit(X, np.column_stack([y, y]))


# ---------------------------------------------------------------- files and clusters


def stored(tmp_path, X, y, weight, kind="parquet"):
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y, w=weight)
    half = len(y) // 2 + 7
    for i, part in enumerate((frame.iloc[:half], frame.iloc[half:])):
        if kind == "parquet":
            part.to_parquet(tmp_path / f"{i}.parquet")
        else:
            part.to_csv(tmp_path / f"{i}.csv", index=False)
    return ep.scan(tmp_path / f"*.{kind}", target="y", weight="w", batch_rows=41)


SPLITTERS = {
    "five": None,
    "seven": 7,
    "shuffled": KFold(4, shuffle=True, random_state=0),
    "overlapping": ShuffleSplit(3, test_size=0.4, random_state=0),
    "growing": TimeSeriesSplit(3),
    "repeated": [(np.repeat(np.arange(50), 2), np.arange(60, 90)), (np.arange(40, 90), np.arange(10))],
}


@pytest.mark.parametrize("cv", SPLITTERS)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_give_what_memory_gives(tmp_path, cv, kind):
    X, y, weight = problem(p=20)
    memory = LassoCV(cv=SPLITTERS[cv], n_alphas=15, tol=1e-13).fit(X, y, weight)
    scan = stored(tmp_path, X, y, weight, kind)
    one, two = (LassoCV(cv=SPLITTERS[cv], n_alphas=15, tol=1e-13, n_jobs=jobs).fit(scan) for jobs in (1, 2))
    assert_array_equal(one.mse_path_, two.mse_path_)
    assert_allclose(one.alphas_, memory.alphas_, rtol=1e-10)
    assert_allclose(one.mse_path_, memory.mse_path_, rtol=1e-6)
    assert_allclose(one.alpha_, memory.alpha_, rtol=1e-10)
    assert_allclose(one.coef_, memory.coef_, rtol=0, atol=1e-7)
    assert_allclose(one.intercept_, memory.intercept_, rtol=1e-7)
    assert one.certificate_.holds


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_dask_gives_what_memory_gives(known, sparse):
    import dask.array as da

    X, y, weight = problem(p=30)
    X = X * (np.random.default_rng(0).random(X.shape) < 0.4) if sparse else X
    ratios = [0.5, 1.0]
    memory = ElasticNetCV(l1_ratio=ratios, n_alphas=10, tol=1e-13).fit(X, y, weight)
    parts = [da.from_array(a, chunks=(25, *([30] if a.ndim == 2 else []))) for a in (X, y, weight)]
    if sparse:
        parts[0] = parts[0].map_blocks(sp.csr_array, meta=sp.csr_array((0, 30)))
    if not known:
        for part in parts:
            part._chunks = ((np.nan,) * 4, *part.chunks[1:])
    model = ElasticNetCV(l1_ratio=ratios, n_alphas=10, tol=1e-13).fit(*parts)
    assert_allclose(model.mse_path_, memory.mse_path_, rtol=1e-6)
    assert_allclose(model.coef_, memory.coef_, rtol=0, atol=1e-7)
    assert (model.alpha_, model.l1_ratio_) == pytest.approx((memory.alpha_, memory.l1_ratio_))


def test_first_rows_far_from_the_others(tmp_path):
    """Moments around a point that turns out to be far from the mean are taken once more."""
    X, y, weight = problem(p=8)
    order = np.argsort(X[:, 0])
    X[order, 0] += np.where(np.arange(90) < 45, 0.0, 1e6)
    X[:, 1] += 1e7
    scan = stored(tmp_path, X, y, weight)
    memory = LassoCV(n_alphas=8, tol=1e-12, fit_intercept=True).fit(X, y, weight)
    assert_allclose(LassoCV(n_alphas=8, tol=1e-12).fit(scan).mse_path_, memory.mse_path_, rtol=1e-5)
    origin = LassoCV(n_alphas=8, tol=1e-12, fit_intercept=False)
    X, y, weight = problem(p=8)
    again = origin.fit(X, y, weight).mse_path_
    assert_allclose(origin.fit(stored(tmp_path, X, y, weight)).mse_path_, again, rtol=1e-6)


def test_bad_folds_of_files(tmp_path):
    X, y, weight = problem(p=5)
    scan = stored(tmp_path, X, y, weight)
    with pytest.raises(ParameterError, match="cv=1000"):
        LassoCV(cv=1000).fit(scan)
    with pytest.raises(ParameterError, match="cv="):
        LassoCV(cv=GroupKFold(3)).fit(scan)
    weight[:30] = 0.0
    scan = stored(tmp_path, X, y, weight)
    with pytest.raises(DataError, match="tested on have weight zero"):
        LassoCV(cv=3).fit(scan)
    np.save(tmp_path / "x.npy", np.zeros((3, 6002)))
    with pytest.raises(DataError, match="up to 5000"):
        LassoCV(cv=2).fit(ep.scan(tmp_path / "x.npy", target="x0"))
