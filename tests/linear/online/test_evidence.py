"""Certificates of stochastic fits that hold are true; quality is scikit-learn's; history, checkpoints, callbacks."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import SGDClassifier as SklearnClassifier, SGDRegressor as SklearnRegressor
from sklearn.preprocessing import scale

import epicycle as ep
from epicycle import Perceptron, SGDClassifier, SGDRegressor
from epicycle.exceptions import ConvergenceWarning, ParameterError
from epicycle.optim._losses import loss_by_name

CLASSIFICATION = ["hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron"]
SIX = ["hinge", "log_loss", "squared_hinge", "squared_error", "huber", "epsilon_insensitive"]
REGRESSION = ["squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"]


def row_losses(loss, z, y):
    return loss_by_name(loss, 0.1).value(z, (y + 1) / 2 if loss == "log_loss" else y)


def minimum(X, y, weight, loss, l2, intercept):
    """The minimum, up to 1e-4, by smooth optimisation of losses that are rounded off at their kinks."""
    p = X.shape[1]
    round_off = 1e-4

    def value(z):
        if loss == "hinge":
            m = 1 - y * z
            return np.where(m > round_off, m - round_off / 2, np.maximum(m, 0) ** 2 / (2 * round_off))
        if loss == "epsilon_insensitive":
            m = np.abs(z - y) - 0.1
            return np.where(m > round_off, m - round_off / 2, np.maximum(m, 0) ** 2 / (2 * round_off))
        return row_losses(loss, z, y)

    def objective(x):
        w = x[:p]
        return weight @ value(X @ w + (x[p] if intercept else 0)) / weight.sum() + l2 / 2 * w @ w

    found = minimize(
        objective, np.zeros(p + 1), method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-12, "gtol": 1e-8}
    )
    return found.fun


@settings(max_examples=15)
@given(
    seed=st.integers(0, 999),
    loss=st.sampled_from(SIX),
    alpha=st.sampled_from([0.003, 0.05, 1.0]),
    intercept=st.booleans(),
    weighted=st.booleans(),
    passes=st.sampled_from([3, 60]),
)
def test_the_bound_on_the_distance_from_the_minimum_is_true(seed, loss, alpha, intercept, weighted, passes):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3))
    t = X @ rng.normal(size=3) + rng.normal(size=80)
    weight = rng.integers(0, 3, size=80).astype(float) if weighted else np.ones(80)
    regression = loss in REGRESSION
    y = t if regression else np.where(t > 0, 1.0, -1.0)
    chosen = {"alpha": alpha, "max_iter": passes, "tol": 1e-2, "n_iter_no_change": passes + 1, "random_state": 0}
    cls = SGDRegressor if regression else SGDClassifier
    with ep.config(on_nonconvergence="ignore"):
        model = cls(loss=loss, fit_intercept=intercept, **chosen).fit(X, y, sample_weight=weight if weighted else None)
    z = X @ model.coef_.ravel() + model.intercept_[0]
    losses = row_losses(loss, z, y)
    value = weight @ losses / weight.sum() + alpha / 2 * np.sum(model.coef_**2)
    best = minimum(X, y, weight, loss, alpha, intercept)
    certificate = model.certificate_
    if certificate.kind == "duality gap":
        assert certificate.holds
        assert value - best <= certificate.value + 1e-4
        assert f"{value:.4g}" in certificate.meaning
    else:
        assert not certificate.holds
        assert not model.converged_


def test_certificates_in_words():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    proven = SGDClassifier(loss="log_loss", alpha=0.05, random_state=0, max_iter=50, tol=None).fit(X, y)
    assert proven.certificate_.kind == "duality gap"
    assert proven.certificate_.value < 1e-3
    hinge = SGDClassifier(alpha=0.05, random_state=0, max_iter=300, tol=None).fit(X, y)
    assert hinge.certificate_.kind == "duality gap"
    loose = SGDClassifier(penalty="l1", random_state=0).fit(X, y)
    assert loose.certificate_.kind == "none"
    assert "no distance from it is known" in loose.certificate_.meaning
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        SGDClassifier(max_iter=2, random_state=0).fit(X, y)


def test_the_certificate_from_files_is_that_of_memory(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = X @ [1.0, 2.0, 0.5] + rng.normal(size=3000)
    pd.DataFrame(X, columns=list("abc")).assign(y=y).to_parquet(tmp_path / "rows.parquet")
    scan = ep.scan(tmp_path / "rows.parquet", target="y", batch_rows=500)
    chosen = {"alpha": 0.1, "shuffle": False, "max_iter": 20, "learning_rate": "optimal", "tol": 0.01}
    files, memory = SGDRegressor(**chosen).fit(scan), SGDRegressor(**chosen).fit(X, y)
    assert files.certificate_.kind == memory.certificate_.kind == "duality gap"
    assert memory.certificate_.value <= files.certificate_.value * (1 + 1e-6)


@pytest.mark.parametrize("loss", ["hinge", "log_loss", "modified_huber"])
def test_held_out_quality_is_scikit_learns(loss):
    rng = np.random.default_rng(0)
    X = sp.random_array((6000, 300), density=0.05, rng=rng, format="csr")
    X.data = rng.normal(size=X.nnz)
    y = (X @ rng.normal(size=300) + 0.5 * rng.normal(size=6000) > 0).astype(int)
    train, test = slice(0, 4000), slice(4000, 6000)
    chosen = {"loss": loss, "alpha": 1e-3}
    ours, theirs = [
        np.mean([cls(random_state=s, **chosen).fit(X[train], y[train]).score(X[test], y[test]) for s in range(5)])
        for cls in (SGDClassifier, SklearnClassifier)
    ]
    assert ours >= theirs - 0.01


def test_held_out_quality_of_a_regression_is_scikit_learns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20))
    y = X @ rng.normal(size=20) + rng.normal(size=3000)
    ours, theirs = [
        np.mean([cls(random_state=s).fit(X[:2000], y[:2000]).score(X[2000:], y[2000:]) for s in range(5)])
        for cls in (SGDRegressor, SklearnRegressor)
    ]
    assert ours >= theirs - 0.003


def test_the_same_seed_is_the_same_fit_and_none_is_another():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    a, b = (SGDClassifier(random_state=4).fit(X, y) for _ in range(2))
    assert np.array_equal(a.coef_, b.coef_)
    assert not np.array_equal(SGDClassifier().fit(X, y).coef_, SGDClassifier().fit(X, y).coef_)


@pytest.mark.parametrize("learning_rate", ["optimal", "adaptive"])
def test_a_checkpoint_goes_on_bit_for_bit(tmp_path, learning_rate):
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    chosen = {"average": True, "penalty": "elasticnet", "learning_rate": learning_rate, "eta0": 0.1, "random_state": 0}
    with ep.config(on_nonconvergence="ignore"):
        whole = SGDClassifier(max_iter=12, tol=None, **chosen).fit(X, y)
        SGDClassifier(max_iter=5, **chosen).set_callbacks(ep.Checkpoint(tmp_path / "run.epi")).fit(X, y)
        resumed = ep.Checkpoint.resume(tmp_path / "run.epi").set_params(max_iter=12, tol=None).fit(X, y)
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert np.array_equal(resumed.history_.objective, whole.history_.objective)


def test_votes_do_not_resume():
    X, y = load_breast_cancer(return_X_y=True)
    model = Perceptron(variant="voted", max_iter=3)
    with ep.config(on_nonconvergence="ignore"):
        model.fit(X, y)
    model.solver_state_ = {"epoch": 1}
    with pytest.raises(ParameterError, match="not part of a checkpoint"):
        model.fit(X, y)


def test_average_regret_falls_on_a_stationary_stream():
    """The mean loss before each step comes down to that of the best fixed model, about like 1 / sqrt(t)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 5))
    y = (X @ [1.0, -1.0, 0.5, 0.0, 2.0] + rng.logistic(size=40_000) > 0).astype(int)
    result = ep.online.evaluate(
        SGDClassifier(loss="log_loss", penalty=None, learning_rate="invscaling", eta0=1.0, average=False),
        X,
        y,
        metric="log_loss",
        batch_size=100,
        window=10_000,
    )
    best = ep.LogisticRegression(C=np.inf).fit(X, y)
    losses = -best.predict_log_proba(X)[np.arange(len(y)), y][100:]  # the first batch is not scored
    regret = result.cumulative - [losses[:rows].mean() for rows in result.rows]
    assert (np.diff(regret) < 0).all()
    assert 0 < regret[-1] < 0.02
