"""Partial dependence of predictions on one feature or two, and individual conditional expectations (a curve a row).

The partial dependence on x_S is the mean of F(x_S, x_iC) over rows i, with the other features C as the rows have them.
By recursion it is the value that the trees expect for x_S where conditions on C are passed in the shares of the
training rows that passed them (Friedman, 2001): no rows are needed, and both agree for independent features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.tree._binning import MISSING
from epicycle.tree._nodes import (
    NodeArrays,
    categorical_nodes,
    leaf_nodes,
    left_children,
    level_sets,
    missing_left_nodes,
    split_features,
    thresholds,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class PartialDependence:
    """Predictions over a grid of one feature or two.

    Attributes
    ----------
    features : tuple of str
    grid : tuple of ndarray
        The values of each feature: numbers, or levels of a category.
    average : ndarray of shape (g,) or (g1, g2), or (n_outputs, ...) where there are several
        The mean over the rows.
    individual : ndarray of shape (n, g), ..., or None
        The curve of each row, if asked for.
    outputs : tuple of str
        Names of the outputs; one where there is one.
    """

    features: tuple[str, ...]
    grid: tuple[np.ndarray, ...]
    average: np.ndarray
    individual: np.ndarray | None
    outputs: tuple[str, ...]

    def plot(
        self, *, output: int | None = None, lines: int = 50, centred: bool = False, ax: Axes | None = None
    ) -> Axes:
        """Draw the curve, or the surface of two features.

        Parameters
        ----------
        output : int, optional
            The only output to draw; all by default, and the last one for surfaces.
        lines : int, default=50
            Curves of rows that are drawn at most, where there are any.
        centred : bool, default=False
            Whether all curves start at zero.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from epicycle.core._plot_style import axes_of

        ax = axes_of(ax)
        several = len(self.outputs) > 1
        chosen = list(range(len(self.outputs))) if output is None else [output]
        if len(self.grid) == 2:
            surface = self.average[chosen[-1]] if several else self.average
            return self._surface(ax, surface, self.outputs[chosen[-1]])
        for k in chosen:
            average = self.average[k] if several else self.average
            individual = self.individual
            if individual is not None and several:
                individual = individual[k]
            self._curve(ax, average, individual if len(chosen) == 1 else None, k, lines, centred)
        ax.set_xlabel(self.features[0])
        ax.set_ylabel("prediction" if several else self.outputs[0])
        if len(chosen) > 1:
            ax.legend()
        return ax

    def _curve(
        self, ax: Axes, average: np.ndarray, individual: np.ndarray | None, k: int, lines: int, centred: bool
    ) -> None:
        from epicycle.core._plot_style import COLOURS

        (grid,) = self.grid
        levels = grid.dtype.kind not in "biuf"
        x = np.arange(len(grid)) if levels else grid
        colour = list(COLOURS.values())[k % 6]
        if individual is not None:
            some = individual[np.linspace(0, len(individual) - 1, min(lines, len(individual))).astype(int)]
            ax.plot(x, (some - some[:, :1] if centred else some).T, color=COLOURS["grey"], lw=0.6, alpha=0.4)
        style: dict[str, Any] = {"marker": "o", "ls": "none"} if levels else {}
        ax.plot(x, average - average[0] if centred else average, color=colour, label=self.outputs[k], **style)
        if levels:
            ax.set_xticks(x, [str(level) for level in grid])

    def _surface(self, ax: Axes, surface: np.ndarray, name: str) -> Axes:
        axes = [np.arange(len(g)) if g.dtype.kind not in "biuf" else g for g in self.grid]
        drawn = ax.contourf(axes[0], axes[1], surface.T, levels=12, cmap="cividis")
        ax.figure.colorbar(drawn, ax=ax, label=name)
        for values, ticks in ((self.grid[0], ax.set_xticks), (self.grid[1], ax.set_yticks)):
            if values.dtype.kind not in "biuf":
                ticks(np.arange(len(values)), [str(level) for level in values])
        ax.set(xlabel=self.features[0], ylabel=self.features[1])
        ax.grid(visible=False)
        return ax


def grid_of(x: np.ndarray, resolution: int, percentiles: tuple[float, float]) -> np.ndarray:
    """All values of a column if they are few, otherwise equal steps between two of its quantiles."""
    known = x[np.isfinite(x)].astype(np.float64)
    values = np.unique(known)
    if len(values) <= resolution:
        return values
    low, high = np.quantile(known, percentiles)
    return np.linspace(low, high, resolution) if high > low else np.array([low])


def brute_force(
    X: np.ndarray,
    columns: list[int],
    points: np.ndarray,
    weight: np.ndarray | None,
    predict: Callable[[np.ndarray], np.ndarray],
    *,
    individual: bool,
) -> tuple[np.ndarray, np.ndarray | None]:
    """(means (g, K), predictions (n, g, K) if asked for) with the columns of all rows set to each of the points."""
    # One copy of X, of which the columns are overwritten for every point.
    work = np.array(X)
    means, curves = [], []
    for point in points:
        work[:, columns] = point
        values = predict(work)
        means.append(np.average(values, axis=0, weights=weight))
        if individual:
            curves.append(values)
    return np.array(means), np.stack(curves, axis=1) if individual else None


def expected_values(
    trees: NodeArrays, mass: np.ndarray, columns: list[int], points: np.ndarray
) -> Iterator[np.ndarray]:
    """The values (g, K) that each tree expects at the points where only these columns are known.

    `mass` (m,) is the number, or the weight, of the training rows in each node.
    """
    nodes, values, roots, levels = trees
    left, feature, threshold = left_children(nodes), split_features(nodes), thresholds(nodes)
    is_leaf, categorical, missing_left = leaf_nodes(nodes), categorical_nodes(nodes), missing_left_nodes(nodes)
    sets, missing = level_sets(levels), np.isnan(points)
    place = {j: i for i, j in enumerate(columns)}

    def goes_left(node: int, i: int) -> np.ndarray:
        x = points[:, i]
        if categorical[node]:
            code = np.where(missing[:, i], MISSING, x).astype(np.intp)
            inside = sets[int(nodes[node, 0]), np.clip(code, 0, MISSING)]
        else:
            inside = x <= threshold[node]
        return np.asarray(np.where(missing[:, i], missing_left[node], inside))

    for root in roots[:-1].tolist():
        out = np.zeros((len(points), values.shape[1]))
        stack = [(root, np.ones(len(points)))]
        while stack:
            node, share = stack.pop()
            if is_leaf[node]:
                out += share[:, None] * values[node]
                continue
            first = root + int(left[node])
            i = place.get(int(feature[node]))
            if i is None:
                # A condition on an unknown feature is passed in the shares of the training rows that passed it.
                part: Any = mass[first] / (mass[first] + mass[first + 1])
            else:
                part = goes_left(node, i).astype(np.float64)
            for child, of_child in ((first, share * part), (first + 1, share * (1.0 - part))):
                if of_child.any():
                    stack.append((child, of_child))
        yield out
