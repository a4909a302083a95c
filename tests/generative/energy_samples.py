"""Rows for the models of energies, and short fits."""

from coder_samples import on_a_curve
from net_samples import Sample

_FEW = {
    "hidden_layer_sizes": (8,),
    "max_iter": 3,
    "n_moves": 1,
    "n_chains": 16,
    "n_levels": 5,
    "n_annealed": 4,
}

#: Chains draw for themselves: two equal rows are one of weight 2 where all states are summed.
_BITS = {"n_hidden": 3, "max_iter": 3, "method": "enumeration"}

SAMPLES = {
    "EnergyBasedModel": Sample(on_a_curve, _FEW, solvers=("adam",)),
    "RestrictedBoltzmannMachine": Sample(on_a_curve, _BITS, solvers=("adam",)),
}
