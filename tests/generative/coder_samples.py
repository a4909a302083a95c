"""Rows for the networks between rows and codes, and short fits."""

import numpy as np
from net_samples import Sample


def on_a_curve(n):
    """Rows of five columns that follow from two numbers each, but for noise."""
    rng = np.random.default_rng(0)
    t = rng.normal(size=(n, 2))
    X = np.column_stack([t[:, 0], t[:, 1], t[:, 0] + t[:, 1], t[:, 0] - t[:, 1], np.tanh(t[:, 0])])
    return X + 0.1 * rng.normal(size=X.shape), None


_FEW = {"n_codes": 2, "hidden_layer_sizes": (8,), "max_iter": 3, "learning_rate_init": 0.02}
_BITS = {"hidden_layer_sizes": (4, 3), "max_iter": 3, "learning_rate_init": 0.02}
# Two equal rows have draws of their own, so that they are one of weight 2 only where draws do not count: with a factor
# before the divergence, or a noise, beside which nothing else does.
_DIVERGENCE, _NOISE = {**_FEW, "beta": 1e12}, {**_FEW, "n_moves": 2, "noise": 1e6}
SAMPLES = {
    "AutoEncoder": Sample(on_a_curve, _FEW, solvers=("adamw",)),
    "Decoder": Sample(on_a_curve, {**_FEW, "n_moves": 2}, light=_NOISE, solvers=("adamw",)),
    "VAE": Sample(on_a_curve, _FEW, light=_DIVERGENCE, solvers=("adamw",)),
    "WakeSleep": Sample(on_a_curve, _BITS, solvers=("adamw",)),
}
