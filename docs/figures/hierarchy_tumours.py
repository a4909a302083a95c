"""Tumours by the expression of their genes (ESL, figure 14.12), or iris flowers where that file is not at hand."""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

import epicycle as ep
from epicycle import plot

folders = [Path(os.environ["EPICYCLE_DATA"])] if "EPICYCLE_DATA" in os.environ else []
folders += [parent / "shared" / "data" for parent in Path.cwd().resolve().parents]
file = next((f / "nci_microarray.npz" for f in folders if (f / "nci_microarray.npz").exists()), None)
if file is not None:
    with np.load(file) as stored:
        X, names = stored["X"], stored["cancer"].tolist()
    title = "64 tumours, 6,830 genes, average linkage"
else:
    iris = load_iris()
    X, names = iris.data[::3], iris.target_names[iris.target[::3]].tolist()
    title = "iris flowers, average linkage"
figure, ax = plt.subplots(figsize=(10.4, 4.4), layout="constrained")
plot.dendrogram(ep.AgglomerativeClustering(10, linkage="average").fit(X), names, ax)
ax.set(title=title)
plt.show()
