"""Lasso coefficients of the diabetes data against alpha."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import epicycle as ep

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X * np.sqrt(len(X))  # columns of unit variance
largest = np.abs(X.T @ (y - y.mean())).max() / len(y)
alphas = np.geomspace(largest * 1.3, largest / 300, 60)
coef = np.array([ep.Lasso(alpha=alpha).fit(X, y).coef_ for alpha in alphas])

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained", width_ratios=[1.6, 1])
styles = ["-", "--", ":"]
order = np.argsort(-np.abs(coef[-1]))
for rank, j in enumerate(order):
    style = styles[rank // 4] if rank < 12 else "-"
    left.semilogx(alphas, coef[:, j], style, color=f"C{rank % 4}", label=X.columns[j])
left.axhline(0, color="k", lw=0.6)
left.axvline(largest, color="0.4", lw=0.8, ls=":")
left.annotate(
    r"$\alpha_{\max}$",
    (largest, 0.97),
    (-4, 0),
    xycoords=("data", "axes fraction"),
    ha="right",
    va="top",
    textcoords="offset points",
    color="0.4",
)
left.set(xlabel="alpha", ylabel="coefficient", title="one after the other leaves zero")
left.invert_xaxis()
left.legend(ncols=2, loc="lower left")
right.semilogx(alphas, (coef != 0).sum(axis=1), drawstyle="steps-mid", color="C0")
right.set(xlabel="alpha", ylabel="features in the model", title="size of the model", yticks=range(0, 11, 2))
right.invert_xaxis()
plt.show()
