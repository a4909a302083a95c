r"""Wake-sleep (Hinton et al. 1995): two phases, each of which descends the divergence of joint distributions,

    wake    x ~ data, h ~ q(h | x):   generative weights descend   - log p(x, h),   that is  min_p KL(q(h, x) | p(h, x))
    sleep   h, x ~ p(h, x):           recognition weights descend  - log q(h | x),  that is  min_q KL(p(h, x) | q(h, x))

over a Helmholtz machine of layers of bits. The first phase raises the bound  E_q log p(x, h) - log q(h | x) of log p;
the second makes q what p(h | x) is, over dreams in place of data, and in the direction that the bound does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import MemoryBudgetError, ParameterError
from epicycle.core._parameters import Domain, Real
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.generative._bound_net import BoundNet
from epicycle.generative._generative_net import GENERATIVE_DEFAULTS, GenerativeArguments
from epicycle.nets.training._options import SIZES, sizes_of

if TYPE_CHECKING:
    from epicycle.generative._row_draws import RowDraws
    from epicycle.nets.training._batches import MiniBatch, Rows

#: Units of a layer whose states are enumerated, at most: two such layers make a table of 4,096 x 4,096.
_ENUMERATED = 12


class WakeSleep(BoundNet):
    r"""Helmholtz machine: layers of bits over the bits of a row, learnt by the wake-sleep algorithm.

    .. math:: p(x, h) = p(h_L) \prod_{l=0}^{L-1} p(h_l \mid h_{l+1}), \qquad
              q(h \mid x) = \prod_{l=0}^{L-1} q(h_{l+1} \mid h_l), \qquad h_0 = x,

    each factor independent bits with probabilities :math:`\sigma(W h + c)`. Awake, h is drawn from q for real rows x
    and the generative weights follow the gradient of :math:`\log p(x, h)`; asleep, (x, h) are drawn from p and the
    recognition weights follow that of :math:`\log q(h \mid x)`. Rows are tables or images; an entry is the bit whether
    it is above `threshold`. The objective in `history_` is the negative of the bound, which only the first phase is
    sure to improve.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(32, 16)
        Bits of each hidden layer, from the rows up.
    threshold : float, default=0.5
        Entries above this are ones. Bytes above 1 are divided by 255 first.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import WakeSleep
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.random((500, 1)) < 0.5
    >>> X = (rng.random((500, 6)) < np.where(cause, 0.9, 0.1)).astype(float)  # six bits with one cause
    >>> model = WakeSleep((4,), max_iter=40, learning_rate_init=0.01, random_state=0).fit(X)
    >>> bool(model.score(X) < np.mean(model.exact_log_likelihood(X)))
    True
    >>> model.sample(3, random_state=0).shape
    (3, 6)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "hidden_layer_sizes": SIZES,
        "threshold": Real(),
    }
    _card = MethodCard("generative", ("F9",), ("memory", "files", "dask"), "none")
    _module_name = "epicycle.generative.autoencoders._helmholtz.HelmholtzMachine"

    hidden_layer_sizes: Any
    threshold: float

    @stores_arguments(**{**GENERATIVE_DEFAULTS, "learning_rate": "cosine", "max_iter": 100})
    def __init__(
        self,
        hidden_layer_sizes: Any = (32, 16),
        *,
        threshold: float = 0.5,
        **shared: Unpack[GenerativeArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- the fit

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        if not sizes_of(self.hidden_layer_sizes):
            raise ParameterError(f"hidden_layer_sizes={self.hidden_layer_sizes!r}; expected at least one hidden layer")
        return super()._training_rows(X, y, sample_weight)

    def _architecture(self, rows: Rows) -> dict[str, Any]:
        from epicycle.generative._bit_rows import bit_entries

        found = self._common_architecture(rows, scaled=False)
        return {**found, "hidden": sizes_of(self.hidden_layer_sizes), **bit_entries(rows, self.threshold)}

    def _row_losses(self) -> Callable[[Any, MiniBatch], Any]:
        def losses(module: Any, batch: MiniBatch) -> Any:
            """Of the value of the negative bound, and with the gradients of the two phases."""
            wake, log_q = module.wake_losses(batch.inputs[0], batch.target)
            if not module.training:
                return wake + log_q
            sleep = module.sleep_losses(batch.n_rows, batch.target)
            return wake + log_q + (sleep - sleep.detach())

        return losses

    # ------------------------------------------------------------------------------------------- densities

    def _standardised(self, module: Any, batch: MiniBatch) -> Any:
        return module.bits(batch.inputs[0])

    def _log_weights(self, module: Any, batch: MiniBatch, draws: RowDraws) -> Any:
        return module.log_weights(batch.inputs[0], batch.target, draws)

    def exact_log_likelihood(self, X: Any, y: Any = None) -> np.ndarray:
        """The logarithm of the probability of each row, by sums over all states of the hidden layers.

        For small machines: no hidden layer may have more than 12 bits.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or a label, optional
            Of a conditional model: the probability given these labels; by default that of the mixture over all classes.

        Returns
        -------
        log_probability : ndarray of shape (n_samples,)
        """
        self._check_fitted()
        largest = max(self.architecture_["hidden"])
        if largest > _ENUMERATED:
            raise MemoryBudgetError(
                f"{type(self).__name__}.exact_log_likelihood: a layer of {largest} bits has 2^{largest} states; it is "
                f"for layers of at most {_ENUMERATED}: take log_likelihood, which estimates it"
            )

        return self._over_classes(X, y, lambda m, b: m.exact(b.inputs[0], b.target))

    # ------------------------------------------------------------------------------------------- rows and layers

    def _sampled(self, module: Any, n: int, labels: Any) -> Any:
        return module.rows(module.dreamt(n, labels)[0])

    def _pictured(self, module: Any, n: int, labels: Any) -> Any:
        import torch

        first = module.dreamt(n, labels)[1]  # probabilities of bits in place of bits
        return module.rows(torch.sigmoid(module.below(0, first, labels)))

    def hidden_layers(self, X: Any, y: Any = None) -> list[np.ndarray]:
        """Probabilities of the hidden bits of rows by the recognition weights, each layer from that below it.

        Parameters
        ----------
        %(code_label)s

        Returns
        -------
        layers : list of ndarray of shape (n_samples, n_units)
            From the rows up.
        """
        import torch

        def probabilities(module: Any, batch: MiniBatch) -> Any:
            layers = [module.bits(batch.inputs[0])]
            for level in range(len(module.recognition)):
                layers.append(torch.sigmoid(module.above(level, layers[-1], batch.target)))
            return torch.cat(layers[1:], dim=1)

        found = self._mapped(self._labelled_rows(X, y), probabilities)
        return np.split(found, np.cumsum(self.architecture_["hidden"])[:-1], axis=1)
