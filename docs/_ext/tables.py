"""Tables that are read from the code when the documentation is built: solvers, methods and errors cannot go stale."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from operator import attrgetter

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import epicycle
from epicycle import exceptions, optim


def list_table(header: Sequence[str], rows: Sequence[Sequence[str]], widths: str = "auto") -> list[str]:
    """Rows of reStructuredText as a list-table."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in (header, *rows):
        for i, cell in enumerate(row):
            lines.append(f"   {'*' if i == 0 else ' '} - {cell}")
    return [*lines, ""]


class Generated(SphinxDirective, ABC):
    """A directive whose content is made by :meth:`lines`."""

    has_content = False

    @abstractmethod
    def lines(self) -> list[str]:
        """The content, a line each."""

    def run(self) -> list[nodes.Node]:
        node = nodes.container()
        source = StringList(self.lines(), source=self.get_source_info()[0])
        self.state.nested_parse(source, self.content_offset, node)
        return node.children


class SolverTable(Generated):
    """Every solver of :data:`epicycle.optim.SOLVERS`: what it is, what it needs, what it can be told."""

    def lines(self) -> list[str]:
        rows = []
        for name, info in optim.SOLVERS.items():
            needs = " or ".join(c.replace("_", " ") for c in info.requires) or "gradient"
            options = ", ".join(f"``{option}``" for option in info.options) or "none"
            rows.append([f"``{name}``", info.description, needs, options])
        return list_table(["name", "what it is", "needs", "``solver_options``"], rows, "12 38 16 34")


class MethodTable(Generated):
    """Every estimator, as ``epicycle methods`` lists them."""

    def lines(self) -> list[str]:
        rows = []
        for m in epicycle.methods(functions=True):
            role = "class" if isinstance(getattr(epicycle, m.name, None), type) else "func"
            # With its markup, which the list of a terminal leaves out.
            summary = (attrgetter(m.name)(epicycle).__doc__ or "").strip().partition("\n")[0]
            rows.append([f":{role}:`{m.name} <epicycle.{m.name}>`", summary, ", ".join(m.engines), m.certificate])
        return list_table(["method", "what it is", "engines", "certificate"], rows, "22 40 20 18")


class ErrorTree(Generated):
    """The hierarchy of errors and warnings, with the built-in class that each of them also is."""

    def lines(self) -> list[str]:
        roots = (exceptions.EpicycleError, exceptions.EpicycleWarning)
        rows = [row for root in roots for row in self._rows(root, 0)]
        return list_table(["class", "also a", "raised when"], rows, "30 22 48")

    def _rows(self, cls: type[BaseException], depth: int) -> Iterator[list[str]]:
        others = [base for base in cls.__bases__ if not base.__module__.startswith("epicycle")]
        also = ", ".join(f"``{_shown(base)}``" for base in others)
        summary = (cls.__doc__ or "").strip().partition("\n")[0]
        yield [f"{'|indent| ' * depth}:class:`~epicycle.exceptions.{cls.__name__}`", also or " ", summary]
        for child in sorted(cls.__subclasses__(), key=lambda c: c.__name__):
            if child.__module__ == exceptions.__name__:
                yield from self._rows(child, depth + 1)


def _shown(cls: type) -> str:
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__.partition('.')[0]}'s {cls.__name__}"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("solver-table", SolverTable)
    app.add_directive("method-table", MethodTable)
    app.add_directive("error-tree", ErrorTree)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
