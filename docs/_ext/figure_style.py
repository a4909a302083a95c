"""One look for all figures: the colours of Okabe and Ito, which colour-blind readers can tell apart, and little ink."""

from typing import Any

import matplotlib.pyplot as plt

BLUE, ORANGE, GREEN, PINK, SKY, VERMILION, YELLOW, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#000000",
)

STYLE: dict[str, Any] = {
    "axes.prop_cycle": plt.cycler(color=[BLUE, ORANGE, GREEN, PINK, SKY, VERMILION]),
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.facecolor": "white",
    "font.size": 10,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
}


def reset(gallery_conf: dict[str, Any], filename: str) -> None:
    """Called by sphinx-gallery before each example."""
    plt.close("all")
    plt.rcdefaults()
    plt.rcParams.update(STYLE)
