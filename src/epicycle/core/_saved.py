"""`Saved`: a fitted object that is no `Estimator` and can be written to a file."""

from __future__ import annotations

import inspect
import os
from typing import Any, ClassVar


class Saved:
    """Gives `save`; a subclass says what is to be kept in ``__epi_state__`` and takes it in ``__epi_restore__``.

    ``_arguments`` are the names of the arguments of its constructor.
    """

    _arguments: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "__init__" in vars(cls):
            cls._arguments = tuple(inspect.signature(vars(cls)["__init__"]).parameters)[1:]
        super().__init_subclass__(**kwargs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an ``.epi`` file; :func:`epicycle.load` reads it back.

        Parameters
        ----------
        path : str or path
            The file.
        """
        from epicycle.io import save

        save(self, path)


def attributes_of(model: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Attributes of an object by name, as a file keeps them."""
    return {name: getattr(model, name) for name in names}
