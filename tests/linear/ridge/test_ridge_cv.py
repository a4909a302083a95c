"""RidgeCV: leave-one-out equals refits without each row, for every shape, weight and penalty; folds equal refits."""

import dask.array as da
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV as SklearnRidgeCV
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit

import epicycle as ep
from epicycle import Ridge, RidgeCV
from epicycle.exceptions import DataError, EpicycleWarning, MemoryBudgetError, ParameterError

ALPHAS = np.array([0.03, 0.5, 4.0, 100.0])
pytestmark = pytest.mark.filterwarnings("ignore:RidgeCV.*alphas.*is the best:epicycle.exceptions.EpicycleWarning")


def refitted(X, y, alphas, weight=None, **parameters):
    """Predictions of every row by a fit without it, by the normal equations with an unpenalised constant."""
    n, p = X.shape
    Y = y[:, None] if y.ndim == 1 else y
    w = np.ones(n) if weight is None else weight
    D = parameters.get("D", np.eye(p))
    out = np.empty((n, Y.shape[1], len(alphas)))
    intercept = parameters.get("intercept", True)
    A = np.column_stack([X, np.ones(n)]) if intercept else X
    big = np.zeros((A.shape[1],) * 2)
    for i in range(n):
        rest = np.arange(n) != i
        for a, alpha in enumerate(alphas):
            big[:p, :p] = alpha * D
            G = (A[rest] * w[rest, None]).T @ A[rest] + big
            out[i, :, a] = A[i] @ np.linalg.lstsq(G, (A[rest] * w[rest, None]).T @ Y[rest], rcond=None)[0]
    return out


