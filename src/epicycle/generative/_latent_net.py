"""`LatentNet`, the base of the generative networks with a code z behind every row:  x = g(z), or x ~ p(x | z)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Integer, Real, check_parameter
from epicycle.data._numbers import require_finite
from epicycle.generative._generative_net import GenerativeNet

#: Methods whose y is the class of the rows.
_WITH_LABELS = (
    "decode",
    "encode",
    "interpolate",
    "inverse_transform",
    "latent_traversal",
    "plot_latent_traversal",
    "reconstruct",
    "reconstruction_error",
    "transform",
)


class LatentNet(GenerativeNet):
    """Base of the generative networks with codes: rows are drawn by decoding codes that are drawn."""

    _docs: ClassVar[Mapping[str, str]] = {
        "around": "around : array-like of shape (n_codes,), optional\n"
        "    The code to move from; by default the mean of those that are drawn.",
        "dimensions": "dimensions : sequence of int, optional\n    Which entries; by default the first ten.",
        "n_steps": "n_steps : int, default={default}",
        "extent": "extent : float, default={default}",
        "Z": "Z : array-like of shape (n, n_codes)",
        "codes": "Z : ndarray of shape (n_samples, n_codes)",
        **{f"{method}_y": "%(code_label)s" for method in _WITH_LABELS},
        **{f"{method}_returns": "%(codes)s" for method in ("encode", "transform")},
        **{f"{method}_returns": "X : array or data frame of n rows" for method in ("decode", "inverse_transform")},
    }

    @abstractmethod
    def _n_codes(self) -> int:
        """Length of a code."""

    @abstractmethod
    def _decoded(self, module: Any, z: Any, labels: Any) -> Any:
        """The rows (or their means) that codes of shape (n, n_codes) stand for, as `_sampled` gives rows."""

    def _code_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and deviations of the entries of codes that are drawn."""
        return np.zeros(self._n_codes()), np.ones(self._n_codes())

    def _drawn_codes(self, module: Any, n: int) -> Any:
        """n codes from the distribution that they are taken to have: standard normal."""
        import torch

        from epicycle.nets.training._randomness import generator

        weight = next(module.parameters())
        return torch.randn((n, self._n_codes()), generator=generator(), device=weight.device, dtype=weight.dtype)

    def _sampled(self, module: Any, n: int, labels: Any) -> Any:
        return self._decoded(module, self._drawn_codes(module, n), labels)

    def decode(self, Z: Any, y: Any = None) -> Any:
        """The rows that codes stand for, in the type and the shape of those of the fit."""
        return self._as_given(self._rows_of_codes(self._checked_codes(Z, "Z"), y))

    def _checked_codes(self, Z: Any, name: str) -> np.ndarray:
        self._check_fitted()
        codes = np.asarray(Z, dtype=np.float64)
        if codes.ndim != 2 or codes.shape[1] != self._n_codes() or not len(codes):
            raise DataError(f"{name}: expected an array of shape (n, {self._n_codes()}); got shape {codes.shape}")
        require_finite(codes, name, estimator_name=type(self).__name__)
        return codes

    def _rows_of_codes(self, Z: np.ndarray, y: Any) -> np.ndarray:
        import torch

        labels = self._codes(y, len(Z)) if y is not None else None
        if labels is None and self.conditional:
            raise DataError(f"y: {type(self).__name__} is conditional; expected a label, or one for each code")
        size = self._prediction_batch()

        def decoded(module: Any, rows: slice) -> Any:
            weight = next(module.parameters())
            classes = None if labels is None else torch.from_numpy(labels[rows]).to(weight.device)
            return self._decoded(module, torch.from_numpy(Z[rows]).to(weight), classes)

        blocks = (slice(i, i + size) for i in range(0, len(Z), size))
        return self._finite(self._by_blocks(blocks, decoded, 0), "decoded")

    def latent_traversal(
        self,
        dimensions: Sequence[int] | None = None,
        *,
        n_steps: int = 9,
        extent: float = 2.5,
        around: Any = None,
        y: Any = None,
    ) -> np.ndarray:
        """Rows along each axis of the codes: one entry goes from -extent to extent, in deviations, all others stay.

        Returns
        -------
        rows : ndarray of shape (n_dimensions, n_steps, ...)
        """
        codes = self._traversed(dimensions, n_steps, extent, around)
        rows = self._rows_of_codes(codes.reshape(-1, codes.shape[-1]), y)
        return rows.reshape(*codes.shape[:2], *self.row_shape_)

    def _traversed(self, dimensions: Any, n_steps: int, extent: float, around: Any) -> np.ndarray:
        self._check_fitted()
        owner, k = f"{type(self).__name__}.latent_traversal", self._n_codes()
        check_parameter(owner, "n_steps", n_steps, Integer(1))
        check_parameter(owner, "extent", extent, Real(0))
        chosen = np.arange(min(k, 10)) if dimensions is None else np.atleast_1d(np.asarray(dimensions))
        if chosen.dtype.kind not in "iu" or chosen.ndim != 1 or ((chosen < 0) | (chosen >= k)).any() or not len(chosen):
            raise ParameterError(f"dimensions={dimensions!r}; expected whole numbers from 0 to {k - 1}")
        mean, deviation = self._code_moments()
        centre = mean if around is None else self._checked_codes(np.atleast_2d(around), "around")[0]
        codes = np.tile(centre, (len(chosen), n_steps, 1))
        for row, j in zip(codes, chosen, strict=True):
            row[:, j] = mean[j] + deviation[j] * np.linspace(-extent, extent, n_steps)
        return codes

    def interpolate(self, start: Any, end: Any, n_steps: int = 9, y: Any = None) -> Any:
        """Rows along the straight line between two codes.

        Parameters
        ----------
        start, end : array-like of shape (n_codes,)
        n_steps : int, default=9
            Number of rows, both ends among them.

        Returns
        -------
        X : array or data frame of n_steps rows
        """
        a, b = (self._checked_codes(np.atleast_2d(z), name)[0] for z, name in ((start, "start"), (end, "end")))
        check_parameter(f"{type(self).__name__}.interpolate", "n_steps", n_steps, Integer(2))
        return self._as_given(self._rows_of_codes(a + np.linspace(0, 1, n_steps)[:, None] * (b - a), y))

    def plot_latent_traversal(
        self,
        dimensions: Sequence[int] | None = None,
        *,
        n_steps: int = 9,
        extent: float = 2.5,
        around: Any = None,
        y: Any = None,
    ) -> Any:
        """A picture of `latent_traversal`: images in a row for each entry, of a table a line for each column.

        Returns
        -------
        figure : matplotlib Figure
        """
        from epicycle.generative._pictures import traversal_picture

        codes = self._traversed(dimensions, n_steps, extent, around)
        rows = self._rows_of_codes(codes.reshape(-1, codes.shape[-1]), y)
        moved = [int(np.ptp(row, axis=0).argmax()) for row in codes]
        names = None if len(self.architecture_["shape"]) == 3 else self._names()
        return traversal_picture(rows.reshape(*codes.shape[:2], *rows.shape[1:]), moved, float(extent), names)
