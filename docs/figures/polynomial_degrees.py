"""Polynomials of rising degree through noisy points, and the leave-one-out error that chooses among them."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(1000, 10000, size=60))[:, None]
truth = np.sin(x[:, 0] / 1100)
y = truth + 0.25 * rng.normal(size=60)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained", width_ratios=[1.5, 1])
left.plot(x, y, ".", color="0.6")
grid = np.linspace(1000, 10000, 500)[:, None]
for degree, colour in ((3, "C1"), (8, "C0"), (20, "C3")):
    model = ep.PolynomialRegression(degree).fit(x, y)
    left.plot(grid, model.predict(grid), color=colour, lw=1.6, label=f"degree {degree}")
left.plot(grid, np.sin(grid / 1100), "k:", lw=1.2, label="truth")
left.set(xlabel="x", ylabel="y", ylim=(-1.9, 1.9), title="x between 1,000 and 10,000")
left.legend(ncols=2, loc="lower left")

degrees = list(range(1, 17))
chosen = ep.PolynomialRegression(degrees).fit(x, y)
right.semilogy(degrees, chosen.loo_errors_, "o-", color="C0", ms=4, label="leave-one-out error")
inside = [np.mean((y - ep.PolynomialRegression(d).fit(x, y).predict(x)) ** 2) for d in degrees]
right.semilogy(degrees, inside, "--", color="C1", label="training error")
right.axvline(chosen.degree_, color="0.5", lw=0.8, ls=":")
right.set(xlabel="degree", xticks=range(2, 17, 2), title=f"leave-one-out chooses {chosen.degree_}")
right.legend()
plt.show()
