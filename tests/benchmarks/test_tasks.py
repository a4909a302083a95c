"""The judges: reference solutions and objectives, against exact arithmetic and against scikit-learn."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from benchmarks.tasks import _linear, _logistic, all_tasks, find, linear_ill


def exact_least_squares(X, y):
    """Normal equations in rational arithmetic, which loses nothing."""
    A = [[Fraction(1), *map(Fraction, row)] for row in X.tolist()]
    b = [Fraction(v) for v in y.tolist()]
    p = len(A[0])
    M = [
        [sum(r[i] * r[j] for r in A) for j in range(p)] + [sum(r[i] * t for r, t in zip(A, b, strict=True))]
        for i in range(p)
    ]
    for i in range(p):
        M[i] = [v / M[i][i] for v in M[i]]
        for k in range(p):
            if k != i:
                M[k] = [v - M[k][i] * u for v, u in zip(M[k], M[i], strict=True)]
    return np.array([float(row[-1]) for row in M])


def test_refined_solution_has_digits_to_spare_at_condition_1e10():
    rng = np.random.default_rng(0)
    U, V = np.linalg.qr(rng.standard_normal((30, 4)))[0], np.linalg.qr(rng.standard_normal((4, 4)))[0]
    X = (U * np.geomspace(1, 1e-10, 4)) @ V.T
    y = X @ np.array([1.0, -2.0, 3.0, 0.5]) + 1e-9 * rng.standard_normal(30)
    exact = exact_least_squares(X, y)
    error = np.linalg.norm(_linear.refined_least_squares(X, y) - exact) / np.linalg.norm(exact)
    plain = np.linalg.lstsq(np.column_stack([np.ones(30), X]), y, rcond=None)[0]  # what it will be the judge of
    assert error < 1e-8
    assert error < np.linalg.norm(plain - exact) / np.linalg.norm(exact) / 100


def test_refined_solution_is_exact_on_ordinary_data():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 3)) + 5.0, rng.standard_normal(40)
    assert_allclose(_linear.refined_least_squares(X, y), exact_least_squares(X, y), rtol=1e-15)


def test_distances_are_zero_at_the_reference_and_see_an_error():
    data = linear_ill.make(None, quick=True)
    reference = _linear.refined(data)
    assert _linear.distances(data, reference, reference) == {"coefficient error": 0.0, "residual excess": 0.0}
    moved = {"coef": reference["coef"] * (1 + 1e-5), "intercept": reference["intercept"]}
    found = _linear.distances(data, moved, reference)
    assert found["coefficient error"] == pytest.approx(1e-5)
    assert found["residual excess"] > 1.0


def test_ill_conditioned_data_have_the_condition_number_they_claim():
    X = linear_ill.make(None, quick=True)["X"]
    singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    assert singular[0] / singular[-1] == pytest.approx(1e10, rel=1e-3)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_objective_is_the_one_scikit_learn_minimises(n_classes):
    rng = np.random.default_rng(1)
    X = _logistic.features(rng, 25_000, 3)  # more than one block of rows
    data = {"X": X, "y": _logistic.labels(rng, X, n_classes, signal=1.0)}
    model = LogisticRegression(tol=1e-6).fit(data["X"], data["y"])
    solution = _logistic.as_solution(model)
    expected = log_loss(data["y"], model.predict_proba(X)) + (model.coef_**2).sum() / 2 / len(X)
    assert float(_logistic.objective(data, solution)) == pytest.approx(expected, rel=1e-12)
    moved = {"coef": solution["coef"] + 1e-3, "intercept": solution["intercept"]}
    excess = _logistic.quality(data, {"at": solution, "moved": moved})
    assert excess["at"]["objective excess"] == 0.0
    assert excess["moved"]["objective excess"] > 0.0


def test_features_have_the_covariance_they_claim():
    X = _logistic.features(np.random.default_rng(2), 100_000, 6)
    lags = np.abs(np.subtract.outer(range(6), range(6)))
    assert_allclose(np.corrcoef(X.T), 0.5**lags, atol=0.015)
    assert_allclose(np.sort(X.std(axis=0)), np.geomspace(1 / 3, 3, 6), rtol=0.02)


def test_ladder_goes_down_in_half_decades():
    assert _logistic.ladder(1.0, 0.01) == (1.0, 0.3, 0.1, 0.03, 0.01)


def test_tasks_are_well_formed():
    for name, task in all_tasks().items():
        names = [i.name for i in task.implementations]
        assert task.name == name
        assert find(name, task.module).title == task.title  # processes look for it there
        assert len(set(names)) == len(names)
        assert any(i.role == "epicycle" for i in task.implementations)
        assert task.targets
        if any(i.tolerances for i in task.implementations):
            assert any(i.role == "reference" for i in task.implementations)
        for i in task.implementations:
            assert list(i.tolerances) == sorted(i.tolerances, reverse=True)


def test_data_are_the_same_every_time(tmp_path):
    made_on_the_spot = ("out_of_core", "dask_scaling", "import_time")
    for name, task in all_tasks().items():
        if name not in made_on_the_spot:
            first, second = task.make(tmp_path, True), task.make(tmp_path, True)
            for key in first:
                assert_array_equal(first[key], second[key])
