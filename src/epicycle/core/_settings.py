"""Library-wide settings: ``ep.config(name=value)`` sets for good, or for a ``with`` block."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal


@dataclass(frozen=True)
class Settings:
    """The settings in force.

    on_nonconvergence : what a fit does whose certificate does not hold.
    n_jobs : threads for estimators whose own `n_jobs` is None; None follows the size of the work.
    memory_limit : bytes that one call may plan to allocate; None means what the machine has free.
    """

    on_nonconvergence: Literal["warn", "raise", "ignore"] = "warn"
    n_jobs: int | None = None
    memory_limit: int | None = None


_default = Settings()
_local: ContextVar[Settings | None] = ContextVar("epicycle_settings", default=None)


def get_config() -> Settings:
    """The settings in force here: those of the enclosing ``with`` block, otherwise the global ones."""
    return _local.get() or _default


class config:  # noqa: N801 - reads as a verb: ep.config(on_nonconvergence="raise")
    """Change settings, globally or inside a ``with`` block.

    Parameters
    ----------
    **settings
        Any field of :class:`Settings`: `on_nonconvergence` ("warn", "raise" or "ignore"), `n_jobs`, `memory_limit`.

    Examples
    --------
    >>> import epicycle as ep
    >>> with ep.config(on_nonconvergence="raise"):
    ...     ep.get_config().on_nonconvergence
    'raise'
    >>> ep.get_config().on_nonconvergence
    'warn'
    """

    def __init__(self, **settings: Any) -> None:
        global _default
        _check(settings)
        self._settings = settings
        self._outer, self._before = _local.get(), _default
        if self._outer is None:
            _default = replace(_default, **settings)
        else:
            _local.set(replace(self._outer, **settings))

    def __enter__(self) -> Settings:
        global _default
        # What the constructor changed for good is taken back and holds inside this block (thread or task) alone.
        _default = self._before if self._outer is None else _default
        _local.set(replace(self._outer or self._before, **self._settings))
        return get_config()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _local.set(self._outer)


def _check(settings: dict[str, Any]) -> None:
    from epicycle.core._exceptions import ParameterError
    from epicycle.core._parameters import SHARED_PARAMETERS, Choice, Integer, NoneOr, check_parameter

    domains = {
        "on_nonconvergence": Choice("warn", "raise", "ignore"),
        "n_jobs": SHARED_PARAMETERS["n_jobs"],
        "memory_limit": NoneOr(Integer(minimum=1)),
    }
    for name, value in settings.items():
        if name not in domains:
            raise ParameterError(f"config() has no setting {name!r}; it has {list(domains)}")
        check_parameter("config", name, value, domains[name])
