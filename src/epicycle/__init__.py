"""epicycle: machine learning that shows its work.

The public names stand in ``__init__.pyi``, once. They are loaded on first use, so that ``import epicycle`` costs next
to nothing (the package `lazy_loader` does the same, but importing it costs several times as much).
"""

import re
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def _declared_names() -> dict[str, str]:
    """Every public name, and the module that ``__init__.pyi`` imports it from."""
    with open(f"{__file__}i", encoding="utf-8") as file:  # importing pathlib would take longer than all the rest
        stub = file.read()
    imports = re.findall(r"^from (\.\S*) import \(([^)]*)\)", stub, re.MULTILINE)
    return {
        name: "epicycle" + module.rstrip(".") for module, names in imports for name in re.findall(r"as (\w+)", names)
    }


_DECLARED = _declared_names()
#: The objects among them, without the sub-packages.
_PUBLIC = {name: module for name, module in _DECLARED.items() if module != "epicycle"}
#: Sub-packages that had another name in 0.1.0.
_MOVED = {"training": "automl"}

__all__ = sorted([*_DECLARED, *_MOVED, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
    elif name in _DECLARED or name in _MOVED:
        value = import_module(f"epicycle.{_MOVED.get(name, name)}")
    else:
        raise AttributeError(f"module 'epicycle' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
