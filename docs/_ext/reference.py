"""The reference page of the methods, written from the code before the build: a new one is in it by itself."""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

import epicycle

HEAD = """Methods by family
=================

.. currentmodule:: epicycle

Estimators are those of scikit-learn's kind; methods that they inherit from it unchanged (``get_params``,
``set_params``, ``score``, ``set_callbacks``, ...) are described there.
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
    """The page, with a section for each family: its estimators, and what else its module gives to the package."""
    sections = []
    for family in sorted({m.family for m in epicycle.methods()}):
        names = sorted(name for name, module in epicycle._PUBLIC.items() if module == f"epicycle.{family}")
        listed = "\n".join(f"   {name}" for name in names)
        sections.append(FAMILY.format(title=family, line="-" * len(family), names=listed))
    return HEAD + "".join(sections)


def write(app: Sphinx, config: Config) -> None:
    """Write the page unless it stands there already, so that nothing is built for no reason."""
    path = Path(app.srcdir) / "api" / "generated" / "families.rst"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != page():
        path.write_text(page())


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
