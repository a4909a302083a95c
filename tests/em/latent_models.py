"""Models with latent variables for the tests of the EM driver; importable by the workers of a cluster."""

import numpy as np
from scipy.special import xlog1py, xlogy

from epicycle.em import LatentModel


class TwoCoins(LatentModel):
    """Rows are numbers of heads in ten throws; each row is of one of two coins, which nobody wrote down."""

    def __init__(self, broken=False):
        self.broken = broken

    def log_joint(self, heads, theta):
        p, share = theta["p"], theta["share"]
        prior = np.log([share, 1 - share])
        return prior + xlogy(heads[:, None], p) + xlog1py(10 - heads[:, None], -p)

    def e_step(self, batch, theta):
        heads = batch.X[:, 0]
        w = np.ones(len(heads)) if batch.weight is None else batch.weight
        joint = self.log_joint(heads, theta)
        value = np.logaddexp(*joint.T)
        q = np.exp(joint - value[:, None]) * w[:, None]
        return float(w @ value), q.sum(axis=0), heads @ q

    def m_step(self, statistics, theta):
        count, heads = statistics
        if self.broken:
            heads = heads[::-1] * 0.3
        return {"p": heads / (10 * count), "share": float(count[0] / count.sum())}

    def start(self, data, rng, n_jobs=None):
        return {"p": rng.uniform(0.2, 0.8, 2), "share": float(rng.uniform(0.3, 0.7))}

    def feasible(self, theta):
        return bool(0 < theta["share"] < 1 and (theta["p"] > 0).all() and (theta["p"] < 1).all())
