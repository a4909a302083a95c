"""Noise of units: drawn, listed, or inferred from what was seen.

Abduction walks through the variables in topological order with noise from its distribution. Where a variable was
seen and its equation has additive noise, the noise is read off and the unit is weighted by its density; where it is
a category, the noise is drawn among what gives it and the weight is its probability; otherwise the unit counts if it
gives what was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.causal.structural._counterfactual import Counterfactual
from epicycle.causal.structural._mechanism import Mechanism
from epicycle.causal.structural._noise import Noise
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.core._random import Seed, seed_of, stream

if TYPE_CHECKING:
    from epicycle.causal.structural._structural_causal_model import StructuralCausalModel

Array = np.ndarray
#: More combinations of exogenous values than this are not listed but drawn.
MOST_COMBINATIONS = 1 << 18


def own_name(v: str) -> str:
    """Name of the noise that only the equation of v reads; no user's name begins with a zero byte."""
    return f"\0{v}"


def laws(equations: Mapping[str, Mechanism], exogenous: Mapping[str, Noise]) -> dict[str, Noise]:
    """All exogenous distributions, those inside of equations too."""
    own = {own_name(v): e.own for v, e in equations.items() if e.own is not None}
    return {**exogenous, **own}


def draw(
    equations: Mapping[str, Mechanism], exogenous: Mapping[str, Noise], n: int, random_state: Seed
) -> dict[str, Array]:
    """Independent noise; each variable has a stream of its own, so that others can come and go."""
    seed, every = seed_of(random_state), laws(equations, exogenous)
    require_memory(8.0 * n * (len(every) + len(equations)), f"{n:,} units", "draw fewer")
    return {name: law.sample(stream(seed, name), n) for name, law in every.items()}


def units(
    equations: Mapping[str, Mechanism], exogenous: Mapping[str, Noise], n: int, random_state: Seed
) -> tuple[dict[str, Array], Array, bool]:
    """Noise, weights, and whether all combinations are there."""
    listed = listing(laws(equations, exogenous))
    if listed is not None:
        return *listed, True
    return draw(equations, exogenous, n, random_state), np.full(n, 1 / n), False


def listing(noises: Mapping[str, Noise]) -> tuple[dict[str, Array], Array] | None:
    """All combinations of exogenous values with their probabilities, where they are few."""
    supports = {name: law.support for name, law in noises.items()}
    if any(s is None for s in supports.values()):
        return None
    finite = {name: s for name, s in supports.items() if s is not None}
    sizes = [len(values) for values, _ in finite.values()]
    if np.prod([float(k) for k in sizes]) > MOST_COMBINATIONS:
        return None
    codes = np.unravel_index(np.arange(int(np.prod(sizes))), sizes) if sizes else ()
    weight = np.ones(int(np.prod(sizes)))
    noise = {}
    for (name, (values, p)), code in zip(finite.items(), codes, strict=True):
        noise[name] = values[code]
        weight = weight * p[code]
    return noise, weight


def counterfactual(
    model: StructuralCausalModel,
    evidence: Mapping[str, Any],
    changed: StructuralCausalModel,
    n_samples: int,
    random_state: Seed,
) -> Counterfactual:
    """Abduction, action, prediction."""
    columns, n_units = evidence_columns(evidence)
    seed = seed_of(random_state)
    readable = not model.exogenous and all(e.invertible for e in model.equations.values())
    complete = readable and set(columns) == set(model.equations)
    # An intervention that brings noise of its own is a draw, whatever was seen.
    if complete and not new_noise(model, changed):
        rng = stream(seed, "abduction")
        noise, _ = infer(model, columns, n_units, {}, rng, weigh=False)
        world = changed._world(noise, n_units)
        return Counterfactual({v: x[:, None] for v, x in world.items()}, np.ones((n_units, 1)), True)
    rows = [{v: c[i] for v, c in columns.items()} for i in range(n_units)]
    parts = [one_unit(model, changed, row, n_samples, seed, i) for i, row in enumerate(rows)]
    values = {v: np.array([world[v] for world, _, _ in parts]) for v in model.equations}
    return Counterfactual(values, np.array([w for _, w, _ in parts]), all(exact for _, _, exact in parts))


