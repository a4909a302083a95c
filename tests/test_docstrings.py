"""Every example in a docstring of the package runs and prints what it says."""

import ast
import doctest
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import epicycle

MODULES = [
    "epicycle",
    *(
        module.name
        for module in pkgutil.walk_packages(epicycle.__path__, "epicycle.")
        if not module.name.endswith("._native")
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    result = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.failed == 0


def test_public_classes_and_functions_have_docstrings():
    public = {name: getattr(epicycle, name) for name in epicycle.__all__ if name != "__version__"}
    assert [name for name, value in public.items() if not (value.__doc__ or "").strip()] == []


def test_first_lines_say_what_something_is():
    """A docstring begins with what the thing is or does, not with "What ...", "Where ..." or "How ..."."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = []
    for path in Path(epicycle.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.get_docstring(node) if isinstance(node, documented) else None
            if text and re.match(r"(What|Where|How)\b", text):
                found.append(f"{path.name}: {text.splitlines()[0]}")
    assert found == []


def test_plain_words():
    """Names and texts use the words of the field."""
    package = Path(epicycle.__file__).parent
    words = re.compile(r"(?<![\w\"])(watched|arena|race|teller|doctor|judged?|smells)(?![\w\"])", re.IGNORECASE)
    found = [
        f"{path.name}: {match.group()}"
        for path in package.rglob("*.py")
        for match in words.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []
