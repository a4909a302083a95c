"""LinearSVC and LinearSVR against liblinear, against a quadratic programme, and against themselves."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC as LiblinearSVC, LinearSVR as LiblinearSVR

import epicycle as ep
from epicycle import LinearSVC, LinearSVR
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError

SVC_LOSSES = {"hinge": 1, "squared_hinge": 2}
SVR_LOSSES = {"epsilon_insensitive": 1, "squared_epsilon_insensitive": 2}


def objective(model, X, y, weight=None, s=1.0):
    """P, written out once more; y is -1 and 1 for a classifier."""
    w, b = np.ravel(model.coef_).astype(float), float(np.ravel(model.intercept_)[0])
    z = X @ w + b
    v = 1 - y * z if hasattr(model, "classes_") else np.abs(z - y) - model.epsilon
    q = 2 if model.loss.startswith("squared") else 1
    return (
        w @ w / 2
        + (b / s) ** 2 / 2
        + model.C * float(np.sum((1 if weight is None else weight) * np.maximum(v, 0) ** q))
    )


def quadratic_programme(X, y, C, weight, *, q, epsilon=None, s=1.0):
    """The least |theta|^2 / 2 + C sum_i v_i xi_i^q with xi_i >= 0 and not below the violation, by SLSQP."""
    A = np.column_stack([X, np.full(len(X), s)])
    n, d = A.shape
    c = C * weight
    if epsilon is None:
        rows, right = np.hstack([y[:, None] * A, np.eye(n)]), np.ones(n)
    else:
        rows = np.vstack([np.hstack([A, np.eye(n)]), np.hstack([-A, np.eye(n)])])
        right = np.append(y - epsilon, -y - epsilon)

    def value(v):
        theta, xi = v[:d], v[d:]
        return theta @ theta / 2 + c @ xi**q, np.append(theta, c * q * xi ** (q - 1))

    start = np.append(np.zeros(d), np.full(n, 1 + np.abs(y).max()))
    found = minimize(
        value,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(None, None)] * d + [(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda v: rows @ v - right, "jac": lambda v: rows},
        options={"maxiter": 500, "ftol": 1e-13},
    )
    assert found.success or found.status == 8  # it ended where rounding ends: the value decides
    return found.fun


def problem(seed, n=80, p=4, *, weighted=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.3, 2, p) + rng.normal(size=p) * 0.5
    X[1] = X[0]  # duplicated rows, also with another label
    z = X @ rng.normal(size=p) + rng.normal(size=n)
    weight = rng.integers(0, 4, n).astype(float) if weighted else np.ones(n)
    return X, np.where(z > 0.5, 1, -1), z + 1, weight


@pytest.mark.parametrize("solver", ["newton", "dual-cd"])
def test_the_minimum_of_a_quadratic_programme(solver):
    for seed, C in ((0, 0.05), (1, 1.0)):
        X, labels, numbers, weight = problem(seed, n=30, p=3)
        for loss, q in SVC_LOSSES.items():
            model = LinearSVC(loss=loss, C=C, tol=1e-7, solver=solver, intercept_scaling=2.0, max_iter=50_000)
            model.set_params(random_state=0).fit(X, labels, weight)
            dual = quadratic_programme(X[weight > 0], labels[weight > 0], C, weight[weight > 0], q=q, s=2.0)
            assert_allclose(model.objective_, dual, rtol=3e-7)
            assert_allclose(objective(model, X, labels, weight, s=2.0), model.objective_[0], rtol=1e-12)
        for loss, q in SVR_LOSSES.items():
            for epsilon in (0.0, 0.4):
                model = LinearSVR(loss=loss, epsilon=epsilon, C=C, tol=1e-7, solver=solver, max_iter=50_000)
                model.set_params(random_state=0).fit(X, numbers, weight)
                dual = quadratic_programme(
                    X[weight > 0], numbers[weight > 0], C, weight[weight > 0], q=q, epsilon=epsilon
                )
                assert_allclose(model.objective_, dual, rtol=3e-7)
                assert_allclose(objective(model, X, numbers, weight), model.objective_, rtol=1e-12)


def test_the_objective_of_liblinear():
    for seed in range(6):
        X, labels, numbers, weight = problem(seed, n=150, weighted=seed % 2 == 0)
        C = 10.0 ** (seed % 3 - 2)
        for loss in SVC_LOSSES:
            theirs = LiblinearSVC(loss=loss, C=C, tol=1e-9, max_iter=300_000, dual=True).fit(X, labels, weight)
            model = LinearSVC(loss=loss, C=C, tol=1e-8).fit(X, labels, weight)
            assert_allclose(model.objective_[0], objective(theirs, X, labels, weight), rtol=1e-6)
            assert_allclose(model.coef_, theirs.coef_, atol=2e-3)
        for loss in SVR_LOSSES:
            theirs = LiblinearSVR(loss=loss, C=C, epsilon=0.2, tol=1e-9, max_iter=300_000).fit(X, numbers, weight)
            model = LinearSVR(loss=loss, C=C, epsilon=0.2, tol=1e-8).fit(X, numbers, weight)
            assert_allclose(model.objective_, objective(theirs, X, numbers, weight), rtol=1e-6)


def test_real_data():
    X, y = load_iris(return_X_y=True)
    theirs = LiblinearSVC(C=0.5, tol=1e-8, max_iter=100_000).fit(X, y)
    assert_allclose(LinearSVC(C=0.5, tol=1e-12).fit(X, y).coef_, theirs.coef_, atol=1e-4)
    X, y = load_diabetes(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SklearnConvergenceWarning)
        theirs = LiblinearSVR(C=10.0, epsilon=5.0, tol=1e-6, max_iter=10_000).fit(scale(X), y)
    model = LinearSVR(C=10.0, epsilon=5.0, tol=1e-9).fit(scale(X), y)
    assert model.certificate_.holds
    assert model.objective_ <= objective(theirs, scale(X), y) * (1 + 1e-9)


# ------------------------------------------------------------------------------------------------ the certificate


def test_the_certificate_is_true_at_any_tolerance():
    for seed in range(4):
        X, labels, numbers, weight = problem(seed, n=300)
        for make, y in ((LinearSVC, labels), (LinearSVR, numbers)):
            for loss in SVC_LOSSES if make is LinearSVC else SVR_LOSSES:
                least = np.sum(make(loss=loss, tol=1e-11).fit(X, y, weight).objective_)
                for solver in ("newton", "dual-cd"):
                    for tol in (0.3, 1e-2, 1e-4):
                        model = make(loss=loss, tol=tol, solver=solver, random_state=seed, max_iter=5000)
                        model.fit(X, y, weight)
                        assert model.certificate_.holds
                        assert model.certificate_.value <= tol
                        above = (np.sum(model.objective_) - least) / np.sum(model.objective_)
                        assert -1e-10 <= above <= model.certificate_.value + 1e-10
                        assert np.sum(model.dual_objective_) <= least * (1 + 1e-10)


@pytest.mark.parametrize("solver", ["newton", "dual-cd"])
def test_cut_short(solver):
    X, labels, _, _ = problem(3, n=200)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = LinearSVC(loss="hinge", C=100.0, tol=1e-10, max_iter=3, solver=solver, random_state=0).fit(X, labels)
    assert not model.certificate_.holds
    assert model.n_iter_ == model.history_.n_iter == 3
    least = LinearSVC(loss="hinge", C=100.0, tol=1e-9).fit(X, labels).objective_[0]
    assert (
        model.objective_[0] * (1 - model.certificate_.value) <= least * (1 + 1e-12) <= model.objective_[0] * (1 + 2e-12)
    )


def test_tight_tolerances_end_soon():
    """Newton finds the rows at the corner, and then the minimum but for rounding."""
    for seed in range(5):
        X, labels, numbers, _ = problem(seed, n=400, p=8)
        for C in (0.01, 1.0, 1e3):
            for model, y in ((LinearSVC(loss="hinge"), labels), (LinearSVR(epsilon=0.3), numbers)):
                model.set_params(C=C, tol=1e-9).fit(X, y)
                assert model.certificate_.holds
                assert model.n_iter_ < 200


# ------------------------------------------------------------------------------------------------ invariances


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from([*SVC_LOSSES, *SVR_LOSSES]),
    n=st.integers(4, 60),
    p=st.integers(1, 6),
    intercept=st.booleans(),
)
def test_rows_columns_units_and_repetition(seed, loss, n, p, intercept):
    rng = np.random.default_rng(seed)
    X, labels, numbers, weight = problem(seed, n, p)
    weight[:2] = 1
    labels[:2] = -1, 1
    make, y = (LinearSVC, labels) if loss in SVC_LOSSES else (LinearSVR, numbers)

    def fit(X, y, weight=None, *, s=1.0, C=0.7):
        model = make(loss=loss, C=C, fit_intercept=intercept, intercept_scaling=s, tol=1e-10, solver="newton")
        return model.fit(X, y, weight)

    def same(model, coef, intercept_):
        assert_allclose(np.ravel(model.coef_), np.ravel(coef), atol=1e-4)
        assert_allclose(np.ravel(model.intercept_), np.ravel(intercept_), atol=1e-4)

    model = fit(X, y, weight)
    assert model.certificate_.holds
    repeated = fit(np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int)))
    same(repeated, model.coef_, model.intercept_)
    rows, columns = rng.permutation(n), rng.permutation(p)
    same(fit(X[rows][:, columns], y[rows], weight[rows]), np.ravel(model.coef_)[columns], model.intercept_)
    # other units of X and of the constant feature, a price to match: the same scores
    same(fit(4 * X, y, weight, s=4.0, C=0.7 / 16), np.ravel(model.coef_) / 4, model.intercept_)
    sparse = fit(sp.csr_array(X), y, weight)
    same(sparse, model.coef_, model.intercept_)
    assert np.all(np.diff(np.minimum.accumulate(model.history_.gap)) <= 0)


def test_solvers_agree_on_dense_and_sparse_rows():
    rng = np.random.default_rng(5)
    X = np.where(rng.random((400, 30)) < 0.2, rng.normal(size=(400, 30)), 0)
    X[7] = 0  # a row without entries
    y = np.where(X @ rng.normal(size=30) + 0.3 * rng.normal(size=400) > 0, "a", "b")
    for intercept in (True, False):
        options = {"loss": "hinge", "C": 0.5, "tol": 1e-9, "random_state": 1, "max_iter": 20_000}
        fits = [
            LinearSVC(solver=solver, fit_intercept=intercept, **options).fit(A, y)
            for solver in ("newton", "dual-cd")
            for A in (X, np.asfortranarray(X), sp.csr_matrix(X), sp.csc_array(X))
        ]
        for model in fits:
            assert model.certificate_.holds
            assert_allclose(model.objective_, fits[0].objective_, rtol=2e-9)
            assert_allclose(model.coef_, fits[0].coef_, atol=2e-3)
        assert_array_equal(fits[4].coef_, fits[5].coef_)  # the same visits in the same order


def test_several_classes_are_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for solver in ("newton", "dual-cd"):
        options = {"loss": "hinge", "C": 0.3, "tol": 1e-6, "solver": solver, "random_state": 0, "max_iter": 20_000}
        model = LinearSVC(**options).fit(X, names)
        assert model.coef_.shape == (3, 4)
        assert model.decision_function(X).shape == (150, 3)
        for k in range(3):
            alone = LinearSVC(**options).fit(X, y == k)
            assert_allclose(model.objective_[k], alone.objective_[0], rtol=1e-6)
            assert_allclose(model.decision_function(X)[:, k], alone.decision_function(X), atol=5e-3)
        assert model.score(X, names) > 0.9
        assert_allclose(model.certificate_.value, np.max(1 - model.dual_objective_ / model.objective_), atol=1e-12)


def test_class_weights_are_weights_of_rows():
    X, labels, _, weight = problem(2)
    balanced = LinearSVC(class_weight="balanced", tol=1e-10).fit(X, labels)
    counts = {label: (labels == label).sum() for label in (-1, 1)}
    by_hand = LinearSVC(tol=1e-10).fit(X, labels, [len(labels) / 2 / counts[v] for v in labels])
    assert_allclose(balanced.coef_, by_hand.coef_, atol=1e-9)
    some = LinearSVC(class_weight={1: 3.0}, tol=1e-10).fit(X, labels, weight)
    assert_allclose(
        some.coef_, LinearSVC(tol=1e-10).fit(X, labels, weight * np.where(labels == 1, 3, 1)).coef_, atol=1e-9
    )


def test_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 20))
    y = (X @ rng.normal(size=20) + rng.normal(size=30_000)).round().clip(-1, 1)
    for solver, options in (("newton", {}), ("dual-cd", {"max_iter": 3})):
        with ep.config(on_nonconvergence="ignore"):
            fits = [
                LinearSVC(loss="hinge", tol=1e-3, solver=solver, random_state=0, n_jobs=n, **options).fit(X, y)
                for n in (1, 2, 3)
            ]
        for model in fits[1:]:
            assert_array_equal(model.coef_, fits[0].coef_)
            assert_array_equal(model.history_.objective, fits[0].history_.objective)


def test_float32_stays_and_its_certificate_is_for_what_is_stored():
    X, labels, numbers, _ = problem(0, n=300)
    X32 = X.astype(np.float32)
    for solver in ("newton", "dual-cd"):
        model = LinearSVC(loss="hinge", tol=1e-5, solver=solver, random_state=0).fit(X32, labels)
        assert model.coef_.dtype == model.decision_function(X32).dtype == np.float32
        assert_allclose(objective(model, X32.astype(float), labels), model.objective_[0], rtol=1e-12)
        assert model.certificate_.holds
    assert LinearSVR(epsilon=0.1).fit(X32, numbers).predict(X32).dtype == np.float32


# ------------------------------------------------------------------------------------------------ out of memory


def test_files_and_dask(tmp_path):
    import dask.array as da
    import pandas as pd

    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 4))
    z = X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=6000)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(z=z, k=np.digitize(z, [-1, 1]), w=rng.uniform(0, 2, 6000))
    for i in range(3):
        frame.iloc[i * 2000 : (i + 1) * 2000].to_parquet(tmp_path / f"{i}.parquet")
    files = str(tmp_path / "*.parquet")
    weight = frame.w.to_numpy()
    for model, target in ((LinearSVC(loss="hinge", tol=1e-9), "k"), (LinearSVR(epsilon=0.2, tol=1e-9), "z")):
        y = frame[target].to_numpy()
        inside = ep.load(_saved(model.fit(X, y, weight), tmp_path))
        out = model.fit(ep.scan(files, target=target, weight="w", columns=list("abcd")))
        assert_allclose(out.coef_, inside.coef_, atol=1e-5)
        assert_allclose(out.objective_, inside.objective_, rtol=2e-9)
        parts = [da.from_array(a, chunks=(2500, *a.shape[1:])) for a in (X, y, weight)]
        out = model.fit(parts[0], parts[1], sample_weight=parts[2])
        assert_allclose(out.coef_, inside.coef_, atol=1e-5)
        assert out.certificate_.holds
        with pytest.raises(DataError, match="solver='dual-cd' visits rows in random order"):
            type(model)(solver="dual-cd").fit(parts[0], parts[1])


def _saved(model, folder):
    model.save(folder / "m.epi")
    return folder / "m.epi"


# ------------------------------------------------------------------------------------------------ odd data


def test_a_resumed_descent_has_the_bits_of_one_that_was_not_cut(tmp_path):
    X, labels, _, _ = problem(1, n=200)
    y = np.where(labels > 0, np.arange(200) % 6, 6)  # seven classes: two groups side by side
    options = {"loss": "hinge", "solver": "dual-cd", "tol": 1e-6, "random_state": 3, "max_iter": 40}
    with ep.config(on_nonconvergence="ignore"):
        whole = LinearSVC(**options).fit(X, y)
        for stop in (5, 50):
            cut = LinearSVC(**options).set_callbacks(StopAt(stop), ep.Checkpoint(tmp_path / "run.epi"))
            cut.fit(X, y)
            assert cut.n_iter_ == stop
            assert not cut.certificate_.holds
            resumed = ep.Checkpoint.resume(tmp_path / "run.epi").fit(X, y)
            assert_array_equal(resumed.coef_, whole.coef_)
            assert_array_equal(resumed.history_.objective, whole.history_.objective)


class StopAt:
    """Asks to stop after so many passes."""

    def __init__(self, n):
        self.n = n

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        return fitted_estimator is not None and fitted_estimator.n_iter_ >= self.n

    def teardown(self, estimator, context):
        pass


@pytest.mark.parametrize("solver", ["newton", "dual-cd"])
def test_nothing_to_learn(solver):
    X = np.zeros((6, 2))
    y = np.array([0, 0, 0, 0, 1, 1])
    for loss in SVC_LOSSES:  # no feature says anything: the constant for the larger class
        model = LinearSVC(loss=loss, solver=solver, random_state=0).fit(X, y)
        assert_array_equal(model.predict(X), np.zeros(6))
        assert not model.coef_.any()
        nothing = LinearSVC(loss=loss, solver=solver, random_state=0, fit_intercept=False).fit(X, y)
        assert_allclose(nothing.objective_, 6)
        assert nothing.certificate_.holds
    for loss in SVR_LOSSES:  # every target within epsilon of zero
        model = LinearSVR(loss=loss, epsilon=1.5, solver=solver, random_state=0).fit(X + 1, y)
        assert not model.coef_.any()
        assert model.objective_ == 0
        assert model.certificate_.holds
        model = LinearSVR(loss=loss, epsilon=0.5, solver=solver, random_state=0, fit_intercept=False).fit(X, y)
        assert model.certificate_.holds


def test_separable_classes_have_the_largest_margin():
    """With a large C and a free intercept, the nearest points of the two hulls: here two unit squares, 2 apart."""
    square = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    X = np.vstack([square, square + np.array([3, 0])])
    model = LinearSVC(loss="hinge", C=1e3, intercept_scaling=1e2, tol=1e-9).fit(X, np.repeat([0, 1], 4))
    assert_allclose(model.coef_, [[1, 0]], atol=1e-3)
    assert_allclose(model.intercept_, [-2], atol=1e-2)


def test_bad_arguments():
    X, labels, numbers, _ = problem(0)
    for bad in (
        {"C": 0},
        {"C": np.inf},
        {"loss": "log"},
        {"solver": "lbfgs"},
        {"penalty": "l3"},
        {"tol": 0},
        {"intercept_scaling": 0},
    ):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            LinearSVC(**bad).fit(X, labels)
    with pytest.raises(ParameterError, match="epsilon"):
        LinearSVR(epsilon=-1).fit(X, numbers)
    with pytest.raises(DataError, match="2 classes"):
        LinearSVC().fit(X, np.ones(len(X)))
    with pytest.raises(DataError, match="only one class of positive weight"):
        LinearSVC().fit(X, labels, np.where(labels == 1, 0.0, 1.0))
