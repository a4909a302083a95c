"""Least squares from G = A'A or R against LAPACK's SVD on A itself, and against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from epicycle.exceptions import DataError
from epicycle.optim import solve_normal_equations, solve_triangular_factor


def design(kind, seed=0, n=40, d=6):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d))
    if kind == "duplicate":
        A[:, 5] = A[:, 0]
    if kind == "collinear":
        A[:, 5] = A[:, 0] - 2 * A[:, 1]
    if kind == "zero column":
        A[:, 3] = 0
    if kind == "collinear, other units":
        A[:, 5] = A[:, 0] - 2 * A[:, 1]
        A *= np.geomspace(1, 1e3, d)
    if kind == "wide":
        A = A[:4]
    return A, rng.normal(size=(len(A), 2))


RANKS = {"full": 6, "duplicate": 5, "collinear": 5, "zero column": 5, "collinear, other units": 5, "wide": 4}


@pytest.mark.parametrize("kind", RANKS)
def test_both_roads_give_the_solution_of_minimum_norm(kind):
    A, b = design(kind)
    expected = np.linalg.lstsq(A, b, rcond=1e-12)[0]
    Q, R = np.linalg.qr(A)
    for found in (solve_normal_equations(A.T @ A, A.T @ b), solve_triangular_factor(R, Q.T @ b)):
        assert found.rank == RANKS[kind]
        assert_allclose(found.x, expected, rtol=1e-9, atol=1e-12)
        assert np.isinf(found.condition) == (found.rank < 6)
        assert found.null_space.shape == (6, 6 - found.rank)
        assert_allclose(A @ found.null_space, 0, atol=1e-10 * np.abs(A).max())
        assert_allclose(found.null_space.T @ found.null_space, np.eye(6 - found.rank), atol=1e-12)


def test_a_single_right_hand_side_stays_a_vector():
    A, b = design("full")
    assert solve_normal_equations(A.T @ A, A.T @ b[:, 0]).x.shape == (6,)
    Q, R = np.linalg.qr(A)
    assert solve_triangular_factor(R, Q.T @ b[:, 0]).x.shape == (6,)


def test_units_do_not_matter():
    A, b = design("full")
    units = np.geomspace(1e-12, 1e12, 6)
    plain = solve_normal_equations(A.T @ A, A.T @ b)
    scaled = solve_normal_equations((A * units).T @ (A * units), (A * units).T @ b)
    assert scaled.rank == 6
    assert plain.condition / 3 < scaled.condition < plain.condition * 3
    assert_allclose(scaled.x * units[:, None], plain.x, rtol=1e-10)


def test_condition_is_that_of_unit_columns():
    A, b = design("full")
    A[:, 5] = A[:, 0] + 1e-4 * A[:, 5]
    exact = np.linalg.cond(A / np.linalg.norm(A, axis=0))
    Q, R = np.linalg.qr(A)
    assert exact / 2 < solve_triangular_factor(R, Q.T @ b).condition < exact * 2
    estimate = solve_normal_equations(A.T @ A, A.T @ b).condition
    assert exact / 6 < estimate < exact * 6


def rational_solution(G, c):
    """Gauss elimination without any rounding."""
    M = [[Fraction(v) for v in row] + [Fraction(r)] for row, r in zip(G.tolist(), c.tolist(), strict=True)]
    d = len(M)
    for k in range(d):
        for i in range(k + 1, d):
            f = M[i][k] / M[k][k]
            M[i] = [a - f * b for a, b in zip(M[i], M[k], strict=True)]
    x = [Fraction(0)] * d
    for k in reversed(range(d)):
        x[k] = (M[k][d] - sum(M[k][j] * x[j] for j in range(k + 1, d))) / M[k][k]
    return np.array([float(v) for v in x])


def test_refinement_gains_the_digits_of_extended_precision():
    # A Hilbert matrix, condition 5e8. Where long double is wider than double, its digits are gained.
    G = 1.0 / (np.arange(7)[:, None] + np.arange(7)[None, :] + 1)
    c = np.arange(1.0, 8.0)
    exact = rational_solution(G, c)
    error = np.abs(solve_normal_equations(G, c).x - exact).max() / np.abs(exact).max()
    assert error < np.linalg.cond(G) * np.finfo(np.longdouble).eps


def test_the_factor_keeps_the_digits_that_the_gram_matrix_loses():
    rng = np.random.default_rng(5)
    A = rng.normal(size=(60, 5))
    A[:, 4] = A[:, 0] + 1e-7 * A[:, 4]
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    Q, R = np.linalg.qr(A)
    found = solve_triangular_factor(R, Q.T @ (A @ x))
    assert found.rank == 5
    assert_allclose(found.x, x, rtol=1e-7)


@pytest.mark.parametrize(
    ("G", "c", "message"),
    [
        (np.ones((2, 3)), np.ones(2), "square"),
        (np.eye(2), np.ones(3), "2 rows"),
        (np.array([[np.nan]]), np.ones(1), "finite"),
    ],
)
def test_bad_input_is_named(G, c, message):
    with pytest.raises(DataError, match=message):
        solve_normal_equations(G, c)
