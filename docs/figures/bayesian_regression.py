"""Predictive intervals that narrow with the rows, and the columns that automatic relevance determination keeps."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import ARDRegression, BayesianLinearRegression

rng = np.random.default_rng(5)
x = rng.uniform(-2, 2, 30)
y = 0.5 + 0.8 * x + 0.4 * rng.normal(size=30)
grid = np.linspace(-4, 4, 100)

figure, (line, stems) = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
for n, colour, style in ((3, "#D55E00", "--"), (30, "#0072B2", "-")):
    model = BayesianLinearRegression(noise_rate=0.2).fit(x[:n, None], y[:n])
    mean, interval = model.predict(grid[:, None], return_interval=True)
    line.fill_between(grid, *interval.T, color=colour, alpha=0.18, linewidth=0)
    line.plot(grid, mean, color=colour, lw=1.4, ls=style, label=f"{n} rows")
line.plot(x, y, "o", ms=3, color="black")
line.set(xlabel="x", ylabel="y", ylim=(-6, 6), title="Predictive intervals, 95%")
line.legend(frameon=False, loc="upper left")

X = rng.normal(size=(150, 100))
w = np.zeros(100)
w[rng.choice(100, 12, replace=False)] = rng.normal(0, 1.2, 12)
found = ARDRegression().fit(X, X @ w + 0.5 * rng.normal(size=150)).coef_
stems.vlines(np.arange(100), 0, found, color="#0072B2", lw=1.2)
stems.plot(np.arange(100), found, "o", ms=3, color="#0072B2", label="found")
stems.plot(np.flatnonzero(w), w[w != 0], "x", ms=6, color="#D55E00", label="true, not zero")
stems.axhline(0, color="#6E6E6E", lw=0.8)
stems.set(xlabel="column", ylabel="coefficient", title="Relevance of 100 columns")
stems.legend(frameon=False)