SHAPES = {"tall": (40, 5), "square": (12, 11), "as many": (12, 12), "wide": (12, 40), "two rows": (2, 3)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", [1, 2])
def test_leave_one_out_equals_refits(shape, intercept, weighted, targets):
    rng = np.random.default_rng(1)
    n, p = SHAPES[shape]
    X = rng.normal(size=(n, p)) + 1
    y = rng.normal(size=n) + X[:, 0] if targets == 1 else rng.normal(size=(n, 2)) + X[:, :2]
    w = rng.uniform(0.2, 2, size=n) if weighted else None
    expected = refitted(X, y, ALPHAS, w, intercept=intercept)
    model = RidgeCV(ALPHAS, fit_intercept=intercept, store_cv_results=True).fit(X, y, w)
    errors = (y.reshape(n, -1)[:, :, None] - expected) ** 2
    got = model.cv_results_.reshape(n, -1, len(ALPHAS))
    factor = 1.0 if w is None else w[:, None, None]
    assert_allclose(got, factor * errors, rtol=1e-7, atol=1e-10)
    assert_allclose(model.scores_, -np.average(errors, axis=0, weights=w).mean(axis=0), rtol=1e-8)
    assert model.best_score_ == model.scores_.max()
    assert model.alpha_ == ALPHAS[model.scores_.argmax()]
    assert_allclose(model.coef_, Ridge(model.alpha_, fit_intercept=intercept).fit(X, y, w).coef_, rtol=1e-8, atol=1e-11)
    summed = RidgeCV(ALPHAS, fit_intercept=intercept).fit(X, y, w)  # without keeping a number for each row
    assert_allclose(summed.scores_, model.scores_, rtol=1e-10)
    sparse = RidgeCV(ALPHAS, fit_intercept=intercept).fit(sp.csr_array(X), y, w)
    assert_allclose(sparse.scores_, model.scores_, rtol=1e-7)
    if shape != "two rows":  # there every alpha has the same error
        assert_allclose(sparse.coef_, model.coef_, rtol=1e-7, atol=1e-10)
    for fitted in (model, summed, sparse):
        assert fitted.certificate_.holds


def penalties(p, rng):
    A = rng.normal(size=(p, p))
    second = np.diff(np.eye(p), n=2, axis=0)
    return {
        "factors": ({"penalty_weights": (f := rng.uniform(0.1, 3, size=p))}, np.diag(f)),
        "free features": ({"penalty_weights": (f := np.r_[0.0, np.ones(p - 2), 0.0])}, np.diag(f)),
        "matrix": ({"penalty_matrix": (D := A @ A.T / p)}, D),
        "smoothness": ({"penalty_matrix": sp.csr_array(second.T @ second)}, second.T @ second),
    }


@pytest.mark.parametrize("kind", ["factors", "free features", "matrix", "smoothness"])
@pytest.mark.parametrize("shape", ["tall", "wide"])
@pytest.mark.parametrize("weighted", [False, True])
def test_other_penalties(kind, shape, weighted):
    rng = np.random.default_rng(2)
    n, p = SHAPES[shape]
    X, y = rng.normal(size=(n, p)) - 2, rng.normal(size=n)
    w = rng.uniform(0.2, 2, size=n) if weighted else None
    parameters, D = penalties(p, rng)[kind]
    model = RidgeCV(ALPHAS, **parameters).fit(X, y, w)
    errors = (y[:, None, None] - refitted(X, y, ALPHAS, w, D=D)) ** 2
    assert_allclose(model.scores_, -np.average(errors, axis=0, weights=w)[0], rtol=1e-6)
    ridge = Ridge(model.alpha_, **parameters).fit(X, y, w)
    assert_allclose(model.coef_, ridge.coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(model.effective_dof_, np.trace(ridge.hat_matrix(X, w)), rtol=1e-8)
    assert_allclose(model.dof_path_[model.scores_.argmax()], model.effective_dof_, rtol=1e-8)


def test_generalised_cross_validation_is_the_formula():
    rng = np.random.default_rng(3)
    for n, p in ((40, 6), (12, 30)):
        X, y, w = rng.normal(size=(n, p)), rng.normal(size=n), rng.uniform(0.5, 2, size=n)
        model = RidgeCV(ALPHAS, criterion="gcv").fit(X, y, w)
        for a, alpha in enumerate(ALPHAS):
            ridge = Ridge(alpha).fit(X, y, w)
            dof = np.trace(ridge.hat_matrix(X, w))
            rss = (w * (y - ridge.predict(X)) ** 2).sum()
            assert_allclose(model.scores_[a], -rss / w.sum() / (1 - dof / n) ** 2, rtol=1e-9)
            assert_allclose(model.dof_path_[a], dof, rtol=1e-9)


def test_scikit_learn_agrees():
    X, y = load_diabetes(return_X_y=True)
    alphas = np.geomspace(1e-4, 10, 30)
    for target in (y, np.column_stack([y, np.sqrt(y)])):
        for scoring in (None, "neg_mean_absolute_error"):
            for each in (False, True) if target.ndim == 2 else (False,):
                options = {"scoring": scoring, "alpha_per_target": each, "store_cv_results": True}
                model = RidgeCV(alphas, **options).fit(X, target)
                theirs = SklearnRidgeCV(alphas, **options).fit(X, target)
                assert_allclose(model.alpha_, theirs.alpha_)
                assert_allclose(model.best_score_, theirs.best_score_, rtol=1e-9)
                assert_allclose(model.coef_, theirs.coef_, rtol=1e-6, atol=1e-6)
                assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-9)
                assert_allclose(model.cv_results_, theirs.cv_results_, rtol=1e-6)
    assert RidgeCV(alphas, scoring=lambda m, X, y: -mean_absolute_error(y, m.predict(X))).fit(X, y).alpha_ > 0


# ------------------------------------------------------------------------------------------------ folds


@pytest.mark.parametrize("cv", [5, KFold(4, shuffle=True, random_state=0), ShuffleSplit(3, random_state=1), "pairs"])
@pytest.mark.parametrize("p", [4, 60])
@pytest.mark.parametrize("sparse", [False, True])
def test_folds_equal_refits(cv, p, sparse):
    rng = np.random.default_rng(4)
    X = np.where(rng.uniform(size=(50, p)) < 0.3, rng.normal(size=(50, p)), 0.0)
    y, w = X[:, :2].sum(axis=1) + rng.normal(size=50) + 3, rng.uniform(0.5, 2, size=50)
    if cv == "pairs":
        cv = [(np.arange(30), np.arange(30, 50)), (np.arange(10, 50), np.arange(5))]
    folds = cv if isinstance(cv, list) else list((KFold(cv) if isinstance(cv, int) else cv).split(X))
    A = sp.csr_array(X) if sparse else X
    model = RidgeCV(ALPHAS, cv=cv).fit(A, y, w)
    for f, (train, test) in enumerate(folds):
        for a, alpha in enumerate(ALPHAS):
            fit = Ridge(alpha).fit(X[train], y[train], w[train])
            error = np.average((y[test] - fit.predict(X[test])) ** 2, weights=w[test])
            assert_allclose(model.fold_scores_[a, f], -error, rtol=1e-7)
    assert_allclose(model.scores_, model.fold_scores_.mean(axis=1))


def test_folds_with_another_score_and_least_squares_among_the_alphas():
    X, y = load_diabetes(return_X_y=True)
    alphas = [0.0, 0.001, 0.01, 0.1]
    for scoring in ("r2", "neg_mean_squared_error"):
        model = RidgeCV(alphas, cv=4, scoring=scoring).fit(X, y)
        search = GridSearchCV(Ridge(), {"alpha": alphas}, cv=4, scoring=scoring).fit(X, y)
        assert_allclose(model.scores_, search.cv_results_["mean_test_score"], rtol=1e-8)
        assert model.alpha_ == search.best_params_["alpha"]
    two = RidgeCV(alphas, cv=4, alpha_per_target=True).fit(X, np.column_stack([y, X[:, 0]]))
    assert two.fold_scores_.shape == (2, 4, 4)
    assert two.alpha_.tolist() == [RidgeCV(alphas, cv=4).fit(X, t).alpha_ for t in (y, X[:, 0])]


# ------------------------------------------------------------------------------------------------ anywhere


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6000, 12)) + 5
    y = X @ rng.normal(size=12) + 3 * rng.normal(size=6000)
    return X, y, rng.uniform(0.2, 2, size=6000)


