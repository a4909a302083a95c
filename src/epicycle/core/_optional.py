"""Packages that are not needed to fit or predict: imported when asked for, named when missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from epicycle.core._exceptions import MissingDependencyError

__all__ = ["optional_import"]


def optional_import(name: str, purpose: str) -> Any:
    """The module `name`, or an error that says what it is needed for and how to get it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != name.split(".")[0]:
            raise
        package = name.split(".")[0]
        raise MissingDependencyError(f"{purpose} needs {package}: pip install {package}") from None
