"""One step after another: formulas by hand, and scikit-learn's implementation of the same steps."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.linear_model import (
    Perceptron as SklearnPerceptron,
    SGDClassifier as SklearnClassifier,
    SGDRegressor as SklearnRegressor,
)

import epicycle as ep
from epicycle import Perceptron, SGDClassifier, SGDRegressor

CLASSIFICATION = [
    "hinge",
    "log_loss",
    "modified_huber",
    "squared_hinge",
    "perceptron",
    "squared_error",
    "huber",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
]
REGRESSION = ["squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"]
SCHEDULES = ["optimal", "constant", "invscaling", "adaptive", "c/t", "a/(b+k)"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    t = X @ [1.0, -1.0, 0.5, 0.0, 2.0, 0.0] + 0.3 + rng.normal(size=400)
    return X, t


def settings(**more):
    return {"shuffle": False, "max_iter": 3, "tol": None, **more}


@pytest.mark.parametrize("penalty", ["l2", "l1", None])
@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_classifier_takes_scikit_learns_steps(table, loss, penalty):
    X, t = table
    chosen = settings(loss=loss, penalty=penalty, alpha=1e-3, learning_rate="invscaling", eta0=0.02)
    ours, theirs = SGDClassifier(**chosen).fit(X, t > 0), SklearnClassifier(**chosen).fit(X, t > 0)
    assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-13)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=1e-13)


@pytest.mark.parametrize("schedule", ["optimal", "constant", "invscaling", "adaptive"])
@pytest.mark.parametrize("loss", REGRESSION)
def test_regressor_takes_scikit_learns_steps(table, loss, schedule):
    X, t = table
    chosen = settings(loss=loss, alpha=0.05, learning_rate=schedule, eta0=0.03)
    with ep.config(on_nonconvergence="ignore"):
        ours, theirs = SGDRegressor(**chosen).fit(X, t), SklearnRegressor(**chosen).fit(X, t)
    if "capped" not in ours.history_:
        assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-12)
        assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_sparse_rows_take_scikit_learns_steps(table, loss):
    X, t = table
    X = sp.csr_matrix(np.where(np.abs(X) < 0.7, 0.0, X))
    chosen = settings(loss=loss, alpha=1e-2)
    ours, theirs = SGDClassifier(**chosen).fit(X, t > 0), SklearnClassifier(**chosen).fit(X, t > 0)
    assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-11)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("average", [True, 7, 500])
def test_averages_are_scikit_learns(table, average):
    X, t = table
    chosen = settings(alpha=1e-3, average=average)
    ours, theirs = SGDClassifier(**chosen).fit(X, t > 0), SklearnClassifier(**chosen).fit(X, t > 0)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-11)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-11)


def test_one_against_the_rest_is_scikit_learns(table):
    X, t = table
    y = np.digitize(t, [-1.5, 0.0, 1.5])
    chosen = settings(loss="log_loss", alpha=1e-3)
    ours, theirs = SGDClassifier(**chosen).fit(X, y), SklearnClassifier(**chosen).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-11)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-9)
    assert_allclose(ours.predict_log_proba(X), np.log(ours.predict_proba(X)))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("loss", ["log_loss", "modified_huber"])
def test_probabilities_are_scikit_learns(table, loss, classes):
    X, t = table
    y = np.digitize(t, np.quantile(t, np.linspace(0, 1, classes + 1)[1:-1]))
    chosen = settings(loss=loss, alpha=0.01, learning_rate="invscaling", eta0=0.02)
    ours, theirs = SGDClassifier(**chosen).fit(X, y), SklearnClassifier(**chosen).fit(X, y)
    p = ours.predict_proba(X)
    assert_allclose(p, theirs.predict_proba(X), rtol=1e-9, atol=1e-12)
    assert_allclose(p.sum(axis=1), 1)


def test_perceptron_makes_scikit_learns_mistakes(table):
    X, t = table
    with ep.config(on_nonconvergence="ignore"):
        ours = Perceptron(**settings()).fit(X, t > 0)
    theirs = SklearnPerceptron(**settings()).fit(X, t > 0)
    assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-11)
    assert_allclose(ours.intercept_, theirs.intercept_)


def step_length(schedule, t, alpha, eta0, power, offset):
    return {
        "optimal": lambda: 1 / (alpha * (alpha**-0.75 + t - 1)),
        "constant": lambda: eta0,
        "invscaling": lambda: eta0 / t**power,
        "adaptive": lambda: eta0,
        "c/t": lambda: eta0 / t,
        "a/(b+k)": lambda: eta0 / (offset + t),
    }[schedule]()


def by_hand(X, y, slope, *, l2, l1, schedule, eta0, alpha, power, offset):
    """The steps as they are written, on dense vectors: decay, move, shrink with what is owed (Tsuruoka et al.)."""
    p = X.shape[1]
    w, b, mean, owed, paid = np.zeros(p), 0.0, np.zeros(p), 0.0, np.zeros(p)
    for t, (x, target) in enumerate(zip(X, y, strict=True), 1):
        eta = step_length(schedule, t, alpha, eta0, power, offset)
        g = slope(w @ x + b, target)
        factor = max(0.0, 1 - eta * l2)
        w, owed, paid = factor * w, factor * owed, factor * paid  # debts are in the units of the scaled weights
        w = w - eta * g * x
        b -= eta * g
        owed += eta * l1
        shrunk = np.where(w > 0, np.maximum(w - (owed + paid), 0), np.minimum(w + (owed - paid), 0))
        paid += shrunk - w
        w = shrunk
        mean += (w - mean) / t
    return w, b, mean


@pytest.mark.parametrize("layout", ["dense", "fortran", "float32", "csr"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_against_the_formulas(table, schedule, layout):
    X, t = table
    X = np.where(np.abs(X) < 0.7, 0.0, X).astype(np.float32).astype(np.float64)
    y = np.where(t > 0, 1.0, -1.0)
    chosen = {"alpha": 0.02, "eta0": 0.1, "offset": 5.0, "learning_rate": schedule}
    given = {"dense": X, "fortran": np.asfortranarray(X), "float32": X.astype(np.float32), "csr": sp.csr_array(X)}
    model = SGDClassifier(loss="log_loss", penalty="elasticnet", l1_ratio=0.3, intercept_rate=1.0, **chosen)
    model.partial_fit(given[layout], y, classes=[-1.0, 1.0])
    w, b, _ = by_hand(
        X,
        y,
        lambda z, y: -y / (1 + np.exp(y * z)),
        l2=0.014,
        l1=0.006,
        schedule=schedule,
        eta0=0.1,
        alpha=0.02,
        power=0.5,
        offset=5.0,
    )
    assert model.coef_.dtype == given[layout].dtype
    tolerance = 1e-6 if layout == "float32" else 1e-12
    assert_allclose(model.coef_[0], w, rtol=0, atol=tolerance)
    assert_allclose(model.intercept_[0], b, rtol=0, atol=tolerance)
    assert (w == 0).any() == (model.coef_ == 0).any()


@pytest.mark.parametrize("sparse", [False, True])
def test_the_mean_of_all_steps(table, sparse):
    X, t = table
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    y = np.where(t > 0, 1.0, -1.0)
    model = SGDClassifier(
        alpha=0.3, average=True, intercept_rate=1.0
    )  # a large penalty, so that the scale is folded in on the way
    for _ in range(40):
        model.partial_fit(sp.csr_array(X) if sparse else X, y, classes=[-1, 1])
    _, _, mean = by_hand(
        np.tile(X, (40, 1)),
        np.tile(y, 40),
        lambda z, y: -y if y * z <= 1 else 0.0,
        l2=0.3,
        l1=0.0,
        schedule="optimal",
        eta0=1,
        alpha=0.3,
        power=0.5,
        offset=1.0,
    )
    assert_allclose(model.coef_[0], mean, rtol=1e-9)


def test_l1_leaves_exact_zeros_and_costs_untouched_columns_nothing(table):
    X, t = table
    wide = sp.csr_array(np.hstack([X, np.zeros((400, 50))]))
    model = SGDClassifier(penalty="l1", alpha=0.05, random_state=0).fit(wide, t > 0)
    assert np.all(model.coef_[0, 6:] == 0)
    assert 0 < np.count_nonzero(model.coef_) < 6


@pytest.mark.parametrize("loss", ["squared_error", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("eta0", [1.0, 1e3, 1e8])
def test_large_steps_are_safe(table, loss, eta0):
    X, t = table
    model = SGDRegressor(loss=loss, eta0=eta0, learning_rate="constant", max_iter=5, tol=None).fit(1e3 * X, t)
    assert np.isfinite(model.coef_).all()
    assert model.history_.capped.sum() > 0
    assert np.mean((model.predict(1e3 * X) - t) ** 2) < 20 * np.var(t)


def test_scale_is_folded_in_before_it_underflows(table):
    X, t = table
    model = SGDClassifier(loss="log_loss", alpha=0.9, learning_rate="constant", eta0=0.9, max_iter=50, tol=None)
    model.fit(X, t > 0)
    assert np.isfinite(model.coef_).all()
    assert 0 < np.abs(model.coef_).max() < 10
