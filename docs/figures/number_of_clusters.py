"""The number of clusters by the bend of J and by the gap statistic, for planted clusters and for none."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

import epicycle as ep

planted = make_blobs(400, centers=[[0, 0], [4, 0], [0, 4], [5, 5]], cluster_std=0.7, random_state=0)[0]
none = np.random.default_rng(0).uniform(size=(400, 2))
figure, axes = plt.subplots(2, 3, figsize=(10.4, 6), layout="constrained")
model = ep.KMeans(n_init=5, random_state=0)
for (left, middle, right), X, name in zip(axes, (planted, none), ("four clusters", "no clusters"), strict=True):
    left.scatter(*X.T, s=6)
    left.set(title=name, xticks=[], yticks=[])
    model.elbow(X, 8).plot(middle)
    model.gap_statistic(X, 8, n_draws=10).plot(right)
plt.show()
