"""Criteria by which the number of components of a likelihood is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.mixture._base import Mixture
from epicycle.mixture._choose_k import ChosenK, choose


class LikelihoodMixture(Mixture):
    """A mixture that is fitted by maximum likelihood, so that numbers of components can be compared."""

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion, -2 L + d log n with d free parameters; the lower the better."""
        value, _, weight = self._totals(X, sample_weight)
        return -2 * value + self._n_parameters() * float(np.log(weight))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Akaike's information criterion, -2 L + 2 d with d free parameters; the lower the better."""
        return -2 * self._totals(X, sample_weight)[0] + 2 * self._n_parameters()

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """Integrated completed likelihood: the BIC plus twice the entropy of the shares; the lower the better.

        It prefers components that are apart.
        """
        value, entropy, weight = self._totals(X, sample_weight)
        return -2 * value + self._n_parameters() * float(np.log(weight)) + 2 * entropy

    def _n_parameters(self) -> int:
        self._check_fitted()
        return self._model(self.n_features_in_, self._names()).n_parameters()

    def choose_k(
        self, X: Any, n_components: Any = range(1, 11), *, criterion: str = "bic", sample_weight: Any = None
    ) -> ChosenK:
        """Fit mixtures with several numbers of components, and choose one by a criterion.

        Parameters
        ----------
        n_components : iterable of int, default=range(1, 11)
            Numbers to try. One for which no fit exists (a covariance is singular, fewer rows) is left out and named.
        criterion : {"bic", "aic", "icl"}, default="bic"
        """
        if criterion not in ("bic", "aic", "icl"):
            raise ParameterError(f"criterion={criterion!r}; expected 'bic', 'aic' or 'icl'")
        return choose(self, X, n_components, criterion, sample_weight)
