"""Effects along paths: the same units in several worlds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.causal.structural._abduction import own_name
from epicycle.causal.structural._effect_size import EffectSize
from epicycle.causal.structural._mechanism import named_values, single_value
from epicycle.causal.structural._mediation_effects import MediationEffects
from epicycle.core._checks import count, items
from epicycle.core._exceptions import ParameterError
from epicycle.core._random import Seed

if TYPE_CHECKING:
    from epicycle.causal.structural._structural_causal_model import StructuralCausalModel

Array = np.ndarray
Edge = tuple[str, str]
#: More causal paths than this are not listed.
MOST_PATHS = 10_000


def effects(
    model: StructuralCausalModel,
    x: str,
    y: str,
    mediators: frozenset[str],
    treated: Any,
    control: Any,
    levels: Mapping[str, Any] | None,
    n_samples: int,
    random_state: Seed,
) -> MediationEffects:
    """Total, natural and controlled effects."""
    if {x, y} & mediators:
        raise ParameterError(f"mediators={sorted(mediators)}: expected neither treatment nor outcome among them")
    noise, weight, exact = model._units(count("n_samples", n_samples, low=1), random_state)
    n = len(weight)
    high, low = (model._world(noise, n, {x: v}) for v in (treated, control))
    crossed = model._world(noise, n, {x: treated, **{m: low[m] for m in mediators}})[y]
    through = model._world(noise, n, {x: control, **{m: high[m] for m in mediators}})[y]

    def size(a: Array, b: Array) -> EffectSize:
        return EffectSize.of(difference(y, a, b), weight, exact)

    controlled = None
    if levels is not None:
        levels = named_values("levels", levels)
        if set(levels) != mediators:
            raise ParameterError(f"levels={levels!r:.80}: expected a value for each of {sorted(mediators)}")
        for m, value in levels.items():
            single_value(f"levels[{m!r}]", value)
        controlled = size(*(model._world(noise, n, {x: v, **levels})[y] for v in (treated, control)))
    return MediationEffects(size(high[y], low[y]), size(crossed, low[y]), size(through, low[y]), controlled)


def path_effect(
    model: StructuralCausalModel,
    x: str,
    y: str,
    treated: Any,
    control: Any,
    along: Iterable[Any] | None,
    n_samples: int,
    random_state: Seed,
) -> EffectSize:
    """Effect of a change of x that is felt along some edges only."""
    edges = set(model.graph.directed) if along is None else edges_of(model, x, y, along)
    noise, weight, exact = model._units(count("n_samples", n_samples, low=1), random_state)
    n = len(weight)
    base = model._world(noise, n, {x: control})
    active: dict[str, Array] = {x: np.broadcast_to(np.asarray(treated), (n,))}
    for v in model.graph.topological_order:
        if v == x:
            continue
        known = {u: noise[u] for u in model.exogenous}
        known |= {p: (active if (p, v) in edges else base)[p] for p in model.graph.parents(v)}
        active[v] = model.equations[v].value(known, noise.get(own_name(v)), n)
    return EffectSize.of(difference(y, active[y], base[y]), weight, exact)


def difference(outcome: str, a: Array, b: Array) -> Array:
    """Outcomes in one world less those in another, infinite where these are too far apart."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(numbers_of(outcome, a) - numbers_of(outcome, b))


def numbers_of(outcome: str, values: Array) -> Array:
    """Values of the outcome as numbers."""
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            f"outcome={outcome!r}: has values such as {values[0]!r}; expected a variable of numbers, which have a mean"
        ) from None


def edges_of(model: StructuralCausalModel, x: str, y: str, along: Iterable[Any]) -> set[Edge]:
    """Edges of the paths; an error where these edges have further paths, which cannot be told apart."""
    every = causal_paths(model, x, y)
    chosen = [read_path(p) for p in ([along] if isinstance(along, str) else items("along", along))]
    if not chosen:
        raise ParameterError("along: expected at least one path")
    for path in chosen:
        if path not in every:
            shown = " -> ".join(path)
            raise ParameterError(
                f"along: {shown} is no causal path from {x!r} to {y!r}; expected one of {_texts(every)}"
            )
    edges = {edge for path in chosen for edge in pairwise(path)}
    more = [p for p in every if p not in chosen and set(pairwise(p)) <= edges]
    if more:
        raise ParameterError(f"along: the edges of these paths also make {_texts(more)}; expected it among them")
    return edges


def _texts(paths: Sequence[tuple[str, ...]]) -> str:
    return "; ".join(" -> ".join(p) for p in paths[:6])


def read_path(given: Any) -> tuple[str, ...]:
    """A path as text or as a sequence of nodes."""
    if isinstance(given, str):
        return tuple(v.strip() for v in given.split("->"))
    return tuple(items("along", getattr(given, "nodes", given)))


def causal_paths(model: StructuralCausalModel, x: str, y: str) -> list[tuple[str, ...]]:
    """All directed paths from x to y."""
    leads = model.graph.ancestors(y)
    found: list[tuple[str, ...]] = []
    stack: list[tuple[str, ...]] = [(x,)]
    while stack:
        path = stack.pop()
        if path[-1] == y:
            found.append(path)
            if len(found) > MOST_PATHS:
                raise ParameterError(f"along: more than {MOST_PATHS} causal paths from {x!r} to {y!r}")
            continue
        stack.extend((*path, c) for c in model.graph.children(path[-1]) if c in leads)
    return found
