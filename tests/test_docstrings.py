"""Every example in a docstring of the package runs and prints what it says."""

import doctest
import pkgutil
from importlib import import_module

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
