"""Error of the coefficients against the condition number of X, by method."""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
n, p = 2_000, 12
truth = rng.normal(size=p)
conditions = np.logspace(0, 12, 25)
errors = {"cholesky": [], "auto": [], "qr": []}
for condition in conditions:
    U, _ = np.linalg.qr(rng.normal(size=(n, p)))
    V, _ = np.linalg.qr(rng.normal(size=(p, p)))
    X = (U * np.geomspace(1, 1 / condition, p)) @ V.T
    y = X @ truth  # exact up to rounding: what is lost is lost by the method
    for solver, column in errors.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            coef = ep.LinearRegression(solver=solver, fit_intercept=False).fit(X, y).coef_
        column.append(np.linalg.norm(coef - truth) / np.linalg.norm(truth))

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
styles = {"cholesky": ("C1", "s", "-"), "qr": ("C2", "D", "-"), "auto": ("C0", "o", "-")}
for solver, (colour, marker, line) in styles.items():
    size = 7 if solver == "qr" else 4
    label = f'solver="{solver}"' + (" (the default)" if solver == "auto" else "")
    ax.loglog(
        conditions,
        errors[solver],
        line,
        color=colour,
        marker=marker,
        ms=size,
        mfc="none" if size == 7 else None,
        label=label,
    )
eps = np.finfo(float).eps
ax.loglog(conditions, np.minimum(conditions * eps, 1), ":", color="0.4")
ax.annotate(
    "condition × machine precision",
    (1e12, 1e12 * eps),
    (0, 8),
    textcoords="offset points",
    color="0.4",
    fontsize=9,
    ha="right",
)
for limit in (1e2, 1e6):
    ax.axvline(limit, color="0.4", lw=0.8, ls="--")
for middle, label in ((1e1, "plain"), (1e4, "refined"), (1e9, "QR of the rows")):
    ax.annotate(
        label,
        (middle, 1.0),
        (0, 4),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="center",
        fontsize=9,
        color="0.3",
    )
ax.set(xlabel="condition number of X", ylabel="relative error of the coefficients", ylim=(1e-17, 10))
ax.legend(loc="upper left")
plt.show()
