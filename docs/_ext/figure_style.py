"""The look of the figures of these pages is that of the package."""

from typing import Any

import matplotlib.pyplot as plt

from epicycle.plot import rc_params

STYLE = rc_params()


def reset(gallery_conf: dict[str, Any], filename: str) -> None:
    """Called by sphinx-gallery before each example."""
    plt.close("all")
    plt.rcdefaults()
    plt.rcParams.update(STYLE)
