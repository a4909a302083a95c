"""`identify`: the effect of an intervention as a formula of what is observed, or a proof that there is none."""

from __future__ import annotations

from epicycle.causal.graph._causal_graph import CausalGraph
from epicycle.causal.graph._diagram import Nodes
from epicycle.causal.identification._id_algorithm import NotIdentifiableError, Search, identify_conditional
from epicycle.causal.identification._identification import Identification
from epicycle.core._exceptions import ParameterError
from epicycle.core.estimator import in_catalogue


@in_catalogue("causal", "H4", certificate="derivation or hedge")
def identify(graph: CausalGraph, treatment: Nodes, outcome: Nodes, given: Nodes = ()) -> Identification:
    r"""Formula for :math:`P(y \mid do(x), z)` in terms of what is observed, or the proof that there is none.

    The ID and IDC algorithms are complete: where they find no formula, two models of the diagram agree on everything
    that is observed and differ on the effect; ``hedge.models`` builds them.

    Parameters
    ----------
    graph : CausalGraph
        The diagram; latent nodes are projected out first.
    treatment, outcome : str or iterable of str
        Disjoint sets of nodes.
    given : str or iterable of str
        Nodes that are conditioned on.

    Returns
    -------
    Identification
        With the formula as text and LaTeX, the derivation, the hedge, and :meth:`Identification.estimate`.

    Examples
    --------
    >>> from epicycle.causal import CausalGraph, identify
    >>> graph = CausalGraph("smoking -> tar -> cancer; smoking <-> cancer")
    >>> print(identify(graph, "smoking", "cancer").formula)
    sum_{tar} P(tar | smoking) sum_{smoking'} P(smoking') P(cancer | smoking', tar)
    >>> identify(CausalGraph("x -> y; x <-> y"), "x", "y").identifiable
    False
    """
    if not isinstance(graph, CausalGraph):
        raise ParameterError(f"graph={graph!r:.80}: expected a CausalGraph")
    small = graph.latent_projection() if graph.latent else graph
    x, y, z = small._sets(treatment, outcome, given, names="treatment outcome given")
    search = Search(small, small.topological_order)
    try:
        formula, hedge = identify_conditional(search, y, x, z), None
    except NotIdentifiableError as failure:
        formula, hedge = None, failure.hedge
    acted, asked, known = (tuple(v for v in small.nodes if v in group) for group in (x, y, z))
    return Identification(small, acted, asked, known, formula, tuple(search.steps), hedge)