@pytest.mark.parametrize("options", [{}, {"criterion": "gcv"}, {"cv": 4}, {"scoring": "r2"}], ids=str)
def test_files_and_dask_choose_alike(table, tmp_path, options):
    X, y, w = table
    alphas = np.geomspace(1, 1e5, 12)
    expected = RidgeCV(alphas, **options).fit(X, y, w)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)]).assign(y=y, w=w)
    frame.to_parquet(tmp_path / "d.parquet")
    scan = ep.scan(tmp_path / "d.parquet", target="y", weight="w", batch_rows=700)
    lazy = [da.from_array(v, chunks=(1300, *v.shape[1:])) for v in (X, y, w)]
    for source in ((scan,), lazy):
        if options.get("scoring") and options.get("cv"):
            continue
        model = RidgeCV(alphas, **options).fit(*source)
        assert model.alpha_ == expected.alpha_
        assert_allclose(model.scores_, expected.scores_, rtol=1e-9)
        assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
        assert_allclose(model.dof_path_, expected.dof_path_, rtol=1e-10)
    if "cv" in options:
        with pytest.raises(ParameterError, match="files and Dask collections take a number of folds"):
            RidgeCV(alphas, cv=KFold(3)).fit(scan)
        frame.to_csv(tmp_path / "d.csv", index=False)
        named = RidgeCV(alphas, **options).fit(ep.scan(tmp_path / "d.csv", target="y", weight="w"))
        assert_allclose(named.scores_, expected.scores_, rtol=1e-8)


def test_the_same_bits_for_any_number_of_threads(table):
    X, y, w = table
    one, two, four = (RidgeCV(n_jobs=n).fit(X, y, w) for n in (1, 2, 4))
    for other in (two, four):
        assert_array_equal(other.scores_, one.scores_)
        assert_array_equal(other.coef_, one.coef_)


def test_single_precision_stays_single(table):
    X, y, w = table
    single, double = RidgeCV().fit(X.astype(np.float32), y, w), RidgeCV().fit(X, y, w)
    assert single.coef_.dtype == np.float32
    assert_allclose(single.scores_, double.scores_, rtol=1e-4)


