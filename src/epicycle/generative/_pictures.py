"""Pictures of rows: images tiled on one canvas, tables as pairs of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from epicycle.core._plot_style import COLOURS, axes_grid, ink, styled

_MOST_COLUMNS = 4  # of a table that are shown in pairs


def canvas(images: np.ndarray, columns: int) -> np.ndarray:
    """Images of shape (n, height, width, channels) on one, row by row with a gap of one pixel; what is empty is NaN."""
    n, height, width, channels = images.shape
    rows = -(-n // columns)
    sheet = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1, channels), np.nan)
    for i, image in enumerate(images):
        top, left = i // columns * (height + 1), i % columns * (width + 1)
        sheet[top : top + height, left : left + width] = image
    return sheet


def show(ax: Any, sheet: np.ndarray, low: float, high: float) -> None:
    """Draw a canvas: in grey where images have one channel, in colours where they have three."""
    shown = np.clip((sheet - low) / ((high - low) or 1.0), 0, 1)
    if shown.shape[2] == 3:
        clear = np.isnan(shown).any(axis=2)
        ax.imshow(np.dstack([np.nan_to_num(shown), ~clear]))
    else:
        ax.imshow(shown[:, :, 0], cmap="gray", vmin=0, vmax=1)
    ax.set_axis_off()


@styled
def samples_picture(drawn: np.ndarray, real: np.ndarray | None, names: Sequence[str] | None) -> Any:
    """Rows that are drawn, and real ones: images on two canvases, tables as pairs of columns."""
    return _images(drawn, real) if names is None else _pairs(drawn, real, names)


def _images(drawn: np.ndarray, real: np.ndarray | None) -> Any:
    sheets = {"drawn": drawn} if real is None else {"drawn": drawn, "real": real[: len(drawn)]}
    # One scale for all, whose ends few outliers of a Gaussian tail do not move.
    low, high = np.quantile(drawn if real is None else real, (0.005, 0.995))
    columns = int(np.ceil(np.sqrt(len(drawn))))
    rows = -(-len(drawn) // columns)
    height = 4.6 * rows * drawn.shape[1] / (columns * drawn.shape[2]) + 0.3
    axes = axes_grid(1, len(sheets), (4.6 * len(sheets), height))[0]
    for ax, (title, images) in zip(axes, sheets.items(), strict=True):
        show(ax, canvas(images, columns), float(low), float(high))
        if real is not None:
            ax.set_title(title)
    return axes[0].figure


def _pairs(drawn: np.ndarray, real: np.ndarray | None, names: Sequence[str]) -> Any:
    k = min(_MOST_COLUMNS, drawn.shape[1])
    axes = axes_grid(k, k, (2.1 * k + 0.6, 2.0))
    sets = [] if real is None else [("real", real[: 4 * len(drawn)], ink(axes[0, 0], 0.35))]
    sets.append(("drawn", drawn, COLOURS["blue"]))
    for i in range(k):
        ends = np.quantile(np.concatenate([rows[:, i] for _, rows, _ in sets]), (0.0, 1.0))
        for j in range(k):
            ax = axes[i, j]
            for label, rows, colour in sets:
                if i == j:
                    ax.hist(rows[:, i], bins=np.linspace(*_apart(ends), 31), density=True, color=colour, alpha=0.5)
                else:
                    ax.plot(rows[:, j], rows[:, i], ".", ms=2, alpha=0.5, color=colour, label=label)
            if i == k - 1:
                ax.set_xlabel(names[j])
            if j == 0:
                ax.set_ylabel(names[i])
    if real is not None:
        handles = [axes[0, 0].plot([], [], "o", color=colour, label=label)[0] for label, _, colour in sets]
        axes[0, 0].figure.legend(handles=handles, loc="outside upper right", ncols=2)
    return axes[0, 0].figure


def _apart(ends: np.ndarray) -> tuple[float, float]:
    low, high = float(ends[0]), float(ends[1])
    return (low, high) if high > low else (low - 0.5, high + 0.5)


@styled
def traversal_picture(rows: np.ndarray, moved: Sequence[int], extent: float, names: Sequence[str] | None) -> Any:
    """Rows of shape (n_dimensions, n_steps, ...) along each entry of the codes."""
    n, steps = rows.shape[:2]
    if names is None:
        low, high = np.quantile(rows, (0.005, 0.995))
        height, width = rows.shape[2:4]
        ax = axes_grid(1, 1, (0.75 * steps + 0.5, 0.75 * n * height / width + 0.4))[0, 0]
        show(ax, canvas(rows.reshape(n * steps, *rows.shape[2:]), steps), float(low), float(high))
        for i, j in enumerate(moved):
            ax.text(-0.01, 1 - (i + 0.5) / n, f"$z_{{{j}}}$", transform=ax.transAxes, ha="right", va="center")
        return ax.figure
    columns = min(3, n)
    axes = axes_grid(-(-n // columns), columns, (3.2 * columns, 2.6))
    for ax in axes.flat[n:]:
        ax.set_axis_off()
    z = np.linspace(-extent, extent, steps)
    for ax, lines, j in zip(axes.flat, rows, moved, strict=False):
        for name, line in list(zip(names, lines.T, strict=True))[:6]:
            ax.plot(z, line, label=name)
        ax.set_xlabel(f"$z_{{{j}}}$")
    axes.flat[0].legend(loc="best", fontsize=8)
    return axes.flat[0].figure
