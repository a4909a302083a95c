"""The tasks: every module here defines one (or a few that share their data) as a `Task` at module level."""

from __future__ import annotations

import importlib
import pkgutil

from benchmarks.task import Task

__all__ = ["all_tasks", "find"]


def _tasks_of(module: str) -> list[Task]:
    found = vars(importlib.import_module(module)).values()
    return [task for task in found if isinstance(task, Task)]


def all_tasks() -> dict[str, Task]:
    """Every task by name, in the order of the files."""
    modules = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return {task.name: task for module in modules for task in _tasks_of(f"{__name__}.{module}")}


def find(name: str, module: str) -> Task:
    """The task called `name` in `module`."""
    return next(task for task in _tasks_of(module) if task.name == name)
