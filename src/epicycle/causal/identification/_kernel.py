"""Distributions that arise while an effect is identified: one conditional for each variable, in topological order.

A kernel over v1, ..., vk is the product of f_i = P(v_i | earlier ones, what is held fixed). Leaving variables out of
the product conditions on them as fixed; summing over them changes the conditionals of those that depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass

from epicycle.causal.graph._diagram import Diagram
from epicycle.causal.identification._expression import Expression, Probability, Product, Quotient, product, summed

Names = tuple[str, ...]


@dataclass(frozen=True)
class Kernel:
    """Conditionals by variable, in topological order; `joint` while it is a margin of what was observed."""

    factors: dict[str, Expression]
    joint: bool

    @property
    def order(self) -> Names:
        """The variables."""
        return tuple(self.factors)

    def fixed_outside(self, keep: frozenset[str]) -> Kernel:
        """The kernel of some variables with the others held fixed."""
        return Kernel({v: f for v, f in self.factors.items() if v in keep}, False)

    def density(self) -> Expression:
        """All of it."""
        return Probability(self.order) if self.joint else product(self.factors.values())


def joint_kernel(graph: Diagram, order: Names) -> Kernel:
    """The observed distribution: each variable given its Markov boundary among the earlier ones."""
    factors: dict[str, Expression] = {}
    earlier: list[str] = []
    for v in (v for v in order if v in graph.nodes):
        earlier.append(v)
        part = graph.subgraph(earlier)
        district = next(d for d in part.districts() if v in d)
        boundary = district.union(*(part.parents(u) for u in district)) - {v}
        factors[v] = Probability((v,), tuple(u for u in order if u in boundary))
    return Kernel(factors, True)


def margin(kernel: Kernel, graph: Diagram, keep: frozenset[str]) -> Kernel:
    """The kernel summed over all variables but `keep`; `graph` is that of the kernel's variables."""
    if kernel.joint:
        return joint_kernel(graph.subgraph(keep), kernel.order)
    out: dict[str, Expression] = {}
    seen: dict[str, Expression] = {}
    for v, f in kernel.factors.items():
        seen[v] = f
        if v in keep:
            hidden = frozenset(seen) - keep
            top = needed(seen, hidden)
            part, over = component(top, v, hidden)
            bottom = needed({u: g for u, g in part.items() if u != v}, over)
            # What of the denominator has no summed variable is in the numerator too.
            shared = {u for u, g in bottom.items() if not g.free & over}
            numerator = summed(over, product(g for u, g in part.items() if u not in shared), kernel.order)
            rest = {u: g for u, g in bottom.items() if u not in shared}
            below = summed(over & rest.keys(), product(rest.values()), kernel.order)
            out[v] = numerator if below == Product(()) else Quotient(numerator, below)
    return Kernel(out, False)


def needed(factors: dict[str, Expression], hidden: frozenset[str]) -> dict[str, Expression]:
    """The factors without those of hidden variables that no other factor has: they add up to one."""
    left = dict(factors)
    for v in reversed(list(factors)):
        if v in hidden and not any(v in g.free for u, g in left.items() if u != v):
            del left[v]
    return left


def component(
    factors: dict[str, Expression], start: str, hidden: frozenset[str]
) -> tuple[dict[str, Expression], frozenset[str]]:
    """Factors that hidden variables connect with that of `start`, and these variables."""
    part, over = {start}, factors[start].free & hidden & factors.keys()
    for _ in factors:
        more = {u for u, g in factors.items() if g.free & over}
        reach = over.union(*(factors[u].free & hidden & factors.keys() for u in more))
        if more <= part and reach == over:
            break
        part |= more
        over = reach
    return {u: g for u, g in factors.items() if u in part}, frozenset(over)
