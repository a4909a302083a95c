"""What the networks are fitted to in the tests of the contract: each room has a module *_samples.py.

``SAMPLES = {"ConvNetClassifier": Sample(images, {"max_iter": 2})}`` says: ``images(n)`` gives n rows (X, y), and with
these arguments a fit ends soon, and has done what was asked for. `X[:n]` has to be the first n rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Sample:
    """Data for a class, and arguments with which it is fitted in a second or less.

    data : n -> (X, y); None takes the table that every estimator gets.
    few : arguments for a short fit that is complete.
    light : arguments for scikit-learn's checks, which fit some hundred times; `few` unless given.
    solvers : those that are tried with checkpoints, where the loop is tested by others already; all unless given.
    """

    data: Callable[[int], tuple[Any, Any]] | None = None
    few: dict[str, Any] = field(default_factory=dict)
    light: dict[str, Any] | None = None
    solvers: tuple[str, ...] | None = None


def all_samples() -> dict[str, Sample]:
    """The samples of all rooms, by the name of the class."""
    found: dict[str, Sample] = {}
    for path in sorted(Path(__file__).parents[1].rglob("*_samples.py")):
        if path.name != "net_samples.py":
            found |= import_module(path.stem).SAMPLES
    return found
