"""A tree in words: the question of every node, what a leaf says, and the whole as indented text."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["answer", "question", "shown", "text"]


def shown(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}"


def question(model: Any, node: int, decimals: int, *, left: bool = True, limit: int = 4) -> str:
    """What is asked in a node, or its opposite for rows that go right."""
    tree = model.tree_
    feature = int(tree.feature[node])
    name = model._names()[feature]
    if tree.is_categorical[node]:
        levels = model.categories_[feature][[c for c in tree.left_levels(node) if c < len(model.categories_[feature])]]
        listed = ", ".join(str(level) for level in levels[:limit]) + (", ..." if len(levels) > limit else "")
        return f"{name} {'in' if left else 'not in'} {{{listed}}}"
    threshold = float(tree.threshold[node])
    if np.isposinf(threshold):
        return f"{name} is {'there' if left else 'missing'}"
    return f"{name} {'<=' if left else '>'} {shown(threshold, decimals)}"


def answer(model: Any, node: int, decimals: int) -> str:
    """The class with its share, or the values, of a leaf."""
    value = model.tree_.value[node]
    if hasattr(model, "classes_"):
        k = int(np.argmax(value))
        return f"{model.classes_[k]}  {value[k]:.0%}"
    return ", ".join(shown(v, decimals) for v in value)


def text(model: Any, *, max_depth: int, decimals: int) -> str:
    tree, lines = model.tree_, []
    left, depth = tree.children_left, tree.depth

    def describe(node: int) -> None:
        indent = "|   " * int(depth[node])
        if left[node] < 0 or depth[node] >= max_depth:
            cut = "" if left[node] < 0 else ", cut off here"
            lines.append(f"{indent}{answer(model, node, decimals)}  ({tree.n_node_samples[node]} rows{cut})")
            return
        for child, is_left in ((left[node], True), (left[node] + 1, False)):
            lines.append(indent + question(model, node, decimals, left=is_left))
            describe(int(child))

    describe(0)
    return "\n".join(lines)