def evidence_columns(evidence: Mapping[str, Any]) -> tuple[dict[str, Array], int]:
    """Evidence with one entry for each unit."""
    columns = {v: np.atleast_1d(np.asarray(x)) for v, x in evidence.items()}
    for v, c in columns.items():
        if c.dtype.kind == "c" or (c.dtype.kind == "f" and not np.isfinite(c).all()) or c.dtype.kind == "O":
            raise DataError(f"evidence[{v!r}]={evidence[v]!r:.80}; expected finite numbers or categories")
    sizes = {len(c) for c in columns.values() if len(c) != 1} or {1}
    if len(sizes) > 1 or any(c.ndim != 1 for c in columns.values()):
        raise DataError(f"evidence: arrays of lengths {sorted(sizes)}; expected one entry for each unit")
    (n,) = sizes
    return {v: np.broadcast_to(c, (n,)) for v, c in columns.items()}, n


def new_noise(model: StructuralCausalModel, changed: StructuralCausalModel) -> bool:
    """Whether an intervention has noise that the model does not have."""
    before = laws(model.equations, model.exogenous)
    return any(before.get(name) is not law for name, law in laws(changed.equations, changed.exogenous).items())


def one_unit(
    model: StructuralCausalModel,
    changed: StructuralCausalModel,
    seen: Mapping[str, Any],
    n_samples: int,
    seed: int,
    unit: int,
) -> tuple[dict[str, Array], Array, bool]:
    """Worlds of one unit with their weights."""
    rng = stream(seed, "abduction", unit)
    listed = listing(laws(model.equations, model.exogenous))
    if listed is not None:
        noise, prior = listed
        n, log_prior = len(prior), np.log(np.maximum(prior, np.finfo(float).tiny))
        world = model._world(noise, n)
        match = np.ones(n, dtype=bool)
        for v, x in seen.items():
            match &= world[v] == x
        log_weight = np.where(match & (prior > 0), log_prior, -np.inf)
    else:
        n = n_samples
        start = {name: law.sample(rng, n) for name, law in laws(model.equations, model.exogenous).items()}
        evidence = {v: np.broadcast_to(x, (n,)) for v, x in seen.items()}
        noise, log_weight = infer(model, evidence, n, start, rng, weigh=True)
    if not np.isfinite(log_weight).any():
        shown = ", ".join(f"{v}={np.asarray(x).item()!r}" for v, x in seen.items())
        raise DataError(
            f"evidence: no draw of the noise gives {shown:.200}; expected something that the model can produce, and "
            "AdditiveNoise for equations of numbers that were seen"
        )
    weight = np.exp(log_weight - log_weight.max())
    fresh = {
        name: law.sample(rng, n)
        for name, law in laws(changed.equations, changed.exogenous).items()
        if laws(model.equations, model.exogenous).get(name) is not law
    }
    exact = listed is not None and not fresh
    return changed._world({**noise, **fresh}, n), weight / weight.sum(), exact


def infer(
    model: StructuralCausalModel,
    seen: Mapping[str, Array],
    n: int,
    start: Mapping[str, Array],
    rng: np.random.Generator,
    *,
    weigh: bool,
) -> tuple[dict[str, Array], Array]:
    """Noise that agrees with what was seen, and log-weights."""
    noise, log_weight = dict(start), np.zeros(n)
    known: dict[str, Array] = {u: noise[u] for u in model.exogenous if u in noise}
    for v in model.graph.topological_order:
        equation, name = model.equations[v], own_name(v)
        if v not in seen:
            known[v] = equation.value(known, noise.get(name), n)
            continue
        found = equation.abduct(seen[v], known, n, rng, weigh=weigh)
        if found is None:
            same = equation.value(known, noise.get(name), n) == seen[v]
            log_weight = np.where(same, log_weight, -np.inf)
        else:
            noise[name] = found[0]
            log_weight = log_weight + found[1]
        known[v] = seen[v]
    return noise, log_weight
