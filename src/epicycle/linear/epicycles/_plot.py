"""Orbits and their circles, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, paper, styled
from epicycle.linear.epicycles._orbit import Circles

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation

_TURN = np.exp(1j * np.linspace(0, 2 * np.pi, 241))
_MAX_DRAWN = 40  # circles drawn as such; the rest are specks


def _times(circles: Circles, X: Any, points: int = 2000) -> np.ndarray:
    """Times along the data, or around the slowest circle, of shape (n, p)."""
    p = len(circles.origin)
    if X is not None:
        t = np.asarray(X, dtype=np.float64).reshape(-1, p)
        low, high = t.min(axis=0), t.max(axis=0)
    else:
        slowest = np.abs(circles.frequencies).min(initial=np.inf)
        half = np.pi / slowest if np.isfinite(slowest) and slowest > 0 else 0.5
        low, high = circles.origin - half, circles.origin + half
    fastest = np.abs(circles.frequencies).max(initial=0.0) * float((high - low).max())
    n = int(np.clip(fastest / (2 * np.pi) * 60, points, 40 * points))
    return np.linspace(low, high, n)


def _plane(y: Any) -> np.ndarray:
    y = np.asarray(y)
    return np.asarray(y.reshape(-1) if np.iscomplexobj(y) or y.ndim == 1 or y.shape[1] == 1 else y[:, 0] + 1j * y[:, 1])


def _arm(circles: Circles, t: np.ndarray) -> np.ndarray:
    """The centres of all circles at one time, one on the rim of the other, and the body at the end."""
    return np.append(circles.centre, circles.centre + np.cumsum(circles.turning(t[None, :])[0] * circles.radii))


def _largest_first(circles: Circles) -> Circles:
    order = np.argsort(-np.abs(circles.radii), kind="stable")
    return Circles(
        circles.columns[order], circles.frequencies[order], circles.radii[order], circles.centre, circles.origin
    )


@styled
def draw_orbit(circles: Circles, X: Any, y: Any, at: float | None, ax: Axes | None) -> Axes:
    """The orbit in the plane, with the arm of circles at one time."""
    circles = _largest_first(circles)
    ax = axes_of(ax, (5.6, 5.6))
    times = _times(circles, X)
    moment = times[-1] if at is None else np.full(len(circles.origin), float(at))
    orbit = circles.position(times)
    if y is not None:
        z = _plane(y)
        ax.plot(z.real, z.imag, ".", color=COLOURS["grey"], ms=4, alpha=0.6, zorder=1, label="data")
    (path,) = ax.plot(orbit.real, orbit.imag, lw=1.3, alpha=0.85, zorder=3, label="orbit")
    _draw_arm(ax, circles, moment, path.get_color())
    ax.set_aspect("equal")
    ax.set(xlabel="x", ylabel="y")
    ax.margins(0.06)
    return ax


def _draw_arm(ax: Axes, circles: Circles, moment: np.ndarray, body: str) -> list[Any]:
    joints = _arm(circles, moment)
    drawn: list[Any] = []
    for k in range(min(circles.count, _MAX_DRAWN)):
        rim = joints[k] + np.abs(circles.radii[k]) * _TURN
        # Later circles are lighter: they are corrections to the first.
        shade = 0.75 * 0.75**k + 0.2
        drawn += ax.plot(rim.real, rim.imag, color=COLOURS["orange"], lw=2.0, alpha=shade, zorder=4)
    drawn += ax.plot(
        joints.real, joints.imag, "-", color=COLOURS["vermilion"], lw=2.0, zorder=5, solid_capstyle="round"
    )
    drawn += ax.plot(joints[:-1].real, joints[:-1].imag, "o", color=COLOURS["vermilion"], ms=4, zorder=6)
    drawn += ax.plot(joints[:1].real, joints[:1].imag, "o", color=ink(ax), ms=6, zorder=7)
    drawn += ax.plot(joints[-1:].real, joints[-1:].imag, "o", color=body, ms=10, mec=paper(ax), mew=1.2, zorder=8)
    return drawn


@styled
def draw_coordinate(circles: Circles, X: Any, y: Any, at: float | None, ax: Axes | None) -> Axes:
    """One coordinate of the orbit against time."""
    if len(circles.origin) > 1:
        raise ParameterError(f"plot: draws one coordinate against one time, X had {len(circles.origin)} columns")
    ax = axes_of(ax)
    times = _times(circles, X)
    if X is not None and y is not None:
        ax.plot(
            np.asarray(X, dtype=np.float64).ravel(), np.asarray(y).ravel(), ".", color=COLOURS["grey"], ms=4, alpha=0.6
        )
    ax.plot(times[:, 0], circles.position(times).real, lw=1.6)
    if at is not None:
        ax.axvline(at, color=ink(ax, 0.6), lw=0.8, ls=":")
    ax.set(xlabel="t", ylabel="position")
    return ax


@styled
def animate_orbit(circles: Circles, X: Any, y: Any, frames: int, interval: float) -> FuncAnimation:
    """The arm drawing the orbit."""
    from matplotlib.animation import FuncAnimation

    circles = _largest_first(circles)
    ax = axes_of(None, (5.6, 5.6))
    figure = ax.get_figure(root=True)
    assert figure is not None
    times = _times(circles, X)
    orbit = circles.position(times)
    if y is not None:
        z = _plane(y)
        ax.plot(z.real, z.imag, ".", color=COLOURS["grey"], ms=4, alpha=0.6)
    reach = 1.08 * (np.abs(circles.radii).sum() or 1.0)
    ax.set(
        xlim=(circles.centre.real - reach, circles.centre.real + reach),
        ylim=(circles.centre.imag - reach, circles.centre.imag + reach),
        aspect="equal",
    )
    (path,) = ax.plot([], [], lw=1.6)
    drawn: list[Any] = []

    def show(frame: int) -> list[Any]:
        upto = int(frame / max(frames - 1, 1) * (len(times) - 1))
        path.set_data(orbit[: upto + 1].real, orbit[: upto + 1].imag)
        for artist in drawn:
            artist.remove()
        drawn[:] = _draw_arm(ax, circles, times[upto], path.get_color())
        return [path, *drawn]

    return FuncAnimation(figure, show, frames=frames, interval=interval)
