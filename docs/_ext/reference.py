"""The reference page of the methods, written from the code before the build: a new one is in it by itself."""

from importlib import import_module
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

import epicycle

HEAD = """Methods by package
==================

.. currentmodule:: epicycle

Estimators are those of scikit-learn's kind; methods that they inherit from it unchanged (``get_params``,
``set_params``, ``score``, ``set_callbacks``, ...) are described there.
"""
PACKAGE = """
{title}
{line}

{summary}

.. autosummary::
   :toctree: .
   :nosignatures:

{names}
"""


def page() -> str:
    """The page, with a section for each package of methods: its estimators, and what else it gives to epicycle."""
    sections = []
    for module in sorted({epicycle._PUBLIC[m.name] for m in epicycle.methods()}):
        names = sorted(name for name, home in epicycle._PUBLIC.items() if home == module)
        summary = (import_module(module).__doc__ or "").partition("\n")[0]
        listed = "\n".join(f"   {name}" for name in names)
        sections.append(PACKAGE.format(title=module, line="-" * len(module), summary=summary, names=listed))
    return HEAD + "".join(sections)


def write(app: Sphinx, config: Config) -> None:
    """Write the page unless it stands there already, so that nothing is built for no reason."""
    path = Path(app.srcdir) / "api" / "generated" / "packages.rst"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != page():
        path.write_text(page())


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
