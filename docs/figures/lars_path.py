"""Least angle regression and the lasso on the diabetes data: coefficients, and the correlations that stay equal."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import epicycle as ep

X, y = load_diabetes(return_X_y=True, as_frame=True)
models = {"least angle regression": ep.Lars().fit(X, y), "lasso": ep.Lars("lasso").fit(X, y)}

figure, axes = plt.subplots(1, 3, figsize=(12.5, 4.1), layout="constrained", width_ratios=[1, 1, 0.85])
for ax, (title, model) in zip(axes, models.items(), strict=False):
    model.plot(ax=ax)
    ax.set_title(f"{title}: {model.n_iter_} steps")
    ax.set_ylim(-850, 850)
norms = np.abs(models["lasso"].coef_path_).sum(axis=0)
gone = int(np.flatnonzero(models["lasso"].history_.left == 6)[0])  # the step at whose beginning s3 leaves
axes[1].annotate(
    "s3 leaves", (norms[gone] / norms[-1], 0), (0.4, -600), color="0.4", arrowprops={"arrowstyle": "->", "color": "0.4"}
)

lar = models["least angle regression"]
Z, r = X.to_numpy(), y.to_numpy() - y.mean()
correlations = np.abs(Z.T @ (r[:, None] - Z @ lar.coef_path_)) / len(y)
steps = np.arange(lar.n_iter_ + 1)
for j in lar.active_:
    axes[2].plot(steps, correlations[j], lw=1.2, color=f"C{j % 6}", ls=["-", "--"][j // 6])
axes[2].plot(steps, lar.alphas_, color="k", lw=2.6, alpha=0.4, label=r"$\alpha$")
axes[2].set(xlabel="step", ylabel="|correlation with the residuals|", title="one after the other joins", xlim=(0, 10))
axes[2].set_ylim(0, 2.3)
axes[2].legend(frameon=False)
plt.show()
