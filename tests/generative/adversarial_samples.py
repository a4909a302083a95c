"""Rows for the adversarial networks, and short fits, which are long enough for rows everywhere."""

from coder_samples import on_a_curve
from net_samples import Sample

_FEW = {"n_codes": 4, "hidden_layer_sizes": (8,), "max_iter": 3}
SAMPLES = {"GAN": Sample(on_a_curve, _FEW, solvers=("adam",))}
