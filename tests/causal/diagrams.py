"""Random diagrams and an independent reading of d-separation."""

from itertools import combinations, product

import numpy as np


def random_edges(rng, n, directed=0.4, bidirected=0.2):
    """Edges of a random diagram over v0, v1, ...; the order of the names is not that of the arrows."""
    names = [f"v{i}" for i in rng.permutation(n)]
    edges = []
    for a, b in combinations(range(n), 2):
        if rng.random() < directed:
            edges.append((names[a], "->", names[b]))
        if rng.random() < bidirected:
            edges.append((names[a], "<->", names[b]))
    return [f"v{i}" for i in range(n)], edges


def separated_by_paths(edges, x, y, given):
    """The definition: no path from x to y on which every collider leads to `given` and no other node is in it."""
    children = {}
    for a, arrow, b in edges:
        if arrow == "->":
            children.setdefault(a, set()).add(b)

    def leads_to_given(v):
        return v in given or any(leads_to_given(c) for c in children.get(v, ()))

    steps = []  # (from, head at from, head at to, to)
    for a, arrow, b in edges:
        steps += [(a, arrow == "<->", True, b), (b, True, arrow == "<->", a)]

    def walk(v, head, visited):
        for a, here, there, b in steps:
            if a != v or b in visited:
                continue
            if visited[1:] and not (leads_to_given(v) if head and here else v not in given):
                continue
            if b == y or walk(b, there, [*visited, b]):
                return True
        return False

    return not walk(x, False, [x])


def subsets(items):
    items = sorted(items)
    return [set(c) for k in range(len(items) + 1) for c in combinations(items, k)]


def discrete_model(rng, nodes, edges, cards=None):
    """Random tables of a diagram: a latent bit or trit for each bidirected edge, one factor for each node.

    Returns the cardinalities and factors (axes, table) with the axis of the node last, over names of nodes and latents.
    """
    cards = dict.fromkeys(nodes, 2) if cards is None else dict(cards)
    parents = {v: [a for a, arrow, b in edges if arrow == "->" and b == v] for v in nodes}
    factors = {}
    for k, (a, arrow, b) in enumerate(edges):
        if arrow == "<->":
            latent = f"u{k}"
            cards[latent] = int(rng.integers(2, 4))
            factors[latent] = ([latent], rng.dirichlet(np.ones(cards[latent])))
            parents[a].append(latent)
            parents[b].append(latent)
    for v in nodes:
        axes = [*parents[v], v]
        weight = rng.dirichlet(np.full(cards[v], 0.7), size=[cards[p] for p in parents[v]])
        factors[v] = (axes, 0.02 / cards[v] + 0.98 * weight)
    return cards, factors


def table_of(factors, out):
    """Product of the factors, summed over all that is not in `out`."""
    names = sorted({name for axes, _ in factors for name in axes})
    letter = {name: i for i, name in enumerate(names)}
    operands = [part for axes, table in factors for part in (table, [letter[a] for a in axes])]
    return np.einsum(*operands, [letter[name] for name in out], optimize="greedy")


def do_table(factors, nodes, treatment, out):
    """P(out | do(treatment)) with the axes of `out`, those of the treatment among them where they are in `out`."""
    kept = [factor for name, factor in factors.items() if name not in treatment]
    ones = [([t], np.ones(table.shape[-1])) for t, (_, table) in factors.items() if t in treatment]
    return table_of(kept + ones, out)


def all_values(cards, names):
    return product(*(range(cards[n]) for n in names))
