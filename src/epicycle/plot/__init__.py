"""One look for every figure: colours that colour-blind readers can tell apart, little ink, any existing axis.

Every figure of the package is drawn in it; `in_style` puts the user's own figures into it, light or dark.
"""

from epicycle.plot.drawn import Drawing
from epicycle.plot.of_classes import calibration, confusion, precision_recall, roc
from epicycle.plot.of_numbers import importances, learning_curve, residuals
from epicycle.plot.style import (
    COLOURS,
    CYCLE,
    STYLE,
    axes_of,
    band,
    bars,
    in_style,
    ink,
    labels_clear,
    rc_params,
    short,
    styled,
)

__all__ = [
    "COLOURS",
    "CYCLE",
    "STYLE",
    "Drawing",
    "axes_of",
    "band",
    "bars",
    "calibration",
    "confusion",
    "importances",
    "in_style",
    "ink",
    "labels_clear",
    "learning_curve",
    "precision_recall",
    "rc_params",
    "residuals",
    "roc",
    "short",
    "styled",
]
