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


PACKAGES = tuple(
    sorted(path.name for path in Path(epicycle.__file__).parent.iterdir() if (path / "__init__.py").is_file())
)
BEGINNING = re.compile(r"(What|Where|How)\b")
NOT_OF_THE_FIELD = re.compile(r"(?<![\w\"])(watched|arena|race|teller|doctor|judged?|smells)(?![\w\"])", re.IGNORECASE)
#: Where one of these words is a term: matches of AlphaZero against its former self are played in an arena.
TERMS = {"search": {"arena"}}


@pytest.mark.parametrize("package", PACKAGES)
def test_plain_words(package):
    """Names and texts use words of the field; docstrings begin with what a thing is or does, not with "What ..."."""
    documented, found = (ast.Module, ast.ClassDef, ast.FunctionDef), []
    for path in sorted((Path(epicycle.__file__).parent / package).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        words = {match.group().lower() for match in NOT_OF_THE_FIELD.finditer(text)} - TERMS.get(package, set())
        found += [f"{path.name}: {word}" for word in sorted(words)]
        docstrings = [ast.get_docstring(n) or "" for n in ast.walk(ast.parse(text)) if isinstance(n, documented)]
        found += [f"{path.name}: {doc.splitlines()[0]}" for doc in docstrings if BEGINNING.match(doc)]
    assert found == []
