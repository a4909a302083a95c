"""Faces by their components (Olivetti), or digits where that file is not at hand."""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import epicycle as ep

folders = [Path(os.environ["EPICYCLE_DATA"])] if "EPICYCLE_DATA" in os.environ else []
folders += [parent / "shared" / "data" for parent in Path.cwd().resolve().parents]
file = next((f / "olivetti_faces.npz" for f in folders if (f / "olivetti_faces.npz").exists()), None)
if file is not None:
    with np.load(file) as stored:
        X, shown = stored["images"].reshape(400, -1).astype(float), [3, 150, 399]
else:
    X, shown = load_digits().data, [0, 11, 25]
model = ep.PCA(150, random_state=0) if file else ep.PCA(60)
Z = model.fit_transform(X)
side = int(np.sqrt(X.shape[1]))
numbers = (0, 5, 20, 60, model.n_components_)

figure = plt.figure(figsize=(11.4, 4.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(4, 6))
for ax, axis in zip(left.subplots(3, 4).ravel(), [model.mean_, *model.components_[:11]], strict=True):
    ax.imshow(axis.reshape(side, side), cmap="gray")
    ax.set(xticks=[], yticks=[])
left.suptitle("mean, and the first components")
titles = [*(f"k = {k}" for k in numbers), "itself"]
for number, (row, i) in enumerate(zip(right.subplots(3, 6), shown, strict=True)):
    pictures = [model.mean_ + Z[i, :k] @ model.components_[:k] for k in numbers]
    for ax, picture, title in zip(row, [*pictures, X[i]], titles, strict=True):
        ax.imshow(picture.reshape(side, side), cmap="gray", vmin=X[i].min(), vmax=X[i].max())
        ax.set(xticks=[], yticks=[], title="" if number else title)
right.suptitle("faces from k components" if file else "digits from k components")
plt.show()
