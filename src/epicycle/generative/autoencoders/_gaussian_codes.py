"""`GaussianCodes`, the base of the models whose codes are drawn from the normal distribution of those of the fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.generative.autoencoders._coder_options import CODER_DOCS
from epicycle.generative.autoencoders._encoded_net import EncodedNet


class GaussianCodes(EncodedNet):
    """Base of the models with z ~ N(m, S), whose moments are those of the codes of the rows of the fit."""

    _docs: ClassVar[Mapping[str, str]] = {
        **CODER_DOCS,
        "code_mean_": "code_mean_ : ndarray of shape (n_codes,)\n    Mean of the codes of the rows of the fit.",
        "code_covariance_": "code_covariance_ : ndarray of shape (n_codes, n_codes)\n"
        "    Their covariance; `sample` draws codes from the normal distribution with both.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("code_mean_", "code_covariance_")

    code_mean_: np.ndarray
    code_covariance_: np.ndarray

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
