"""Reading causal diagrams: arrows in plain text, DOT, GML, and graphs of networkx.

All readers return the nodes in order of appearance, the directed edges, the bidirected edges and the latent nodes.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, NamedTuple

from epicycle.core._exceptions import DataError, DataTypeError

Edge = tuple[str, str]
TRUE = {"1", "true", "yes"}
FALSE = {"0", "false", "no"}
#: A name in quotation marks, where a name begins.
_QUOTED = r"""(?<![^\s;,>-])(?:"((?:[^"\\]|\\.)*)"|'([^']*)')"""


class Parts(NamedTuple):
    """Nodes and edges of a description of a diagram."""

    nodes: dict[str, None]  # in order of appearance
    directed: list[Edge]
    bidirected: list[Edge]
    latent: list[str]


def read(source: Any) -> Parts:
    """Parts of a diagram given as text, DOT, GML, edges or a graph of networkx."""
    if isinstance(source, str):
        return read_string(source)
    if hasattr(source, "is_directed") and hasattr(source, "edges"):
        return read_networkx(source)
    return read_edges(source)


def quoted(name: str, *, always: bool = False) -> str:
    """A name as text: in quotation marks where it would be read as something else without."""
    plain = re.fullmatch(r"[^\s;,#\"'\[\]{}<>=-]+( [^\s;,#\"'\[\]{}<>=-]+)*", name) and not name.startswith("//")
    if plain and not always:
        return name
    return '"{}"'.format(name.replace("\\", "\\\\").replace('"', '\\"'))


def unquoted(text: str) -> str:
    """The name within quotation marks."""
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def read_string(text: str) -> Parts:
    """Parts of a diagram in DOT, GML or arrows, recognised by their beginning."""
    opening = _without_comments(text).lstrip()
    if re.match(r"(strict\s+)?(di)?graph\b[^\[]*\{", opening):
        return read_dot(text)
    if re.match(r"(Creator\s+\"[^\"]*\"\s*)?(Version\s+\S+\s*)?graph\s*\[", opening):
        return read_gml(text)
    return read_arrows(text)


def read_edges(source: Any) -> Parts:
    """Edges as pairs, or as triples whose middle is an arrow: ``("a", "<->", "b")``."""
    parts = Parts({}, [], [], [])
    try:
        edges = list(source)
    except TypeError:
        raise DataTypeError(
            f"edges={source!r:.80}: expected text, DOT, GML, a graph of networkx, or edges such as ('a', 'b')"
        ) from None
    for edge in edges:
        if not isinstance(edge, tuple | list) or len(edge) not in (2, 3) or not all(isinstance(v, str) for v in edge):
            raise DataError(f"edges: got {edge!r:.80}; expected pairs of names or triples such as ('a', '<->', 'b')")
        tail, arrow, head = edge if len(edge) == 3 else (edge[0], "->", edge[1])
        add_edge(parts, tail, arrow, head)
    return parts


def add_edge(parts: Parts, tail: str, arrow: str, head: str) -> None:
    """Add an edge and its ends."""
    for name in (tail, head):
        add_node(parts, name)
    if arrow == "->":
        parts.directed.append((tail, head))
    elif arrow == "<-":
        parts.directed.append((head, tail))
    elif arrow == "<->":
        parts.bidirected.append((tail, head))
    else:
        raise DataError(f"edge {tail!r} {arrow} {head!r}: expected one of ->, <-, <->")


def add_node(parts: Parts, name: str) -> None:
    """Add a node, unless it is there."""
    parts.nodes.setdefault(name)


# ------------------------------------------------------------------------------------------------ arrows


