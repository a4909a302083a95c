"""Rows for the diffusion model, and short fits."""

from coder_samples import on_a_curve
from net_samples import Sample

_FEW = {"n_steps": 20, "hidden_layer_sizes": (8,), "max_iter": 3}
SAMPLES = {"DiffusionModel": Sample(on_a_curve, _FEW, solvers=("adamw",))}
