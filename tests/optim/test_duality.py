"""Optimality conditions, duals, conjugates and games with known answers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from epicycle.exceptions import DataError, ParameterError
from epicycle.optim import (
    L1,
    L2,
    Logistic,
    Program,
    Squared,
    conjugate,
    dual_value,
    duality_gap,
    kkt,
    lagrangian,
    matrix_game,
    saddle_point,
)

# min |x - (2, 1)|^2 / 2  subject to  x1 + x2 <= 2 and x1 - x2 = 0.4: x = (1.2, 0.8), lam = 0.5, nu = 0.3.
AIM = np.array([2.0, 1.0])
QP = Program(
    lambda x: float((x - AIM) @ (x - AIM) / 2),
    inequality=lambda x: x.sum() - 2,
    equality=lambda x: x[0] - x[1] - 0.4,
)
X, LAM, NU = np.array([1.2, 0.8]), 0.5, 0.3


def test_kkt_of_a_known_quadratic_program():
    check = kkt(QP, X, LAM, NU, tol=1e-9)
    assert check.holds
    assert bool(check)


@pytest.mark.parametrize(
    ("x", "lam", "nu", "condition"),
    [
        (X, 0.6, NU, "stationarity"),
        (np.array([1.4, 1.0]), LAM, NU, "primal_feasibility"),
        (np.array([1.1, 0.8]), LAM, NU, "primal_feasibility"),
        (X, -0.5, NU, "dual_feasibility"),
        (np.array([1.1, 0.7]), LAM, NU, "complementarity"),
    ],
)
def test_each_violated_condition_is_seen(x, lam, nu, condition):
    check = kkt(QP, x, lam, nu, tol=1e-6)
    assert not check.holds
    assert getattr(check, condition) > 0.01


def test_given_derivatives_are_used():
    exact = Program(
        QP.objective,
        QP.inequality,
        QP.equality,
        lambda x: x - AIM,
        lambda x: np.ones(2),
        lambda x: np.array([1.0, -1.0]),
    )
    assert kkt(exact, X, LAM, NU, tol=1e-14).holds
    assert not kkt(replace(QP, gradient=lambda x: AIM - x), X, LAM, NU).holds


def test_lagrangian_and_weak_and_strong_duality():
    x = np.array([0.3, -0.7])
    assert_allclose(lagrangian(QP, x, 2.0, -1.0), QP.objective(x) + 2 * (x.sum() - 2) - (x[0] - x[1] - 0.4))
    optimum = QP.objective(X)
    assert_allclose(dual_value(QP, x, LAM, NU), optimum, rtol=1e-9)
    assert abs(duality_gap(QP, X, LAM, NU)) < 1e-9
    for lam, nu in [(0.0, 0.0), (1.0, 0.3), (0.5, -2.0)]:
        # q(lam, nu) = -|lam (1, 1) + nu (1, -1)|^2 / 2 + lam (aim1 + aim2 - 2) + nu (aim1 - aim2 - 0.4)
        closed = -(lam**2 + nu**2) + lam * 1.0 + nu * 0.6
        assert_allclose(dual_value(QP, x, lam, nu), closed, atol=1e-9)
        assert duality_gap(QP, X, lam, nu) > 0.01
    assert duality_gap(QP, np.array([3.0, 2.6]), LAM, NU) == math.inf


def test_the_dual_of_a_linear_program():
    # min c'x subject to b - Ax <= 0 and -x <= 0: q = lam'b where A'lam <= c, otherwise -inf.
    A, b, c = np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([4.0, 6.0]), np.array([3.0, 2.0])
    program = Program(lambda x: float(c @ x), inequality=lambda x: np.concatenate([b - A @ x, -x]))
    primal = linprog(c, A_ub=-A, b_ub=-b)
    lam = -primal.ineqlin.marginals
    rest = np.maximum(c - A.T @ lam, 0)  # zero but for rounding
    assert kkt(program, primal.x, np.concatenate([lam, rest])).holds
    assert_allclose(dual_value(program, np.zeros(2), np.concatenate([lam, rest])), primal.fun, rtol=1e-9)
    assert dual_value(program, np.zeros(2), np.array([0.1, 0.1, 0.0, 0.0])) == -math.inf


def test_bad_multipliers_are_named():
    with pytest.raises(ParameterError, match="equality_multipliers"):
        kkt(QP, X, LAM)
    with pytest.raises(ParameterError, match="non-negative"):
        dual_value(QP, X, -1.0, 0.0)


@pytest.mark.parametrize(
    ("function", "y", "start", "expected"),
    [
        (lambda x: x * x / 2, 3.0, None, 4.5),
        (abs, 0.7, None, 0.0),
        (abs, 1.3, None, math.inf),
        (math.exp, 2.0, None, 2 * math.log(2) - 2),
        (math.exp, -1.0, None, math.inf),
        (lambda x: x * math.log(x) if x > 0 else (0.0 if x == 0 else math.inf), 1.5, 1.0, math.exp(0.5)),
        (lambda x: math.sqrt(1 + x * x), 0.6, None, -0.8),
        (lambda x: max(-x, 2 * x - 1), 0.5, 50.0, 0.5),
    ],
)
def test_conjugates_of_functions_of_a_number(function, y, start, expected):
    def safe(x):
        try:
            return function(x)
        except OverflowError:
            return math.inf

    assert_allclose(conjugate(safe, y, start=start), expected, rtol=1e-7, atol=1e-9)


def test_conjugates_of_functions_of_a_vector():
    H = np.array([[2.0, 0.5], [0.5, 1.0]])
    y = np.array([1.0, -2.0])
    expected = y @ np.linalg.solve(H, y) / 2
    assert_allclose(conjugate(lambda x: x @ H @ x / 2, y), expected, rtol=1e-8)
    assert_allclose(conjugate(lambda x: x @ H @ x / 2, y, gradient=lambda x: H @ x), expected, rtol=1e-10)
    p = np.array([0.2, 0.3, 0.5])  # log-sum-exp: negative entropy on the simplex
    assert_allclose(conjugate(lambda x: np.log(np.exp(x).sum()), p), (p * np.log(p)).sum(), rtol=1e-8)
    assert (
        conjugate(lambda x: float(np.log1p(np.exp(-np.abs(x))).sum() + x.clip(0).sum()), np.array([2.0, 0.5]))
        == math.inf
    )


def test_closed_forms_agree_with_the_numerical_ones():
    u = np.array([0.4, -1.1])
    assert_allclose(conjugate(L2(0.7), u), conjugate(lambda x: 0.35 * x @ x, u), rtol=1e-8)
    assert conjugate(L1(1.0), u) == math.inf
    loss, a, y = Logistic(), 0.3, np.array([0.0])
    assert_allclose(conjugate(loss, np.array([a]), target=y), conjugate(lambda z: loss.value(np.array([z]), y)[0], a))
    with pytest.raises(ParameterError, match="target"):
        conjugate(Squared(), np.array([a]))


def test_rock_paper_scissors_is_fair():
    game = matrix_game([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    assert_allclose(game.value, 0, atol=1e-12)
    assert_allclose(game.row_strategy, 1 / 3)
    assert_allclose(game.column_strategy, 1 / 3)
    assert game.certificate.holds


def test_a_two_by_two_game_in_closed_form():
    # Without a saddle point: value (ad - bc) / (a + d - b - c).
    (a, b), (c, d) = A = [[3.0, -1.0], [-2.0, 4.0]]
    game = matrix_game(A)
    total = a + d - b - c
    assert_allclose(game.value, (a * d - b * c) / total)
    assert_allclose(game.row_strategy, [(d - c) / total, (a - b) / total])
    assert_allclose(game.column_strategy, [(d - b) / total, (a - c) / total])


def test_a_pure_saddle_point():
    game = matrix_game([[4.0, 2.0, 5.0], [1.0, 0.0, 9.0]])
    assert_allclose(game.value, 2.0)
    assert_allclose(game.row_strategy, [1, 0], atol=1e-12)
    assert_allclose(game.column_strategy, [0, 1, 0], atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_random_games_against_their_dual_and_fictitious_play(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=rng.integers(2, 7, size=2)) * 10.0 ** rng.integers(-3, 4)
    game = matrix_game(A)
    assert game.certificate.holds
    spread = np.ptp(A)
    for strategy in (game.row_strategy, game.column_strategy):
        assert strategy.min() >= 0
        assert_allclose(strategy.sum(), 1)
    assert_allclose(matrix_game(-A.T).value, -game.value, atol=1e-9 * spread)  # the players change places
    rows, columns = np.zeros(len(A)), np.zeros(A.shape[1])  # Brown and Robinson: play against what was seen so far
    rows[0] = columns[0] = 1
    for _ in range(4000):
        i, j = np.argmax(A @ columns), np.argmin(rows @ A)
        rows[i] += 1
        columns[j] += 1
    low, high = (rows @ A).min() / rows.sum(), (A @ columns).max() / columns.sum()
    assert low - 1e-9 * spread <= game.value <= high + 1e-9 * spread


@pytest.mark.parametrize("A", [[], [[np.nan]], [1.0, 2.0]])
def test_bad_games_are_refused(A):
    with pytest.raises(DataError, match="A must be"):
        matrix_game(A)


def test_saddle_points():
    def function(x, y):
        return float(x @ x + 2 * x @ y - y @ y + x.sum())

    # Both derivatives, 2x + 2y + 1 and 2x - 2y, vanish at x = y = -1/4.
    at = np.full(2, -0.25)
    assert saddle_point(function, at, at).holds
    away = saddle_point(function, at + 0.1, at)
    assert not away
    assert_allclose(away.gap, 2 * (0.1**2 + 0.1**2), rtol=1e-6)
    assert saddle_point(lambda x, y: float(x @ y), np.ones(1), np.zeros(1)).gap == math.inf
