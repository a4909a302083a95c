"""Digits as sums of parts, the same by principal components, and how the objective falls."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import epicycle as ep

digits = load_digits().data
model = ep.NMF(12, random_state=0, max_iter=2000).fit(digits)
axes_of_variance = ep.PCA(12).fit(digits)


def sheet(rows, normed):
    tiles = [(row / np.abs(row).max() if normed else row).reshape(8, 8) for row in rows]
    return np.vstack([np.hstack([np.pad(t, 1) for t in tiles[i : i + 4]]) for i in range(0, 12, 4)])


figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.4, 3.4), width_ratios=(1, 1, 1.15), layout="constrained")
left.imshow(sheet(model.components_, True), cmap="gray_r")
left.set_title("NMF: parts, nothing subtracted")
middle.imshow(sheet(axes_of_variance.components_, True), cmap="RdBu_r", vmin=-1, vmax=1)
middle.set_title("PCA: red adds, blue subtracts")
for ax in (left, middle):
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
start = np.random.default_rng(0)
W, H = start.random((len(digits), 12)), start.random((12, 64))
with ep.config(on_nonconvergence="ignore"):
    for solver, name in (("cd", "coordinate descent"), ("mu", "multiplicative updates")):
        fit = ep.NMF(12, init="custom", solver=solver, tol=0, max_iter=150).fit(digits, W=W, H=H)
        right.plot(np.arange(1, 151), fit.history_.objective, label=name)
right.set(xscale="log", yscale="log", xlabel="round", ylabel="objective", title="from the same start")
right.legend()
plt.show()
