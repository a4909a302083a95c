"""Gradient checks: right gradients pass, however scaled; one wrong coordinate in fifty is found and named."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from rows_objective import make_problem

from epicycle.exceptions import ParameterError
from epicycle.optim import FunctionObjective, check_gradient

SPOILT = {
    "scale": lambda g: 1.001 * g,
    "sign": lambda g: -g,
    "zero": lambda g: 0.0,
    "shift": lambda g: g + 1e-3,
    "twice": lambda g: 2 * g,
}


@pytest.mark.parametrize("kind", ["logistic", "squares"])
@pytest.mark.parametrize("fault", SPOILT)
def test_one_wrong_coordinate_of_fifty_is_caught(kind, fault):
    problem = make_problem(kind, seed=1, d=50)

    def wrong(x):
        value, g = problem.value_and_gradient(x)
        g[17] = SPOILT[fault](g[17])
        return value, g

    check = check_gradient(FunctionObjective(wrong, 50))
    assert not check
    assert (check.worst, check.wrong) == (17, (17,))
    assert "WRONG in 1 of 50" in repr(check)
    assert check_gradient(problem).holds


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from(["logistic", "squares"]), st.sampled_from([1.0, 1e3, 1e6]))
def test_right_gradients_pass_also_when_badly_scaled(seed, kind, spread):
    problem = make_problem(kind, seed, n=50, d=6, spread=spread, alpha=1e-3)
    x = np.random.default_rng(seed).normal(size=6) / np.abs(problem.X).max(axis=0)
    check = check_gradient(problem, x)
    assert check.holds, check


@pytest.mark.parametrize(
    ("function", "gradient", "x"),
    [
        (lambda x: float(np.exp(x).sum()), np.exp, [-30.0, 0.0, 30.0]),
        (lambda x: float(np.sin(1e4 * x).sum()), lambda x: 1e4 * np.cos(1e4 * x), [0.1, -2.0]),
        (lambda x: float((x**4).sum()), lambda x: 4 * x**3, [0.0, 1e-4, 1e5]),
        (lambda x: 1e8 + float(x @ x), lambda x: 2 * x, [1.0, 2.0]),
        (lambda x: 1e-12 * float((x**3).sum()), lambda x: 3e-12 * x**2, [1.0, 2.0]),
    ],
)
def test_functions_of_all_sizes(function, gradient, x):
    x = np.array(x)
    assert check_gradient(function, x, gradient=gradient)
    assert not check_gradient(function, x, gradient=lambda x: 1.01 * gradient(x) + 1e-9 * (gradient(x) == 0))


def test_a_function_that_returns_both():
    assert check_gradient(lambda x: (float(x @ x), 2 * x), np.arange(3.0))
    assert not check_gradient(lambda x: (float(x @ x), x), np.arange(3.0))


def test_a_gradient_that_is_not_finite_is_wrong():
    check = check_gradient(lambda x: (float(x @ x), np.array([np.nan, 2.0])), np.ones(2))
    assert check.wrong == (0,)


def test_bad_arguments_are_named():
    with pytest.raises(ParameterError, match="x must be given"):
        check_gradient(lambda x: (0.0, x))
    with pytest.raises(ParameterError, match="gradient must be given"):
        check_gradient(lambda x: 0.0, np.ones(2))
    with pytest.raises(ParameterError, match="shape"):
        check_gradient(lambda x: (0.0, np.ones(3)), np.ones(2))
    with pytest.raises(TypeError, match="callable"):
        check_gradient(3.0, np.ones(2))
