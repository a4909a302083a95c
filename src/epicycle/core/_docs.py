r"""Entries of docstrings that many classes share, each written once; their domains are in `core._parameters`.

A docstring line ``%(n_jobs)s`` stands for the shared entry `n_jobs`; ``{default}`` in an entry is the default value in
the signature. A class adds or overrides entries for itself and its subclasses in ``_docs``::

    class Forest(Estimator):
        _docs = {"n_estimators": "n_estimators : int, default={default}\n    Number of trees."}

Arguments of the constructor and of `fit` and `partial_fit` that a docstring leaves out are added from the
shared entries, in the order of the signature (for `fit` an entry ``fit_y`` goes before ``y``), and `self` as what `fit`
returns. A function gets its entries from the decorator :func:`documented`.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sklearn.base import ClassifierMixin, MultiOutputMixin

#: Entries of numpydoc sections, by name.
SHARED_DOCS: dict[str, str] = {
    "X": "X : array, sparse matrix, data frame, scan or Dask collection of shape (n_samples, n_features)",
    "y": "y : array-like of shape (n_samples,)\n    Targets; a scan brings its own.",
    "class_labels": "y : array-like of shape (n_samples,)\n"
    "    Class labels: numbers, booleans or strings; a scan brings its own.",
    "targets": "y : array-like of shape (n_samples,) or (n_samples, n_targets)\n    Targets; a scan brings its own.",
    "sample_weight": "sample_weight : array-like of shape (n_samples,), optional\n"
    "    A row of weight v counts as v rows.",
    "fit_intercept": "fit_intercept : bool, default={default}\n    Whether to fit the intercept b; it is 0 otherwise.",
    "tol": "tol : float, default={default}\n"
    "    Tolerance of the certificate: the fit ends when its value is at most `tol`.",
    "max_iter": "max_iter : int, default={default}\n    Maximum number of iterations.",
    "n_jobs": "n_jobs : int, optional\n"
    "    Number of threads; None chooses by the size of the work. The result does not depend on it.",
    "warm_start": "warm_start : bool, default={default}\n"
    "    Whether a new fit starts from the solution of the one before.",
    "verbose": "verbose : int, default={default}\n"
    "    1 shows progress when the fit takes more than about two seconds, 2 logs every iteration.",
    "random_state": "random_state : int, Generator, RandomState or None, default={default}\n"
    "    Seed; the same seed gives the same bits for any number of threads.",
}

F = TypeVar("F", bound=Callable[..., Any])
_LINE = re.compile(r"^( *)%\((\w+)\)s$", re.MULTILINE)
#: The section "Parameters" with its entries, up to the next section or the end.
_PARAMETERS = re.compile(r"^( *)Parameters\n *-+\n(.*?)(?=\n\n *\w[\w ]*\n *---|\s*\Z)", re.MULTILINE | re.DOTALL)
_NEXT_SECTION = re.compile(r"\n\n *(Returns|Yields|Attributes|See Also|Notes|References|Examples)\n *---|\s*\Z")


def complete_docstrings(cls: type) -> None:
    """Put the shared entries into the docstrings of a class and of its own methods."""
    entries = dict(SHARED_DOCS)
    for base in reversed(cls.__mro__):
        entries.update(vars(base).get("_docs", {}))
    if issubclass(cls, ClassifierMixin):
        entries.setdefault("fit_y", "%(class_labels)s")
    elif issubclass(cls, MultiOutputMixin):
        entries.setdefault("fit_y", "%(targets)s")
    if cls.__doc__:
        constructor: Any = cls.__init__  # type: ignore[misc]  # only its signature is read
        cls.__doc__ = _completed(cls.__doc__, entries, constructor, cls.__name__)
        if "__init__" in vars(cls):
            cls.__doc__ = _with_parameters(cls.__doc__, entries, constructor, cls.__name__)
    for name, member in vars(cls).items():
        method = getattr(member, "__func__", member)  # the function of a class method
        if inspect.isfunction(method) and method.__doc__:
            where = f"{cls.__name__}.{name}"
            method.__doc__ = _completed(method.__doc__, entries, method, where)
            if name in ("fit", "partial_fit"):
                method.__doc__ = _with_returned_self(_with_parameters(method.__doc__, entries, method, where, "fit_"))


def _with_parameters(doc: str, entries: Mapping[str, str], function: Any, where: str, prefix: str = "") -> str:
    """Add the shared entries of arguments that the docstring leaves out; all in the order of the signature.

    An entry whose name has the prefix goes before the one without.
    """
    order = [name for name in inspect.signature(function).parameters if name != "self"]
    section = _PARAMETERS.search(doc)
    indent = section[1] if section else " " * (4 if function.__name__ == "__init__" else 8)
    blocks = re.split(rf"\n(?={indent}\S)", section[2]) if section else []
    named = [re.findall(r"\w+", block.partition(" :")[0]) for block in blocks]
    known = {name for names in named for name in names}
    for name in order:
        key = f"{prefix}{name}" if f"{prefix}{name}" in entries else name
        if name not in known and key in entries:
            blocks.append(_completed(f"{indent}%({key})s", entries, function, where))
            named.append([name])
    if not blocks:
        return doc
    position = {name: i for i, name in enumerate(order)}
    sequence = sorted(range(len(blocks)), key=lambda i: position.get(named[i][0] if named[i] else "", len(order)))
    text = "\n".join([f"{indent}Parameters", f"{indent}----------", *(blocks[i] for i in sequence)])
    if section:
        return doc[: section.start()] + text + doc[section.end() :]
    end = _NEXT_SECTION.search(doc)
    assert end is not None  # the pattern matches the end of the docstring
    rest = doc[end.start() :] if end[0].strip() else f"\n{indent}"
    return f"{doc[: end.start()]}\n\n{text}{rest}"


def _with_returned_self(doc: str) -> str:
    if "Returns\n" in doc:
        return doc
    head, found, rest = doc.rstrip().partition("\n\n        Examples\n")
    section = textwrap.indent("Returns\n-------\nself\n    The fitted estimator.", " " * 8)
    return f"{head}\n\n{section}{found}{rest}\n        "


def documented(entries: Mapping[str, str]) -> Callable[[F], F]:
    """Decorate a function: lines ``%(name)s`` of its docstring are replaced by `entries` and the shared entries."""

    def decorate(function: F) -> F:
        if function.__doc__:  # None under python -OO
            every = {**SHARED_DOCS, **entries}
            function.__doc__ = _completed(function.__doc__, every, function, function.__name__)
        return function

    return decorate


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
