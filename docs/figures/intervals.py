"""Least-squares coefficients of the diabetes data with their 95 % intervals."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import epicycle as ep

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X * np.sqrt(len(X))  # per standard deviation
summary = ep.LinearRegression().fit(X, y).summary()
rows = np.arange(len(X.columns))
coef, low, high = (summary[name][1:] for name in ("coef", "[0.025", "0.975]"))
clear = (low > 0) | (high < 0)

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for mask, colour, label in ((clear, "C0", "interval excludes zero"), (~clear, "0.55", "interval contains zero")):
    ax.errorbar(
        coef[mask],
        rows[mask],
        xerr=np.array([coef - low, high - coef])[:, mask],
        fmt="o",
        color=colour,
        ms=5,
        capsize=3,
        label=label,
    )
ax.axvline(0, color="k", lw=0.8)
ax.set_yticks(rows, X.columns)
ax.invert_yaxis()
ax.set(xlabel="change of disease progression per standard deviation")
ax.legend(loc="upper left")
plt.show()
