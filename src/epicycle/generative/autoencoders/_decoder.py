r"""Decoders by alternating back-propagation (Han et al. 2017):  minimise  - mean_i v_i log p(x_i),  with

    p(x) = integral of p(x | z) N(z; 0, I),   p(x | z) = N(g(z), diag s^2),

whose gradient is the mean of  - d log p(x, z)  over  p(z | x).  Two steps by turns, both by back-propagation:

    codes     z_i <- z_i + h/2 d log p(x_i, z_i) / dz + sqrt(h) e,  corrected by Metropolis' rule: a chain for each row
    decoder   a step along the gradient of  - mean_i v_i log p(x_i, z_i)  in the weights of g and in s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._parameters import Domain, Integer, NoneOr, Real
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.generative._bound_net import BoundNet
from epicycle.generative.autoencoders._encoded_net import CODER_DEFAULTS, CoderArguments, EncodedNet
from epicycle.nets.training._torch import device_of

if TYPE_CHECKING:
    from epicycle.generative._row_draws import RowDraws
    from epicycle.nets.training._batches import MiniBatch, Rows

#: Entries of the Jacobians of the rows that are looked at together.
_JACOBIANS = 1 << 23


class Decoder(EncodedNet, BoundNet):
    r"""A decoder whose codes are learnt with it, by alternating back-propagation; there is no encoder.

    .. math:: x = g(z) + s \varepsilon, \qquad z \sim N(0, I), \quad \varepsilon \sim N(0, I)

    is fitted by maximum likelihood: the codes of the rows are moved by Langevin dynamics, then the weights of g and s
    by the gradient, both by back-propagation. It is factor analysis with a network in place of the loadings, and with
    ``hidden_layer_sizes=()`` just that. Codes of new rows are found by optimisation, of rows with missing entries (NaN)
    by those that are there; rows of the fit may have gaps too. `score_samples` is a bound, by draws around that code.

    Parameters
    ----------
    n_moves : int, default=5
        Moves of the code of a row before each step of the decoder.
    noise : float, optional
        The deviation s of entries given the code, in units of the deviation of the column or channel; learnt by
        default, one for each, and at least 0.001.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from epicycle import Decoder
    >>> X = load_digits().images / 16
    >>> model = Decoder(4, hidden_layer_sizes=64, max_iter=10, learning_rate_init=0.003, random_state=0).fit(X)
    >>> covered = X[:3].copy()
    >>> covered[:, 4:] = np.nan  # the lower half
    >>> model.reconstruct(covered).shape
    (3, 8, 8)
    >>> model.interpolate(*model.encode(X[:2]), n_steps=5).shape
    (5, 8, 8)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_moves": Integer(1),
        "noise": NoneOr(Real(0, inclusive=False)),
    }
    _card = MethodCard("generative", ("F8",), ("memory",), "none")
    _module_name = "epicycle.generative.autoencoders._decoder_module.DecoderModule"
    _takes_missing = True

    n_moves: int
    noise: float | None
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.allow_nan": True}

    @stores_arguments(**CODER_DEFAULTS)
    def __init__(
        self,
        n_codes: int = 8,
        *,
        n_moves: int = 5,
        noise: float | None = None,
        **shared: Unpack[CoderArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- the fit

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        from epicycle.nets.training._batches import ArrayRows
        from epicycle.nets.training._processes import n_processes

        if self.compile or n_processes() > 1:
            what = "compile=True" if self.compile else "several processes"
            raise ParameterError(f"{what}: the codes of rows are moved in place; expected compile=False, one process")
        rows = super()._training_rows(X, y, sample_weight)
        if not isinstance(rows, ArrayRows):
            raise DataTypeError(
                f"X: {type(self).__name__} has a code for every row and is fitted in memory; got {type(X).__name__}"
            )
        x = rows.arrays[0]
        self._refuse_infinity(x)
        empty = np.flatnonzero(np.isnan(x).reshape(len(x), -1, x.shape[-1]).all(axis=(0, 1)))
        if len(empty):
            raise DataError(f"X: all entries of column or channel {empty[0]} are missing; expected some in each")
        return ArrayRows((x, np.arange(len(x))), rows.target, rows.weight, dtype=rows.dtype)

    def _rows_of(self, X: Any, y: Any = None) -> Rows:
        rows = super()._rows_of(X, y)
        if hasattr(rows, "arrays"):
            self._refuse_infinity(rows.arrays[0])
        return rows

    def _refuse_infinity(self, x: np.ndarray) -> None:
        if x.dtype.kind == "f" and np.isinf(x).any():
            raise DataError(
                f"Input X contains infinity or a value too large for {type(self).__name__}, which takes numbers and NaN"
            )

    def _architecture(self, rows: Any) -> dict[str, Any]:
        found = self._coder_architecture(rows, scaled=False)
        found["mean"], found["deviation"] = _scale_of_seen(rows.arrays[0], rows.weight)
        noise = None if self.noise is None else float(self.noise)
        return {**found, "noise": noise, "n_rows": len(rows.arrays[0])}

    def _first_module(self, architecture: Mapping[str, Any], seed: int, *, stream: bool = False) -> Any:
        import torch

        # The codes of the fit before are gone: chains start anew, whatever the weights start from.
        module = super()._first_module({**architecture, "n_rows": 0}, seed, stream=stream)
        size = (architecture["n_rows"], architecture["n_codes"])
        module.codes = torch.randn(size, generator=torch.Generator().manual_seed(seed % 2**63)).to(module.codes)
        return module

    def _row_losses(self) -> Callable[[Any, MiniBatch], Any]:
        n_moves = int(self.n_moves)

        def losses(module: Any, batch: MiniBatch) -> Any:
            x, rows = batch.inputs
            u = module.scale(x)
            z = module.moved(u, batch.target, rows, n_moves) if module.training else module.codes[rows]
            return -module.log_joint(u, z, batch.target)

        return losses

    def _mean_loss(self, module: Any, rows: Rows) -> float:
        import torch

        total, weight = 0.0, 0.0
        with torch.no_grad():
            for batch in rows.in_order(self._prediction_batch()):
                batch = batch.to(device_of(module))
                u = module.scale(batch.inputs[0])
                values = -module.log_joint(u, module.modes(u, batch.target)[0], batch.target).double().cpu()
                w = torch.ones_like(values) if batch.weight is None else batch.weight.double().cpu()
                total, weight = total + float(values @ w), weight + float(w.sum())
        return total / weight

    def _train(self, rows: Any, architecture: dict[str, Any], *, stream: bool = False) -> None:
        super()._train(rows, architecture, stream=stream)
        module = self.module_
        module.codes = module.codes[:0]  # a model holds no rows, nor a code for each
        self.architecture_ = {**architecture, "n_rows": 0}
        self._keep_module(module)

    # ------------------------------------------------------------------------------------------- codes and rows

    def _prediction_batch(self) -> int:
        size = math.prod(self.architecture_["shape"]) * self._n_codes()
        return int(max(1, min(super()._prediction_batch(), _JACOBIANS // size)))

    def _encoded(self, module: Any, batch: MiniBatch) -> Any:
        return module.modes(module.scale(batch.inputs[0]), batch.target)[0]

    def _decoded(self, module: Any, z: Any, labels: Any) -> Any:
        return module.means(z, labels)

    def _sampled(self, module: Any, n: int, labels: Any) -> Any:
        return module.draws(self._drawn_codes(module, n), labels)

    def encode(self, X: Any, y: Any = None) -> np.ndarray:
        """The likeliest codes of rows, given the entries that are not missing."""
        return super().encode(X, y)

    # ------------------------------------------------------------------------------------------- densities

    def _observed(self, module: Any, batch: MiniBatch, seed: int) -> MiniBatch:
        return replace(batch, inputs=(batch.inputs[0], *module.modes(module.scale(batch.inputs[0]), batch.target)))

    def _log_weights(self, module: Any, batch: MiniBatch, draws: RowDraws) -> Any:
        x, z, L = batch.inputs
        return module.log_weights(module.scale(x), batch.target, z, L, draws.normal(z.shape[1]).to(z))


def _scale_of_seen(x: np.ndarray, weight: np.ndarray | None) -> tuple[list[float], list[float]]:
    """Weighted means and deviations of columns or channels, over the entries that are there; 1 where all are equal."""
    wide = x.reshape(len(x), -1, x.shape[-1]).astype(np.float64)
    v = np.broadcast_to(1.0 if weight is None else weight[:, None, None], wide.shape) * ~np.isnan(wide)
    mean = np.sum(v * np.nan_to_num(wide), axis=(0, 1)) / v.sum(axis=(0, 1))
    deviation = np.sqrt(np.sum(v * np.nan_to_num(wide - mean) ** 2, axis=(0, 1)) / v.sum(axis=(0, 1)))
    constant = deviation <= 1e-7 * np.abs(mean)
    return mean.tolist(), np.where(constant, 1.0, deviation).tolist()
