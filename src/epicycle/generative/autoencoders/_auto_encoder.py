r"""Auto-encoders:  minimise  mean_i v_i (1/p |g(f(u_i + noise)) - u_i|^2 + sparsity/k |z_i|_1),   z = f(u) of length k,

over the networks f and g, where u = (x - mean) / deviation has p entries. With linear f and g the minimum is that of
principal components, mean_j>k lambda_j over all eigenvalues, and g spans the space of the first k of them (Baldi and
Hornik 1989).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Boolean, Domain, Integer, NoneOr, Real
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.generative.autoencoders._encoded_net import CODER_DEFAULTS, CoderArguments, EncodedNet
from epicycle.nets.training._torch import device_of, one_thread_each

if TYPE_CHECKING:
    from epicycle.nets.training._batches import MiniBatch, Rows

#: Most entries of a row with which a linear auto-encoder is compared with principal components.
_COMPARED = 2048


class AutoEncoder(EncodedNet):
    r"""Auto-encoder: an encoder finds a code of few numbers for every row, from which a decoder makes the row again.

    .. math:: \min_{f, g} \; \frac1n \sum_i v_i \Bigl(\frac1p |g(f(u_i + \varepsilon_i)) - u_i|^2 +
              \frac{\text{sparsity}}{k} |z_i|_1\Bigr), \qquad z = f(u), \quad u = (x - \text{mean}) / \text{deviation}

    Rows are tables or images. Dense and convolutional networks follow from `hidden_layer_sizes` and `channels`,
    denoising ones from `noise` or `masking`, sparse ones from `n_active` or `sparsity`. With
    ``hidden_layer_sizes=()`` encoder and decoder are linear, and reconstructions those of PCA.

    Parameters
    ----------
    standardize : bool, default=False
        Whether every column (or channel) counts by its own deviation; by default all have the same, and squared errors
        are those of X, as in PCA. Columns of different units need it.
    tied : bool, default=False
        Whether the weights of the decoder are those of the encoder, transposed.
    noise : float, default=0.0
        Denoising: the rows that are encoded in the fit have normal noise of this deviation, in units of u.
    masking : float, default=0.0
        Denoising: this share of their entries, at random, is replaced by means.
    n_active : int, optional
        Sparse codes: all entries of a code but so many, the largest in size, are zero.
    sparsity : float, default=0.0
        Sparse codes: entries are not negative, and their sum is penalised with this factor. The weights that the
        decoder gives to each entry have length 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from epicycle import PCA, AutoEncoder
    >>> X = load_digits().images / 16
    >>> model = AutoEncoder(8, hidden_layer_sizes=128, max_iter=30, learning_rate_init=0.003, random_state=0).fit(X)
    >>> model.transform(X).shape, model.reconstruct(X).shape
    ((1797, 8), (1797, 8, 8))
    >>> flat = X.reshape(-1, 64)
    >>> pca = PCA(8).fit(flat)
    >>> lost = np.sum((pca.inverse_transform(pca.transform(flat)) - flat) ** 2, axis=1)
    >>> bool(model.reconstruction_error(X).mean() < 0.8 * lost.mean())
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "standardize": Boolean(),
        "tied": Boolean(),
        "noise": Real(0),
        "masking": Real(0, 1, inclusive=(True, False)),
        "n_active": NoneOr(Integer(1)),
        "sparsity": Real(0),
    }
    _docs: ClassVar[Mapping[str, str]] = {
        "code_mean_": "code_mean_ : ndarray of shape (n_codes,)\n    Mean of the codes of the rows of the fit.",
        "code_covariance_": "code_covariance_ : ndarray of shape (n_codes, n_codes)\n"
        "    Their covariance; `sample` draws codes from the normal distribution with both.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("code_mean_", "code_covariance_")
    _card = MethodCard("generative", ("F8",), ("memory", "files", "dask"), "none")
    _module_name = "epicycle.generative.autoencoders._auto_encoder_module.AutoEncoderModule"

    code_mean_: np.ndarray
    code_covariance_: np.ndarray
    standardize: bool
    tied: bool
    noise: float
    masking: float
    n_active: int | None
    sparsity: float

    @stores_arguments(**CODER_DEFAULTS)
    def __init__(
        self,
        n_codes: int = 8,
        *,
        standardize: bool = False,
        tied: bool = False,
        noise: float = 0.0,
        masking: float = 0.0,
        n_active: int | None = None,
        sparsity: float = 0.0,
        **shared: Unpack[CoderArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- the fit

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        if self.n_active is not None and self.n_active > self.n_codes:
            raise ParameterError(
                f"n_active={self.n_active}: a code has n_codes={self.n_codes} entries; expected at most as many"
            )
        return super()._training_rows(X, y, sample_weight)

    def _architecture(self, rows: Rows) -> dict[str, Any]:
        from epicycle.generative._scale import scale_of

        found = self._coder_architecture(rows, scaled=False)
        found["mean"], found["deviation"] = scale_of(rows, common=not self.standardize)
        active = None if self.n_active is None else int(self.n_active)
        factors = {"noise": float(self.noise), "masking": float(self.masking), "sparsity": float(self.sparsity)}
        return {**found, **factors, "n_active": active, "tied": bool(self.tied)}

    def _row_losses(self) -> Callable[[Any, MiniBatch], Any]:
        return lambda module, batch: module.losses(batch.inputs[0], batch.target)

    def _train(self, rows: Rows, architecture: dict[str, Any], *, stream: bool = False) -> None:
        super()._train(rows, architecture, stream=stream)
        module = self.module_
        with one_thread_each():
            self._estimate_codes(self._codes_of(module, rows))
            if self._is_linear(architecture):
                self._compare_with_components(module, rows)

    def _codes_of(self, module: Any, rows: Rows) -> Any:
        """The codes of rows and their weights, batch by batch."""
        import torch

        for batch in rows.in_order(self._prediction_batch()):
            with torch.no_grad():
                codes = self._encoded(module, batch.to(device_of(module))).cpu().numpy()
            yield codes, None if batch.weight is None else batch.weight.cpu().numpy()

    # ------------------------------------------------------------------------------------------- moments of the codes

    def _estimate_codes(self, pieces: Iterable[tuple[np.ndarray, np.ndarray | None]]) -> None:
        """Weighted moments of codes that come in pieces (codes, weights), in one pass (Chan et al. 1983)."""
        weight, mean, scatter = 0.0, np.zeros(self._n_codes()), np.zeros((self._n_codes(),) * 2)
        for codes, weights in pieces:
            z = codes.astype(np.float64)
            v = np.ones(len(z)) if weights is None else weights.astype(np.float64)
            w = float(v.sum())
            if w == 0:
                continue
            m = v @ z / w
            r, d = z - m, m - mean
            scatter += (r.T * v) @ r + np.outer(d, d) * weight * w / (weight + w)
            weight += w
            mean = mean + d * w / weight
        self.code_mean_, self.code_covariance_ = mean, scatter / weight

    def _code_moments(self) -> tuple[np.ndarray, np.ndarray]:
        self._require_codes()
        return self.code_mean_, np.sqrt(np.diag(self.code_covariance_))

    def _require_codes(self) -> None:
        if not hasattr(self, "code_mean_"):
            raise DataError(
                f"{type(self).__name__}: the distribution of the codes is estimated at the end of a fit, and this one "
                "did not come to it; resume it, or decode codes of your own"
            )

    def _drawn_codes(self, module: Any, n: int) -> Any:
        import torch

        self._require_codes()
        values, vectors = np.linalg.eigh(self.code_covariance_)
        root = vectors * np.sqrt(values.clip(0))
        e = super()._drawn_codes(module, n)
        return torch.from_numpy(self.code_mean_).to(e) + e @ torch.from_numpy(root.T.copy()).to(e)

    # ------------------------------------------------------------------------------------------- linear ones

    def _is_linear(self, architecture: Mapping[str, Any]) -> bool:
        straight = architecture["activation"] == "identity" or not architecture["hidden"]
        plain = not any(architecture[name] for name in ("noise", "masking", "sparsity", "n_active", "n_classes"))
        return straight and plain and not architecture["channels"] and math.prod(architecture["shape"]) <= _COMPARED

    def _compare_with_components(self, module: Any, rows: Rows) -> None:
        """In the certificate, what the reconstructions lose beyond those of principal components."""
        import torch

        p = math.prod(self.architecture_["shape"])
        weight, total, moments, lost = 0.0, torch.zeros(p).double(), torch.zeros(p, p).double(), 0.0
        with torch.no_grad():
            for batch in rows.in_order(self._prediction_batch()):
                batch = batch.to(device_of(module))
                u = module.scale(batch.inputs[0]).flatten(1).double().cpu()
                v = torch.ones(len(u)).double() if batch.weight is None else batch.weight.double().cpu()
                weight, total, moments = weight + float(v.sum()), total + v @ u, moments + (u.T * v) @ u
                lost += float(v @ module.losses(batch.inputs[0], None).double().cpu())
        covariance = (moments / weight - torch.outer(total, total) / weight**2).numpy()
        values = np.linalg.eigvalsh(covariance)[::-1].clip(0)
        all_of_it = max(float(values.sum()), np.finfo(float).tiny)
        least = float(values[self._n_codes() :].sum()) / all_of_it
        shares = f"{p * lost / weight / all_of_it:.6g} of the variance is lost, by principal components {least:.6g}"
        proof = self.certificate_
        self.certificate_ = replace(proof, meaning=f"{proof.meaning}; {shares}, the least of all linear codes")

    # ------------------------------------------------------------------------------------------- codes

    def _encoded(self, module: Any, batch: MiniBatch) -> Any:
        return module.codes(module.scale(batch.inputs[0]), batch.target)

    def _decoded(self, module: Any, z: Any, labels: Any) -> Any:
        return module.scale.inverse(module.decoded(z, labels))

    def score(self, X: Any, y: Any = None) -> float:
        """The negative mean of `reconstruction_error`: greater is better."""
        return -float(np.mean(self.reconstruction_error(X, y if self.conditional else None)))
