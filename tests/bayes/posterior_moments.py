"""Comparison of draws with known moments and quantiles, in units of the Monte Carlo error; shared by tests."""

import numpy as np

from epicycle import bayes

#: The largest of about a hundred standard normal variables lies below it but once in two thousand times.
LIMIT = 4.5


def scores(x, mean=None, sd=None, quantiles=None):
    """Differences from the truth over their Monte Carlo standard errors; x has the shape (n_chains, n_draws)."""
    found = []
    if mean is not None:
        found.append((x.mean() - mean) / bayes.mcse(x))
    if sd is not None:
        found.append((x.std() - sd) / bayes.mcse(x, "sd"))
    for p, value in (quantiles or {}).items():
        # At the true quantile a share p of the draws lies below: exact for any distribution.
        below = (x <= value).astype(float)
        found.append((below.mean() - p) / bayes.mcse(below))
    return np.array(found)


def weighted_quantile(x, weight, p):
    order = np.argsort(x)
    cumulated = np.cumsum(weight[order]) - weight[order] / 2
    return np.interp(p, cumulated / weight.sum(), x[order])


def by_grid(log_density, *axes):
    """Mean, standard deviation and quantiles of every coordinate, by quadrature on a grid of points."""
    mesh = np.meshgrid(*axes, indexing="ij")
    value = log_density(*mesh)
    weight = np.exp(value - value.max())
    truth = []
    for k, axis in enumerate(axes):
        w = weight.sum(axis=tuple(j for j in range(len(axes)) if j != k))
        w = w / w.sum()
        mean = w @ axis
        quantiles = {p: weighted_quantile(axis, w, p) for p in (0.1, 0.5, 0.9)}
        truth.append({"mean": mean, "sd": np.sqrt(w @ (axis - mean) ** 2), "quantiles": quantiles})
    return truth
