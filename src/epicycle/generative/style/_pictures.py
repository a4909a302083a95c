"""Pictures of painted images."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._plot_style import axes_grid, styled


@styled
def painted_picture(images: list[np.ndarray], painted: list[np.ndarray], style: list[np.ndarray]) -> Any:
    """Images of the style, then images above the same as painted."""
    columns = len(style) + len(images)
    axes = np.asarray(axes_grid(2, columns, (1.8 * columns, 1.9))).reshape(2, columns)
    for ax in axes.flat:
        ax.set_axis_off()
    for j, image in enumerate(style):
        _show(axes[0, j], image)
        axes[0, j].set_title("style", fontsize=9)
    for j, (image, new) in enumerate(zip(images, painted, strict=True), start=len(style)):
        _show(axes[0, j], image)
        _show(axes[1, j], new)
    return axes[0, 0].figure


def _show(ax: Any, image: np.ndarray) -> None:
    x = np.asarray(image, dtype=np.float64)
    x = (x - x.min()) / (np.ptp(x) or 1.0)
    if x.ndim == 3 and x.shape[2] != 3:
        x = x[:, :, 0]
    ax.imshow(x, cmap="gray", vmin=0, vmax=1)
