"""A daily rhythm fitted by a few harmonics of its period."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

import epicycle as ep

rng = np.random.default_rng(0)
hour = rng.uniform(0, 24 * 14, size=400)[:, None]
of_day = hour[:, 0] % 24
demand = 40 + 18 * np.exp(-((of_day - 8.5) ** 2) / 4) + 25 * np.exp(-((of_day - 18.5) ** 2) / 6)
y = demand + 4 * rng.normal(size=400)

figure, ax = plt.subplots(figsize=(7.4, 3.6), layout="constrained")
ax.plot(of_day, y, ".", color="0.7", ms=4)
grid = np.linspace(0, 24, 400)[:, None]
for harmonics, colour in ((1, "C1"), (2, "C2"), (5, "C0")):
    model = make_pipeline(ep.FourierFeatures(harmonics, period=24.0), ep.Ridge(0.1)).fit(hour, y)
    ax.plot(grid, model.predict(grid), color=colour, label=f"{harmonics} harmonic{'s' if harmonics > 1 else ''}")
ax.set(xlabel="hour of the day", ylabel="demand", xticks=range(0, 25, 4))
ax.legend(loc="upper left")
plt.show()
