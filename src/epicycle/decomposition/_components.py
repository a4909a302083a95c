"""`ComponentsOut`: as many features come out as there are components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin


class ComponentsOut(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]  # untyped
    """Mixin of transformers whose features belong to the rows of `components_`."""

    _takes_sparse = True
    _docs: ClassVar[Mapping[str, str]] = {
        "transform_returns": "array of shape (n_samples, n_components)",
        "inverse_transform_returns": "ndarray of shape (n_samples, n_features)",
    }

    components_: np.ndarray

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
