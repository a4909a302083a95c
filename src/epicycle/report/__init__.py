"""The report of a training run: one self-contained HTML page and its JSON twin.

`html` makes the page, `write` puts both into files, and `curves` makes what is drawn from predictions;
`epicycle.report.schema` says what a record holds.
"""

from epicycle.report import curves
from epicycle.report._page import html
from epicycle.report._write import write

__all__ = ["curves", "html", "write"]
