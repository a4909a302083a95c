"""Types of the arguments that many constructors have."""

from __future__ import annotations

from typing import Any, TypedDict


class SharedArguments(TypedDict, total=False):
    """Arguments that `stores_arguments` adds, for constructors that take them as ``**shared``.

    Their domains are in `core._parameters`, and their docstring entries in `core._docs`.
    """

    fit_intercept: bool
    max_iter: int | None
    n_jobs: int | None
    random_state: Any
    tol: float | None
    verbose: int
    warm_start: bool
