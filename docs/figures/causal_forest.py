"""The diagram of effects that differ between rows, and those that a causal forest finds, with intervals."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import TreatmentEffect
from epicycle.causal import CausalGraph

rng = np.random.default_rng(0)
n = 4000
X = rng.uniform(-1, 1, size=(n, 5))
treated = rng.random(n) < 0.5 + 0.3 * X[:, 1]


def effect(x):
    return 2 / (1 + np.exp(-8 * x))


y = X[:, 1] + treated * effect(X[:, 0]) + rng.normal(size=n)
model = TreatmentEffect("cate", "causal_forest").fit(X, y, treatment=treated)
grid = np.zeros((200, 5))
grid[:, 0] = np.linspace(-1, 1, 200)
low, high = model.predict_interval(grid)
fig, (left, ax) = plt.subplots(1, 2, figsize=(10, 3.4), width_ratios=[2, 3])
diagram = CausalGraph("covariates -> treatment -> outcome; covariates -> outcome")
diagram.plot("treatment", "outcome", given="covariates", ax=left)
ax.fill_between(grid[:, 0], low, high, alpha=0.25, lw=0, label="95% interval")
ax.plot(grid[:, 0], model.predict(grid), label="causal forest")
ax.plot(grid[:, 0], effect(grid[:, 0]), "k--", lw=1, label="truth")
ax.set_xlabel("first covariate, the others at zero")
ax.set_ylabel("effect of the treatment")
ax.legend()
fig.tight_layout()
