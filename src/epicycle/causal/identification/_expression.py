"""Formulas over probabilities: as text, as LaTeX, and as numbers.

A formula is made of conditional probabilities P(a | b), products, sums over variables and quotients. Its value is an
array with one axis for each variable that is not summed over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
Names = tuple[str, ...]
#: Axis of many joint distributions in one array; it is never summed over.
BATCH = "\0batch"


@dataclass(frozen=True)
class Named:
    """An array whose axes have names."""

    axes: Names
    values: Array

    def moved(self, axes: Names) -> Array:
        """The array with its axes in another order; axes that it does not have get length one."""
        own = [a for a in axes if a in self.axes]
        values = self.values.transpose([self.axes.index(a) for a in own])
        shape = iter(values.shape)
        return values.reshape([next(shape) if a in self.axes else 1 for a in axes])


def total(parts: Iterable[Named], out: Names) -> Named:
    """Product of arrays, summed over all axes that are not in `out`."""
    listed = list(parts)
    names = sorted({a for part in listed for a in part.axes})
    place = {a: i for i, a in enumerate(names)}
    kept = tuple(a for a in (*out, BATCH) if a in place)
    if not listed:
        return Named((), np.array(1.0))
    operands = [thing for part in listed for thing in (part.values, [place[a] for a in part.axes])]
    return Named(kept, np.einsum(*operands, [place[a] for a in kept], optimize="greedy"))


def divided(top: Named, bottom: Named, fill: float) -> Named:
    """Quotient; where the denominator is zero the value is `fill`."""
    below = np.broadcast_to(bottom.moved(top.axes), top.values.shape)
    zero = below.real == 0
    return Named(top.axes, np.where(zero, fill, top.values / np.where(zero, 1.0, below)))


class Expression(ABC):
    """A formula."""

    @property
    @abstractmethod
    def free(self) -> frozenset[str]:
        """Variables that are not summed over."""

    @property
    @abstractmethod
    def variables(self) -> frozenset[str]:
        """All variables, summed over or not."""

    @abstractmethod
    def write(self, names: Mapping[str, str], latex: bool, inside: bool) -> str:
        """The formula with its variables under these names; `inside` a product or fraction."""

    @abstractmethod
    def value(self, joint: Named, fill: float = 0.0) -> Named:
        """Its numbers under a joint distribution of all its variables."""

    def __str__(self) -> str:
        return self.write({v: v for v in self.free}, latex=False, inside=False)

    def latex(self) -> str:
        """The formula in LaTeX."""
        return self.write({v: v for v in self.free}, latex=True, inside=False)


def shown(name: str, latex: bool) -> str:
    """A variable in small letters of its own name, primes kept outside."""
    if not latex:
        return name
    bare = name.rstrip("'")
    text = bare if len(bare) == 1 else rf"\mathit{{{bare}}}".replace("_", r"\_")
    return text + name[len(bare) :]


def listed(variables: Iterable[str], names: Mapping[str, str], latex: bool) -> str:
    """Variables with commas between them."""
    return ", ".join(shown(names.get(v, v), latex) for v in variables)


@dataclass(frozen=True)
class Probability(Expression):
    """P(variables | given), or P(variables | do(action), given), which has no value before it is identified."""

    of: Names
    given: Names = ()
    action: Names = ()

    @property
    def free(self) -> frozenset[str]:
        return frozenset(self.of + self.given + self.action)

    variables = free

    def write(self, names: Mapping[str, str], latex: bool, inside: bool) -> str:
        do = (r"\mathrm{do}" if latex else "do") + f"({listed(self.action, names, latex)})"
        after = ", ".join(part for part in (do if self.action else "", listed(self.given, names, latex)) if part)
        bar = (r" \mid " if latex else " | ") if after else ""
        return f"P({listed(self.of, names, latex)}{bar}{after})"

    def value(self, joint: Named, fill: float = 0.0) -> Named:
        top = total([joint], self.of + self.given)
        return divided(top, total([joint], self.given), fill) if self.given else top


@dataclass(frozen=True)
class Product(Expression):
    """A product; without factors it is one."""

    factors: tuple[Expression, ...]

    @property
    def free(self) -> frozenset[str]:
        return frozenset().union(*(f.free for f in self.factors))

    @property
    def variables(self) -> frozenset[str]:
        return frozenset().union(*(f.variables for f in self.factors))

    def write(self, names: Mapping[str, str], latex: bool, inside: bool) -> str:
        last = len(self.factors) - 1  # a sum at the end reaches to the end and needs no brackets
        parts = [f.write(names, latex, inside or k < last) for k, f in enumerate(self.factors)]
        return (r" \, " if latex else " ").join(parts) or "1"

    def value(self, joint: Named, fill: float = 0.0) -> Named:
        return total([f.value(joint, fill) for f in self.factors], tuple(sorted(self.free)))


@dataclass(frozen=True)
class Sum(Expression):
    """A sum over variables."""

    over: Names
    inside: Expression

    @property
    def free(self) -> frozenset[str]:
        return self.inside.free - set(self.over)

    @property
    def variables(self) -> frozenset[str]:
        return self.inside.variables | set(self.over)

    def write(self, names: Mapping[str, str], latex: bool, inside: bool) -> str:
        own = dict(names)
        for v in self.over:  # a variable that is also meant outside of the sum gets a prime
            own[v] = v
            while own[v] in names.values():
                own[v] += "'"
        body = self.inside.write(own, latex, False)
        if latex:
            text = rf"\sum_{{{listed(self.over, own, True)}}} {body}"
            return rf"\Bigl[{text}\Bigr]" if inside else text
        text = f"sum_{{{listed(self.over, own, False)}}} {body}"
        return f"[{text}]" if inside else text

    def value(self, joint: Named, fill: float = 0.0) -> Named:
        parts = self.inside.factors if isinstance(self.inside, Product) else (self.inside,)
        return total([f.value(joint, fill) for f in parts], tuple(sorted(self.free)))


@dataclass(frozen=True)
class Quotient(Expression):
    """A fraction; all variables of the denominator that are not summed over are in the numerator too."""

    top: Expression
    bottom: Expression

    @property
    def free(self) -> frozenset[str]:
        return self.top.free | self.bottom.free

    @property
    def variables(self) -> frozenset[str]:
        return self.top.variables | self.bottom.variables

    def write(self, names: Mapping[str, str], latex: bool, inside: bool) -> str:
        if latex:
            return rf"\frac{{{self.top.write(names, True, False)}}}{{{self.bottom.write(names, True, False)}}}"
        return f"({self.top.write(names, False, False)}) / ({self.bottom.write(names, False, False)})"

    def value(self, joint: Named, fill: float = 0.0) -> Named:
        return divided(self.top.value(joint, fill), self.bottom.value(joint, fill), fill)


def summed(over: Iterable[str], inside: Expression, order: Names) -> Expression:
    """A sum over those of the variables that the formula has, or the formula itself."""
    left = tuple(v for v in order if v in set(over) and v in inside.free)
    if not left:
        return inside
    if isinstance(inside, Sum) and not set(left) & (inside.variables - inside.free):
        return Sum(tuple(v for v in order if v in {*left, *inside.over}), inside.inside)
    return Sum(left, inside)


def product(factors: Iterable[Expression]) -> Expression:
    """A product without products inside; a single factor is left alone."""
    flat: list[Expression] = []
    for f in factors:
        flat.extend(f.factors if isinstance(f, Product) else (f,))
    return flat[0] if len(flat) == 1 else Product(tuple(flat))
