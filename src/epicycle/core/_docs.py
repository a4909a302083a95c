r"""Entries of docstrings that many classes share, each written once; their domains are in `core._parameters`.

A docstring line ``%(n_jobs)s`` stands for the shared entry `n_jobs`; ``{default}`` in an entry is the default value in
the signature. A class adds or overrides entries for itself and its subclasses in ``_docs``::

    class Forest(Estimator):
        _docs = {"n_estimators": "n_estimators : int, default={default}\n    Number of trees."}

What a docstring leaves out is added from these entries: arguments of constructors and of public methods, in the order
of the signature (an entry ``fit_y`` goes before ``y`` in `fit` and `partial_fit`, ``score_y`` in `score`); the
attributes that a class and its bases list in ``_documented_attributes``; and what a method returns: an entry
``predict_returns`` for `predict`, else its annotation where that is the name of a class. Functions get the same from
the decorators :func:`documented` and `in_catalogue`.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from sklearn.base import (
    ClassifierMixin,
    ClusterMixin,
    DensityMixin,
    MultiOutputMixin,
    OutlierMixin,
    RegressorMixin,
    TransformerMixin,
)

#: Entries of numpydoc sections, by name.
SHARED_DOCS: dict[str, str] = {
    "X": "X : array, sparse matrix, data frame, scan or Dask collection of shape (n_samples, n_features)",
    "y": "y : array-like of shape (n_samples,)\n    Targets; a scan brings its own.",
    "class_labels": "y : array-like of shape (n_samples,)\n"
    "    Class labels: numbers, booleans or strings; a scan brings its own.",
    "ignored": "y : ignored",
    "targets": "y : array-like of shape (n_samples,) or (n_samples, n_targets)\n    Targets; a scan brings its own.",
    "sample_weight": "sample_weight : array-like of shape (n_samples,), optional\n"
    "    A row of weight v counts as v rows.",
    "fit_intercept": "fit_intercept : bool, default={default}\n    Whether to fit the intercept b; it is 0 otherwise.",
    "tol": "tol : float, default={default}\n"
    "    Tolerance of the certificate: the fit ends when its value is at most `tol`.",
    "max_iter": "max_iter : int, default={default}\n    Maximum number of iterations.",
    "copy": "copy : bool, default={default}\n    Accepted for compatibility; X is never written to.",
    "copy_x": "copy_x : bool, default={default}\n    Accepted for compatibility; X is never written to.",
    "n_init": "n_init : int, default={default}\n    Number of starts, of which the best is kept.",
    "n_jobs": "n_jobs : int, optional\n"
    "    Number of threads; None chooses by the size of the work. The result does not depend on it.",
    "warm_start": "warm_start : bool, default={default}\n"
    "    Whether a new fit starts from the solution of the one before.",
    "verbose": "verbose : int, default={default}\n"
    "    1 shows progress when the fit takes more than about two seconds, 2 logs every iteration.",
    "evidence": "history_ : History\nn_iter_ : int\nconverged_ : bool",
    "random_state": "random_state : int, Generator, RandomState or None, default={default}\n"
    "    Seed; the same seed gives the same bits for any number of threads.",
    "ax": "ax : matplotlib Axes, optional\n    The axes to draw on; by default new ones.",
    "certificate_": "certificate_ : Certificate\n    How good the fit is as an optimisation.",
    "history_": "history_ : History\n    Record of the fit, a row for each iteration.",
    "n_iter_": "n_iter_ : int",
    "converged_": "converged_ : bool",
}

_OF_ROWS = "array of shape (n_samples,)"
_UNSUPERVISED = {f"{method}_y": "%(ignored)s" for method in ("fit", "fit_predict", "fit_transform", "score")}
#: Entries of the kinds of estimators, by their mixins; those of a kind go before those of the kinds below it.
_DOCS_BY_KIND: dict[type, dict[str, str]] = {
    ClassifierMixin: {"fit_y": "%(class_labels)s"},
    MultiOutputMixin: {"fit_y": "%(targets)s"},
    RegressorMixin: {"fit_y": "%(y)s"},
    OutlierMixin: {**_UNSUPERVISED, "predict_returns": _OF_ROWS, "score_samples_returns": _OF_ROWS},
    DensityMixin: {**_UNSUPERVISED, "predict_returns": _OF_ROWS, "score_samples_returns": _OF_ROWS},
    ClusterMixin: {
        **_UNSUPERVISED,
        "n_clusters": "n_clusters : int, default={default}\n    k.",
        "predict_returns": _OF_ROWS,
        "fit_predict_returns": _OF_ROWS,
    },
    TransformerMixin: _UNSUPERVISED,
}

F = TypeVar("F", bound=Callable[..., Any])
_LINE = re.compile(r"^( *)%\((\w+)\)s$", re.MULTILINE)
_NEXT_SECTION = re.compile(r"\n\n *(Returns|Yields|Attributes|Raises|See Also|Notes|References|Examples)\n *---|\s*\Z")
#: Annotations that say less of a result than a sentence does.
_UNTOLD = ("Any", "Array", "None", "R", "State")
#: What others are called in a docstring.
_TOLD = {"Axes": "matplotlib Axes", "Self": "self"}


def entries_of(block: str) -> dict[str, str]:
    """The entries of a block, each by the first of its names."""
    return {_names(entry)[0]: entry for entry in re.split(r"\n(?=\S)", block)}


def complete_docstrings(cls: type) -> None:
    """Put the shared entries into the docstrings of a class and of its own methods."""
    entries = dict(SHARED_DOCS)
    for base in reversed(cls.__mro__):
        entries.update(vars(base).get("_docs", {}))
    for kind, more in _DOCS_BY_KIND.items():
        if issubclass(cls, kind):
            entries = {**more, **entries}
    if cls.__doc__:
        constructor: Any = cls.__init__  # type: ignore[misc]  # only its signature is read
        given = [vars(base).get("_documented_attributes", ()) for base in cls.__mro__]
        attributes = list(dict.fromkeys(name for names in given for name in names))
        arguments = [name for name in inspect.signature(constructor).parameters if name not in attributes]
        doc = _completed(cls.__doc__, entries, constructor, cls.__name__)
        doc = _with_entries(doc, "Parameters", arguments, entries, constructor, cls.__name__)
        cls.__doc__ = _with_entries(doc, "Attributes", attributes, entries, constructor, cls.__name__)
    for name, member in vars(cls).items():
        method = getattr(member, "__func__", member)  # the function of a class method
        if inspect.isfunction(method) and method.__doc__:
            where, fits = f"{cls.__name__}.{name}", name in ("fit", "partial_fit")
            if fits:
                method.__doc__ = _with_returned(method.__doc__, "self\n    The fitted estimator.")
            elif f"{name}_returns" in entries:
                method.__doc__ = _with_returned(method.__doc__, entries[f"{name}_returns"])
            _complete(method, entries, where, "fit_" if fits else f"{name}_", always=name[:1] != "_")


def documented(entries: Mapping[str, str], *, always: bool = True) -> Callable[[F], F]:
    """Decorate a function: its docstring is completed by `entries` and the shared entries.

    With ``always=False`` only where it has a section "Parameters". Of a class, which has its own entries in ``_docs``,
    all docstrings are completed.
    """

    def decorate(function: F) -> F:
        if isinstance(function, type):
            complete_docstrings(function)
            return function
        if function.__doc__:  # None under python -OO
            _complete(function, {**SHARED_DOCS, **entries}, function.__name__, always=always)
        return function

    return decorate


def _complete(function: Any, entries: Mapping[str, str], where: str, prefix: str = "", *, always: bool) -> None:
    doc = _completed(function.__doc__, entries, function, where)
    if always or "Parameters\n" in doc:
        signature = inspect.signature(function)
        doc = _with_entries(doc, "Parameters", signature.parameters, entries, function, where, prefix)
        if re.fullmatch(r"[A-Za-z]\w*", returned := str(signature.return_annotation)) and returned not in _UNTOLD:
            doc = _with_returned(doc, _TOLD.get(returned, returned))
    function.__doc__ = doc


def _with_entries(
    doc: str, title: str, names: Iterable[str], entries: Mapping[str, str], function: Any, where: str, prefix: str = ""
) -> str:
    """Add the shared entries of the names that a section leaves out; all in the order of the names.

    An entry whose name has the prefix goes before the one without.
    """
    pattern = rf"^( *){title}\n *-+\n(.*?)(?=\n\n *\w[\w ]*\n *---|\s*\Z)"
    section = re.search(pattern, doc, re.MULTILINE | re.DOTALL)
    indent = section[1] if section else _margin(doc)
    blocks = re.split(rf"\n(?={indent}\S)", section[2]) if section else []
    named = [_names(block) for block in blocks]
    order = [name for name in names if name != "self"]
    for name in order:
        key = f"{prefix}{name}" if f"{prefix}{name}" in entries else name
        if key in entries and not any(name in given for given in named):
            block = _completed(f"{indent}%({key})s", entries, function, where)
            for entry in re.split(rf"\n(?={indent}\S)", block):
                if not any(set(_names(entry)) & set(given) for given in named):  # its own goes before that of a block
                    blocks.append(entry)
                    named.append(_names(entry))
    if not blocks or not order:
        return doc
    if title == "Parameters":  # attributes stay in the order in which they are written
        position = {name: i for i, name in enumerate(order)}
        at = sorted(range(len(blocks)), key=lambda i: position.get((named[i] or [""])[0], len(order)))
        blocks = [blocks[i] for i in at]
    text = "\n".join([f"{indent}{title}", f"{indent}{'-' * len(title)}", *blocks])
    return doc[: section.start()] + text + doc[section.end() :] if section else _inserted(doc, text)


def _names(block: str) -> list[str]:
    """The names that an entry, or a block of entries, is for."""
    heads = (line.partition(" :")[0] for line in textwrap.dedent(block).split("\n") if line[:1].strip())
    return re.findall(r"\w+", " ".join(heads))


def _margin(doc: str) -> str:
    """The indentation of a docstring."""
    lines = [line for line in doc.split("\n")[1:] if line.strip()]
    return " " * min((len(line) - len(line.lstrip()) for line in lines), default=4)


def _with_returned(doc: str, text: str) -> str:
    if "Returns\n" in doc or "Yields\n" in doc:
        return doc
    return _inserted(doc, textwrap.indent(f"Returns\n-------\n{text}", _margin(doc)))


def _inserted(doc: str, section: str) -> str:
    """The docstring with a section before those that follow it."""
    end = _NEXT_SECTION.search(doc)
    assert end is not None  # the pattern matches the end of the docstring
    rest = doc[end.start() :] if end[0].strip() else f"\n{_margin(doc)}"
    return f"{doc[: end.start()]}\n\n{section}{rest}"


def _completed(doc: str, entries: Mapping[str, str], function: Any, where: str) -> str:
    signature = inspect.signature(function).parameters

    def entry(match: re.Match[str]) -> str:
        indent, name = match.groups()
        if name not in entries:
            raise TypeError(f"the docstring of {where} names the entry {name!r}, which is in no _docs")
        default = signature[name].default if name in signature else inspect.Parameter.empty
        text = entries[name].replace("{default}", f'"{default}"' if isinstance(default, str) else repr(default))
        return textwrap.indent(_LINE.sub(entry, text), indent)  # an entry may be a block of entries

    return _LINE.sub(entry, doc)
