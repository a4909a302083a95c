"""Common methods of designs: an error before it is fitted, and a file."""

from __future__ import annotations

import os

from sklearn.base import BaseEstimator

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import NotFittedError
from epicycle.core._history import History


class Design(BaseEstimator):  # type: ignore[misc]
    """An estimator whose `fit` takes the columns of a study and sets `effect_` with its evidence."""

    effect_: float
    certificate_: Certificate
    history_: History

    def _check(self) -> None:
        if not hasattr(self, "effect_"):
            raise NotFittedError(f"{type(self).__name__}: not fitted yet; call fit first")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the design with its results to a file, which :func:`epicycle.load` reads.

        Parameters
        ----------
        path : path
            Where to write.
        """
        from epicycle.io import save

        save(self, path)
