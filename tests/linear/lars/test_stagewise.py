"""Forward stagewise regression: move by move against plain NumPy, its limit, its certificate, its file."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from lasso_reference import centred
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes
from sklearn.utils.estimator_checks import estimator_checks_generator

import epicycle as ep
from epicycle import Lars, Lasso, LinearRegression, Stagewise
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.linear.lars import _stagewise_moves as stagewise_moves

DIABETES = load_diabetes(return_X_y=True)


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pair
        for model in (Stagewise(increment="correlation", max_iter=300, tol=1.0), Stagewise(max_iter=500, tol=1.0))
        for pair in estimator_checks_generator(model)
    ],
    ids=lambda part: part.func.__name__ if hasattr(part, "func") else str(part),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def problem(n=60, p=12, seed=0, density=1.0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, p)) + 1.0) * (rng.random((n, p)) < density)
    y = X[:, : min(p, 4)] @ rng.standard_normal(min(p, 4)) + 0.5 * rng.standard_normal(n) + 3.0
    return X, y, rng.uniform(0.3, 2.0, n)


def by_hand(A, b, step, moves, share=False):
    """The textbook's loop: residuals are kept, everything else is computed anew for every move."""
    w, r, codes = np.zeros(A.shape[1]), b.copy(), []
    for _ in range(moves):
        c = A.T @ r
        j = int(np.argmax(np.abs(c)))
        d = step * c[j] / (A[:, j] @ A[:, j]) if share else step * np.sign(c[j])
        w[j] += d
        r -= d * A[:, j]
        codes.append((j + 1) * int(np.sign(d)))
    return w, r, codes


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(5, 60),
    p=st.integers(1, 80),
    weighted=st.booleans(),
    share=st.booleans(),
    form=st.sampled_from([np.asfortranarray, np.ascontiguousarray, sp.csc_array, sp.csr_array]),
)
def test_move_by_move(seed, n, p, weighted, share, form):
    X, y, weight = problem(n, p, seed, density=0.6 if "cs" in form.__name__ else 1.0)
    weight = weight if weighted else None
    A, b, x_mean, y_mean = centred(X, y, weight)
    first = np.abs(A.T @ b).max()
    if first < 1e-8:
        return
    step = 0.05 if share else 0.02 * first / (A**2).sum(axis=0).max()
    increment = "correlation" if share else "sign"
    model = Stagewise(step, increment=increment, max_iter=40, tol=1.0).fit(form(X), y, weight)
    w, r, codes = by_hand(A, b, step, model.n_moves_, share)
    assert_array_equal(model.moves_, codes)
    assert_allclose(model.coef_, w, rtol=1e-9, atol=1e-13)
    assert_allclose(model.intercept_, y_mean - x_mean @ w, rtol=1e-7, atol=1e-9)
    assert_allclose(model.history_.objective[-1], r @ r / 2, rtol=1e-8, atol=1e-12)
    assert_allclose(model.alpha_, np.abs(A.T @ r).max(), rtol=1e-6, atol=1e-12)
    half, intercept = model.at(model.n_moves_ // 2)
    assert_allclose(half, by_hand(A, b, step, model.n_moves_ // 2, share)[0], rtol=1e-9, atol=1e-13)
    assert_allclose(intercept, y_mean - x_mean @ half, rtol=1e-7, atol=1e-9)


def test_small_steps_lead_along_the_lasso_path():
    """Diabetes: no coefficient turns back up to a norm of 1600, so that the limit is the lasso there."""
    X, y = DIABETES
    lasso = Lars("lasso").fit(X, y)
    errors = []
    for step in (4.0, 0.4, 0.04):
        model = Stagewise(step).fit(X, y)
        errors.append(
            max(np.abs(model.at(int(t / step))[0] - lasso.at(bound=t)[0]).max() for t in (200.0, 800.0, 1600.0))
        )
    assert errors[1] < 0.2 * errors[0]
    assert errors[2] < 0.2 * errors[1]
    assert errors[2] < 0.1
    assert_array_equal(model.active_[:8], lasso.active_[[0, 1, 2, 9, 3, 4, 5, 6]])


@pytest.mark.parametrize("increment", ["sign", "correlation"])
def test_the_end_is_least_squares(increment):
    X, y, weight = problem(80, 6, seed=3)
    best = LinearRegression().fit(X, y, weight)
    model = Stagewise(increment=increment).fit(X, y, weight)
    scale = 2e-2 if increment == "sign" else 1e-8
    assert_allclose(model.coef_, best.coef_, rtol=0, atol=scale * np.abs(best.coef_).max())
    assert model.certificate_.holds


@settings(max_examples=80)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(4, 40),
    p=st.integers(1, 60),
    correlated=st.floats(0, 0.99),
    moves=st.integers(1, 3000),
)
def test_the_certificate_is_true(seed, n, p, correlated, moves):
    """No coefficients of the same norm do better than it says: those of the lasso come closest."""
    X, y, weight = problem(n, p, seed)
    X = (1 - correlated) * X + correlated * X[:, :1]
    A, b, *_ = centred(X, y, weight)
    with ep.config(on_nonconvergence="ignore"):
        model = Stagewise(max_iter=moves).fit(X, y, weight)
        best = Lasso(bound=np.abs(model.coef_).sum(), tol=1e-10).fit(X, y, weight)
    losses = [((b - A @ m.coef_) ** 2).sum() / (b @ b) for m in (model, best)]
    assert losses[0] - losses[1] <= model.certificate_.value + 1e-12
    assert model.certificate_.value <= losses[0] - losses[1] + 1e-5
    assert (np.diff(model.history_.objective) <= 1e-12 * (b @ b)).all()
    assert model.certificate_.holds == (model.certificate_.value <= 1e-3)


def test_coarse_steps_are_not_presented_as_the_lasso():
    X, y = DIABETES
    with pytest.warns(ConvergenceWarning, match="lower step"):
        model = Stagewise(300.0).fit(X, y)
    assert not model.certificate_.holds
    assert not model.converged_


def test_where_it_ends():
    X, y = DIABETES
    level = Stagewise(1.0, alpha=0.5).fit(X, y)
    assert level.alpha_ <= 0.5 < Stagewise(1.0, max_iter=level.n_moves_ - 1).fit(X, y).alpha_
    assert Stagewise(1.0, max_iter=7).fit(X, y).n_moves_ == 7
    end = Stagewise(5.0).fit(X, y)  # a move would gain nothing: |x_j'r| <= step |x_j|^2 / 2
    assert end.alpha_ * len(y) <= 5.0 / 2 * (1 + 1e-9)
    assert not Stagewise(alpha=1e6).fit(X, y).coef_.any()
    assert not Stagewise().fit(X, np.ones(len(y))).coef_.any()


def test_history_tells_who_moved_first():
    X, y = DIABETES
    model = Stagewise(0.5).fit(X, y)
    entered = model.history_.entered[~np.isnan(model.history_.entered)].astype(int)
    assert_array_equal(entered, model.active_)
    turned = model.history_.turned[~np.isnan(model.history_.turned)].astype(int)
    assert 6 in turned  # hdl, which leaves the lasso, goes back here
    assert model.history_.moves[-1] == model.n_moves_
    assert_allclose(model.history_.norm[-1], model.bound_)
    assert model.n_iter_ == model.history_.n_iter


def test_staged_predictions():
    X, y, _ = problem()
    model = Stagewise().fit(X, y)
    stages = list(model.staged_predict(X, n_stages=20))
    assert len(stages) == 20
    assert_allclose(stages[-1], model.predict(X), rtol=1e-9)
    errors = [((y - stage) ** 2).mean() for stage in stages]
    assert (np.diff(errors) < 1e-9).all()
    with pytest.raises(ParameterError, match="n_moves"):
        model.at(model.n_moves_ + 1)


def test_files_dask_threads_and_wide_matrices(tmp_path, monkeypatch):
    import dask.array as da

    X, y, weight = problem(500, 20, seed=5)
    memory = Stagewise().fit(X, y, weight)
    pd.DataFrame(X, columns=[f"x{j}" for j in range(20)]).assign(y=y, w=weight).to_parquet(tmp_path / "d.parquet")
    scan = ep.scan(tmp_path / "d.parquet", target="y", weight="w", batch_rows=90)
    one, two = (Stagewise(memory.step_, n_jobs=jobs).fit(scan) for jobs in (1, 2))
    assert_array_equal(one.moves_, two.moves_)
    dask = Stagewise(memory.step_).fit(*(da.from_array(a, chunks=120) for a in (X, y, weight)))
    for model in (one, dask):
        assert_allclose(model.coef_, memory.coef_, rtol=0, atol=3 * memory.step_)
    wide, target, _ = problem(60, 3000, seed=6)
    first, other = (Stagewise(alpha=0.1, n_jobs=jobs).fit(np.asfortranarray(wide), target) for jobs in (1, 3))
    assert_array_equal(first.moves_, other.moves_)
    monkeypatch.setattr(stagewise_moves, "WORK_PER_CALL", 3e3 * 7)  # comes back after a few moves at a time
    assert_array_equal(Stagewise(alpha=0.1).fit(np.asfortranarray(wide), target).moves_, first.moves_)


def test_checkpoint_and_file(tmp_path):
    X, y = DIABETES
    whole = Stagewise(1.0).fit(X, y)
    stopped = ep.Checkpoint(tmp_path / "s.epi")
    with pytest.warns(ConvergenceWarning):
        Stagewise(1.0).set_callbacks(stopped, ep.TimeLimit(1e-9)).fit(X, y)
    resumed = ep.Checkpoint.resume(tmp_path / "s.epi")
    assert resumed.n_iter_ < whole.n_iter_
    resumed.fit(X, y)
    assert_array_equal(resumed.moves_, whole.moves_)
    assert_array_equal(resumed.coef_, whole.coef_)
    whole.save(tmp_path / "m.epi")
    back = ep.load(tmp_path / "m.epi")
    assert_array_equal(back.predict(X), whole.predict(X))
    assert_array_equal(back.at(100)[0], whole.at(100)[0])


def test_plot():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = Stagewise(1.0).fit(X, y)
    for against in ("norm", "fraction"):
        ax = model.plot(against, labels=5)
        assert {text.get_text() for text in ax.texts} <= set(X.columns)
        assert len(ax.texts) == 5
        plt.close(ax.figure)
    with pytest.raises(ParameterError, match="against"):
        model.plot("alpha")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Stagewise(0.0), "step"),
        (Stagewise(2.0, increment="correlation"), "share"),
        (Stagewise(increment="both"), "increment"),
        (Stagewise(alpha=-1.0), "alpha"),
        (Stagewise(max_iter=0), "max_iter"),
    ],
)
def test_bad_parameters(model, message):
    X, y, _ = problem()
    with pytest.raises(ParameterError, match=message):
        model.fit(X, y)
    with pytest.raises(DataError, match="NaN"):
        Stagewise().fit(np.where(X > 2, np.nan, X), y)
