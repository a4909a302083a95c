"""What docstrings of this package may do that reStructuredText would mistake, put right while they are read.

Docstrings are written for readers of the code: norms stand between bars, a record lists its fields as
``name : meaning`` lines, and a reference names what it means without the module. Runs before
numpydoc, and in memory only.
"""

import dataclasses
import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

_FIELD = re.compile(r"(?P<names>[A-Za-z_]\w*(, [A-Za-z_]\w*)*) : (?P<text>.*)")
#: The underscore at the end of a learnt attribute, which reStructuredText takes for the end of a reference.
_LEARNT = re.compile(r"(?<=\w)_(?!\w)")
_MARKUP = re.compile(r"(``.*?``|:[\w:]+:`.*?`|`.*?`)")


def escape_mathematics(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Bars are absolute values and norms, a star among arguments and a last underscore are Python's: no markup."""
    inside = False  # a directive or a literal block, up to the next line that is not indented
    for i, line in enumerate(lines):
        if line and not line.startswith(" "):
            inside = False
        if line.lstrip().startswith((">>>", "...", ".. ")) or line.endswith("::"):
            inside = inside or not line.lstrip().startswith((">>>", "..."))
        elif not inside:
            # The names in front of a type are numpydoc's to escape.
            names = f"{line.partition(' : ')[0]} : " if _FIELD.fullmatch(line.strip()) else ""
            parts = _MARKUP.split(line.removeprefix(names))
            plain = (part.replace("|", r"\|").replace(", *,", r", \*,") for part in parts[::2])
            escaped = (_LEARNT.sub(r"\\_", part) for part in plain)
            lines[i] = names + "".join(a + b for a, b in zip(escaped, [*parts[1::2], ""], strict=True))


def list_fields(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Give the fields of a dataclass a heading and an indent."""
    if not dataclasses.is_dataclass(obj) or any(set(line.strip()) == {"-"} for line in lines):
        return
    fields: list[str] = []
    rest: list[str] = []
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


def find_by_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """The one documented object of that name, where a reference leaves out its module."""
    if node.get("refdomain") != "py" or node["reftarget"].startswith("epicycle."):
        return None
    wanted = node["reftarget"].rpartition(".")[2]
    objects = env.domains.python_domain.objects
    found = [
        name
        for name, entry in objects.items()
        if name.rpartition(".")[2] == wanted and name.startswith("epicycle.") and not entry.aliased
    ]
    if len(found) != 1:
        return None
    entry = objects[found[0]]
    target = app.builder.get_relative_uri(node["refdoc"], entry.docname) + "#" + entry.node_id
    return nodes.reference("", "", content, internal=True, refuri=target, reftitle=found[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", escape_mathematics, priority=390)
    app.connect("autodoc-process-docstring", list_fields, priority=400)
    app.connect("missing-reference", find_by_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
