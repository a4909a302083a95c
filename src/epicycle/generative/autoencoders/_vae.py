r"""Variational auto-encoders:  maximise  mean_i v_i L(x_i)  over an encoder q and a decoder p, with

    L(x) = E_{z ~ q(z|x)} log p(x | z) - beta KL(q(z | x) | p(z)),   q(z | x) = N(m(x), diag s(x)^2),   p(z) = N(0, I),

for beta = 1 a lower bound of log p(x), whose gap is KL(q(z | x) | p(z | x)). Draws z = m + s e, e ~ N(0, I), make it
differentiable. With K = n_importance > 1 the bound is E log 1/K sum_k p(x, z_k) / q(z_k | x) (Burda et al. 2016).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import CollapseWarning, DataError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.generative._bound_net import BoundNet
from epicycle.generative.autoencoders._encoded_net import CODER_DEFAULTS, CoderArguments, EncodedNet

if TYPE_CHECKING:
    from epicycle.generative._row_draws import RowDraws
    from epicycle.nets.training._batches import MiniBatch, Rows

#: An entry of the code tells something about the row if its mean divergence from the prior is above this, in nats.
_ACTIVE = 0.01
#: Number of the draw of the bits of a row, beside those of its codes.
_BITS = -1
#: Batches of training rows on which that is measured.
_BATCHES = 40


class VAE(EncodedNet, BoundNet):
    r"""Variational auto-encoder: rows are decoded from normal codes, and an encoder finds the codes of rows.

    .. math:: \log p(x) \ge E_{q(z \mid x)} \log p(x \mid z) - \mathrm{KL}(q(z \mid x) \,|\, p(z)), \qquad
              p(z) = N(0, I), \quad q(z \mid x) = N(m(x), \mathrm{diag}\, s(x)^2)

    is maximised over the networks of encoder, :math:`m(x), \log s(x) = f(x)`, and decoder. Rows are tables or images;
    what an entry is given the code is normal around g(z) with a deviation for each column (or channel), or a bit that
    is 1 with probability sigmoid(g(z)).

    Parameters
    ----------
    decoder : {'gaussian', 'bernoulli'}, default='gaussian'
        Distribution of the entries of a row given its code. For 'bernoulli' entries are 0 or 1, or probabilities of 1
        in between (bytes are divided by 255).
    beta : float, default=1.0
        Factor of the divergence: above 1 for entries of the code that vary independently, at the price of the
        likelihood.
    n_importance : int, default=1
        Draws of the code for each row and step; with several the importance-weighted bound is maximised, which is
        closer to the likelihood. Needs beta=1.
    noise : float, optional
        Deviation of the entries given the code, for decoder='gaussian', in units of the deviation of the column or
        channel; learnt by default, one for each, and at least 0.001.
    binarize : bool, default=False
        For decoder='bernoulli': entries between 0 and 1 become bits, drawn anew each time that a row is seen. Without
        it the mean of the log-probability over such draws takes their place.

    Attributes
    ----------
    code_divergences_ : ndarray of shape (n_codes,)
        Mean of KL(q(z_j | x) | p(z_j)) over rows of the fit, in nats: what each entry of the code tells about a row.
        Entries near zero are not in use; where all are, the posterior has collapsed, of which a CollapseWarning
        tells.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from epicycle import VAE
    >>> X = load_digits().images / 16
    >>> model = VAE(4, decoder="bernoulli", hidden_layer_sizes=64, max_iter=10, learning_rate_init=0.003,
    ...             random_state=0).fit(X)
    >>> model.encode(X).shape, model.sample(5, random_state=0).shape
    ((1797, 4), (5, 8, 8))
    >>> bool(np.mean(model.log_likelihood(X[:100])) > model.score(X[:100]))
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "decoder": Choice("gaussian", "bernoulli"),
        "beta": Real(0),
        "n_importance": Integer(1),
        "noise": NoneOr(Real(0, inclusive=False)),
        "binarize": Boolean(),
    }
    _card = MethodCard("generative", ("F9",), ("memory", "files", "dask"), "none")
    _module_name = "epicycle.generative.autoencoders._vae_module.VariationalModule"

    decoder: str
    beta: float
    n_importance: int
    noise: float | None
    binarize: bool
    code_divergences_: np.ndarray

    @stores_arguments(**CODER_DEFAULTS)
    def __init__(
        self,
        n_codes: int = 8,
        *,
        decoder: str = "gaussian",
        beta: float = 1.0,
        n_importance: int = 1,
        noise: float | None = None,
        binarize: bool = False,
        **shared: Unpack[CoderArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- the fit

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        if self.n_importance > 1 and self.beta != 1.0:
            raise ParameterError(
                f"beta={self.beta!r}: the importance-weighted bound (n_importance={self.n_importance}) has no "
                "divergence to weigh; expected beta=1, or n_importance=1"
            )
        if self.binarize and self.decoder != "bernoulli":
            raise ParameterError(f"binarize=True: draws bits, for decoder='bernoulli'; got decoder={self.decoder!r}")
        return super()._training_rows(X, y, sample_weight)

    def _architecture(self, rows: Rows) -> dict[str, Any]:
        bits = self.decoder == "bernoulli"
        found = self._coder_architecture(rows, scaled=not bits)
        if bits:
            found |= self._unit_interval(rows, found["shape"])
        noise = None if self.noise is None else float(self.noise)
        return {**found, "decoder": self.decoder, "noise": noise, "binarize": bool(self.binarize)}

    def _unit_interval(self, rows: Rows, shape: list[int]) -> dict[str, list[float]]:
        """The number that bytes are divided by, having checked that numbers lie between 0 and 1."""
        top = 1.0
        for batch in rows.in_order(4096):
            x = batch.inputs[0]
            if x.dtype.is_floating_point:
                require_probabilities(x.numpy(), type(self).__name__)
            else:
                top = 255.0
        return {"mean": [0.0] * shape[-1], "deviation": [top] * shape[-1]}

    def _rows_of(self, X: Any, y: Any = None) -> Rows:
        rows = super()._rows_of(X, y)
        if self.architecture_["decoder"] == "bernoulli" and hasattr(rows, "arrays"):
            x = rows.arrays[0]
            require_probabilities(x / self.architecture_["deviation"][0] if x.dtype.kind == "f" else x / 255, "VAE")
        return rows

    def _row_losses(self) -> Callable[[Any, MiniBatch], Any]:
        k, beta = int(self.n_importance), float(self.beta)
        if k == 1:
            return lambda module, batch: module.negative_bound(batch.inputs[0], batch.target, beta)

        def importance_weighted(module: Any, batch: MiniBatch) -> Any:
            e = module.noise(k, batch.n_rows)
            return math.log(k) - module.log_weights(batch.inputs[0], batch.target, e).logsumexp(0)

        return importance_weighted

    def _train(self, rows: Rows, architecture: dict[str, Any], *, stream: bool = False) -> None:
        super()._train(rows, architecture, stream=stream)
        self._measure_codes(rows)

    def _measure_codes(self, rows: Rows) -> None:
        """Information of the codes about rows of the fit: in the certificate, and a warning where there is none."""
        from epicycle.generative.autoencoders._vae_module import divergences

        def of_batch(module: Any, batch: MiniBatch) -> Any:
            batch = batch.to(module.scale.mean.device)
            return divergences(*module.posterior(module.rows(batch.inputs[0]), batch.target))

        found = self._by_blocks(islice(rows.in_order(self._prediction_batch()), _BATCHES), of_batch, 0)
        self.code_divergences_ = found.mean(axis=0, dtype=np.float64)
        k, active = len(self.code_divergences_), int((self.code_divergences_ > _ACTIVE).sum())
        words = (
            f"{active} of {k} entries of the code tell something about a row ({self.code_divergences_.sum():.3g} nats)"
        )
        self.certificate_ = replace(self.certificate_, meaning=f"{self.certificate_.meaning}; {words}")
        if not active:
            warnings.warn(
                f"{type(self).__name__}: the posterior has collapsed: no entry of the code tells anything about a row "
                f"(at most {self.code_divergences_.max():.2g} nats), and the decoder does without; lower beta, raise "
                "max_iter or learning_rate_init, or make the decoder smaller, unless the columns are independent",
                CollapseWarning,
                stacklevel=2,
            )

    # ------------------------------------------------------------------------------------------- densities

    def _observed(self, module: Any, batch: MiniBatch, seed: int) -> MiniBatch:
        from epicycle.generative._row_draws import RowDraws

        if not module.binarize:
            return batch
        p = self._standardised(module, batch)
        bits = RowDraws(p, 1, seed, _BITS).uniform(p[0].numel())[0].view(p.shape) < p
        return replace(batch, inputs=(module.scale.inverse(bits.to(p)),))

    def _log_weights(self, module: Any, batch: MiniBatch, draws: RowDraws) -> Any:
        x = batch.inputs[0]
        return module.log_weights(x, batch.target, draws.normal(module.n_codes).to(module.scale.mean))

    # ------------------------------------------------------------------------------------------- codes

    def _decoded(self, module: Any, z: Any, labels: Any) -> Any:
        return module.means(z, labels)

    def _sampled(self, module: Any, n: int, labels: Any) -> Any:
        return module.draws(self._drawn_codes(module, n), labels)

    def _encoded(self, module: Any, batch: MiniBatch) -> Any:
        return module.posterior(module.rows(self._observed(module, batch, 0).inputs[0]), batch.target)[0]

    def encode(self, X: Any, y: Any = None) -> np.ndarray:
        """The means m(x) of the codes of rows."""
        return super().encode(X, y)


def require_probabilities(x: np.ndarray, name: str) -> None:
    """Refuse entries below 0 and above 1."""
    low, high = float(x.min()), float(x.max())
    if low < 0 or high > 1:
        raise DataError(
            f"X: {name} with decoder='bernoulli' expects entries between 0 and 1, or bytes (uint8); got "
            f"{low:g} to {high:g}"
        )
