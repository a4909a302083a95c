"""Lasso and ElasticNet as estimators: contract, containers, engines, evidence, files, bad input."""

import threading
import time
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from lasso_reference import alpha_max, centred
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import estimator_checks_generator

import epicycle as ep
from epicycle import ElasticNet, Lasso
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError, ParameterTypeError

MODELS = [
    Lasso(),
    Lasso(alpha=0.01, positive=True),
    Lasso(alpha=0.1, fit_intercept=False, n_jobs=2),
    ElasticNet(),
    ElasticNet(alpha=0.05, l1_ratio=0.0),
]


@pytest.mark.parametrize(
    ("estimator", "check"),
    [pair for model in MODELS for pair in estimator_checks_generator(model)],
    ids=lambda part: part.func.__name__ if hasattr(part, "func") else str(part),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def problem(n=120, p=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 1.0
    y = X[:, :5] @ [3.0, -2.0, 1.0, 0.5, -4.0] + rng.standard_normal(n)
    return X, y, rng.uniform(0.5, 2.0, n)


def test_every_container_gives_the_same_coefficients():
    X, y, weight = problem(n=60, p=12)
    X *= np.random.default_rng(1).random(X.shape) < 0.5
    names = [f"f{j}" for j in range(12)]
    expected = Lasso(0.1, tol=1e-13).fit(X, y, weight)
    containers = [
        pd.DataFrame(X, columns=names),
        pl.DataFrame(dict(zip(names, X.T, strict=True))),
        X.tolist(),
        sp.csr_matrix(X),
        sp.csc_array(X),
        sp.coo_array(X),
        np.asfortranarray(X),
    ]
    for container in containers:
        model = Lasso(0.1, tol=1e-13).fit(container, y, weight)
        assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-7)
        assert_allclose(model.predict(container), expected.predict(X), rtol=0, atol=1e-6)
    assert Lasso().fit(containers[0], y).feature_names_in_.tolist() == names


def test_float32_stays_float32_and_close():
    X, y, _ = problem()
    alpha = 0.1 * alpha_max(*centred(X, y)[:2])
    for form in (np.asfortranarray, np.ascontiguousarray, sp.csc_array):
        double, single = Lasso(alpha).fit(form(X), y), Lasso(alpha).fit(form(X.astype(np.float32)), y)
        assert single.coef_.dtype == np.float32
        assert single.predict(X.astype(np.float32)).dtype == np.float32
        assert_allclose(single.coef_, double.coef_, rtol=0, atol=1e-4)
        assert single.certificate_.holds


def test_nothing_is_written_to_the_arguments():
    X, y, weight = problem()
    for form in (np.asfortranarray, np.ascontiguousarray, sp.csc_array, sp.csr_array):
        given = form(X)
        given_y, given_weight, start = y.copy(), weight.copy(), np.ones(300)
        Lasso(0.1).fit(given, given_y, given_weight, coef_init=start)
        assert_array_equal(given.toarray() if sp.issparse(given) else given, X)
        assert_array_equal(given_y, y)
        assert_array_equal(given_weight, weight)
        assert start.all()


def test_same_bits_for_any_number_of_threads():
    X, y, weight = problem(n=300, p=3000)
    for form in (np.asfortranarray, np.ascontiguousarray, sp.csc_array):
        one, three = (Lasso(0.05, n_jobs=jobs).fit(form(X), y, weight) for jobs in (1, 3))
        assert_array_equal(one.coef_, three.coef_)
        assert one.intercept_ == three.intercept_


def test_several_targets_are_fitted_one_by_one():
    X, y, weight = problem()
    Y = np.column_stack([y, -2 * y + X[:, 7], np.zeros(len(y))])
    model = ElasticNet(0.2, l1_ratio=0.8, tol=1e-12).fit(X, Y, weight)
    assert model.coef_.shape == (3, 300)
    assert model.dual_gap_.shape == (3,)
    for t in range(3):
        single = ElasticNet(0.2, l1_ratio=0.8, tol=1e-12).fit(X, Y[:, t], weight)
        assert_array_equal(model.coef_[t], single.coef_)
    assert set(model.history_.target) == {0, 1, 2}
    assert model.sparse_coef_.shape == (3, 300)
    assert model.predict(X).shape == (120, 3)


# ---------------------------------------------------------------- engines


@pytest.mark.parametrize("l1_ratio", [1.0, 0.3])
def test_files_and_dask_give_what_memory_gives(tmp_path, l1_ratio):
    import dask.array as da

    rng = np.random.default_rng(3)
    X = rng.standard_normal((3000, 150)) + 5.0  # more columns than the Gram matrix is formed for in memory
    y = X[:, :6] @ rng.standard_normal(6) + rng.standard_normal(3000) - 2.0
    weight = rng.uniform(0.5, 1.5, 3000)
    arguments = {"alpha": 0.05, "l1_ratio": l1_ratio, "tol": 1e-13}
    memory = ElasticNet(**arguments).fit(X, y, weight)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(150)]).assign(y=y, w=weight)
    frame.iloc[:1700].to_parquet(tmp_path / "0.parquet")
    frame.iloc[1700:].to_parquet(tmp_path / "1.parquet")
    scan = ep.scan(tmp_path / "*.parquet", target="y", weight="w", batch_rows=500)
    one, two = (ElasticNet(**arguments, n_jobs=jobs).fit(scan) for jobs in (1, 2))
    assert_array_equal(one.coef_, two.coef_)
    chunks = (700, 150)
    dask = ElasticNet(**arguments).fit(
        da.from_array(X, chunks=chunks), da.from_array(y, chunks=700), da.from_array(weight, chunks=700)
    )
    for model in (one, dask):
        assert_allclose(model.coef_, memory.coef_, rtol=0, atol=1e-8)
        assert_allclose(model.intercept_, memory.intercept_, rtol=0, atol=1e-7)
        assert model.certificate_.holds
    assert_allclose(dask.predict(da.from_array(X, chunks=chunks)).compute(), memory.predict(X), atol=1e-7)


