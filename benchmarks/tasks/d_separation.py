"""Questions of d-separation in a large diagram."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

PARENTS, GIVEN, QUESTIONS = 4, 50, 4


def make(directory: Path, quick: bool) -> Data:
    n = 1_000 if quick else 10_000
    rng = np.random.default_rng(0)
    heads = np.repeat(np.arange(1, n), PARENTS)
    # Causes are near their effects in the order, so that the diagram is deep and many pairs are separated.
    tails = np.maximum(heads - 1 - rng.integers(0, n // 10, size=len(heads)), 0)
    edges = np.unique(np.column_stack([tails, heads]), axis=0)
    ends = np.array([rng.choice(n, 2, replace=False) for _ in range(QUESTIONS)])
    given = np.array([rng.choice(np.setdiff1d(np.arange(n), pair), GIVEN, replace=False) for pair in ends])
    for k in range(0, QUESTIONS, 2):  # every other question gives all parents of the later node: mostly separated
        ends[k].sort()
        parents = edges[edges[:, 1] == ends[k, 1], 0]
        parents = np.setdiff1d(parents, ends[k])
        given[k] = np.resize(parents, GIVEN) if len(parents) else given[k]
    return {"edges": edges, "ends": ends, "given": given}


def as_causal_graph(data: Data) -> dict[str, Any]:
    from epicycle.causal import CausalGraph

    graph = CausalGraph([(str(a), str(b)) for a, b in data["edges"].tolist()])
    graph.d_separated("0", "1")  # the arrays of the diagram are made once
    return {"graph": graph, "ask": graph.d_separated, "name": str, **data}


def as_networkx(data: Data) -> dict[str, Any]:
    import networkx as nx

    graph = nx.DiGraph(data["edges"].tolist())
    return {"graph": graph, "ask": lambda x, y, z: nx.is_d_separator(graph, x, y, z), "name": int, **data}


def answers(state: dict[str, Any]) -> Solution:
    name = state["name"]
    sets = zip(state["ends"].tolist(), state["given"].tolist(), strict=True)
    found = [state["ask"]({name(x)}, {name(y)}, {name(v) for v in z}) for (x, y), z in sets]
    return {"separated": np.array(found)}


def disagreement(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Share of the answers that differ from those of networkx, whose definition it is."""
    right = solutions["networkx"]["separated"] if "networkx" in solutions else None
    return {
        name: {"wrong answers": float("nan") if right is None else float(np.mean(s["separated"] != right))}
        for name, s in solutions.items()
    }


TASK = Task(
    name="d_separation",
    title="Four questions of d-separation in a diagram of 10,000 nodes and 40,000 edges",
    description="""\
Random causes near their effects in the order of the nodes; two nodes, given fifty at random or the parents of the later
one. Diagrams are built before the clock starts. At equal quality all answers are the same.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", answers, setup=as_causal_graph),
        Implementation("networkx", "peer", answers, setup=as_networkx),
    ),
    quality=disagreement,
    tolerance=0.0,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=10.0),),
)
