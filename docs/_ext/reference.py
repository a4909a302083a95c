"""The reference page of the estimators, written from the code before the build: a new estimator is in it by itself."""

from itertools import groupby
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

import epicycle

HEAD = """Estimators
==========

.. currentmodule:: epicycle

They are scikit-learn estimators; methods that they inherit from scikit-learn unchanged (``get_params``, ``set_params``,
``score``, ``set_callbacks``, ...) are described there.
"""
FAMILY = """
{title}
{line}

.. autosummary::
   :toctree: .
   :nosignatures:

{names}
"""


def page() -> str:
    """The page, with a section for each family."""
    families = groupby(sorted(epicycle.methods(), key=lambda m: (m.family, m.name)), key=lambda m: m.family)
    sections = [
        FAMILY.format(title=family, line="-" * len(family), names="\n".join(f"   {m.name}" for m in methods))
        for family, methods in families
    ]
    return HEAD + "".join(sections)


def write(app: Sphinx, config: Config) -> None:
    """Write the page unless it stands there already, so that nothing is built for no reason."""
    path = Path(app.srcdir) / "api" / "generated" / "estimators.rst"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != page():
        path.write_text(page())


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
