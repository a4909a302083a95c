"""The optimum of SVC: the same as libsvm's, certified, and what theory says of it."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning

import epicycle as ep
from epicycle import SVC
from epicycle.exceptions import ConvergenceError, ConvergenceWarning, ParameterError
from epicycle.kernel import (
    ArcCosine,
    ChiSquare,
    Gaussian,
    HistogramIntersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
)

KERNELS = (
    Linear(),
    Gaussian(1.5),
    Gaussian((1.0, 2.0, 0.5)),
    Polynomial(2, gamma=0.3),
    Polynomial(3, gamma=0.2, c=0.5),
    Laplacian(2.0),
    Matern(1.0, nu=1.5),
    RationalQuadratic(),
    ArcCosine(1),
    ChiSquare(0.5),
    HistogramIntersection(),
    Linear() + 0.5 * Gaussian(1.0),
    Gaussian(2.0) * Polynomial(2),
)


def random_problem(seed):
    """Rows (some of them twice), labels that may be unbalanced, weights, and the arguments of a machine."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 130))
    kernel = KERNELS[seed % len(KERNELS)]
    X = rng.normal(size=(n, 3))
    if isinstance(kernel, ChiSquare | HistogramIntersection):
        X = np.abs(X)
    if rng.random() < 0.3:
        X[rng.integers(0, n, n // 4)] = X[rng.integers(0, n, n // 4)]
    share = rng.choice([0.5, 0.5, 0.85])
    y = (X[:, 0] * X[:, 1] + 0.4 * X[:, 2] + 0.7 * rng.normal(size=n) > np.quantile(X[:, 0] * X[:, 1], share)).astype(
        int
    )
    y[:2] = 0, 1
    weight = rng.uniform(0.1, 3, n) if rng.random() < 0.5 else None
    if weight is not None and rng.random() < 0.5:
        weight[3:6] = 0.0
    arguments = {
        "C": float(rng.choice([0.05, 1.0, 20.0])),
        "class_weight": {0: 0.5, 1: 3.0} if rng.random() < 0.3 else None,
        "slack": "l2" if rng.random() < 0.3 else "l1",
        # A cache of a few rows: entries in single precision, refined to the exact optimum.
        "cache_size": 1e-3 if rng.random() < 0.4 else 200,
    }
    return X, y, weight, kernel, arguments


def dual_and_primal(K, y, C, b, c, squared):
    """Both objectives from their definitions."""
    f = K @ b
    slack = np.maximum(1 - y * (f + c), 0)
    dual = np.abs(b).sum() - 0.5 * b @ f
    if squared:
        return dual - 0.5 * (b**2 / C).sum(), 0.5 * b @ f + 0.5 * C @ slack**2
    return dual, 0.5 * b @ f + C @ slack


def test_random_problems_have_the_dual_objective_of_libsvm(repetitions):
    compared, problems = 0, repetitions(200)
    for seed in range(problems):
        X, y, weight, kernel, arguments = random_problem(seed)
        model = SVC(kernel=kernel, tol=1e-8, **arguments).fit(X, y, weight)
        assert model.certificate_.holds, (seed, model.certificate_)

        K = kernel(X)
        squared = arguments["slack"] == "l2"
        C = arguments["C"] * (np.ones(len(y)) if weight is None else weight)
        if arguments["class_weight"]:
            C = C * np.where(y == 1, 3.0, 0.5)
        used = np.flatnonzero(C > 0)
        sign = np.where(y == 1, 1.0, -1.0)
        b = np.zeros(len(y))
        b[model.support_] = model.dual_coef_[0]
        assert np.all(sign * b >= 0)
        assert abs(b.sum()) <= 1e-9 * np.abs(b).sum()
        assert squared or np.all(np.abs(b) <= C * (1 + 1e-12))
        part = np.ix_(used, used)
        dual, primal = dual_and_primal(K[part], sign[used], C[used], b[used], model.intercept_[0], squared)
        # The certificate is true: recomputed from the definitions, the objectives are as close as it says.
        assert dual == pytest.approx(model.dual_objective_[0], rel=1e-9)
        assert primal - dual <= (model.duality_gap_[0] + 1e-12) * primal + C.sum() * model.kkt_violation_[0]
        assert primal >= dual * (1 - 1e-12)

        given = K[part] + (np.diag(1 / C[used]) if squared else 0)
        peer = svm.SVC(kernel="precomputed", C=1e8 if squared else 1.0, tol=1e-9, max_iter=300_000, cache_size=5)
        with warnings.catch_warnings():
            warnings.simplefilter("error", SklearnConvergenceWarning)
            try:
                peer.fit(given, y[used], None if squared else C[used])
            except SklearnConvergenceWarning:
                continue
        theirs = np.zeros(len(used))
        theirs[peer.support_] = peer.dual_coef_[0]
        value = np.abs(theirs).sum() - 0.5 * theirs @ given @ theirs
        assert dual == pytest.approx(value, rel=1e-6), seed
        compared += 1
    assert compared >= 0.95 * problems


def test_the_optimality_conditions_hold_to_the_violation_it_states():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=600) > 1, 1, -1)
    for arguments in ({}, {"cache_size": 0.05}, {"solver": "dual-cd"}, {"slack": "l2"}, {"shrinking": False}):
        model = SVC(C=2.0, **arguments).fit(X, y)
        assert model.certificate_.holds
        b = np.zeros(600)
        b[model.support_] = model.dual_coef_[0]
        v = y - model.kernel_(X) @ b
        top = np.inf
        if model.slack == "l2":
            v -= b / 2.0
        else:
            top = 2.0
        grows, shrinks = np.where(y > 0, b < top, b < 0), np.where(y > 0, b > 0, b > -top)
        top, bottom = v[grows].max(), v[shrinks].min()
        worst = top - bottom if model.solver == "smo" else max(top, -bottom)
        assert worst == pytest.approx(model.kkt_violation_[0], abs=1e-9)
        assert max(worst, model.duality_gap_[0]) <= 1e-3
        assert model.certificate_.value == max(model.kkt_violation_[0], model.duality_gap_[0])


