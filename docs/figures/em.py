"""Expectation maximisation: Jensen's bound that touches, and plain steps beside accelerated ones."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

from epicycle import em
from epicycle.data import as_data


class TwoCoins(em.LatentModel):
    """Numbers of heads in ten throws; which of two coins was thrown is latent."""

    def log_joint(self, heads, p):
        return np.log(0.5) + heads[:, None] * np.log(p) + (10 - heads[:, None]) * np.log1p(-p)

    def e_step(self, batch, p):
        heads = batch.X[:, 0]
        joint = self.log_joint(heads, p)
        q = softmax(joint, axis=1)
        return float(np.logaddexp(*joint.T).sum()), q.sum(axis=0), heads @ q

    def m_step(self, statistics, p):
        count, heads = statistics
        return heads / (10 * count)

    def feasible(self, p):
        return bool(((p > 0) & (p < 1)).all())


rng = np.random.default_rng(1)
heads = rng.binomial(10, np.where(rng.random(300) < 0.5, 0.4, 0.6))[:, None].astype(float)
model, data = TwoCoins(), as_data(heads)
figure, axes = plt.subplots(1, 2, figsize=(10.4, 3.5), layout="constrained")

first = np.linspace(0.25, 0.6, 120)
L = [model.expectation(data, np.array([p, 0.62])).log_likelihood for p in first]
axes[0].plot(first, L, color="black", label="log-likelihood")
for colour, at in (("C0", 0.3), ("C1", 0.5)):
    q = softmax(model.log_joint(heads[:, 0], np.array([at, 0.62])), axis=1)
    bound = [em.elbo(model.log_joint(heads[:, 0], np.array([p, 0.62])), q) for p in first]
    axes[0].plot(first, bound, color=colour, ls="--", label=f"Jensen's bound after an E-step at {at}")
    axes[0].plot(at, model.expectation(data, np.array([at, 0.62])).log_likelihood, "o", color=colour)
axes[0].set(xlabel="p of the first coin, with 0.62 for the second", ylim=(min(L) - 70, max(L) + 8))
axes[0].legend(frameon=False, loc="lower center")

start = np.array([0.49, 0.5])
runs = {
    name: em.run_em(model, data, start, tol=1e-13, max_iter=5000, accelerate=name == "SQUAREM")
    for name in ("plain", "SQUAREM")
}
best = max(run.log_likelihood for run in runs.values())
for name, run in runs.items():
    gap = best - run.history.log_likelihood
    axes[1].semilogy(
        np.arange(1, len(gap) + 1), np.where(gap > 1e-11, gap, np.nan), label=f"{name}: {run.n_iter} steps"
    )
axes[1].set(xlabel="step", ylabel="log-likelihood below its best")
axes[1].legend(frameon=False, title="steps")
plt.show()
