"""Reports of training runs: a self-contained HTML page and a JSON file.

`html` makes the page, `write` writes both files, and `curves` makes curves from predictions; `epicycle.report.schema`
describes the record that a report is made from.
"""

from epicycle.report import curves
from epicycle.report._page import html, write

__all__ = ["curves", "html", "write"]
