"""Common parts of designs: what they set, and an error before they are fitted."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import NotFittedError
from epicycle.core._history import History
from epicycle.core._saved import Saved


class Design(Saved, BaseEstimator):  # type: ignore[misc]
    """An estimator whose `fit` takes the columns of a study and sets `effect_` with its evidence."""

    effect_: float
    certificate_: Certificate
    history_: History

    def _check(self) -> None:
        if not hasattr(self, "effect_"):
            raise NotFittedError(f"{type(self).__name__}: not fitted yet; call fit first")
