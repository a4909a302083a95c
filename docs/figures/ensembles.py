"""Trees on samples of the rows, and their average."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-3, 3, 120))
y = np.sin(2 * x) + 0.3 * x + rng.normal(scale=0.35, size=120)
grid = np.linspace(-3, 3, 600)[:, None]
tree = ep.DecisionTreeRegressor(min_samples_leaf=2)
model = ep.BaggingRegressor(tree, 60, oob_score=True, random_state=0).fit(x[:, None], y)

figure, ax = plt.subplots(figsize=(8.4, 3.6), layout="constrained")
for member in model.estimators_[:8]:
    ax.plot(grid[:, 0], member.predict(grid), color="0.75", lw=0.8)
ax.plot(grid[:, 0], model.predict(grid), color="C0", lw=2, label="average of 60 trees")
ax.plot(grid[:, 0], np.sin(2 * grid[:, 0]) + 0.3 * grid[:, 0], color="C1", ls="--", label="true function")
ax.scatter(x, y, s=8, color="C2", lw=0, label="rows")
parts = model.oob_decomposition_
error, members, ambiguity = (parts[name] for name in ("squared", "members", "ambiguity"))
ax.set_title(f"out of bag: members {members:.3f} - ambiguity {ambiguity:.3f} = {error:.3f}")
ax.set(xlabel="$x$", ylabel="$y$")
ax.legend(frameon=False)
plt.show()
