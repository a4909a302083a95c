"""Digits between attraction and repulsion, and by UMAP's objective."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import epicycle as ep

X, y = load_digits(return_X_y=True)
members = {
    "attraction 0.5": {"attraction": "gaussian", "repulsion": "normalised", "exaggeration": 0.5},
    "attraction 4": {"attraction": "gaussian", "repulsion": "normalised", "exaggeration": 4.0},
    "UMAP": {},
}
figure, axes = plt.subplots(1, 3, figsize=(11.4, 3.9), layout="constrained")
for ax, (title, options) in zip(axes, members.items(), strict=True):
    with ep.config(on_nonconvergence="ignore"):
        model = ep.NeighborEmbedding(method="fft", max_iter=600, random_state=0, **options).fit(X)
    Z = model.embedding_
    ax.scatter(*Z.T, c=y, s=3, cmap="tab10")
    for digit in range(10):
        ax.annotate(str(digit), Z[y == digit].mean(axis=0), weight="bold", ha="center", va="center")
    ax.set(title=title, xlabel=f"trustworthiness {model.trustworthiness_:.3f}", xticks=[], yticks=[], aspect="equal")
plt.show()