def test_too_many_columns_for_a_gram_matrix_from_files(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 6002)))
    with pytest.raises(DataError, match="up to 5000"):
        Lasso().fit(ep.scan(tmp_path / "x.npy", target="x0"))


# ---------------------------------------------------------------- evidence


def test_evidence_and_warm_start():
    X, y, _ = problem()
    model = Lasso(0.1).fit(X, y)
    assert model.certificate_.kind == "duality gap"
    assert model.certificate_.holds
    assert model.converged_
    total = ((y - y.mean()) ** 2).mean() / 2
    assert_allclose(model.dual_gap_ / total, model.certificate_.value)
    assert {"objective", "gap", "working_set", "not_screened", "seconds"} <= set(model.history_)
    assert model.history_.not_screened[-1] < 300
    again = Lasso(0.1).fit(X, y, coef_init=model.coef_)
    assert again.history_.n_iter == 1
    assert "0.1 |w|_1" in model.describe()
    assert "w >= 0" in ElasticNet(0.1, positive=True).fit(X, y).describe()


def test_a_fit_cut_short_warns_and_does_not_certify():
    X, y, _ = problem(p=2000)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model = Lasso(0.001, max_iter=1).fit(X, y)
    assert not model.converged_
    assert not model.certificate_.holds


def test_checkpoint_and_resume(tmp_path):
    X, y, _ = problem(p=2000)
    alpha = 0.05
    whole = Lasso(alpha, tol=1e-12).fit(X, y)
    assert whole.n_iter_ >= 3
    with pytest.warns(ConvergenceWarning):
        Lasso(alpha, tol=1e-12, max_iter=2).set_callbacks(ep.Checkpoint(tmp_path / "c.epi")).fit(X, y)
    resumed = ep.Checkpoint.resume(tmp_path / "c.epi").set_params(max_iter=1000).fit(X, y)
    assert resumed.converged_
    assert_allclose(resumed.coef_, whole.coef_, rtol=0, atol=1e-7)


@pytest.mark.parametrize("model", [Lasso(0.1), ElasticNet(0.1, l1_ratio=0.2, penalty_weights=np.linspace(0, 1, 300))])
def test_round_trip_through_a_file(tmp_path, model):
    X, y, _ = problem()
    model.fit(X, y).save(tmp_path / "m.epi")
    back = ep.load(tmp_path / "m.epi")
    assert_array_equal(back.predict(X), model.predict(X))
    assert back.certificate_ == model.certificate_
    assert back.history_ == model.history_
    assert back.get_params().keys() == model.get_params().keys()


