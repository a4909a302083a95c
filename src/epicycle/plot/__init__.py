"""One look for every figure: colours that colour-blind readers can tell apart, little ink, any existing axis."""

from epicycle.plot.style import COLOURS, STYLE, axes_of, band, bars, in_style, labels_clear, short

__all__ = ["COLOURS", "STYLE", "axes_of", "band", "bars", "in_style", "labels_clear", "short"]
