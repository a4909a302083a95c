"""Predict-then-learn error of three models on a stream that changes half-way."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
n, p = 20_000, 20
X = rng.normal(size=(n, p))
before, after = rng.normal(size=p), rng.normal(size=p)
z = np.where(np.arange(n) < n // 2, X @ before, X @ after)
y = z + rng.logistic(size=n) > 0

models = {
    "perceptron": ep.Perceptron(),
    "logistic, optimal": ep.SGDClassifier("log_loss", alpha=1e-3),
    "logistic, constant step": ep.SGDClassifier("log_loss", alpha=1e-3, learning_rate="constant", eta0=0.02),
}
figure, axes = plt.subplots(figsize=(7.2, 3.9), layout="constrained")
for name, model in models.items():
    result = ep.online.evaluate(model, X, y, window=500)
    result.plot(ax=axes, label=f"{name}: {result.mean_error:.3f}")
axes.axvline(n // 2, color="0.4", lw=0.8, ls=":")
axes.annotate(
    "the stream changes",
    (n // 2, 0.97),
    (5, 0),
    xycoords=("data", "axes fraction"),
    va="top",
    color="0.4",
    textcoords="offset points",
)
axes.set(ylim=(0.05, 0.52))
axes.legend(title="error of all rows")
plt.show()
