"""Pictures of what a convolutional network has learnt."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._plot_style import axes_grid, styled


def _tiles(n: int, columns: int) -> tuple[Any, list[Any]]:
    axes = axes_grid(-(-n // columns), columns, (1.1 * columns, 1.2))
    for ax in axes.flat:
        ax.set_axis_off()
    return axes.flat[0].figure, list(axes.flat)


@styled
def filters_picture(filters: np.ndarray) -> Any:
    """Filters of shape (n, height, width, channels): in colours where there are three channels, else the first one."""
    columns = min(8, len(filters))
    figure, axes = _tiles(len(filters), columns)
    largest = float(np.abs(filters).max()) or 1.0
    for ax, f in zip(axes, filters, strict=False):
        if f.shape[2] == 3:
            ax.imshow(0.5 + 0.5 * f / largest)
        else:
            ax.imshow(f[:, :, 0], cmap="RdBu_r", vmin=-largest, vmax=largest)
    return figure


@styled
def saliency_picture(images: np.ndarray, maps: np.ndarray, labels: np.ndarray) -> Any:
    """Images in a row, their maps below them, and the class whose score they explain above."""
    figure, axes = _tiles(2 * len(images), len(images))
    for i, (image, found, label) in enumerate(zip(images, maps, labels, strict=True)):
        top, below = axes[i], axes[len(images) + i]
        shown = image.astype(np.float64)
        shown = (shown - shown.min()) / (np.ptp(shown) or 1.0)
        top.imshow(shown if shown.shape[2] == 3 else shown[:, :, 0], cmap="gray")
        top.set_title(str(label), fontsize=9)
        largest = float(np.abs(found).max()) or 1.0
        below.imshow(shown.mean(axis=2), cmap="gray")
        below.imshow(found, cmap="RdBu_r", vmin=-largest, vmax=largest, alpha=0.7)
    return figure
