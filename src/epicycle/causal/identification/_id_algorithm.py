"""The ID and IDC algorithms of Shpitser and Pearl (2006), which find a formula wherever one exists.

ID(y, x) in a diagram G over V with distribution P:
  1. x is empty: sum P over all but y.
  2. Some nodes are no ancestors of y: leave them out.
  3. W = V - X - An(Y) without the edges into X: acting on W changes nothing; act on it too.
  4. G - X falls into several districts S1, ..., Sk: the product of ID(s_i, v - s_i), summed over all but y and x.
  5. G - X is one district S, and G is one district too: a hedge, no formula exists.
  6. S is a district of G: the product over S of P(v | earlier), summed over all but y.
  7. S is part of a district S' of G: ID(y, x in S') in S' with P = product over S' of P(v | earlier).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from epicycle.causal.graph._causal_graph import CausalGraph
from epicycle.causal.identification._exchange import exchangeable
from epicycle.causal.identification._expression import Expression, Probability, Quotient, product, summed
from epicycle.causal.identification._hedge import Hedge
from epicycle.causal.identification._kernel import Kernel, joint_kernel, margin

Set = frozenset[str]


class NotIdentifiableError(Exception):
    """Carries the hedge from the depth of the recursion to its start."""

    def __init__(self, hedge: Hedge) -> None:
        super().__init__("not identifiable")
        self.hedge = hedge


@dataclass(frozen=True)
class Step:
    """One step of a derivation: two sides that are equal, the rule, and why it may be used.

    Parameters
    ----------
    left, right : Expression
        The two sides.
    rule : str
        The rule of the do-calculus or of probability.
    reason : str
        What makes it valid in this diagram.
    """

    left: Expression
    right: Expression
    rule: str
    reason: str

    def __str__(self) -> str:
        return f"{self.left} = {self.right}\n    [{self.rule}: {self.reason}]"


@dataclass
class Search:
    """The whole diagram, its order, and the steps that were taken."""

    whole: CausalGraph
    order: tuple[str, ...]
    steps: list[Step] = field(default_factory=list)

    def sorted(self, nodes: Set) -> tuple[str, ...]:
        return tuple(v for v in self.order if v in nodes)

    def query(self, y: Set, x: Set, given: Set = frozenset()) -> Probability:
        return Probability(self.sorted(y), self.sorted(given), self.sorted(x))

    def note(self, left: Expression, right: Expression, rule: str, reason: str) -> None:
        if str(left) != str(right):
            self.steps.append(Step(left, right, rule, reason))

    def braces(self, nodes: Set) -> str:
        return "{" + ", ".join(self.sorted(nodes)) + "}"

    def identify(self, y: Set, x: Set, P: Kernel, graph: CausalGraph) -> Expression:
        """Formula of P(y | do(x)), where what is not in `graph` is held fixed or left out."""
        everything = frozenset(graph.nodes)
        fixed = self.fixed(P)
        if not x:
            density = summed(everything - y, P.density(), self.order) if not P.joint else Probability(self.sorted(y))
            self.note(self.query(y, fixed), density, "probability", "nothing in this part is acted on")
            return density
        ancestors = graph.ancestors(y)
        if ancestors != everything:
            gone = everything - ancestors
            self.note(
                self.query(y, x | fixed),
                self.query(y, (x & ancestors) | fixed),
                "rule 3",
                f"no directed path leads from {self.braces(gone)} to {self.braces(y)}",
            )
            return self.identify(y, x & ancestors, margin(P, graph, ancestors), graph.subgraph(ancestors))
        idle = everything - x - graph.mutilated(into=x).ancestors(y)
        if idle:
            self.note(
                self.query(y, x | fixed),
                self.query(y, x | idle | fixed),
                "rule 3",
                f"every directed path from {self.braces(idle)} to {self.braces(y)} meets {self.braces(x)}",
            )
            return self.identify(y, x | idle, P, graph)
        return self.by_districts(y, x, P, graph)

    def by_districts(self, y: Set, x: Set, P: Kernel, graph: CausalGraph) -> Expression:
        """Lines 4 to 7."""
        everything, fixed = frozenset(graph.nodes), self.fixed(P)
        parts = graph.subgraph(everything - x).districts()
        if len(parts) > 1:
            pieces = [self.query(s, (everything - s) | fixed) for s in parts]
            self.note(
                self.query(y, x | fixed),
                summed(everything - y - x, product(pieces), self.order),
                "district factorisation",
                "no unseen cause joins " + " with ".join(map(self.braces, parts)),
            )
            factors = [self.identify(s, everything - s, P, graph) for s in parts]
            return summed(everything - y - x, product(factors), self.order)
        (s,) = parts
        (around,) = (d for d in graph.districts() if s <= d)
        if around == everything:
            raise NotIdentifiableError(Hedge.of(self.whole, graph, s))
        if s == around:
            body = product(P.factors[v] for v in self.sorted(s))
            formula = summed(s - y, body, self.order)
            reason = f"no unseen cause joins {self.braces(s)} with {self.braces(x)}: acting is observing"
            self.note(self.query(y, x | fixed), formula, "rule 2", reason)
            return formula
        inner = P.fixed_outside(around)
        self.note(
            self.query(y, x | fixed),
            self.query(y, (x & around) | (everything - around) | fixed),
            "rule 2",
            f"in the district {self.braces(around)} acting on the others is observing them",
        )
        return self.identify(y, x & around, inner, graph.subgraph(around))

    def fixed(self, P: Kernel) -> Set:
        """Variables that the conditionals of P have but that P is no distribution of."""
        return frozenset().union(*(f.free for f in P.factors.values())) - P.factors.keys()


def identify_conditional(search: Search, y: Set, x: Set, z: Set) -> Expression:
    """IDC: P(y | do(x), z); nodes of z that may be acted on instead move over to x."""
    graph = search.whole
    if (node := exchangeable(graph, y, x, z)) is not None:
        rest = z - {node}
        reason = f"{node} is separated from {search.braces(y)} given {search.braces(x | rest)} without its effects"
        search.note(search.query(y, x, z), search.query(y, x | {node}, rest), "rule 2", reason)
        return identify_conditional(search, y, x | {node}, rest)
    P = joint_kernel(graph, search.order)
    if not z:
        return search.identify(y, x, P, graph)
    joint = search.query(y | z, x)
    search.note(
        search.query(y, x, z),
        Quotient(joint, summed(y, joint, search.order)),
        "probability",
        "the definition of a conditional probability",
    )
    formula = search.identify(y | z, x, P, graph)
    return Quotient(formula, summed(y, formula, search.order))