def test_large_offsets_and_ill_conditioned_columns():
    """Alphas far below the largest eigenvalue: second moments alone would not see the small directions."""
    rng = np.random.default_rng(6)
    U, _ = np.linalg.qr(rng.normal(size=(60, 6)))
    X = (U * np.geomspace(1e4, 1e-3, 6)) @ np.linalg.qr(rng.normal(size=(6, 6)))[0].T
    y = rng.normal(size=60)
    alphas = np.geomspace(1e-9, 1e9, 25)
    model = RidgeCV(alphas, store_cv_results=True).fit(X, y)
    A = X - X.mean(axis=0)
    s = np.linalg.svd(A, compute_uv=False)
    for i in (0, 31):
        rest = np.arange(60) != i
        B, mean = X[rest] - X[rest].mean(axis=0), X[rest].mean(axis=0)
        P, t, Qt = np.linalg.svd(B, full_matrices=False)
        for a, alpha in enumerate(alphas):
            w = Qt.T @ (t / (t**2 + alpha) * (P.T @ (y[rest] - y[rest].mean())))
            assert_allclose(model.cv_results_[i, a], (y[i] - y[rest].mean() - (X[i] - mean) @ w) ** 2, rtol=1e-5)
    assert_allclose(model.dof_path_, [1 + (s**2 / (s**2 + a)).sum() for a in alphas], rtol=1e-7)
    near = np.round(rng.normal(size=(50, 3)) * 2**20) / 2**20
    a, b = RidgeCV().fit(near, near[:, 0] + y[:50]), RidgeCV().fit(near + 2.0**27, near[:, 0] + y[:50])
    assert_allclose(a.scores_, b.scores_, rtol=1e-6)


# ------------------------------------------------------------------------------------------------ the grid


def test_the_grid_reaches_both_ends():
    X, y = load_diabetes(return_X_y=True)
    model = RidgeCV().fit(X, y)
    assert len(model.alphas_) == 50
    assert model.dof_path_[0] > 10.99
    assert model.dof_path_[-1] < 1.01
    assert np.all(np.diff(model.dof_path_) < 0)
    assert model.alphas_[0] < model.alpha_ < model.alphas_[-1]
    noise = RidgeCV().fit(X, np.random.default_rng(0).normal(size=len(y)))
    assert noise.effective_dof_ < 5


def test_an_edge_of_ones_own_grid_is_said():
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(EpicycleWarning, match=r"the largest of alphas \(1e-05\) is the best"):
        RidgeCV([1e-7, 1e-6, 1e-5]).fit(X, y)
    with pytest.warns(EpicycleWarning, match=r"the smallest of alphas \(10\)"):
        RidgeCV([1000, 100, 10]).fit(X, y)
    noise = np.random.default_rng(0).normal(size=len(y))
    with pytest.warns(EpicycleWarning, match="for some targets the largest"):
        RidgeCV([1e-3, 1e-2, 1e-1, 1.0], alpha_per_target=True).fit(X, np.column_stack([y, noise]))


def test_plot():
    mpl.use("Agg")
    X, y = load_diabetes(return_X_y=True)
    for model in (RidgeCV(), RidgeCV(criterion="gcv"), RidgeCV(cv=4), RidgeCV(scoring="r2"), RidgeCV([1.0])):
        ax = model.fit(X, y).plot()
        assert len(ax.lines[0].get_xdata()) == len(model.alphas_)
        assert ax.lines[-1].get_xdata()[0] == model.alpha_
    two = RidgeCV(alpha_per_target=True).fit(X, np.column_stack([y, X[:, 0]]))
    assert len(two.plot().lines) == 4
    mpl.pyplot.close("all")


