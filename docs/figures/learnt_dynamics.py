"""What learnt models of a pendulum foresee."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import FeatureDynamics, InvertedPendulum, LinearDynamics
from epicycle.tree import RandomForestRegressor

rod, rng = InvertedPendulum(), np.random.default_rng(0)
trials = rod.rollout(rod.reset(100, random_state=0), rng.uniform(-2, 2, (100, 20, 1)))


def features(X, U):
    return np.column_stack([np.sin(X[:, 0]), X[:, 1], U])


models = {
    "linear": LinearDynamics().fit(trials),
    "forest": FeatureDynamics(RandomForestRegressor(100, random_state=0), folds=None).fit(trials),
    "linear in sin(angle)": FeatureDynamics(features=features).fit(trials),
}
controls = np.zeros((40, 1))
seconds = 0.05 * np.arange(41)
fig, axes = plt.subplots(1, 2, figsize=(10, 3.4))
for ax, start, title in zip(axes, (0.02, 1.5), ("from almost upright", "from the side"), strict=True):
    x = np.array([start, 0.0])
    ax.plot(seconds, rod.rollout(x, controls).states[:, 0], "k", lw=3, alpha=0.3, label="truth")
    for name, model in models.items():
        ax.plot(seconds, model.rollout(x, controls)[0][:, 0], label=name)
    ax.set(title=title, xlabel="seconds", ylabel="angle (radians)", ylim=(0, 6))
axes[0].legend()
fig.tight_layout()
