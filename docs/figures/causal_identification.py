"""Four diagrams of the books, with their open paths and whether the effect of x on y is identified."""

import matplotlib.pyplot as plt

from epicycle.causal import CausalGraph, identify

GRAPHS = {
    "back door": "z -> x -> y; z -> y",
    "front door": "x -> m -> y; x <-> y",
    "napkin": "w -> r -> x -> y; w <-> x; w <-> y",
    "bow": "x -> y; x <-> y",
}
fig, axes = plt.subplots(1, 4, figsize=(11, 2.6), width_ratios=[3, 3, 4, 2])
for ax, (name, text) in zip(axes, GRAPHS.items(), strict=True):
    graph = CausalGraph(text)
    graph.plot("x", "y", ax=ax)
    verdict = "identified" if identify(graph, "x", "y").identifiable else "not identified"
    ax.set_title(f"{name}: {verdict}")
fig.tight_layout()
