r"""Normalizing flows:  maximise  mean_i v_i log p(x_i),  log p(x) = log p_0(f(x)) + log |det df/dx|,

over invertible networks f whose Jacobians are triangular up to fixed or linear maps (`_layers`), and base densities p_0
(`_bases`). It is the likelihood itself that is maximised; rows are drawn as f^-1(z), z ~ p_0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, Real
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.generative._density_net import DensityNet
from epicycle.generative._generative_net import GENERATIVE_DEFAULTS, GenerativeArguments
from epicycle.generative._latent_net import LatentNet
from epicycle.nets.training._options import SIZES, sizes_of

if TYPE_CHECKING:
    from epicycle.nets.training._batches import MiniBatch, Rows

_KINDS = ("spline", "affine", "autoregressive", "autoregressive_spline")
#: Draws within intervals behind the bound for a row of whole numbers.
_DRAWS = 8
#: Rows of the fit whose way there and back is measured.
_ROWS_BACK = 256


class NormalizingFlow(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LatentNet, DensityNet):  # type: ignore[misc]
    r"""Normalizing flow: a density of rows that is exact, by an invertible network to a simple distribution.

    .. math:: \log p(x) = \log p_0(f(x)) + \log \left| \det \frac{\partial f}{\partial x} \right|

    is maximised over the layers of f. Rows are standardised inside; densities are in the units of X.

    Parameters
    ----------
    kind : {'spline', 'affine', 'autoregressive', 'autoregressive_spline'}, default='spline'
        The layers: couplings, in which one half of the columns moves the other along splines or by affine maps
        (RealNVP), or masked autoregressive layers, in which each column moves as all before it say. The latter know
        densities as fast, and draw rows one column after the other.
    n_layers : int, default=6
    hidden_layer_sizes : int or sequence of int, default=(64, 64)
        Units of the hidden layers of each layer's network.
    n_bins : int, default=8
        Of splines: number of pieces.
    bound : float, default=4.0
        Of splines: how far they reach, in deviations of the columns at first, at most 1e6; beyond, entries stay as
        they are.
    mixing : {'linear', 'permutation'}, default='linear'
        What is between layers: an invertible linear map, or another order of the columns alone, which has no weights.
    base : {'normal', 'student_t', 'mixture'}, default='normal'
        The distribution of f(x): standard normal; independent t, whose degrees of freedom are learnt, for rows with
        heavy tails; or a mixture of normal distributions, learnt too, for rows in parts that lie apart.
    n_components : int, default=8
        Of base='mixture'.
    dequantize : bool, default=False
        For whole numbers, which have no density: each stands for an interval of length one, in which it is drawn anew
        whenever a row is seen, and `score_samples` is a lower bound of the log-probability. Bytes (images) are
        taken as places among 256.

    Attributes
    ----------
    inversion_error_ : float
        The largest difference between rows of the fit and the rows that their codes lead back to, in deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from epicycle import NormalizingFlow
    >>> X, _ = make_moons(1000, noise=0.05, random_state=0)
    >>> model = NormalizingFlow(n_layers=4, max_iter=20, learning_rate_init=0.005, random_state=0).fit(X)
    >>> bool(model.score(X) > -1.0)
    True
    >>> Z = model.transform(X)
    >>> np.allclose(model.inverse_transform(Z), X)
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "kind": Choice(*_KINDS),
        "n_layers": Integer(1, 1024),
        "hidden_layer_sizes": SIZES,
        "n_bins": Integer(2, 512),
        "bound": Real(0, 1e6, inclusive=(False, True)),
        "mixing": Choice("linear", "permutation"),
        "base": Choice("normal", "student_t", "mixture"),
        "n_components": Integer(1),
        "dequantize": Boolean(),
    }
    _card = MethodCard("generative", ("F9",), ("memory", "files", "dask"), "none")
    _module_name = "epicycle.generative.flows._module.FlowModule"

    kind: str
    n_layers: int
    hidden_layer_sizes: Any
    n_bins: int
    bound: float
    mixing: str
    base: str
    n_components: int
    dequantize: bool
    inversion_error_: float

    @stores_arguments(
        **{
            **GENERATIVE_DEFAULTS,
            "learning_rate": "cosine",
            "learning_rate_init": 2e-3,
            "batch_size": 128,
            "max_iter": 60,
            "clip_norm": 5.0,
        }
    )
    def __init__(
        self,
        kind: str = "spline",
        *,
        n_layers: int = 6,
        hidden_layer_sizes: Any = (64, 64),
        n_bins: int = 8,
        bound: float = 4.0,
        mixing: str = "linear",
        base: str = "normal",
        n_components: int = 8,
        dequantize: bool = False,
        **shared: Unpack[GenerativeArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- the fit

    def _architecture(self, rows: Rows) -> dict[str, Any]:
        from epicycle.generative.flows._module import moments_of

        found = self._common_architecture(rows, scaled=False)
        found["quantised"] = self._quantised(rows) if self.dequantize else None
        found["mean"], found["deviation"] = moments_of(rows, found["quantised"])
        found["hidden"] = sizes_of(self.hidden_layer_sizes)
        numbers = {name: int(vars(self)[name]) for name in ("n_layers", "n_bins", "n_components")}
        names = {name: vars(self)[name] for name in ("kind", "mixing", "base")}
        return {**found, **numbers, **names, "bound": float(self.bound)}

    def _quantised(self, rows: Rows) -> str:
        """'bytes' or 'whole', having checked that all entries are whole numbers."""
        kind = "bytes"
        for batch in rows.in_order(4096):
            x = batch.inputs[0]
            if x.dtype.is_floating_point:
                kind = "whole"
                _require_whole(x.numpy(), type(self).__name__)
        return kind

    def _rows_of(self, X: Any, y: Any = None) -> Rows:
        rows = super()._rows_of(X, y)
        if self.architecture_["quantised"] and hasattr(rows, "arrays"):
            x = rows.arrays[0]
            _require_whole(x, type(self).__name__)
            if self.architecture_["quantised"] == "bytes" and ((x < 0) | (x > 255)).any():
                raise DataError(f"X: {type(self).__name__} was fitted to bytes; got {x.min():g} to {x.max():g}")
        return rows

    def _row_losses(self) -> Callable[[Any, MiniBatch], Any]:
        return lambda module, batch: -module(batch.inputs[0], batch.target)

    def _train(self, rows: Rows, architecture: dict[str, Any], *, stream: bool = False) -> None:
        super()._train(rows, architecture, stream=stream)
        first = next(iter(rows.in_order(_ROWS_BACK)))

        def differences(module: Any, batch: MiniBatch) -> Any:
            batch = batch.to(module.entries.mean.device)
            u, _ = module.entries(batch.inputs[0], noise=False)
            z, _ = module.moved(u, batch.target)
            return (module.back(z, batch.target) - u).abs().amax(1)

        self.inversion_error_ = float(np.max(self._by_blocks(iter([first]), differences, 0)))
        words = f"rows of the fit come back from their codes within {self.inversion_error_:.2g} deviations"
        self.certificate_ = replace(self.certificate_, meaning=f"{self.certificate_.meaning}; {words}")

    # ------------------------------------------------------------------------------------------- densities

    def score_samples(self, X: Any, y: Any = None) -> np.ndarray:
        """The log-density of each row, in nats; with dequantize=True a lower bound of its log-probability."""
        return super().score_samples(X, y)

    def _log_densities(self, module: Any, batch: MiniBatch) -> Any:
        draws = _DRAWS if module.entries.quantised else 1
        return sum(module(batch.inputs[0], batch.target).double() for _ in range(draws)) / draws

    # ------------------------------------------------------------------------------------------- codes

    def _n_codes(self) -> int:
        return int(np.prod(self.architecture_["shape"]))

    def _decoded(self, module: Any, z: Any, labels: Any) -> Any:
        return module.from_base(z, labels)

    def _sampled(self, module: Any, n: int, labels: Any) -> Any:
        return module.from_base(module.base.draws(n, labels, module.entries.mean), labels)

    def transform(self, X: Any, y: Any = None) -> np.ndarray:
        """The codes z = f(x) of rows, which have the base's distribution where rows have that of the fit."""
        return self._mapped(self._labelled_rows(X, y), lambda m, b: m.to_base(b.inputs[0], b.target)[0])

    def inverse_transform(self, Z: Any, y: Any = None) -> Any:
        """The rows of codes: `decode` by the name that pipelines have for it."""
        return self.decode(Z, y)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit to rows X, and return their codes."""
        self.fit(X, y, sample_weight=sample_weight)
        return self.transform(X, y if self.conditional else None)

    @property
    def _n_features_out(self) -> int:
        return self._n_codes()


def _require_whole(x: np.ndarray, name: str) -> None:
    """Refuse entries that are no whole numbers."""
    broken = x[x != np.rint(x)]
    if broken.size:
        raise DataError(f"X: {name} with dequantize=True expects whole numbers; got {broken[0]:g}")
