"""A rolled sheet, laid flat by four kinds of locally linear embedding."""

import matplotlib.pyplot as plt
from sklearn.datasets import make_swiss_roll

import epicycle as ep

X, t = make_swiss_roll(1200, random_state=0)
figure, axes = plt.subplots(1, 4, figsize=(11.4, 3.0), layout="constrained")
for ax, method in zip(axes, ("standard", "modified", "hessian", "ltsa"), strict=True):
    model = ep.LocallyLinearEmbedding(n_neighbors=12, method=method, random_state=0).fit(X)
    ax.scatter(*model.embedding_.T, c=t, s=4, cmap="viridis")
    ax.set(title=method, xticks=[], yticks=[], xlabel=f"{model.neighborhood_preservation_:.0%} of neighbours kept")
plt.show()
