"""`online_search`: the action at one belief, by a tree of the beliefs that can follow it."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from epicycle.control.pomdp._informed_bound import first_bounds
from epicycle.control.pomdp._pomdp import POMDP
from epicycle.control.pomdp._pomdp_solution import (
    POMDP_DOCS,
    POMDPSolution,
    UpperBound,
    bound_gap,
    check,
    start_size,
)
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@dataclass(frozen=True)
class OnlineSearchResult:
    """Action at one belief, with bounds.

    Attributes
    ----------
    action : label
        The action with the largest lower bound.
    lower, upper : float
        What the search can earn from here at least, and what no policy exceeds.
    action_bounds : array (A, 2)
        The same for each first action.
    n_nodes : int
        Beliefs in the tree.
    history : History
        Bounds and nodes, one row for each expansion.
    certificate : Certificate
        Distance of the bounds, relative to values and rewards.
    """

    action: Any
    lower: float
    upper: float
    action_bounds: Array = field(repr=False)
    n_nodes: int
    history: History = field(repr=False)
    certificate: Certificate


class Node:
    """A belief in the tree: its bounds, and after expansion those of its actions and the nodes that follow."""

    __slots__ = ("belief", "children", "depth", "high", "low", "parent", "q_high", "q_low")

    def __init__(self, belief: Array, low: float, high: float, depth: int, parent: Any) -> None:
        self.belief, self.low, self.high, self.depth, self.parent = belief, low, high, depth, parent
        self.children: list[list[tuple[float, Node]]] = []  # for each action, probability and node
        self.q_low = self.q_high = np.empty(0)


@in_catalogue("control", "G7", certificate="distance of the bounds", docs=POMDP_DOCS)
def online_search(
    pomdp: POMDP,
    belief: Any = None,
    *,
    solution: POMDPSolution | None = None,
    tol: float = 1e-2,
    max_iter: int = 500,
) -> OnlineSearchResult:
    r"""Action at one belief by a tree of beliefs (AEMS2): the leaf that contributes most to the gap is expanded next.

    The error of a leaf at depth d counts as :math:`\gamma^d \Pr(\text{observations}) (U - L)` along the actions with
    the highest upper bounds; after each expansion the bounds of its ancestors follow from Bellman's equation. It needs
    bounds that are quick to have, and may be stopped at any time.

    Parameters
    ----------
    belief : array (S,), optional
        What is known of the state; by default `pomdp.start`.
    solution : POMDPSolution, optional
        Where the bounds at leaves come from; by default always the same action from below, and
        :func:`fast_informed_bound` from above.
    tol : float, default=1e-2
        Distance of the bounds, relative to the value or the largest reward, that is good enough. It also ends when
        one action is proven best.
    max_iter : int, default=500
        Largest number of expansions.

    Examples
    --------
    >>> from epicycle.control import online_search, worlds
    >>> tiger = worlds.tiger(discount=0.5)
    >>> decision = online_search(tiger, [0.98, 0.02])
    >>> decision.action
    'open right'
    """
    check("online_search", pomdp=pomdp, tol=tol, max_iter=max_iter)
    if solution is not None and solution.pomdp is not pomdp:
        raise DataError("solution: got that of another process; expected one of `pomdp`")
    began = perf_counter()
    low, high = first_bounds(pomdp) if solution is None else (solution.lower_vectors, solution.upper_bound)
    tree = Tree(pomdp, low, high, pomdp.start if belief is None else pomdp._belief(belief))
    rows: list[tuple[float, float, float, float]] = []
    root = tree.root
    leaf: Node | None = root
    while leaf is not None and len(rows) < max_iter:
        tree.expand(leaf)
        rows.append((root.low, root.high, tree.n_nodes, perf_counter() - began))
        if root.high - root.low <= tol * start_size(pomdp, root.low, root.high) or tree.decided():
            break
        leaf = tree.next_leaf()
    names = ("lower", "upper", "n_nodes", "seconds")
    history = History(**dict(zip(names, np.array(rows, dtype=np.float64).T, strict=True)))
    loss = 0.0 if tree.decided() else root.high - root.low
    certificate = bound_gap("online_search", 0.0, loss, start_size(pomdp, root.low, root.high), tol, "here")
    chosen = pomdp.actions[int(np.argmax(root.q_low))]
    return OnlineSearchResult(
        action=chosen.item() if isinstance(chosen, np.generic) else chosen,
        lower=root.low,
        upper=root.high,
        action_bounds=np.column_stack([root.q_low, root.q_high]),
        n_nodes=tree.n_nodes,
        history=history,
        certificate=certificate,
    )


class Tree:
    """The beliefs that can follow one, and the leaves by what they contribute to the gap at the root."""

    def __init__(self, pomdp: POMDP, low: Array, high: UpperBound, belief: Array) -> None:
        n = pomdp.n_states
        self.pomdp, self.low, self.high = pomdp, low, high
        self.P = [pomdp.transitions_[a * n : (a + 1) * n] for a in range(pomdp.n_actions)]
        ((below, above),) = self._bounds(belief[None])
        self.root = Node(belief, float(below), float(above), 0, None)
        self.n_nodes = 1

    def _bounds(self, beliefs: Array) -> Array:
        return np.column_stack([(beliefs @ self.low.T).max(axis=1), self.high(np.ascontiguousarray(beliefs))])

    def next_leaf(self) -> Node | None:
        """The leaf with the largest share of the gap, along actions with the highest upper bounds."""
        waiting = [(-(self.root.high - self.root.low), 0, 1.0, self.root)]
        order = 1
        while waiting:
            share, _, weight, node = heapq.heappop(waiting)
            if share == 0:
                return None
            if not node.children:
                return node
            a = int(np.argmax(node.q_high))
            for p, child in node.children[a]:
                part = weight * self.pomdp.discount * p
                heapq.heappush(waiting, (-part * max(child.high - child.low, 0.0), order, part, child))
                order += 1
        return None

    def expand(self, node: Node) -> None:
        """Actions and observations that can follow, then new bounds up to the root."""
        for a in range(self.pomdp.n_actions):
            joint = (node.belief @ self.P[a])[:, None] * self.pomdp.observations_[a]
            p = joint.sum(axis=0)
            seen = np.flatnonzero(p > 0)
            after = (joint[:, seen] / p[seen]).T
            found = self._bounds(after) if len(seen) else np.empty((0, 2))
            children = [
                (float(p[o]), Node(b, float(low), float(high), node.depth + 1, node))
                for o, b, (low, high) in zip(seen, after, found, strict=True)
            ]
            node.children.append(children)
            self.n_nodes += len(children)
        above: Node | None = node
        while above is not None:
            self._back_up(above)
            above = above.parent

    def _back_up(self, node: Node) -> None:
        reward = self.pomdp.rewards_ @ node.belief
        sums = np.array([[sum(p * getattr(c, end) for p, c in kids) for kids in node.children] for end in _ENDS])
        node.q_low, node.q_high = reward + self.pomdp.discount * sums
        # A bound that was known before the expansion stays one.
        node.low, node.high = max(node.low, float(node.q_low.max())), min(node.high, float(node.q_high.max()))

    def decided(self) -> bool:
        """Whether one action is at least as good as all others, whatever follows."""
        best = int(np.argmax(self.root.q_low))
        return bool((np.delete(self.root.q_high, best) <= self.root.q_low[best]).all())


_ENDS = ("low", "high")