# ------------------------------------------------------------------------------------------------ margins and hulls


def separable(seed, n=40):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal((-3, -2), size=(n, 2)), rng.normal((3, 2), size=(n, 2))])
    return X, np.repeat(["left", "right"], n)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_hull_distance_is_twice_the_margin(kernel):
    for seed in range(5):
        X, y = separable(seed)
        model = SVC(C=np.inf, kernel=kernel, gamma=0.2, tol=1e-9).fit(X, y)
        hulls = model.nearest_hull_points()
        K = model.kernel_(X)
        c = np.zeros(len(y))
        c[hulls.positive], c[hulls.negative] = hulls.positive_shares, -hulls.negative_shares
        assert hulls.positive_shares.sum() == pytest.approx(1.0)
        assert hulls.negative_shares.sum() == pytest.approx(1.0)
        assert np.sqrt(c @ K @ c) == pytest.approx(hulls.distance, rel=1e-9)
        assert hulls.distance == pytest.approx(2 * model.geometric_margin_[0], rel=1e-8)
        # The margin is that of the nearest rows, on both sides.
        geometric = model.margins(X, y).geometric
        for label in model.classes_:
            assert geometric[y == label].min() == pytest.approx(model.geometric_margin_[0], rel=1e-7)
        if kernel == "linear":
            between = hulls.positive_point - hulls.negative_point
            assert np.linalg.norm(between) == pytest.approx(hulls.distance)
            assert_allclose(model.coef_[0], 2 * between / hulls.distance**2, rtol=1e-7)


def test_soft_margins_are_those_of_reduced_hulls():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), np.repeat([0, 1], 40)
    X[40:] += 1.0
    model = SVC(kernel="linear", C=0.5, tol=1e-9).fit(X, y)
    hulls = model.nearest_hull_points()
    assert max(hulls.positive_shares.max(), hulls.negative_shares.max()) <= hulls.largest_share * (1 + 1e-12) < 1
    c = np.zeros(80)
    c[hulls.positive], c[hulls.negative] = hulls.positive_shares, -hulls.negative_shares
    # Frank and Wolfe's bound of the reduced hulls: no other shares bring the points nearer.
    f = X @ X.T @ c
    room = int(np.floor(1 / hulls.largest_share))
    rest = 1 - room * hulls.largest_share

    def least(values):
        ordered = np.sort(values)
        return hulls.largest_share * ordered[:room].sum() + rest * (ordered[room] if rest > 1e-12 else 0.0)

    lower = least(f[y == 1]) + least(-f[y == 0])
    assert c @ f == pytest.approx(hulls.distance**2)
    assert c @ f - lower <= 1e-6 * (c @ f)


def test_margins_and_violations():
    X, y = separable(1)
    X[0] += 7.0  # one on the wrong side
    model = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    found = model.margins(X, y)
    sign = np.where(y == "right", 1, -1)
    assert_allclose(found.functional, sign * (X @ model.coef_[0] + model.intercept_[0]), atol=1e-12)
    assert_allclose(found.geometric, found.functional / np.linalg.norm(model.coef_), rtol=1e-9)
    assert_allclose(found.violation, np.maximum(1 - found.functional, 0), atol=1e-12)
    assert found.violation[0] > 1
    objective = 0.5 * (model.coef_**2).sum() + found.violation.sum()
    assert objective == pytest.approx(model.dual_objective_[0], rel=1e-6)
    with pytest.raises(ValueError, match=r"y: row 0 is 'up'"):
        model.margins(X[:1], ["up"])


