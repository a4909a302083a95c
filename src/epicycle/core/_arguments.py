"""Types of the arguments that many constructors have."""

from __future__ import annotations

from typing import Any, TypedDict, get_type_hints


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


def defaults_of(arguments: type, **shared: Any) -> dict[str, Any]:
    """Defaults for `stores_arguments`: those of a family's arguments, each of the type ``Annotated[type, default]``.

    Those of shared arguments follow.
    """
    hints = get_type_hints(arguments, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")} | shared
