"""`Saved`: a fitted object that is no estimator and can be written to a file."""

from __future__ import annotations

import os
from typing import Any


class Saved:
    """Gives `save`; a subclass says what is to be kept in ``__epi_state__`` and takes it in ``__epi_restore__``."""

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
