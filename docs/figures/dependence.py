"""What a boosted model learnt of bicycle-like data: what features are worth, a curve for each row, and a surface."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import epicycle as ep
from epicycle.plot import bars, in_style

rng = np.random.default_rng(0)
n = 3000
hour, warmth = rng.integers(0, 24, n).astype(float), rng.normal(15, 8, n)
day = rng.choice(["weekday", "weekend"], n, p=[5 / 7, 2 / 7])
commute = np.exp(-((hour - 8) ** 2) / 3) + np.exp(-((hour - 17.5) ** 2) / 4)
leisure = 0.9 * np.exp(-((hour - 14) ** 2) / 18)
rides = np.where(day == "weekday", commute, leisure) * np.clip(warmth / 10, 0.2, 2.5) + 0.15 * rng.normal(size=n)
X = pd.DataFrame({"hour": hour, "warmth": warmth, "day": pd.Categorical(day), "noise": rng.normal(size=n)})
train = np.arange(n) < 2600
model = ep.GradientBoostingRegressor(n_estimators=80).fit(X[train], rides[train])

with in_style():
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.5, 3.6), layout="constrained")
rise, error = model.permutation_importances(X[~train], rides[~train])
bars(left, list(X.columns), rise, error)
left.set(title="shuffled: rise of the loss", xlabel="loss of new rows")
model.partial_dependence(X[~train], "hour", kind="individual").plot(lines=60, ax=middle)
middle.set(title="each row, and their mean")
model.partial_dependence(X[~train], ("hour", "warmth"), grid_resolution=20).plot(ax=right)
right.set(title="two features at once")
plt.show()