def read_arrows(text: str) -> Parts:
    """``a -> b <- c; a <-> d; e, f -> g``: chains of arrows, one for each line or piece between semicolons."""
    parts = Parts({}, [], [], [])
    held: list[str] = []  # names in quotation marks, whose place a private character holds while the text is split

    def hold(match: re.Match[str]) -> str:
        held.append(unquoted(match.group(1)) if match.group(1) is not None else match.group(2))
        return f"\ue000{len(held) - 1}\ue001"

    def name_of(piece: str) -> str:
        place = re.fullmatch("\ue000(\\d+)\ue001", piece.strip())
        return held[int(place.group(1))] if place else piece.strip().strip("\"'")

    text = re.sub(r"#[^\n]*|" + _QUOTED, lambda m: "" if m.group(0)[0] == "#" else hold(m), text)
    for statement in re.split(r"[;\n]", text):
        if not statement.strip():
            continue
        pieces = re.split(r"(<->|<-|->|--)", statement)
        groups = [[name_of(name) for name in piece.split(",")] for piece in pieces[::2]]
        if not all(name for group in groups for name in group):
            raise DataError(f"graph: {statement.strip()!r:.80} lacks a name beside an arrow or a comma")
        for name in groups[0]:
            add_node(parts, name)
        for left, arrow, right in zip(groups, pieces[1::2], groups[1:], strict=False):
            for tail in left:
                for head in right:
                    add_edge(parts, tail, arrow, head)
    return parts


# ------------------------------------------------------------------------------------------------ DOT

_DOT_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|(->|--)|([\[\]{};,=])|([^\s"\[\]{};,=]+?)(?=->|--|[\s"\[\]{};,=]|$)')


_MARK = '"'  # before what stood in quotation marks, which is no keyword and no punctuation


def read_dot(text: str) -> Parts:
    """A digraph of Graphviz; edges with ``dir=both`` are bidirected, nodes with ``observed=no`` latent."""
    body = _without_comments(text)
    if not re.match(r"\s*(strict\s+)?digraph\b", body):
        raise DataError("graph: this DOT text is an undirected graph; expected a digraph")
    tokens = [m.group(0) if m.group(1) is None else _MARK + unquoted(m.group(1)) for m in _DOT_TOKEN.finditer(body)]
    if "{" not in tokens:
        raise DataError("graph: the DOT text has no opening brace")
    return _DotReader(tokens, tokens.index("{") + 1).parts()


def _without_comments(text: str) -> str:
    """The text without comments of DOT; what looks like one within quotation marks stays."""
    comment = r'("(?:[^"\\]|\\.)*")|/\*.*?\*/|//[^\n]*|^\s*#[^\n]*'
    return re.sub(comment, lambda m: m.group(1) or " ", text, flags=re.DOTALL | re.MULTILINE)


def _bare(token: str) -> str:
    """A token of DOT without the mark of quotation."""
    return token.removeprefix(_MARK)


class _DotReader:
    """Statements of a digraph, one token after the other."""

    def __init__(self, tokens: list[str], at: int) -> None:
        self.tokens, self.at = tokens, at
        self.found = Parts({}, [], [], [])

    def parts(self) -> Parts:
        while self.at < len(self.tokens) and self.tokens[self.at] != "}":
            if self.tokens[self.at] in (";", ","):
                self.at += 1
            else:
                self.statement()
        if self.at >= len(self.tokens):
            raise DataError("graph: the DOT text ends before its closing brace")
        return self.found

    def statement(self) -> None:
        chain = [self.group()]
        while self.peek() in ("->", "--"):
            if self.tokens[self.at] == "--":
                raise DataError("graph: '--' in DOT has no direction; expected '->'")
            self.at += 1
            chain.append(self.group())
        if self.peek() == "=":  # rankdir = LR
            self.at += 2
            return
        about = self.attributes()
        if len(chain) == 1 and chain[0] in (["graph"], ["node"], ["edge"]):
            return
        chain = [[_bare(name) for name in group] for group in chain]
        for name in (name for group in chain for name in group):
            add_node(self.found, name)
        if len(chain) == 1 and is_latent(about):
            self.found.latent.extend(chain[0])
        arrow = {"both": "<->", "back": "<-"}.get(about.get("dir", ""), "->")
        for left, right in pairwise(chain):
            for tail in left:
                for head in right:
                    add_edge(self.found, tail, arrow, head)

    def group(self) -> list[str]:
        token = self.take()
        if token != "{":
            return [token]
        names = []
        while (token := self.take()) != "}":
            if token not in (";", ","):
                names.append(token)
        return names

    def attributes(self) -> dict[str, str]:
        about: dict[str, str] = {}
        while self.peek() == "[":
            self.at += 1
            while (key := self.take()) != "]":
                if key in (",", ";"):
                    continue
                if self.peek() == "=":
                    self.at += 1
                    about[_bare(key).lower()] = _bare(self.take()).lower()
                else:
                    about[_bare(key).lower()] = "true"
        return about

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        if self.at >= len(self.tokens):
            raise DataError("graph: the DOT text ends inside a statement")
        self.at += 1
        return self.tokens[self.at - 1]


