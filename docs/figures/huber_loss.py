"""Huber's loss, and how far one outlier pulls the fits."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
z = np.linspace(-4, 4, 400)
epsilon = 1.35
left.plot(z, z**2, ":", color="0.4", label="squared")
left.plot(z, np.where(np.abs(z) <= epsilon, z**2, 2 * epsilon * np.abs(z) - epsilon**2), color="C0", label="Huber")
for side in (-epsilon, epsilon):
    left.axvline(side, color="0.7", lw=0.8)
left.set(xlabel=r"residual / $\sigma$", ylabel="loss", ylim=(0, 12), title=r"linear beyond $\epsilon = 1.35$")
left.legend(loc="upper center")

rng = np.random.default_rng(0)
X = rng.normal(size=(100, 1))
y = 2 * X[:, 0] + rng.normal(size=100)
furthest = int(np.argmax(X[:, 0]))
shifts = np.linspace(0, 200, 41)
for estimator, label, style in (
    (ep.LinearRegression(), "least squares", "--"),
    (ep.HuberRegressor(), "Huber, joint scale", "-"),
    (ep.HuberRegressor(scale="mad"), "Huber, MAD", "-."),
):
    slopes = []
    for shift in shifts:
        moved = y.copy()
        moved[furthest] -= shift
        slopes.append(estimator.fit(X, moved).coef_[0])
    right.plot(shifts, slopes, style, label=label)
right.set(xlabel="one y moved down by", ylabel="slope (truth: 2)", title="one bad row of a hundred")
right.legend(loc="lower left")
plt.show()
