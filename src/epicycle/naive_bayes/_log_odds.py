"""Log-odds of two classes as a sum over features, which is what the naive Bayes assumption means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class LogOdds:
    r"""The log-odds of one class against another for every row, by feature.

    .. math:: \log \frac{P(c \mid x)}{P(c' \mid x)}
       = \log \frac{P(c)}{P(c')} + \sum_j \log \frac{P(x_j \mid c)}{P(x_j \mid c')}

    Attributes
    ----------
    classes : tuple
        The class c, and c' that it is compared with.
    prior : float
        The log-odds before any feature is seen.
    features : ndarray or csr_array of shape (n_samples, n_features)
        The terms of the sum. For sparse rows only those of stored entries; the rest is in `absent`.
    absent : ndarray of shape (n_samples,)
        Terms of features that are not stored in sparse rows, added up.
    names : list of str
    """

    classes: tuple[Any, Any]
    prior: float
    features: Any
    absent: np.ndarray
    names: list[str]

    @property
    def total(self) -> np.ndarray:
        """The log-odds of every row."""
        return np.asarray(self.prior + self.absent + np.asarray(self.features.sum(axis=1)).ravel())

    def top(self, row: int = 0, n: int = 10) -> list[tuple[str, float]]:
        """The features that move a row the most, with their terms; largest absolute value first."""
        terms = self.features[[row]]
        at = terms.indices if sp.issparse(terms) else np.arange(len(self.names))
        values = terms.data if sp.issparse(terms) else np.asarray(terms).ravel()
        order = np.argsort(-np.abs(values), kind="stable")[:n]
        return [(self.names[at[i]], float(values[i])) for i in order]

    def __str__(self) -> str:
        first, second = self.classes
        lines = [f"log-odds of {first!r} against {second!r}: {self.total[0]:+.3f} (prior {self.prior:+.3f})"]
        return "\n".join([*lines, *(f"  {value:+8.3f}  {name}" for name, value in self.top())])
