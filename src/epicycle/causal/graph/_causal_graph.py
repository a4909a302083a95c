"""`CausalGraph`: a causal diagram with directed and bidirected edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epicycle.causal.graph import _adjustment as adjustment, _front_door as front_door, _graph_plot as graph_plot
from epicycle.causal.graph._diagram import Diagram, Nodes
from epicycle.causal.graph._graph_text import quoted
from epicycle.causal.graph._instrument import Instrument, instruments
from epicycle.causal.graph._markov_equivalence import MarkovEquivalence, equivalence_class
from epicycle.causal.graph._path import Path, open_paths
from epicycle.causal.graph._projection import project
from epicycle.causal.graph._separators import minimal_separators
from epicycle.core._checks import optional_import
from epicycle.core._parameters import Choice, check_parameter
from epicycle.core._plot_style import Axes
from epicycle.core.estimator import in_catalogue

if TYPE_CHECKING:
    from epicycle.causal.identification._identification import Identification


@in_catalogue("causal", "H3", "H4", certificate="exact")
class CausalGraph(Diagram):
    r"""Causal diagram: directed edges for causes, bidirected edges for unobserved common causes.

    A path is open given :math:`Z` when each of its colliders :math:`\to v \leftarrow` has a descendant in :math:`Z` (or
    is there itself) and no other inner node is in :math:`Z`. Where no path between :math:`X` and :math:`Y` is open they
    are d-separated, and every model with this diagram has :math:`X \perp Y \mid Z`.

    Parameters
    ----------
    edges : str, iterable of edges, or networkx.DiGraph
        Text such as ``"smoking -> tar -> cancer; smoking <-> cancer"`` (chains of arrows, separated by semicolons or
        lines; ``a, b -> c`` for several ends), DOT, GML, pairs ``(cause, effect)`` or triples ``(a, "<->", b)``, or a
        graph of networkx. In DOT, GML and networkx a bidirected edge has ``dir="both"`` or ``bidirected=1``.
    nodes : iterable of str, optional
        Nodes without an edge, or the order of all.
    latent : iterable of str, optional
        Nodes that are not observed. They are never adjusted for; `latent_projection` turns them into bidirected edges.

    Attributes
    ----------
    nodes : tuple of str
        All nodes.
    directed, bidirected : tuples of pairs of str
        The edges; those with one arrow head go from the first node to the second.
    latent : frozenset of str
        Nodes that are not observed.

    See Also
    --------
    epicycle.causal.identify : Effects of interventions as formulas of what is observed.
    epicycle.causal.StructuralCausalModel : A diagram with equations.

    Examples
    --------
    >>> from epicycle.causal import CausalGraph
    >>> graph = CausalGraph("smoking -> tar -> cancer; smoking <-> cancer")
    >>> graph.d_separated("tar", "cancer", given="smoking")
    False
    >>> graph.front_door("smoking", "cancer")
    [frozenset({'tar'})]
    >>> CausalGraph("a -> b -> c -> a")
    Traceback (most recent call last):
    ...
    epicycle.exceptions.DataError: edges: a causal diagram has no cycles; got a -> b -> c -> a
    """

    _docs = {  # noqa: RUF012
        "limit": "limit : int, default={default}\n    At most this many.",
        "x": "x, y, given : str or iterable of str\n    Disjoint sets of nodes.",
        "treatment": "treatment, outcome : str or iterable of str\n    Disjoint sets of nodes.",
    }

    def __repr__(self) -> str:
        size = f"{len(self.nodes)} nodes, {len(self.directed)} directed and {len(self.bidirected)} bidirected edges"
        text = self.to_text()
        return f"CausalGraph({text!r})" if len(text) <= 100 else f"CausalGraph({size})"

    # ------------------------------------------------------------------------------------------------ separation

    def d_separated(self, x: Nodes, y: Nodes, given: Nodes = ()) -> bool:
        """Whether every path between two sets of nodes is blocked, in time linear in the edges.

        Examples
        --------
        >>> from epicycle.causal import CausalGraph
        >>> collider = CausalGraph("talent -> fame <- looks; fame -> press")
        >>> collider.d_separated("talent", "looks"), collider.d_separated("talent", "looks", given="press")
        (True, False)
        """
        places = [[self._place[v] for v in group] for group in self._sets(x, y, given)]
        return not self._canonical.d_connected(*places)[0]

    def d_connected(self, x: Nodes, given: Nodes = ()) -> frozenset[str]:
        """All nodes with an open path to some nodes.

        Parameters
        ----------
        x, given : str or iterable of str
            Disjoint sets of nodes.

        Returns
        -------
        frozenset of str
        """
        sources, known = self._sets(x, given, names="x given")
        places = ([self._place[v] for v in sources], (), [self._place[v] for v in known])
        reached = self._canonical.d_connected(*places)[1]
        return frozenset(v for v, hit in zip(self.nodes, reached, strict=False) if hit) - sources

    def open_paths(self, x: Nodes, y: Nodes, given: Nodes = (), *, limit: int = 1000) -> list[Path]:
        """Open paths between two sets of nodes, the shortest first.

        Parameters
        ----------
        limit : int, default=1000
            At most this many; there can be exponentially many.

        Returns
        -------
        list of Path
            Printed as ``smoking <-> cancer``; ``causal`` says whether all arrows point from x to y.

        Examples
        --------
        >>> from epicycle.causal import CausalGraph
        >>> for path in CausalGraph("z -> x -> y; z -> y").open_paths("x", "y"):
        ...     print(path)
        x -> y
        x <- z -> y
        """
        a, b, known = self._sets(x, y, given)
        return open_paths(self, a, b, known, limit)

    def minimal_separators(
        self, x: Nodes, y: Nodes, *, include: Nodes = (), restrict: Nodes | None = None, limit: int = 1000
    ) -> list[frozenset[str]]:
        """Sets that d-separate x from y and of which no proper subset does, the smallest first.

        Parameters
        ----------
        x, y : str or iterable of str
            Disjoint sets of nodes.
        include : str or iterable of str
            Nodes that belong to every set; minimal then means among the sets with these nodes.
        restrict : str or iterable of str, optional
            Nodes that may be used; by default all that are observed.
        limit : int, default=1000
            At most this many; there can be exponentially many.

        Returns
        -------
        list of frozenset
            Empty where no set separates them.

        Examples
        --------
        >>> from epicycle.causal import CausalGraph
        >>> CausalGraph("a -> b -> c -> d").minimal_separators("a", "d")
        [frozenset({'b'}), frozenset({'c'})]
        """
        a, b, core = self._sets(x, y, include, names="x y include")
        allowed = frozenset(self.observed) if restrict is None else self.names("restrict", restrict)
        return minimal_separators(self, a, b, core, (allowed | core) - a - b, limit)

    # ------------------------------------------------------------------------------------------------ adjustment

    def adjustment_sets(
        self, treatment: Nodes, outcome: Nodes, kind: str = "minimal", *, limit: int = 1000
    ) -> list[frozenset[str]]:
        r"""Sets :math:`Z` with :math:`P(y \mid do(x)) = \sum_z P(y \mid x, z) P(z)` in every model of this diagram.

        By the criterion that is complete: no node of Z lies behind a node on a causal path, and Z blocks all paths that
        are not causal.

        Parameters
        ----------
        kind : {"minimal", "all", "optimal"}, default="minimal"
            Sets without a proper subset that would do; all sets; or the one set with the least asymptotic variance of
            all, which is made of the parents of the causal paths and exists unless these are not observed.
        limit : int, default=1000
            At most this many, the smallest first.

        Returns
        -------
        list of frozenset
            Empty where adjustment cannot identify the effect; another formula still may.

        Examples
        --------
        >>> from epicycle.causal import CausalGraph
        >>> graph = CausalGraph("a -> x -> y; a -> b -> y; c -> y")
        >>> graph.adjustment_sets("x", "y")
        [frozenset({'a'}), frozenset({'b'})]
        >>> sorted(graph.adjustment_sets("x", "y", "optimal")[0])
        ['b', 'c']
        """
        check_parameter("adjustment_sets", "kind", kind, Choice("minimal", "all", "optimal"))
        x, y = self._sets(treatment, outcome, names="treatment outcome")
        if kind == "optimal":
            return adjustment.optimal_set(self, x, y)
        return adjustment.adjustment_sets(self, x, y, limit, minimal=kind == "minimal")

    def back_door(self, treatment: Nodes, outcome: Nodes, *, limit: int = 1000) -> list[frozenset[str]]:
        """Minimal sets that satisfy Pearl's back-door criterion, the smallest first.

        They block every path into the treatment and hold no descendant of it.

        Returns
        -------
        list of frozenset
            Empty where none exists.
        """
        x, y = self._sets(treatment, outcome, names="treatment outcome")
        return adjustment.back_door(self, x, y, limit)

    def front_door(self, treatment: Nodes, outcome: Nodes, *, limit: int = 1000) -> list[frozenset[str]]:
        """Minimal sets of mediators that satisfy Pearl's front-door criterion, the smallest first.

        They intercept all causal paths, no path into the treatment leads to them openly, and the treatment blocks
        every path from the outcome into them.

        Returns
        -------
        list of frozenset
            Empty where none exists. With more than 16 candidates one minimal set is returned.
        """
        x, y = self._sets(treatment, outcome, names="treatment outcome")
        return front_door.front_door(self, x, y, limit)

    def instruments(self, treatment: str, outcome: str, *, limit: int = 1000) -> list[Instrument]:
        """Instruments of an effect, each with nodes to condition on where it needs them.

        Given these nodes an instrument is connected with the treatment, and with the outcome through the treatment
        alone.

        Parameters
        ----------
        treatment, outcome : str
            Two nodes.
        limit : int, default=1000
            How many conditioning sets are tried for each candidate.

        Returns
        -------
        list of Instrument
            With ``node`` and ``given``.

        Examples
        --------
        >>> from epicycle.causal import CausalGraph
        >>> CausalGraph("lottery -> school -> wage; school <-> wage").instruments("school", "wage")
        [Instrument(node='lottery', given=frozenset())]
        """
        x, y = self._sets(treatment, outcome, names="treatment outcome")
        return instruments(self, x, y, limit)

    def identify(self, treatment: Nodes, outcome: Nodes, given: Nodes = ()) -> Identification:
        """Formula of an effect in terms of what is observed, or a proof that there is none.

        Parameters
        ----------
        treatment, outcome, given : str or iterable of str
            As in :func:`epicycle.causal.identify`, which this is.
        """
        from epicycle.causal.identification._identify import identify

        return identify(self, treatment, outcome, given)

    # ------------------------------------------------------------------------------------------------ other diagrams

    def latent_projection(self, observed: Nodes | None = None) -> CausalGraph:
        """The diagram of the observed nodes alone: the same separations and the same effects among them.

        Parameters
        ----------
        observed : str or iterable of str, optional
            Nodes that stay; by default all that are not latent.

        Examples
        --------
        >>> from epicycle.causal import CausalGraph
        >>> CausalGraph("gene -> smoking -> cancer; gene -> cancer", latent="gene").latent_projection()
        CausalGraph('smoking -> cancer; smoking <-> cancer')
        """
        keep = frozenset(self.observed) if observed is None else self.names("observed", observed)
        return self.from_parts(*project(self, keep))

    def markov_equivalence(self) -> MarkovEquivalence:
        """The diagrams that imply the same independences, as the completed partially directed graph of their class.

        Returns
        -------
        MarkovEquivalence
            With the edges that all of them share and those that may point either way; ``other in ...`` asks whether
            another diagram belongs to it. For diagrams without bidirected edges and latent nodes.

        Examples
        --------
        >>> from epicycle.causal import CausalGraph
        >>> same = CausalGraph("a -> b -> c; d -> c").markov_equivalence()
        >>> same
        MarkovEquivalence('b -> c; d -> c; a -- b')
        >>> CausalGraph("b -> a; b -> c; d -> c") in same
        True
        """
        return equivalence_class(self)

    # ------------------------------------------------------------------------------------------------ output

    def to_text(self) -> str:
        """The diagram in the form that the constructor reads; which nodes are latent is told by :meth:`to_dot`."""
        name = {v: quoted(v) for v in self.nodes}
        edges = [f"{name[a]} -> {name[b]}" for a, b in self.directed]
        edges += [f"{name[a]} <-> {name[b]}" for a, b in self.bidirected]
        alone = [name[v] for v in self.nodes if not (self.parents(v) or self.children(v) or self.spouses(v))]
        return "; ".join(edges + alone)

    def to_dot(self) -> str:
        """The diagram in the language of Graphviz."""
        name = {v: quoted(v, always=True) for v in self.nodes}
        lines = [f"{name[v]} [observed=no];" if v in self.latent else f"{name[v]};" for v in self.nodes]
        lines += [f"{name[a]} -> {name[b]};" for a, b in self.directed]
        lines += [f"{name[a]} -> {name[b]} [dir=both, style=dashed];" for a, b in self.bidirected]
        return "digraph {\n  " + "\n  ".join(lines) + "\n}\n"

    def to_networkx(self) -> Any:
        """The diagram as a MultiDiGraph of networkx, whose bidirected edges have ``bidirected=True``."""
        graph = optional_import("networkx", "CausalGraph.to_networkx").MultiDiGraph()
        graph.add_nodes_from((v, {"latent": True} if v in self.latent else {}) for v in self.nodes)
        graph.add_edges_from(self.directed)
        graph.add_edges_from((a, b, {"bidirected": True}) for a, b in self.bidirected)
        return graph

    def plot(self, x: Nodes = (), y: Nodes = (), given: Nodes = (), *, ax: Axes | None = None) -> Axes:
        """Draw the diagram, in layers from causes to effects, with the open paths between x and y in colour.

        Parameters
        ----------
        x, y, given : str or iterable of str
            Treatment, outcome and nodes that are conditioned on; without x and y no path is marked.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return graph_plot.draw(self, self.names("x", x), self.names("y", y), self.names("given", given), ax)
