"""Mixtures of binary images and of counts: digits as components, and Poisson components on counts."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import epicycle as ep

digits = load_digits().data
figure = plt.figure(figsize=(10.4, 3.4), layout="constrained")
left, middle, right = figure.subfigures(1, 3, width_ratios=[1.5, 1, 1])
model = ep.BernoulliMixture(10, binarize=7, n_init=5, random_state=0, max_iter=500).fit(digits)
for ax, image in zip(left.subplots(2, 5).ravel(), model.probabilities_, strict=True):
    ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    ax.axis("off")
left.suptitle("probabilities of ten Bernoulli components")

rng = np.random.default_rng(0)
counts = rng.poisson(np.repeat([[2.0, 9.0], [8.0, 1.5], [9.0, 10.0]], 200, axis=0))
poisson = ep.PoissonMixture(3, n_init=3, random_state=0, tol=1e-6).fit(counts)
ax = middle.subplots()
shown = counts + rng.uniform(-0.35, 0.35, counts.shape)
ax.scatter(*shown.T, c=[f"C{a}" for a in poisson.predict(counts)], s=5)
ax.scatter(*poisson.rates_.T, marker="X", s=90, c="black", edgecolor="white")
ax.set(title="three Poisson components", xlabel="first count", ylabel="second count")

chosen = ep.PoissonMixture(n_init=3, random_state=0, max_iter=500).choose_k(counts, range(1, 7))
chosen.plot(ax=right.subplots()).set_title(f"BIC chooses {chosen.k}")
plt.show()
