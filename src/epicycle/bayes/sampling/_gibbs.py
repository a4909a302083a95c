"""Gibbs sampling: every block of parameters in turn from its distribution given all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epicycle.bayes.sampling._chains import Chain
from epicycle.bayes.sampling._model import Model
from epicycle.core._exceptions import ParameterError

Array = np.ndarray


def check_blocks(model: Model) -> None:
    """Every parameter has to be in a block."""
    if not model.conditionals:
        raise ParameterError("method='gibbs': the model has no conditionals; give Model(conditionals=...)")
    drawn = {name for names in model.conditionals for name in names}
    if missing := [name for name in model.parameters.constraints if name not in drawn]:
        raise ParameterError(f"method='gibbs': conditionals leave out {missing!r}")


def run_gibbs(model: Model, chain: Chain, warmup: int, thin: int) -> None:
    """One chain; draws are written in unconstrained coordinates, as by the other samplers."""
    x = model.parameters.constrain(chain.start)
    for iteration in range(warmup + len(chain.draws) * thin):
        if chain.stop[0]:
            return
        for names, draw in model.conditionals.items():
            given = {name: np.array(value) for name, value in x.items()}
            drawn = draw(chain.rng, **given, **model.data)
            x.update(_checked(model, names, (drawn,) if len(names) == 1 else drawn))
        row, rest = divmod(iteration - warmup + 1, thin)
        if iteration >= warmup and rest == 0:
            u = model.parameters.unconstrain(x)
            chain.draws[row - 1] = u
            # Conditionals define the distribution alone: the model's density is not asked for.
            chain.statistics[row - 1] = [np.nan, 1.0, np.nan, 0.0, len(model.conditionals), 0.0, np.nan]
            chain.progress[1] = row
        chain.progress[0] = iteration + 1


def _checked(model: Model, names: tuple[str, ...], drawn: Any) -> Mapping[str, Array]:
    if len(drawn) != len(names):
        raise ParameterError(f"conditionals: {len(drawn)} values for {names!r}; expected {len(names)}")
    values = {name: np.asarray(value, dtype=np.float64) for name, value in zip(names, drawn, strict=True)}
    for name, value in values.items():
        constraint = model.parameters.constraints[name]
        if value.shape != constraint.shape:
            raise ParameterError(f"conditionals: shape {value.shape} for {name!r}; expected {constraint.shape}")
        with np.errstate(all="ignore"):
            inside = np.isfinite(constraint.unconstrain(value)).all()
        if not inside:
            raise ParameterError(f"conditionals: {name}={value!r:.60} left its constraint {constraint!r}")
    return values
