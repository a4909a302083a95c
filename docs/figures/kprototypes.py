"""K-prototypes: clusters of numbers with a category, and J after every round."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import epicycle as ep

rng = np.random.default_rng(2)
truth = np.repeat([0, 1, 2], 70)
numbers = np.array([[0.0, 0.0], [1.2, 0.3], [5.0, 3.0]])[truth] + rng.normal(size=(210, 2)) * 0.9
likely = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.1, 0.45, 0.45]])
kind = np.array([rng.choice(["circle", "square", "triangle"], p=likely[t]) for t in truth])
table = pd.DataFrame({"x": numbers[:, 0], "y": numbers[:, 1], "kind": kind})
figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
model = ep.KPrototypes(3, gamma=3.0, n_init=10, random_state=0).fit(table)
for name, marker in (("circle", "o"), ("square", "s"), ("triangle", "^")):
    rows = kind == name
    axes[0].scatter(*numbers[rows].T, c=[f"C{c}" for c in model.labels_[rows]], marker=marker, s=18)
for x, y, name in model.cluster_centers_:
    axes[0].annotate(name, (x, y), weight="bold", ha="center", bbox={"fc": "white", "alpha": 0.8, "lw": 0})
axes[0].set(xticks=[], yticks=[], title="clusters (colours), category (markers)")
runs = ep.KPrototypes(3, gamma=3.0, init="random", n_init=3, random_state=4).fit(table).history_
start = np.asarray(runs["start"])
for number in range(3):
    objective = np.asarray(runs["objective"])[start == number]
    axes[1].plot(range(1, len(objective) + 1), objective, marker="o", ms=4, label=f"start {number + 1}")
axes[1].set(xlabel="round", ylabel="J", title="J after every round")
axes[1].legend()
plt.show()
