"""Figures in one style: colours that colour-blind readers can distinguish, on any axes.

`in_style` applies the style to figures of the user, light or dark.
"""

from epicycle.core._plot_style import (
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
from epicycle.plot._attention import attention
from epicycle.plot._classification import calibration, confusion, precision_recall, roc
from epicycle.plot._dendrogram import dendrogram
from epicycle.plot._drawing import Drawing
from epicycle.plot._principal_components import biplot, scree
from epicycle.plot._reachability import reachability
from epicycle.plot._regression import importances, learning_curve, residuals
from epicycle.plot._topics import topics

__all__ = [
    "COLOURS",
    "CYCLE",
    "STYLE",
    "Drawing",
    "attention",
    "axes_of",
    "band",
    "bars",
    "biplot",
    "calibration",
    "confusion",
    "dendrogram",
    "importances",
    "in_style",
    "ink",
    "labels_clear",
    "learning_curve",
    "precision_recall",
    "rc_params",
    "reachability",
    "residuals",
    "roc",
    "scree",
    "short",
    "styled",
    "topics",
]
