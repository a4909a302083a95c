"""Probabilities of two classes and of three: what is not known far from the data is said."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris, make_moons

import epicycle as ep

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.4, 3.7), layout="constrained")


def grid_of(X, room):
    ends = [np.linspace(X[:, j].min() - room, X[:, j].max() + room, 90) for j in (0, 1)]
    a, b = np.meshgrid(*ends)
    return a, b, np.column_stack([a.ravel(), b.ravel()])


X, y = make_moons(120, noise=0.18, random_state=0)
model = ep.GaussianProcessClassifier().fit(X, y)
a, b, points = grid_of(X, 2.0)
P = model.predict_proba(points)[:, 1].reshape(a.shape)
shown = left.contourf(a, b, P, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.85)
left.contour(a, b, P, levels=[0.5], colors="k", linewidths=1)
left.plot(*X[y == 0].T, "o", color="#2166ac", mec="w", ms=5)
left.plot(*X[y == 1].T, "o", color="#b2182b", mec="w", ms=5)
figure.colorbar(shown, ax=left, ticks=[0, 0.5, 1])
left.set(title="probability of the second class")

_, variance = model.latent_mean_and_variance(points)
shown = middle.contourf(a, b, np.sqrt(variance).reshape(a.shape), levels=12, cmap="viridis")
middle.plot(*X.T, "o", color="w", ms=2.5)
figure.colorbar(shown, ax=middle)
middle.set(title="standard deviation of f")

X, y = load_iris(return_X_y=True)
X = X[:, :2]
three = ep.GaussianProcessClassifier().fit(X, y)
a, b, points = grid_of(X, 0.8)
P = three.predict_proba(points)
colours = np.array([[0.13, 0.4, 0.67], [0.7, 0.09, 0.17], [0.2, 0.63, 0.17]])
mix = 1 - (P[:, :, None] * (1 - colours)).sum(axis=1)
right.imshow(
    mix.reshape(*a.shape, 3), extent=(a.min(), a.max(), b.min(), b.max()), origin="lower", aspect="auto", alpha=0.75
)
for k, colour in enumerate(colours):
    right.plot(*X[y == k].T, "o", color=colour, mec="w", ms=5, label=load_iris().target_names[k])
right.set(title="three classes, jointly", xlabel="sepal length", ylabel="sepal width")
right.legend(loc="upper right")
plt.show()
