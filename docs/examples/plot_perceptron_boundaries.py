r"""
The boundary of a perceptron
============================

A linear model cuts the plane by one line. A perceptron with hidden layers bends it,

.. math:: f(x) = W_L z_{L-1} + b_L, \qquad z_l = a(W_l z_{l-1} + b_l), \qquad z_0 = x,

and three things decide how far: the number of hidden units, the activation :math:`a`, and the decay of the weights
:math:`\alpha \sum_l \|W_l\|^2 / (2n)`. Two noisy spirals show all three, a curve shows the same in regression.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)


def spirals(n):
    """Points of two arms that wind around each other, with noise."""
    y = rng.integers(0, 2, n)
    t = np.sqrt(rng.uniform(0.02, 1, n)) * 2.2 * np.pi
    X = np.column_stack([t * np.cos(t + np.pi * y), t * np.sin(t + np.pi * y)]) / (2.2 * np.pi)
    return X + rng.normal(0, 0.1, X.shape), y


X, y = spirals(200)
X_new, y_new = spirals(4000)
settings = {"max_iter": 300, "learning_rate_init": 0.01, "batch_size": 50, "tol": None, "random_state": 0}
models = {
    "logistic regression": ep.LogisticRegression(),
    "4 units, tanh": ep.MLPClassifier(4, "tanh", **settings),
    "32 + 32 units, tanh": ep.MLPClassifier((32, 32), "tanh", **settings),
    "32 + 32 units, ReLU": ep.MLPClassifier((32, 32), "relu", **settings),
    "32 + 32 units, ReLU, decay 3": ep.MLPClassifier((32, 32), "relu", alpha=3, **settings),
}
for name, model in models.items():
    model.fit(X, y)
    print(f"{name:30} {model.score(X, y):.3f} of the rows of the fit, {model.score(X_new, y_new):.3f} of new rows")

# %%
# The same for a number in place of a class: the truth is known here, and so is the error of each curve.
x = rng.uniform(-3, 3, (150, 1))
at = np.linspace(-3, 3, 300)[:, None]


def truth(x):
    return np.sin(2 * x[:, 0]) * np.exp(-np.abs(x[:, 0]) / 2)


t = truth(x) + rng.normal(0, 0.15, 150)
curves = {
    "linear": ep.LinearRegression(),
    "ReLU": ep.MLPRegressor(hidden_layer_sizes=(20, 20), activation="relu", **settings),
    "tanh": ep.MLPRegressor(hidden_layer_sizes=(20, 20), activation="tanh", **settings),
}
for name, model in curves.items():
    error = np.sqrt(np.mean((model.fit(x, t).predict(at) - truth(at)) ** 2))
    print(f"{name:7} root mean squared distance from the true curve {error:.3f}")

# %%
# Few units leave a boundary that is nearly a line, many follow the arms: new rows are told apart far better than by the
# line. A strong decay takes that back: such a perceptron tells new rows apart about as well as the line. Both curves of
# perceptrons are several times closer to the truth than the linear one.
figure, axes = plt.subplots(2, 3, figsize=(10, 6.4), layout="constrained")
a, b = np.meshgrid(np.linspace(-1.3, 1.3, 120), np.linspace(-1.3, 1.3, 120))
grid = np.column_stack([a.ravel(), b.ravel()])
for ax, (name, model) in zip(axes.flat, models.items(), strict=False):
    p = model.predict_proba(grid)[:, 1].reshape(a.shape)
    ax.contourf(a, b, p, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.6)
    ax.contour(a, b, p, levels=[0.5], colors="k", linewidths=1.2)
    for k, colour in enumerate(("C0", "C5")):
        ax.plot(*X[y == k].T, "o", color=colour, ms=3, mec="white", mew=0.3)
    ax.set(title=f"{name}\n{model.score(X_new, y_new):.0%} of new rows", xlabel="$x_1$", ylabel="$x_2$")
ax = axes[1, 2]
ax.plot(x[:, 0], t, ".", color="0.7", ms=4)
ax.plot(at, truth(at), color="k", lw=1, ls="--", label="truth")
for name, model in curves.items():
    ax.plot(at, model.predict(at), label=name)
ax.set(title="regression", xlabel="x", ylabel="y")
ax.legend(fontsize=8, loc="upper left")
plt.show()
