"""Rows for flows, and short fits."""

import numpy as np
from net_samples import Sample

_FEW = {"n_layers": 2, "hidden_layer_sizes": (8,), "n_bins": 4, "max_iter": 3, "learning_rate_init": 0.01}


def in_two_parts(n):
    """Rows of three columns in two parts, one of which is bent."""
    rng = np.random.default_rng(0)
    t = rng.normal(size=n)
    part = rng.integers(0, 2, n)
    X = np.column_stack([t + 5 * part, np.where(part, t**2 / 2, -2.0) + 0.3 * rng.normal(size=n), rng.normal(size=n)])
    return X, None


SAMPLES = {"NormalizingFlow": Sample(in_two_parts, _FEW, solvers=("adamw",))}
