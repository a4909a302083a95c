"""A pole held upright from noisy positions: one run of the loop, and its cost against the noise of the sensor."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import LQG

dt = 0.05
system = {
    "A": np.array([[1.0, dt], [9.81 * dt, 1.0]]),  # angle and speed of a pole of one metre
    "B": np.array([[0.0], [dt]]),
    "C": np.array([[1.0, 0.0]]),
    "Q": np.diag([1.0, 0.1]),
    "R": np.array([[0.01]]),
    "W": np.diag([0.0, 1e-4]),
}
model = LQG(**system, V=[[0.02**2]], covariance=np.diag([1e-4, 1e-4]))
solution = model.solve()
rng = np.random.default_rng(1)
x, guess, states, guesses, seen = np.array([0.1, 0.0]), np.zeros(2), [], [], []
for _ in range(120):
    y = x[0] + 0.02 * rng.normal()
    estimate = guess + solution.filter_gain[:, 0] * (y - guess[0])
    u = solution.control(estimate)
    states.append(x)
    guesses.append(estimate)
    seen.append(y)
    x = system["A"] @ x + system["B"] @ u + np.array([0.0, 0.01]) * rng.normal(size=2)
    guess = system["A"] @ estimate + system["B"] @ u
seconds = dt * np.arange(120)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.plot(seconds, np.degrees(seen), "k.", ms=3, label="measured")
left.plot(seconds, np.degrees(np.array(states)[:, 0]), label="angle")
left.plot(seconds, np.degrees(np.array(guesses)[:, 0]), label="estimate")
left.set_xlabel("seconds")
left.set_ylabel("degrees")
left.legend()
noise = np.geomspace(1e-3, 0.2, 30)
solutions = [LQG(**system, V=[[s**2]]).solve() for s in noise]
right.loglog(noise, [s.cost for s in solutions], label="state seen through noise")
right.loglog(noise, [s.full_information_cost for s in solutions], ls="--", label="state seen")
right.set_xlabel("standard deviation of the sensor (radians)")
right.set_ylabel("cost of a step")
right.legend()
