"""Digits in the plane: after the exaggeration, in the end, and the divergence on the way."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import epicycle as ep

X, y = load_digits(return_X_y=True)
with ep.config(on_nonconvergence="ignore"):
    early = ep.TSNE(max_iter=250, method="fft", random_state=0).fit(X)
model = ep.TSNE(random_state=0).fit(X)

figure, axes = plt.subplots(1, 3, figsize=(11.4, 3.7), layout="constrained")
for ax, fit, title in zip(axes, (early, model), ("after 250 iterations", "after 1000"), strict=False):
    Z = fit.embedding_
    ax.scatter(*Z.T, c=y, s=3, cmap="tab10")
    for digit in range(10):
        ax.annotate(str(digit), (Z[y == digit].mean(axis=0)), weight="bold", ha="center", va="center")
    ax.set(title=title, xticks=[], yticks=[], aspect="equal")
iterations = [50 * (k + 1) for k in range(len(model.history_.objective))]
axes[2].plot(iterations, model.history_.objective, "o-", markersize=3)
axes[2].axvline(250, color="grey", linestyle=":")
axes[2].set(title="KL(P | Q)", xlabel="iteration", ylim=(0, None))
plt.show()