def is_latent(about: dict[str, str]) -> bool:
    """Whether the attributes of a node mark it as unobserved."""
    return about.get("latent", "") in TRUE or about.get("observed", "") in FALSE


# ------------------------------------------------------------------------------------------------ GML


def read_gml(text: str) -> Parts:
    """A graph in GML; edges with ``dir "both"`` or ``bidirected 1`` are bidirected."""
    tokens = [a or b for a, b in re.findall(r'"([^"]*)"|([^\s\[\]"]+|[\[\]])', text)]
    items = _gml_items(iter(tokens))
    graph = next((value for key, value in items if key == "graph"), None)
    if not isinstance(graph, list):
        raise DataError("graph: the GML text has no graph [...]")
    if ("directed", "0") in graph:
        raise DataError("graph: this GML graph is undirected (directed 0); expected directed 1")
    parts = Parts({}, [], [], [])
    label: dict[str, str] = {}
    for key, value in graph:
        if key == "node":
            about = _gml_record(key, value)
            name = str(about.get("label", about.get("id", "")))
            label[str(about.get("id", name))] = name
            add_node(parts, name)
            if is_latent({k: str(v).lower() for k, v in about.items()}):
                parts.latent.append(name)
    for key, value in graph:
        if key == "edge":
            about = _gml_record(key, value)
            ends = [label.get(str(about.get(end, ""))) for end in ("source", "target")]
            if None in ends:
                raise DataError(f"graph: an edge of the GML text joins {about!r:.80}, which is not among its nodes")
            both = about.get("dir") == "both" or about.get("bidirected") in TRUE
            add_edge(parts, str(ends[0]), "<->" if both else "->", str(ends[1]))
    return parts


def _gml_record(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, list):
        raise DataError(f"graph: {key} {value!r:.80} in the GML text; expected {key} [ ... ]")
    return dict(value)


def _gml_items(tokens: Any) -> list[tuple[str, Any]]:
    items: list[tuple[str, Any]] = []
    for key in tokens:
        if key == "]":
            return items
        value = next(tokens, None)
        if value is None:
            raise DataError("graph: the GML text ends after a key")
        items.append((key, _gml_items(tokens) if value == "[" else value))
    return items


# ------------------------------------------------------------------------------------------------ networkx


def read_networkx(graph: Any) -> Parts:
    """A DiGraph or MultiDiGraph; edges with ``bidirected=True`` or ``dir="both"`` are bidirected."""
    if not graph.is_directed():
        raise DataError(f"graph={graph!r:.80}: this graph is undirected; expected a networkx.DiGraph")
    parts = Parts({}, [], [], [])
    seen: dict[str, Any] = {}
    for node, about in graph.nodes(data=True):
        name = str(node)
        if name in seen:
            raise DataError(f"graph: nodes {seen[name]!r} and {node!r} have the same name {name!r}")
        seen[name] = node
        add_node(parts, name)
        if is_latent({str(k).lower(): str(v).lower() for k, v in about.items()}):
            parts.latent.append(name)
    for tail, head, about in graph.edges(data=True):
        both = str(about.get("bidirected", "")).lower() in TRUE or about.get("dir") == "both"
        (parts.bidirected if both else parts.directed).append((str(tail), str(head)))
    return parts
