"""Figures of conjugate models: curves of one parameter, intervals of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from epicycle.core._plot_style import COLOURS, Axes, axes_of, labels_clear
from epicycle.stats._distribution import Distribution

#: Logarithm of a joint density of mean and variance.
LogDensity: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]

_POINTS = 401
#: Tails that a figure leaves out.
_TAIL = 5e-4
#: A density that is infinite at an end of its support is cut at this multiple of its largest value inside.
_HEADROOM = 1.15


def plot_curves(
    prior: Distribution,
    posterior: Distribution | None,
    log_likelihood: Callable[[np.ndarray], np.ndarray],
    parameter: str,
    ax: Axes | None,
) -> Axes:
    """Densities of the prior and the posterior, and the likelihood scaled to an area of 1."""
    ax = axes_of(ax)
    if posterior is None:
        x = _grid(prior.quantile([_TAIL, 1 - _TAIL]))
        ax.plot(x, prior.pdf(x), color=COLOURS["blue"], label=prior.name)
        ax.fill_between(x, 0, prior.pdf(x), color=COLOURS["blue"], alpha=0.15, lw=0)
    else:
        # The posterior and the bulk of the prior, which may be very wide beside it.
        near, far = posterior.quantile([_TAIL, 1 - _TAIL]), prior.quantile([0.02, 0.98])
        reach = 4 * (near[1] - near[0])
        x = _grid((max(min(near[0], far[0]), near[0] - reach), min(max(near[1], far[1]), near[1] + reach)))
        logs = log_likelihood(x)
        likelihood = np.exp(logs - logs.max())
        likelihood /= np.trapezoid(likelihood, x)
        ax.plot(x, prior.pdf(x), color=COLOURS["orange"], ls="--", label=f"prior {prior.name}")
        ax.plot(x, likelihood, color=COLOURS["green"], ls="-.", label="likelihood, scaled")
        ax.plot(x, posterior.pdf(x), color=COLOURS["blue"], label=f"posterior {posterior.name}")
        ax.fill_between(x, 0, posterior.pdf(x), color=COLOURS["blue"], alpha=0.15, lw=0)
    inside = max(np.max(line.get_ydata()[3:-3]) for line in ax.get_lines())
    ax.set(xlabel=parameter, ylabel="density", xlim=(x[0], x[-1]), ylim=(0, _HEADROOM * inside))
    return labels_clear(ax)


def plot_contours(
    prior: tuple[dict[str, Distribution], LogDensity],
    posterior: tuple[dict[str, Distribution], LogDensity] | None,
    log_likelihood: LogDensity,
    ax: Axes | None,
) -> Axes:
    """Contours of a joint density of mean and variance, at 5%, 25% and 70% of its largest value in the figure."""
    ax = axes_of(ax)
    marginals = (prior if posterior is None else posterior)[0]
    # Wider than the posterior: the likelihood lies beside it where the prior disagrees.
    ends = [marginals["mean"].quantile([0.005, 0.995]), marginals["variance"].quantile([0.005, 0.95])]
    means = _grid(ends[0] + np.array([-0.6, 0.6]) * (0 if posterior is None else np.ptp(ends[0])))
    variances = _grid((0.6 * ends[1][0], (1.0 if posterior is None else 1.5) * ends[1][1]))
    grid = np.meshgrid(means, variances)
    shown = [("posterior" if posterior else "density", "blue", "-", (posterior or prior)[1])]
    if posterior is not None:
        shown = [("prior", "orange", "--", prior[1]), ("likelihood", "green", "-.", log_likelihood), *shown]
    for label, colour, dashes, log_density in shown:
        logs = log_density(*grid)
        levels = logs.max() + np.log([0.05, 0.25, 0.7])
        ax.contour(*grid, logs, levels=levels, colors=COLOURS[colour], linestyles=dashes, linewidths=1.4)
        ax.plot([], [], color=COLOURS[colour], ls=dashes, label=label)
    ax.set(xlabel="mean", ylabel="variance")
    return labels_clear(ax)


def _grid(ends: tuple[float, float] | np.ndarray) -> np.ndarray:
    return np.linspace(float(ends[0]), float(ends[1]), _POINTS)


def plot_intervals(
    prior: dict[str, Distribution],
    posterior: dict[str, Distribution] | None,
    estimates: np.ndarray | None,
    parameter: str,
    ax: Axes | None,
) -> Axes:
    """For every number its mean and interval at 95% before and after the data, and the maximum of the likelihood."""
    ax = axes_of(ax, (6.4, 1.4 + 0.42 * len(prior)))
    rows = np.arange(len(prior))[::-1].astype(np.float64)
    alone = posterior is None
    _whiskers(ax, prior, rows + (0.0 if alone else 0.16), "blue" if alone else "orange", "95%" if alone else "prior")
    if posterior is not None and estimates is not None:
        _whiskers(ax, posterior, rows - 0.16, "blue", "posterior")
        ax.plot(estimates, rows, "D", color=COLOURS["green"], ms=4.5, ls="none", label="maximum likelihood")
    ax.set_yticks(rows, list(prior))
    ax.set(xlabel=parameter, ylim=(-0.7, len(rows) - 0.3))
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)  # above: rows fill the axes
    return ax


def _whiskers(ax: Axes, marginals: dict[str, Distribution], rows: np.ndarray, colour: str, label: str) -> None:
    middle = np.array([d.quantile(0.5) for d in marginals.values()])
    ends = np.array([d.interval(0.95) for d in marginals.values()])
    around = np.abs(ends.T - middle)
    ax.errorbar(
        middle, rows, xerr=around, fmt="o", color=COLOURS[colour], ms=4.5, capsize=3, elinewidth=1.8, label=label
    )
