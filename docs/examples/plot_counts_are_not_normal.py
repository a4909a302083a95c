"""
Counts are not normal
=====================

How many bicycles pass, how many claims arrive: counts are whole, not negative, and vary more where they are larger. A
generalised linear model says so; least squares on the counts or on their logarithms does not.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
n = 800
hour = rng.uniform(0, 24, n)
rain = rng.random(n) < 0.3
waves = np.column_stack([np.sin(2 * np.pi * hour / 24), np.cos(2 * np.pi * hour / 24), rain])
mean = np.exp(0.8 + waves @ [0.4, -1.6, -0.9])
counts = rng.poisson(mean)

# %%
# Three models of the same columns, scored by the deviance of new rows, which is zero for the truth on average.

poisson = ep.GeneralizedLinearModel("poisson").fit(waves, counts)
squares = ep.LinearRegression().fit(waves, counts)
logs = ep.LinearRegression().fit(waves, np.log1p(counts))
predicted = {
    "Poisson": poisson.predict,
    "least squares": lambda rows: np.maximum(squares.predict(rows), 1e-3),
    "of log(1 + count)": lambda rows: np.maximum(np.expm1(logs.predict(rows)), 1e-3),
}
for name, predict in predicted.items():
    m = predict(waves)
    print(f"{name:18} error of the mean {np.sqrt(np.mean((m - mean) ** 2)):.2f}, total {m.sum() / counts.sum():.2f}")

# %%
# Coefficients are factors on the mean: rain takes away more than half of the traffic.

print(f"rain multiplies by {np.exp(poisson.coef_[2]):.2f} (truth {np.exp(-0.9):.2f}); {poisson.certificate_}")

grid = np.linspace(0, 24, 200)
day = np.column_stack([np.sin(2 * np.pi * grid / 24), np.cos(2 * np.pi * grid / 24), np.zeros(200)])
figure, ax = plt.subplots(figsize=(8.4, 4.0), layout="constrained")
ax.plot(hour[~rain], counts[~rain], ".", color="0.7", ms=4, label="dry days")
ax.plot(hour[rain], counts[rain], ".", color="C0", alpha=0.5, ms=4, label="rain")
for (name, predict), style in zip(predicted.items(), ("-", "--", "-."), strict=True):
    ax.plot(grid, predict(day), style, label=f"{name}, dry")
ax.set(xlabel="hour of the day", ylabel="count", xlim=(0, 24))
ax.legend(fontsize=8)
plt.show()
