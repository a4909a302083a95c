"""A rolled sheet in space, and its places by Isomap and by principal components."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_swiss_roll

import epicycle as ep

X, t = make_swiss_roll(1200, random_state=0)
length = (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2
model = ep.Isomap(n_neighbors=10).fit(X)
Z = model.embedding_

figure = plt.figure(figsize=(11.4, 3.7), layout="constrained")
left = figure.add_subplot(1, 3, 1, projection="3d")
left.scatter(*X.T, c=t, s=5, cmap="viridis")
left.view_init(8, -72)
left.set(title="rows", xticks=[], yticks=[], zticks=[])
middle = figure.add_subplot(1, 3, 2)
middle.scatter(*ep.PCA(2).fit_transform(X).T, c=t, s=5, cmap="viridis")
middle.set(title="principal components", xticks=[], yticks=[], aspect="equal")
right = figure.add_subplot(1, 3, 3)
right.scatter(length, np.sign(np.corrcoef(length, Z[:, 0])[0, 1]) * Z[:, 0], c=t, s=5, cmap="viridis")
right.plot(
    length[[length.argmin(), length.argmax()]], [length.min() - length.mean(), length.max() - length.mean()], "k:"
)
right.set(title="Isomap", xlabel="length along the spiral", ylabel="first coordinate")
plt.show()
