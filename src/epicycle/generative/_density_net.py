"""`DensityNet`, the base of the generative networks whose log-density, or a bound on it, can be computed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from epicycle.core._exceptions import ConvergenceError
from epicycle.generative._generative_net import GenerativeNet

if TYPE_CHECKING:
    from epicycle.nets.training._batches import MiniBatch


class DensityNet(GenerativeNet):
    """Base of the generative networks with a log-density, or with a bound that the subclass names as one."""

    @abstractmethod
    def _log_densities(self, module: Any, batch: MiniBatch) -> Any:
        """log p(x), or a bound on it, of every row in the units of X; log p(x | y) where the batch has labels."""

    def score_samples(self, X: Any, y: Any = None) -> np.ndarray:
        """The logarithm of the density of each row, in nats."""
        return self._over_classes(X, y, self._log_densities)

    def _over_classes(self, X: Any, y: Any, log_density: Callable[[Any, MiniBatch], Any]) -> np.ndarray:
        """log_density(module, batch) of all rows; of a conditional model without labels for the mixture of classes."""
        if y is not None or not self.conditional:
            return self._finite_densities(self._mapped(self._rows_of(X, y), log_density).astype(np.float64))
        self._check_fitted()
        parts = np.array([self._over_classes(X, label, log_density) for label in self.classes_])
        # A bound for each class is one for the mixture, since the logarithm of a sum grows with every term.
        return np.asarray(logsumexp(parts + np.log(self.class_prior_)[:, None], axis=0))

    def _finite_densities(self, found: np.ndarray) -> np.ndarray:
        finite = np.isfinite(found)
        if not finite.all():
            raise ConvergenceError(
                f"{type(self).__name__}: the log-density of {np.count_nonzero(~finite):,} of {len(found):,} rows is "
                "not finite: the rows are far beyond those of the fit, or the fit has diverged, and a smaller "
                "learning_rate_init may help"
            )
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(np.mean(self.score_samples(X, y if self.conditional else None)))
