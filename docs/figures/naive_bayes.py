"""The boundary of Gaussian naive Bayes, and what a temperature does for features that are copies of each other."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import GaussianNB

rng = np.random.default_rng(1)
y = rng.integers(0, 2, 300)
X = np.where(y[:, None], rng.normal([1.2, 0.4], [0.4, 0.9], (300, 2)), rng.normal([-0.4, 0.0], [0.9, 0.4], (300, 2)))

figure, (plane, reliability) = plt.subplots(1, 2, figsize=(8.6, 3.5), layout="constrained")
grid = np.stack(np.meshgrid(np.linspace(-3.2, 3, 220), np.linspace(-3, 3, 200)), axis=-1)
p = GaussianNB().fit(X, y).predict_proba(grid.reshape(-1, 2))[:, 1].reshape(grid.shape[:2])
plane.contourf(grid[..., 0], grid[..., 1], p, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.35)
plane.contour(grid[..., 0], grid[..., 1], p, levels=[0.5], colors="black", linewidths=0.9)
for c, colour, marker in ((0, "#0072B2", "o"), (1, "#D55E00", "^")):
    plane.scatter(*X[y == c].T, s=12, c=colour, marker=marker, linewidths=0)
plane.set(xticks=[], yticks=[], xlim=(-3.2, 3), ylim=(-3, 3), title="Normal features, two classes")


def copies(n):
    label = rng.integers(0, 2, n)
    return np.repeat(rng.normal(label[:, None], 1.5, (n, 1)), 8, axis=1), label


(train, of_train), (test, of_test) = copies(1000), copies(40_000)
edges = np.linspace(0, 1, 11)
for name, calibration, colour, marker in (
    ("naive Bayes", None, "#D55E00", "^"),
    ("with a temperature", "temperature", "#0072B2", "o"),
):
    predicted = GaussianNB(calibration=calibration).fit(train, of_train).predict_proba(test)[:, 1]
    bins = np.clip(np.digitize(predicted, edges) - 1, 0, 9)
    centre = [predicted[bins == b].mean() for b in range(10)]
    observed = [of_test[bins == b].mean() for b in range(10)]
    reliability.plot(centre, observed, color=colour, marker=marker, ms=4.5, lw=1.2, label=name)
reliability.plot([0, 1], [0, 1], color="#6E6E6E", lw=0.9, ls=":")
reliability.set(xlabel="predicted probability", ylabel="observed share", title="Eight copies of one feature")
reliability.legend(frameon=False, loc="upper left")
reliability.grid(alpha=0.25)
