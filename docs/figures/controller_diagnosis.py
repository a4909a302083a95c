"""A simulator, an algorithm and an objective at fault."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import diagnose
from epicycle.control import LQR, CartPole, QuadraticCost

real, short = CartPole(half_length=2.0), CartPole(half_length=0.1)


def regulator(cart, share=1.0):
    _, A, B = cart.derivatives(np.zeros(4), np.zeros(1))
    solution = LQR(A, B, np.eye(4), [[0.1]]).solve()
    return lambda X: share * solution.control(X)


def upright(states, controls):
    return np.mean(np.abs(states[:, 2]) < 0.2)


good, effort = QuadraticCost(np.eye(4), [[0.1]]), QuadraticCost(np.zeros((4, 4)), [[1.0]])
cases = (
    (regulator(short), short, good),
    (regulator(real, 0.2), real, good),
    (lambda X: np.zeros((len(X), 1)), real, effort),
)
fig, axes = plt.subplots(1, 3, figsize=(12, 3))
for ax, (learnt, simulator, objective) in zip(axes, cases, strict=True):
    diagnose.controller(
        learnt,
        regulator(real),
        simulator=simulator,
        system=real,
        objective=objective,
        performance=upright,
        starts=real.reset(12, random_state=0),
        n_steps=400,
        names=("learnt", "reference"),
    ).plot(ax)
    ax.set_xlabel("share of time upright")
fig.tight_layout()
