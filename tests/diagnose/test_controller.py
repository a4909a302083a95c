"""Diagnosis of learnt controllers: planted faults of the simulator, the algorithm and the objective are told apart."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from epicycle import diagnose
from epicycle.control import LQR, MPC, CartPole, QuadraticCost
from epicycle.exceptions import ParameterError, ParameterTypeError

REAL = CartPole(half_length=2.0)
COST = QuadraticCost(np.eye(4), [[0.1]])


def regulator(cart, share=1.0):
    _, A, B = cart.derivatives(np.zeros(4), np.zeros(1))
    solution = LQR(A, B, np.eye(4), [[0.1]]).solve()
    return lambda X: share * solution.control(X)


def upright(states, controls):
    return np.mean(np.abs(states[:, 2]) < 0.2)


def diagnosed(learnt, **changes):
    given = {
        "simulator": REAL,
        "system": REAL,
        "objective": COST,
        "performance": upright,
        "starts": REAL.reset(8, random_state=0),
        "n_steps": 300,
    }
    return diagnose.controller(learnt, regulator(REAL), **{**given, **changes})


def test_planted_faults_are_told_apart():
    wrong = CartPole(half_length=0.1)
    effort = QuadraticCost(np.zeros((4, 4)), [[1.0]])
    found = {
        "simulator": diagnosed(regulator(wrong), simulator=wrong),
        "algorithm": diagnosed(regulator(REAL, 0.2)),
        "objective": diagnosed(lambda X: np.zeros((len(X), 1)), objective=effort),  # doing nothing minimises effort
        "neither": diagnosed(regulator(REAL, 1.1)),
    }
    assert {name: result.kind for name, result in found.items()} == {name: name for name in found}
    for name, result in found.items():
        words = {"algorithm": "learning algorithm is the cause", "neither": "nothing to explain"}
        assert words.get(name, f"The {name} is the cause") in result.verdict
        assert (len(result.next_steps) > 0) == (name != "neither")
        ax = result.plot()
        assert len(ax.get_yticklabels()) == 4
        plt.close(ax.figure)
    table = found["algorithm"].table
    assert table["objective in simulation"][0] > table["objective in simulation"][1]
    assert table["performance in reality"][1] == 1.0
    table = found["objective"].table
    assert table["objective in simulation"][0] == 0 < table["objective in simulation"][1]


def test_systems_may_be_functions_and_controllers_may_remember():
    """The same trajectories through a function of one state, and a controller with a plan."""
    plain = diagnosed(regulator(REAL, 0.2), system=lambda x, u: REAL.step(x, u))
    assert plain.kind == diagnosed(regulator(REAL, 0.2)).kind == "algorithm"
    np.testing.assert_array_equal(plain.performance["learnt", "reality"], plain.performance["learnt", "simulation"])
    planner = MPC(REAL, QuadraticCost(np.diag([1.0, 0, 1, 0]), [[0.1]]), horizon=3, max_iter=2)
    starts = REAL.reset(2, random_state=0)
    result = diagnosed(planner, starts=starts, n_steps=20)
    alone = REAL.rollout(starts[1], policy=planner.reset(), n_steps=20, stop=False)
    assert result.performance["learnt", "reality"][1] == upright(alone.states, alone.controls)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"starts": np.zeros(4)}, ParameterError, "starts"),
        ({"objective": 3}, ParameterTypeError, "objective"),
        ({"system": 3}, ParameterTypeError, "system"),
        ({"performance": lambda x, u: np.nan}, ParameterError, "performance: gave nan"),
        ({"n_steps": 0}, ParameterError, "n_steps"),
    ],
)
def test_errors(changes, error, words):
    with pytest.raises(error, match=words):
        diagnosed(regulator(REAL), **changes)
