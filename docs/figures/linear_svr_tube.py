"""The tube of support vector regression, and the losses beside least squares."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(2)
x = np.sort(rng.uniform(0, 10, 80))
y = 1 + 0.8 * x + 0.4 * rng.normal(size=80)
y[[5, 20, 40]] += [6, 5, 4]
epsilon = 0.7
model = ep.LinearSVR(epsilon=epsilon, C=1.0, intercept_scaling=10).fit(x[:, None], y)
squares = ep.LinearRegression().fit(x[:, None], y)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained")
line = model.predict(x[:, None])
outside = np.abs(y - line) >= epsilon - 1e-6
left.fill_between(x, line - epsilon, line + epsilon, color="C0", alpha=0.15, lw=0, label="no cost")
left.plot(x, line, color="C0", label="LinearSVR")
left.plot(x, squares.predict(x[:, None]), ":", color="0.4", label="least squares")
left.scatter(x[~outside], y[~outside], s=12, color="0.6")
left.scatter(x[outside], y[outside], s=18, color="C1", label="support vectors")
left.set(xlabel="x", ylabel="y", title=r"$\epsilon = 0.7$")
left.legend(loc="lower right", fontsize=8)
r = np.linspace(-3, 3, 400)
v = np.maximum(np.abs(r) - epsilon, 0)
right.plot(r, v, label="epsilon_insensitive")
right.plot(r, v**2, label="squared_epsilon_insensitive")
right.plot(r, r**2, ":", color="0.4", label="squares")
right.set(xlabel="residual", ylabel="loss", ylim=(0, 4), title="losses")
right.legend(fontsize=8)
plt.show()
