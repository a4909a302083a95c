"""Small records list their fields as ``name : meaning`` lines in their docstrings; here they become a section of numpydoc's.

Runs before numpydoc, and in memory only.
"""

import dataclasses
import re
from typing import Any

from sphinx.application import Sphinx

_FIELD = re.compile(r"(?P<names>[A-Za-z_]\w*(, [A-Za-z_]\w*)*) : (?P<text>.*)")


def list_fields(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Give the fields of a dataclass a heading and an indent."""
    if not dataclasses.is_dataclass(obj) or any(set(line.strip()) == {"-"} for line in lines if line.strip()):
        return
    fields, rest = [], []
    inside = False
    for line in lines:
        match = _FIELD.fullmatch(line)
        if match:
            inside = True
            fields += [match["names"], f"    {match['text']}"]
        elif inside and line.startswith(" "):
            fields.append(f"    {line.strip()}")
        else:
            inside = False
            rest.append(line)
    if fields:
        lines[:] = [*rest, "", "Attributes", "----------", *fields, ""]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", list_fields, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
