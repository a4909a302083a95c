"""Probabilities of kernel logistic regression for two classes and three, and how the duality gap closes."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import epicycle as ep
from epicycle.kernel import Gaussian

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.4, 3.6), layout="constrained")
X, y = make_moons(160, noise=0.25, random_state=1)
model = ep.KernelLogisticRegression(10.0, kernel=Gaussian(0.6)).fit(X, y)
u, v = np.meshgrid(np.linspace(-1.9, 2.9, 160), np.linspace(-1.5, 2.0, 120))
grid = np.column_stack([u.ravel(), v.ravel()])
P = model.predict_proba(grid)[:, 1].reshape(u.shape)
drawn = left.contourf(u, v, P, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.75)
left.contour(u, v, P, levels=[0.5], colors="k", linewidths=1.2)
for label, colour in ((0, "#08306b"), (1, "#67000d")):
    left.plot(*X[y == label].T, "o", ms=3.2, color=colour)
figure.colorbar(drawn, ax=left, label="probability", ticks=[0, 0.5, 1])
left.set(title="two classes", xticks=[], yticks=[])
left.grid(visible=False)

rng = np.random.default_rng(0)
X3 = rng.normal(size=(240, 2))
y3 = np.digitize(X3[:, 0] * X3[:, 1] + 0.15 * rng.normal(size=240), [-0.25, 0.25])
three = ep.KernelLogisticRegression(5.0, kernel=Gaussian(1.0)).fit(X3, y3)
u, v = np.meshgrid(np.linspace(-2.6, 2.6, 150), np.linspace(-2.6, 2.6, 150))
P = three.predict_proba(np.column_stack([u.ravel(), v.ravel()]))
colours = np.array([[0, 114, 178], [230, 159, 0], [0, 158, 115]]) / 255
middle.imshow((P @ colours).reshape(*u.shape, 3), origin="lower", extent=(-2.6, 2.6, -2.6, 2.6), alpha=0.75)
for k in range(3):
    middle.plot(*X3[y3 == k].T, "o", ms=3.2, color=colours[k] * 0.6)
middle.set(title="three classes", xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), xticks=[], yticks=[])
middle.grid(visible=False)

for fitted, label in ((model, "two classes"), (three, "three classes")):
    right.semilogy(np.arange(1, fitted.n_iter_ + 1), fitted.history_.gap, "o-", ms=4, label=label)
right.set(xlabel="Newton step", ylabel="relative duality gap", title="distance from the minimum, proven")
right.legend()
plt.show()
