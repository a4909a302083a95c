"""`BoundNet`, the base of the models whose density is an integral over codes, with an encoder q(z | x) to draw them:

    log p(x) >= E log w_1   and   log p(x) >= E log 1/K sum_k w_k,   w_k = p(x, z_k) / q(z_k | x),   z_k ~ q(z | x),

where the second bound grows with K, and its limit is log p(x) (importance sampling; Burda et al. 2016).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.core._parameters import Integer, check_parameter
from epicycle.core._random import Seed, seed_of
from epicycle.generative._density_net import DensityNet
from epicycle.nets.training._torch import device_of

if TYPE_CHECKING:
    from epicycle.generative._row_draws import RowDraws
    from epicycle.nets.training._batches import MiniBatch

#: Draws for each row behind a bound of `score_samples`.
_BOUND_DRAWS = 16
#: Rows times draws that are computed at once.
_AT_ONCE = {"cpu": 1 << 12, "cuda": 1 << 17}


class BoundNet(DensityNet):
    """Base of the generative networks that know a lower bound of their log-density, and estimate it by weights."""

    @abstractmethod
    def _log_weights(self, module: Any, batch: MiniBatch, draws: RowDraws) -> Any:
        """log p(x, z) - log q(z | x) of some draws of z for each row, of shape (n_draws, n_rows)."""

    def _standardised(self, module: Any, batch: MiniBatch) -> Any:
        """The rows as the networks see them, from which their draws follow."""
        return module.scale(batch.inputs[0])

    def _observed(self, module: Any, batch: MiniBatch, seed: int) -> MiniBatch:
        """The batch with everything settled that all draws of z have in common."""
        return batch

    def _log_densities(self, module: Any, batch: MiniBatch) -> Any:
        from epicycle.generative._row_draws import RowDraws

        draws = RowDraws(self._standardised(module, batch), _BOUND_DRAWS)
        return self._log_weights(module, self._observed(module, batch, 0), draws).mean(0)

    def score_samples(self, X: Any, y: Any = None) -> np.ndarray:
        """A lower bound of the log-density of each row, in nats: the evidence lower bound (ELBO), by 16 draws each.

        `log_likelihood` comes nearer to the log-density itself.
        """
        return super().score_samples(X, y)

    def log_likelihood(self, X: Any, y: Any = None, n_importance: int = 500, random_state: Seed = 0) -> np.ndarray:
        """An estimate of the log-density of each row by importance sampling, in nats.

        Its expectation is below the log-density, and above that for fewer draws.

        Parameters
        ----------
        %(score_samples_y)s
        n_importance : int, default=500
            Draws for each row.
        random_state : int, Generator, RandomState or None, default=0

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        import torch

        from epicycle.generative._row_draws import RowDraws

        check_parameter(f"{type(self).__name__}.log_likelihood", "n_importance", n_importance, Integer(1))
        n, seed = int(n_importance), seed_of(random_state)

        def estimated(module: Any, batch: MiniBatch) -> Any:
            u, batch = self._standardised(module, batch), self._observed(module, batch, seed)
            step = max(1, _AT_ONCE.get(device_of(module).type, _AT_ONCE["cpu"]) // batch.n_rows)
            total: Any = None
            for first in range(0, n, step):
                draws = RowDraws(u, min(step, n - first), seed, first)
                some = self._log_weights(module, batch, draws).double().logsumexp(0)
                total = some if total is None else torch.logaddexp(total, some)
            return total - math.log(n)

        return self._over_classes(X, y, estimated)