def test_no_hard_margin_is_said():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    with pytest.raises(ConvergenceError, match=r"C=inf.*no function of this kernel separates.*convex hulls"):
        SVC(C=np.inf, kernel="linear").fit(X, y)
    X, y = separable(0)
    X[5] = X[-1]  # the same row with both labels
    for kernel in ("linear", "rbf"):
        with pytest.raises(ConvergenceError, match="has no solution"):
            SVC(C=np.inf, kernel=kernel).fit(X, y)
        assert SVC(C=100.0, kernel=kernel).fit(X, y).certificate_.holds
    three = np.where(np.arange(80) % 3 == 0, "other", y)
    with pytest.raises(ConvergenceError, match="between 'left' and 'other'"):
        SVC(C=np.inf, kernel="linear").fit(X, three)
    with pytest.raises(ParameterError, match=r"C=inf.*dual-cd"):
        SVC(C=np.inf, solver="dual-cd").fit(X, y)


def test_a_large_c_is_the_hard_margin():
    X, y = separable(2)
    hard, soft = (SVC(C=C, kernel="linear", tol=1e-8).fit(X, y) for C in (np.inf, 1e6))
    assert_allclose(hard.coef_, soft.coef_, rtol=1e-6)
    assert_allclose(hard.intercept_, soft.intercept_, rtol=1e-6)


# ------------------------------------------------------------------------------------------------ coordinate descent


def test_dual_coordinate_descent_finds_the_optimum_without_intercept():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.5, 1.0, -1.0)
    for slack in ("l1", "l2"):
        model = SVC(solver="dual-cd", C=1.5, slack=slack, gamma=0.4, tol=1e-10, max_iter=10**7).fit(X, y)
        assert model.intercept_[0] == 0.0
        Q = np.outer(y, y) * model.kernel_(X) + (np.eye(80) / 1.5 if slack == "l2" else 0)
        a, top = np.zeros(80), np.inf if slack == "l2" else 1.5
        for _ in range(200):  # the update of the notes, row after row
            for i in range(80):
                a[i] = np.clip(a[i] + (1 - Q[i] @ a) / Q[i, i], 0, top)
        assert model.dual_objective_[0] == pytest.approx(a.sum() - 0.5 * a @ Q @ a, rel=1e-9)
        assert model.certificate_.holds


def test_dual_coordinate_descent_is_smo_on_rows_mirrored_at_the_origin():
    """With every row also mirrored, under the other label and half the weight, the best intercept is zero."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(100, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=100) > 0.5, 1, 0)
    K = Gaussian(1.0)(X)
    cd = SVC(kernel="precomputed", solver="dual-cd", tol=1e-8, random_state=3).fit(K, y)
    smo = SVC(kernel="precomputed", C=0.5, tol=1e-8).fit(np.block([[K, -K], [-K, K]]), np.append(y, 1 - y))
    assert abs(smo.intercept_[0]) < 1e-7
    assert cd.dual_objective_[0] == pytest.approx(smo.dual_objective_[0], rel=1e-8)
    assert_allclose(cd.decision_function(K), smo.decision_function(np.hstack([K, -K])), atol=1e-6)


# ------------------------------------------------------------------------------------------------ limits


def test_a_fit_cut_short_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), np.arange(400) % 2
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = SVC(C=10.0, max_iter=20).fit(X, y)
    assert not model.certificate_.holds
    assert not model.converged_
    with ep.config(on_nonconvergence="raise"), pytest.raises(ConvergenceError):
        SVC(C=10.0, max_iter=20).fit(X, y)


def test_tolerances_bound_the_distance_to_the_optimum():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(900, 5))
    y = (X[:, 0] + rng.normal(size=900) > 0).astype(int)
    best = SVC(C=3.0, tol=1e-9).fit(X, y).dual_objective_[0]
    for tol in (0.3, 1e-2, 1e-4):
        model = SVC(C=3.0, tol=tol).fit(X, y)
        assert 0 <= (best - model.dual_objective_[0]) / best <= model.duality_gap_[0] + 1e-12
        assert model.duality_gap_[0] <= tol


def test_an_indefinite_matrix_is_said():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    K = Gaussian()(X) - 0.4
    with pytest.warns(ep.exceptions.EpicycleWarning, match="no Mercer kernel"):
        model = SVC(kernel=Precomputed()).fit(K, y)
    assert model.certificate_.kind == "KKT violation"
    with pytest.warns(ep.exceptions.EpicycleWarning, match="no Mercer kernel"):
        SVC(kernel=lambda A, B: -(A @ B.T)).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SVC(kernel=lambda A, B: A @ B.T).fit(X, y).certificate_.kind.startswith("duality gap")
