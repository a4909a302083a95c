"""Stagewise regression with large and with small steps, and the lasso that it leads to."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

import epicycle as ep

X, y = load_diabetes(return_X_y=True, as_frame=True)
lasso = ep.Lars("lasso", alpha=0.04).fit(X, y)
figure, axes = plt.subplots(1, 3, figsize=(12.5, 4.0), layout="constrained", sharey=True)
with ep.config(on_nonconvergence="ignore"):
    for ax, step in zip(axes[:2], (60.0, 1.0), strict=True):
        model = ep.Stagewise(step, alpha=0.04).fit(X, y)
        model.plot(ax=ax, labels=8)
        ax.set_title(f"stagewise, step {step:g}: {model.n_moves_:,} moves")
lasso.plot("norm", ax=axes[2], labels=8)
axes[2].set_title("lasso, exact")
for ax in axes[1:]:
    ax.set_ylabel("")
plt.show()