def test_summary_and_representation(tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = RidgeCV().fit(X, y)
    summary = model.summary()
    assert "naive standard errors do not hold" in summary.note
    assert f"alpha={model.alpha_:g} by leave-one-out" in summary.note
    assert_allclose(summary.facts["effective degrees of freedom"], model.effective_dof_)
    assert "leave-one-out" in model.describe()
    assert RidgeCV()._penalty_line() == ""
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert loaded.effective_dof_ == model.effective_dof_
    assert_array_equal(loaded.leverage(X), model.leverage(X))
    assert_allclose(model.leverage(X).sum(), model.effective_dof_, rtol=1e-9)


# ------------------------------------------------------------------------------------------------ refusals


def test_bad_arguments():
    X, y = load_diabetes(return_X_y=True)
    for parameters, words in (
        ({"alphas": [0.0, 1.0]}, "0 needs cv"),
        ({"alphas": [-1.0, 1.0], "cv": 3}, "alphas: expected finite numbers >= 0"),
        ({"alphas": []}, "alphas has shape"),
        ({"alphas": [[1.0]]}, "alphas has shape"),
        ({"alphas": ["a"]}, "expected numbers"),
        ({"criterion": "aic"}, "criterion='aic'"),
        ({"scoring": "no such"}, "scoring='no such'"),
        ({"criterion": "gcv", "scoring": "r2"}, "criterion='gcv'"),
        ({"cv": 3, "store_cv_results": True}, "store_cv_results"),
        ({"cv": 1}, "cv=1"),
        ({"penalty_weights": [1.0]}, "penalty_weights has shape"),
    ):
        with pytest.raises(ParameterError, match=words):
            RidgeCV(**parameters).fit(X, y)
    with pytest.raises(DataError, match="n_samples=1"):
        RidgeCV().fit(X[:1], y[:1])
    with pytest.raises(DataError, match="one row has a positive weight"):
        RidgeCV().fit(X, y, np.eye(len(y))[0])
    alone = np.column_stack([X, np.eye(len(y))[0]])
    with pytest.raises(DataError, match="a row alone determines an unpenalised feature"):
        RidgeCV(penalty_weights=[1.0] * 10 + [0.0]).fit(alone, y)
    with ep.config(memory_limit=1 << 24), pytest.raises(MemoryBudgetError, match="kernel matrix"):
        RidgeCV().fit(np.ones((2000, 2500), np.float32), np.arange(2000.0))


def test_rows_of_weight_zero_are_predicted_but_do_not_count():
    rng = np.random.default_rng(7)
    for n, p in ((30, 4), (15, 40)):
        X, y = rng.normal(size=(n, p)), rng.normal(size=n)
        w = np.ones(n)
        w[:4] = 0
        a = RidgeCV(ALPHAS, store_cv_results=True).fit(X, y, w)
        b = RidgeCV(ALPHAS, store_cv_results=True).fit(X[4:], y[4:])
        assert_allclose(a.scores_, b.scores_, rtol=1e-9)
        assert_allclose(a.cv_results_[4:], b.cv_results_, rtol=1e-7)
        assert_allclose(a.coef_, b.coef_, rtol=1e-8, atol=1e-12)
        assert not a.cv_results_[:4].any()  # errors times weights
        c = RidgeCV(ALPHAS, store_cv_results=True, scoring="neg_mean_squared_error").fit(X, y, w)
        for j, alpha in enumerate(ALPHAS):
            assert_allclose(c.cv_results_[:4, j], Ridge(alpha).fit(X[4:], y[4:]).predict(X[:4]), rtol=1e-7)


# ------------------------------------------------------------------------------------------------ any data


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(3, 25), st.integers(1, 30), st.booleans(), st.sampled_from(range(4)))
def test_awkward_data(seed, n, p, single, trouble):
    """Constant, copied and wildly scaled columns, more columns than rows, both types: exact, finite, certified."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, size=(n, p)).astype(np.float32 if single else np.float64)
    if trouble == 1:
        X[:, 0] = 3.0
    elif trouble == 2:
        X[:, -1] = -2 * X[:, 0]
    elif trouble == 3:
        X *= 2.0 ** rng.integers(-20, 20, size=p)
    y = rng.normal(size=n)
    model = RidgeCV().fit(X, y)
    assert np.isfinite(model.scores_).all()
    assert model.certificate_.holds
    at = int(model.scores_.argmax())
    i = int(rng.integers(n))
    rest = np.arange(n) != i
    whole = RidgeCV(model.alphas_, store_cv_results=True).fit(X.astype(float), y)
    alone = Ridge(model.alpha_).fit(X[rest].astype(float), y[rest]).predict(X[i : i + 1].astype(float))[0]
    assert_allclose(whole.cv_results_[i, at], (y[i] - alone) ** 2, rtol=1e-4, atol=1e-6)
    assert_allclose(model.scores_, whole.scores_, rtol=1e-9)
