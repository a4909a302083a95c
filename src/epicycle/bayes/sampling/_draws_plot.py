"""Figures of draws: traces, ranks, pairs and autocorrelations, each for several quantities at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.stats import binom, rankdata

from epicycle.bayes.sampling._diagnostics import autocovariance
from epicycle.bayes.sampling._labels import indexed
from epicycle.core._checks import count
from epicycle.core._docs import documented
from epicycle.core._exceptions import ParameterError
from epicycle.core._plot_style import COLOURS, CYCLE, Axes, axes_grid, ink, short, styled

if TYPE_CHECKING:
    from epicycle.bayes.sampling._draws import Draws

Array = np.ndarray
_MOST = 6  # quantities of a figure unless more are named
_LINES = ("-", "--", ":", "-.")  # chains differ without their colours too


@documented({})
class DrawsPlot:
    """Figures of :class:`Draws`, as ``draws.plot``.

    Every method takes `names`, such as ``["mu", "theta[0]"]``: an array stands for all of its entries, and by default
    the first six quantities are drawn. It returns the axes.
    """

    _docs: ClassVar[dict[str, str]] = {"names": "names : str or sequence of str, optional\n    The quantities."}

    def __init__(self, draws: Draws) -> None:
        self._draws = draws

    @styled
    def trace(self, names: str | Sequence[str] | None = None) -> Array:
        """Every chain over its draws, and its distribution beside it; crosses mark divergent draws."""
        chosen = self._quantities(names)
        axes = axes_grid(len(chosen), 2, (8.6, 1.7), widths=(3, 1))
        divergent = self._draws.statistics["divergent"] > 0
        for row, (label, x) in zip(axes, chosen, strict=True):
            for k, chain in enumerate(x):
                row[0].plot(chain, color=CYCLE[k % len(CYCLE)], lw=0.6, alpha=0.8)
                where, height = _density(chain)
                row[1].plot(height, where, color=CYCLE[k % len(CYCLE)], ls=_LINES[k % len(_LINES)], lw=1.3)
                at = np.flatnonzero(divergent[k])
                row[0].plot(at, chain[at], "x", color=ink(row[0]), ms=5, mew=1.2)
            row[0].set_ylabel(short(label, 18))
            row[1].set(ylim=row[0].get_ylim(), xticks=[], yticklabels=[])
            row[0].set_xlim(-1, x.shape[1])
            row[0].tick_params(labelbottom=row[0] is axes[-1, 0])
        axes[-1, 0].set_xlabel("draw")
        axes[-1, 1].set_xlabel("density")
        return axes

    @styled
    def rank(self, names: str | Sequence[str] | None = None, *, bins: int = 20) -> Array:
        """Histograms of the ranks of every chain among all draws: flat where the chains have mixed.

        The band holds 99% of the bars of independent draws.

        Parameters
        ----------
        bins : int, default=20
            Bars of a histogram.
        """
        chosen, bins = self._quantities(names), count("bins", bins, low=2)
        axes = axes_grid(len(chosen), 1, (6.4, 1.5), share_x="all")
        m, n = self._draws.n_chains, self._draws.n_draws
        low, high = binom.ppf((0.005, 0.995), n, 1 / bins)
        gap = 1.25 * max(high, n / bins)
        for (ax,), (label, x) in zip(axes, chosen, strict=True):
            ranks = rankdata(x).reshape(x.shape)
            tallest = gap
            for k in range(m):
                heights, edges = np.histogram(ranks[k], bins, (0.5, x.size + 0.5))
                tallest = max(tallest, 1.05 * heights.max())
                ax.set_ylabel(short(label, 18))
                self._bars(ax, heights, edges, k, gap)
                ax.axhspan(k * gap + low, k * gap + high, color=ink(ax), alpha=0.12, lw=0)
            ax.set_yticks([k * gap + n / bins / 2 for k in range(m)], [f"chain {k}" for k in range(m)])
            ax.set(xlim=(0.5, x.size + 0.5), ylim=(0, (m - 1) * gap + tallest))
            ax.grid(visible=False)
        axes[-1, 0].set_xlabel("rank among the draws of all chains")
        return axes

    @staticmethod
    def _bars(ax: Axes, heights: Array, edges: Array, k: int, gap: float) -> None:
        colour = CYCLE[k % len(CYCLE)]
        ax.bar(edges[:-1], heights, np.diff(edges), bottom=k * gap, align="edge", color=colour, alpha=0.7, lw=0)

    @styled
    def pair(self, names: str | Sequence[str] | None = None) -> Array:
        """Every quantity against every other, with crosses where a trajectory diverged."""
        chosen = self._quantities(names)
        k = len(chosen)
        if k < 2:
            raise ParameterError(f"names={names!r}; expected at least two quantities")
        axes = axes_grid(k, k, (7.2, 7.2 / k))
        divergent = (self._draws.statistics["divergent"] > 0).ravel()
        for i, (label, y) in enumerate(chosen):
            for j, (below, x) in enumerate(chosen):
                ax = axes[i, j]
                if j > i:
                    ax.set_axis_off()
                    continue
                if i == j:
                    ax.hist(x.ravel(), bins=40, color=COLOURS["blue"], alpha=0.7)
                    ax.set_yticks([])
                else:
                    ax.plot(x.ravel(), y.ravel(), ".", color=COLOURS["blue"], ms=2, alpha=0.25, mew=0, rasterized=True)
                    ax.plot(x.ravel()[divergent], y.ravel()[divergent], "x", color=COLOURS["vermilion"], ms=5, mew=1.2)
                ax.tick_params(labelbottom=i == k - 1, labelleft=j == 0 and i > 0)
                if i == k - 1:
                    ax.set_xlabel(short(below, 18))
                if j == 0 and i > 0:
                    ax.set_ylabel(short(label, 18))
        return axes

    @styled
    def autocorrelation(self, names: str | Sequence[str] | None = None, *, max_lag: int = 60) -> Array:
        """Autocorrelation of every chain by lag; the band is that of independent draws.

        Parameters
        ----------
        max_lag : int, default=60
            The largest lag that is drawn.
        """
        chosen = self._quantities(names)
        n = self._draws.n_draws
        lags = np.arange(min(count("max_lag", max_lag, low=1) + 1, n))
        axes = axes_grid(len(chosen), 1, (6.4, 1.5), share_x="all")
        for (ax,), (label, x) in zip(axes, chosen, strict=True):
            covariance = autocovariance(x)
            rho = covariance / np.where(covariance[:, :1] > 0, covariance[:, :1], 1.0)
            for k, chain in enumerate(rho):
                ax.plot(lags, chain[: len(lags)], color=CYCLE[k % len(CYCLE)], ls=_LINES[k % len(_LINES)], lw=1.3)
            ax.axhspan(-1.96 / np.sqrt(n), 1.96 / np.sqrt(n), color=ink(ax), alpha=0.12, lw=0)
            ax.set(ylabel=short(label, 18), ylim=(min(-0.2, 1.1 * float(rho[:, lags].min())), 1.02))
            ax.set_xlim(0, lags[-1])
        axes[-1, 0].set_xlabel("lag")
        return axes

    def _quantities(self, names: str | Sequence[str] | None) -> list[tuple[str, Array]]:
        """Labels and draws of single numbers, each of shape (n_chains, n_draws)."""
        every = {name: dict(indexed(name, x)) for name, x in self._draws.items()}
        single = {label: x for entries in every.values() for label, x in entries.items()}
        if names is None:
            return [(label, x) for label, x in single.items() if np.ptp(x) > 0][:_MOST]
        chosen = []
        for name in [names] if isinstance(names, str) else list(names):
            if name in every:
                chosen += list(every[name].items())
            elif name in single:
                chosen.append((name, single[name]))
            else:
                raise ParameterError(f"names: {name!r} is no quantity; expected one of {list(self._draws)!r}")
        return chosen


def _density(x: Array, n: int = 200) -> tuple[Array, Array]:
    """A kernel estimate of the density on a grid: a histogram smoothed by a Gaussian (Silverman's width)."""
    spread = min(float(np.std(x)), float(np.subtract(*np.quantile(x, (0.75, 0.25)))) / 1.34)
    width = 0.9 * (spread if spread > 0 else 1.0) * len(x) ** -0.2
    grid = np.linspace(x.min() - 2 * width, x.max() + 2 * width, n)
    counts, _ = np.histogram(x, n, (grid[0], grid[-1]))
    kernel = np.exp(-0.5 * ((grid - grid[n // 2]) / width) ** 2)
    smooth = np.convolve(counts, kernel / kernel.sum(), mode="same")
    return grid, smooth / (len(x) * (grid[1] - grid[0]))
