"""Domains accept what they should, and a refusal says who, what and what instead."""

import math
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from gradient_toy import GradientRidge
from hypothesis import given, settings, strategies as st

import epicycle as ep
from epicycle import engine
from epicycle.core._parameters import (
    SHARED_PARAMETERS,
    AnyOf,
    ArrayLike,
    Boolean,
    Callable,
    Choice,
    InstanceOf,
    Integer,
    NoneOr,
    RandomState,
    Real,
    check_parameter,
    check_parameters,
)
from epicycle.core.estimator import Estimator
from epicycle.data import as_data
from epicycle.exceptions import EpicycleError, ParameterError, ParameterTypeError

CASES = [
    (
        Real(0),
        [0, 0.0, 1e300, np.float32(2), np.int64(3)],
        [-1, -1e-300, math.nan, math.inf, True, np.True_, "1", None, 1j],
    ),
    (Real(0, 1, inclusive=(False, True)), [1e-300, 1, 1.0], [0, 0.0, 1.0000001]),
    (Real(0, 1, inclusive=False), [0.5, np.nextafter(1, 0)], [0, 1]),
    (Real(0, 1, inclusive=(True, False)), [0, 0.5], [1, np.float64(1)]),
    (Real(allow_inf=True), [math.inf, -math.inf, 0], [math.nan, np.float32("nan")]),
    (Real(), [-5, 5.5], [math.inf, -math.inf, [1], np.array(1.0), np.array([1.0])]),
    (Integer(1), [1, np.int8(5), np.uint64(2**63), 10**30], [0, 1.0, np.float64(2), True, np.True_, "1", None]),
    (Integer(), [-(10**30)], [0.5]),
    (Boolean(), [True, False, np.True_], [0, 1, "true", None]),
    (Choice("a", "b"), ["a", np.str_("b")], ["c", "A", None, 1, ["a"]]),
    (NoneOr(Integer(1)), [None, 1], [0, "none"]),
    (AnyOf(Choice("auto"), Real(0)), ["auto", 0.5], ["other", -1, None]),
    (ArrayLike(), [[1, 2], (1,), np.ones(2), sp.eye_array(2)], ["ab", b"ab", {"a": 1}, 3, None]),
    (Callable(), [len, lambda: 0, int], ["len", None, 3]),
    (InstanceOf(dict), [{}], [[], None]),
    (RandomState(), [None, 0, np.uint32(7), np.random.default_rng(0), np.random.RandomState(0)], [-1, 1.5, True, "0"]),
]


@pytest.mark.parametrize(("domain", "inside", "outside"), CASES, ids=lambda c: type(c).__name__)
def test_domain(domain, inside, outside):
    for value in inside:
        assert domain.accepts(value), value
        assert domain.has_type(value), value
    for value in outside:
        assert not domain.accepts(value), value


@settings(max_examples=200)
@given(st.floats(), st.floats(-100, 100), st.floats(0, 100), st.booleans(), st.booleans())
def test_real_is_the_interval_it_says(value, low, width, closed_low, closed_high):
    high = low + width
    above = value >= low if closed_low else value > low
    below = value <= high if closed_high else value < high
    assert Real(low, high, inclusive=(closed_low, closed_high)).accepts(value) == (above and below)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, "GradientRidge: alpha=-1.0; expected a real number >= 0."),
        ({"alpha": np.float64(-1.0)}, "GradientRidge: alpha=-1.0; expected a real number >= 0."),
        ({"alpha": math.nan}, "GradientRidge: alpha=nan; expected a real number >= 0."),
        ({"step": 0}, "GradientRidge: step=0; expected a real number > 0."),
        ({"alpha": "1"}, "GradientRidge: alpha='1'; expected a real number >= 0."),
        ({"max_iter": 2.0}, "GradientRidge: max_iter=2.0; expected an integer >= 1."),
        (
            {"solver": "gradeint"},
            "GradientRidge: solver='gradeint'; expected one of 'gradient', 'stochastic' or 'closed form'; "
            "did you mean 'gradient'?",
        ),
        (
            {"solver": "xyz"},
            "GradientRidge: solver='xyz'; expected one of 'gradient', 'stochastic' or 'closed form'.",
        ),
    ],
)
def test_message_of_a_refused_parameter(problem, parameters, message):
    model = GradientRidge(**parameters)  # the constructor stores, whatever it is given
    with pytest.raises(ParameterError) as caught:
        model.fit(*problem)
    assert str(caught.value) == message


def test_wrong_type_and_wrong_value_are_told_apart(problem):
    with pytest.raises(ParameterTypeError) as caught:
        GradientRidge(alpha="1").fit(*problem)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(ParameterError) as caught:
        GradientRidge(alpha=-1).fit(*problem)
    assert not isinstance(caught.value, TypeError)
    assert isinstance(caught.value, EpicycleError)


def test_parameters_are_checked_before_the_data():
    with pytest.raises(ParameterError, match="alpha"):
        GradientRidge(alpha=-1).fit("no table", None)


def test_a_long_value_is_cut():
    with pytest.raises(ParameterTypeError) as caught:
        check_parameter("Ridge", "alpha", np.arange(10_000.0), Real())
    assert len(str(caught.value)) < 160
    assert "\n" not in str(caught.value)


def test_shared_domains_are_added_to_what_a_class_lists():
    class Parent(Estimator):
        _parameters: ClassVar = {"alpha": Real(0), "tol": Real(0)}

        def __init__(self, alpha=1.0, tol=0.0, n_jobs=None):
            self.alpha, self.tol, self.n_jobs = alpha, tol, n_jobs

    class Child(Parent):
        def __init__(self, alpha=1.0, verbose=0):
            self.alpha, self.verbose = alpha, verbose

    assert set(Parent._parameters) == {"alpha", "tol", "n_jobs"}
    assert Parent._parameters["tol"].accepts(0.0)  # its own domain counts
    assert set(Child._parameters) == {"alpha", "verbose"}
    with pytest.raises(ParameterError, match="n_jobs=0; expected None or an integer >= 1 or an integer <= -1"):
        check_parameters(Parent(n_jobs=0), Parent._parameters)


def test_no_method_takes_zero_threads():
    classes = [getattr(ep, info.name) for info in ep.methods()]
    with_threads = [cls for cls in classes if "n_jobs" in cls._parameters]
    assert len(with_threads) > 30
    assert [cls.__name__ for cls in with_threads if cls._parameters["n_jobs"].accepts(0)] == []


def test_shared_domains_are_written_once():
    classes = [getattr(ep, info.name) for info in ep.methods()]
    copies = [
        f"{cls.__name__}.{name}"
        for cls in classes
        for name, domain in SHARED_PARAMETERS.items()
        if (own := cls._parameters.get(name, domain)) is not domain and own.describe() == domain.describe()
    ]
    assert copies == []
    other = {name for cls in classes for name in ("n_jobs", "random_state", "verbose") if name in cls._parameters}
    assert other == {"n_jobs", "random_state", "verbose"}
    assert all(
        cls._parameters.get(name, SHARED_PARAMETERS[name]) is SHARED_PARAMETERS[name]
        for cls in classes
        for name in other
    )


def test_passes_take_no_zero_threads():
    for rows in (10, 100_000):  # one block, and several
        data = as_data(np.zeros((rows, 4)))
        for run in (engine.sum, engine.map):
            with pytest.raises(ParameterError, match="n_jobs=0"):
                run(lambda batch: batch.X[:, 0], data, n_jobs=0)
