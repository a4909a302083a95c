"""Alpha by leave-one-out: 40 correlated features of 80 rows, and a smoothness penalty."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(2)
X = rng.normal(size=(80, 40)) + rng.normal(size=(80, 1))
y = X @ rng.normal(size=40) / 5 + 2 * rng.normal(size=80)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4), layout="constrained")
alphas = np.geomspace(0.3, 3000, 80)
ep.RidgeCV(alphas).fit(X, y).plot(ax=left)
gcv = ep.RidgeCV(alphas, criterion="gcv").fit(X, y)
left.plot(alphas, -gcv.scores_, color="C1", lw=1.6, ls=":", label="generalised")
left.legend(frameon=False)

rng = np.random.default_rng(0)
t = np.linspace(0, 1, 300)
signal = np.sin(2 * np.pi * t) + 0.5 * np.sin(6 * np.pi * t)
z = signal + 0.4 * rng.normal(size=300)
steps = np.eye(60)[np.minimum((60 * t).astype(int), 59)]
second = np.diff(np.eye(60), n=2, axis=0)
smooth = ep.RidgeCV(penalty_matrix=second.T @ second, fit_intercept=False).fit(steps, z)
rough = ep.LinearRegression(fit_intercept=False).fit(steps, z)
right.plot(t, z, ".", color="0.7", ms=4)
right.plot(t, rough.predict(steps), color="C1", lw=1, label="least squares, 60 means")
right.plot(t, smooth.predict(steps), color="C0", lw=2, label=f"smooth, {smooth.effective_dof_:.1f} degrees of freedom")
right.plot(t, signal, color="k", lw=1, ls="--", label="truth")
right.set(xlabel="t")
right.legend(frameon=False)
plt.show()
