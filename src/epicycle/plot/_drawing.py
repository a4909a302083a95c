"""Drawing: the result of a plot function, with the drawn data and the axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.core._checks import optional_import
from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.core._plot_style import Axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Docstring entries of the plot functions.
DOCS = {
    "y": """y : array-like of shape (n,)
    Labels of two classes.""",
    "score": """score : array-like of shape (n,)
    Scores, larger for more likely positives.""",
    "positive": """positive : label, optional
    The positive class; by default the larger of the two labels.""",
    "sample_weight": """sample_weight : array-like of shape (n,), optional
    Weights of the rows.""",
    "label": """label : str, default={default}
    Name of the curve in the legend.""",
}


@dataclass(frozen=True)
class Drawing:
    """A figure on axes, with the drawn data.

    Attributes
    ----------
    kind : str
        The function that drew it.
    data : dict of ndarray
        The drawn data, by column; all of one length.
    numbers : dict of float
        Summary numbers, such as the area under a curve and its standard error.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    kind: str
    data: Mapping[str, np.ndarray]
    ax_: Axes = field(repr=False)
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def figure_(self) -> Figure:
        """The figure that the axis is in."""
        found: Figure | None = self.ax_.get_figure(root=True)
        assert found is not None  # an axis that was drawn on
        return found

    @property
    def table(self) -> pd.DataFrame:
        """The data as a pandas DataFrame."""
        pd = optional_import("pandas", "Drawing.table")
        return pd.DataFrame(dict(self.data))


def column(name: str, values: Any, n: int | None = None) -> np.ndarray:
    """Check for one finite number for every row."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataTypeError(f"{name}={values!r:.60}; expected numbers") from None
    if found.ndim != 1 or len(found) == 0 or not np.isfinite(found).all():
        raise DataError(f"{name}: shape {found.shape}; expected a finite number for every row")
    if n is not None and len(found) != n:
        raise DataError(f"{name}: {len(found)} values; expected {n}")
    return found


def two_classes(y: Any, positive: Any) -> tuple[np.ndarray, Any]:
    """Mask of the positive rows, and the positive label: by default the larger of two."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise DataError(f"y: shape {labels.shape}; expected a label for every row")
    classes = np.unique(labels)
    if len(classes) != 2:
        raise DataError(f"y: {len(classes)} different labels; expected two")
    if positive is None:
        positive = classes[1]
    elif positive not in classes:
        raise DataError(f"positive={positive!r}; y has {classes.tolist()!r}")
    return labels == positive, positive
