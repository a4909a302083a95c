"""A curve by a few features of a large dictionary, and what each step explains."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import FunctionTransformer

import epicycle as ep

rng = np.random.default_rng(3)
t = np.sort(rng.uniform(0, 1, 300))[:, None]
truth = np.sin(2 * np.pi * 3 * t[:, 0]) + 0.5 * np.cos(2 * np.pi * 11 * t[:, 0]) + (t[:, 0] > 0.6)
y = truth + 0.25 * rng.normal(size=300)


def atoms(t):
    """Waves and steps."""
    k = 2 * np.pi * np.arange(1, 31)
    return np.hstack([np.sin(t * k), np.cos(t * k), (t > np.linspace(0.02, 0.98, 49)).astype(float)])


figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
left.plot(t, y, ".", color="0.75", ms=3)
for k, colour in ((1, "C1"), (3, "C0")):
    model = ep.MatchingPursuit(k, dictionary=FunctionTransformer(atoms)).fit(t, y)
    left.plot(t, model.predict(t), color=colour, lw=1.6, label=f"{k} of 109 atoms")
left.plot(t, truth, "k:", lw=1.2, label="truth")
left.set(xlabel="t", ylabel="y", title="waves and steps")
left.legend(fontsize=8)
for method, colour in (("matching", "C3"), ("orthogonal", "C0"), ("forward", "C2")):
    model = ep.MatchingPursuit(20, method=method, max_iter=20, dictionary=FunctionTransformer(atoms)).fit(t, y)
    right.plot(np.arange(1, 21), 2 * model.history_.objective, "o-", ms=3, color=colour, label=method)
right.axhline(0.0625, color="black", ls=":", lw=1, label="noise")
right.set(xlabel="step", ylabel="mean square of the residuals", yscale="log", title="three ways to step")
right.legend(fontsize=8)
plt.show()