@pytest.mark.parametrize("name", ["Lasso", "ElasticNet", "LassoCV", "ElasticNetCV"])
def test_listed_among_the_methods(name):
    (card,) = [card for card in ep.methods(family="linear") if card.name == name]
    assert card.catalogue == ("A7",)
    assert card.certificate == "duality gap"


# ---------------------------------------------------------------- degenerate data and bad input


def test_constant_target_and_constant_columns():
    X, y, _ = problem(p=10)
    for form in (np.asfortranarray, sp.csc_array):
        model = Lasso(0.1).fit(form(X), np.full(120, 3.0))
        assert not model.coef_.any()
        assert_allclose(model.intercept_, 3.0)
        assert model.certificate_.holds
        flat = X.copy()
        flat[:, [0, 4]] = 0.1
        assert not Lasso(1e-4).fit(form(flat), y).coef_[[0, 4]].any()
        assert not Lasso(1e-4, penalty_weights=np.arange(10)).fit(form(flat), y).coef_[[0, 4]].any()


def test_one_row():
    model = Lasso(0.1).fit(np.ones((1, 3)), [2.0])
    assert not model.coef_.any()
    assert model.intercept_ == 2.0


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (Lasso(-1.0), ParameterError, "alpha=-1.0"),
        (Lasso("a"), ParameterTypeError, "alpha='a'"),
        (Lasso(np.nan), ParameterError, "alpha"),
        (ElasticNet(l1_ratio=1.2), ParameterError, "l1_ratio=1.2"),
        (Lasso(tol=-1.0), ParameterError, "tol"),
        (Lasso(max_iter=0), ParameterError, "max_iter"),
        (Lasso(penalty_weights=[1.0, 2.0]), ParameterError, "penalty_weights has shape"),
        (Lasso(penalty_weights=-np.ones(300)), ParameterError, "penalty_weights"),
        (Lasso(penalty_weights=np.zeros(300), positive=True), ParameterError, "positive=True"),
        (Lasso(alpha=0.0, positive=True), ParameterError, "positive=True"),
    ],
)
def test_bad_parameters(model, error, message):
    X, y, _ = problem()
    with pytest.raises(error, match=message):
        model.fit(X, y)


@pytest.mark.parametrize("form", [np.asfortranarray, sp.csc_array, sp.csr_array])
def test_bad_data(form):
    X, y, _ = problem(p=150)
    bad = X.copy()
    bad[3, 4] = np.nan
    with pytest.raises(DataError, match="NaN"):
        Lasso().fit(form(bad), y)
    with pytest.raises(DataError, match="overflow"), np.errstate(all="ignore"):
        Lasso().fit(form(X * 1e200), y)
    with pytest.raises(DataError, match="coef_init"):
        Lasso().fit(form(X), y, coef_init=np.zeros(3))
    with pytest.raises(DataError, match="coef_init"):
        Lasso().fit(form(X), y, coef_init=np.full(150, np.inf))
    with pytest.raises(DataError, match="y"):
        Lasso().fit(form(X), y[:-1])


# ---------------------------------------------------------------- resources


@pytest.mark.serial
def test_no_copy_of_a_large_matrix():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((4000, 5000)))  # 160 MB
    y = X[:, :3].sum(axis=1) + rng.standard_normal(4000)
    for given in (X, np.ascontiguousarray(X[:, :2500])):
        tracemalloc.start()
        Lasso(0.2).fit(given, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.5 * given.nbytes


@pytest.mark.serial
def test_an_interrupt_ends_a_long_fit():
    """Highly correlated columns, a tiny penalty, a tolerance out of reach: Ctrl-C ends it within a second."""
    import _thread

    rng = np.random.default_rng(0)
    X = sp.csc_array(np.abs(rng.standard_normal((1000, 1))) + 1e-3 * rng.standard_normal((1000, 500)))
    y = rng.standard_normal(1000)
    timer = threading.Timer(1.5, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    model = Lasso(1e-9, tol=1e-16, max_iter=10**6)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert time.monotonic() - began < 3.0
    assert not hasattr(model, "coef_")
