"""
A rolled sheet, laid flat
=========================

Rows on a sheet that is rolled up in space: what is near in space need not be near along the sheet, and no plane shows
it. Eight embeddings, and three numbers that say how well each of them does.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_swiss_roll

import epicycle as ep

X, t = make_swiss_roll(1000, random_state=0)
length = (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2  # along the spiral, from its centre
sheet = np.column_stack([length, X[:, 1]])

# %%
# Principal components and scaling keep far distances, in space. Isomap takes distances along a graph of neighbours,
# locally linear embeddings look at neighbours alone, and spectral embedding at nearness in their graph.

methods = {
    "principal components": ep.PCA(2),
    "scaling by stress": ep.MDS(),
    "Isomap": ep.Isomap(n_neighbors=10),
    "spectral embedding": ep.SpectralEmbedding(n_neighbors=10, random_state=0),
    "locally linear, standard": ep.LocallyLinearEmbedding(n_neighbors=12, random_state=0),
    "modified": ep.LocallyLinearEmbedding(n_neighbors=12, method="modified", random_state=0),
    "Hessian": ep.LocallyLinearEmbedding(n_neighbors=12, method="hessian", random_state=0),
    "tangent spaces": ep.LocallyLinearEmbedding(n_neighbors=12, method="ltsa", random_state=0),
}
places = {name: method.fit_transform(X) for name, method in methods.items()}

# %%
# How well a plane fits the sheet after the best linear map, since locally linear coordinates have no lengths; how far
# neighbours in the plane are neighbours in space (trustworthiness), and the other way round (continuity).

print(f"{'':26}{'sheet missed':>14}{'trusted':>10}{'continuous':>12}{'seconds':>9}")
for name, Z in places.items():
    centred, true = Z - Z.mean(axis=0), sheet - sheet.mean(axis=0)
    missed = true - centred @ np.linalg.lstsq(centred, true)[0]
    share = np.square(missed).sum() / np.square(true).sum()
    trusted, continuous = ep.metrics.trustworthiness(X, Z), ep.metrics.continuity(X, Z)
    print(f"{name:26}{share:14.2%}{trusted:10.3f}{continuous:12.3f}{methods[name].fit_seconds_:9.2f}")

# %%
# Colours follow the spiral.

figure = plt.figure(figsize=(11, 7.2), layout="constrained")
ax = figure.add_subplot(3, 3, 1, projection="3d")
ax.scatter(*X.T, c=t, s=4)
ax.view_init(8, -72)
ax.set(title="rows", xticks=[], yticks=[], zticks=[])
for place, (name, Z) in enumerate(places.items(), 2):
    ax = figure.add_subplot(3, 3, place)
    ax.scatter(*Z.T, c=t, s=4)
    ax.set(title=name, xticks=[], yticks=[])
plt.show()

# %%
# What a fit is worth stands with it: the residual of its eigenvectors, how far the next eigenvalue is, how neighbours
# fare.

for name in ("Isomap", "modified"):
    print(f"{name}: {methods[name].certificate_}\n    {methods[name].certificate_.meaning}")
