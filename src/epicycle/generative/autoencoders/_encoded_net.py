"""`EncodedNet`, the base of the models that find a code z = f(x) for every row, and decode it to a row g(z) near x."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Choice, Domain, Integer
from epicycle.generative._generative_net import GENERATIVE_DEFAULTS, GenerativeArguments
from epicycle.generative._latent_net import LatentNet
from epicycle.nets.training._options import SIZES, sizes_of

if TYPE_CHECKING:
    from epicycle.nets.training._batches import MiniBatch

_ACTIVATIONS = ("identity", "logistic", "tanh", "relu", "gelu")
CODER_DEFAULTS: Mapping[str, Any] = {
    "hidden_layer_sizes": (256, 256),
    "channels": (),
    "activation": "relu",
    **GENERATIVE_DEFAULTS,
    "learning_rate": "cosine",
    "max_iter": 50,
}


class CoderArguments(GenerativeArguments, total=False):
    """Arguments of the networks between rows and codes, for those that take them as ``**shared``."""

    hidden_layer_sizes: Any
    channels: Any
    activation: str


class EncodedNet(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LatentNet):  # type: ignore[misc]  # untyped
    """Base of the models with codes of rows: transformers, whose inverse are decoders.

    Networks lead from rows to codes, from codes to rows, or both.
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_codes": Integer(1),
        "hidden_layer_sizes": SIZES,
        "channels": SIZES,
        "activation": Choice(*_ACTIVATIONS),
    }
    _docs: ClassVar[Mapping[str, str]] = {
        "n_codes": "n_codes : int, default={default}\n    Length k of a code.",
        "hidden_layer_sizes": "hidden_layer_sizes : int or sequence of int, default={default}\n"
        "    Units of the hidden layers between a row and its code; those from the code back have the reverse order. ()"
        "\n    leaves a linear map.",
        "channels": "channels : int or sequence of int, default={default}\n"
        "    Of images: convolutions with so many channels come first, each of which halves the sides of the image, and"
        "\n    the way back ends with their transposes. () looks at pixels as at the columns of a table.",
        "activation": "activation : {'identity', 'logistic', 'tanh', 'relu', 'gelu'}, default={default}\n"
        "    What follows each hidden layer.",
    }

    n_codes: int
    hidden_layer_sizes: Any
    channels: Any
    activation: str

    def _n_codes(self) -> int:
        return int(self.architecture_["n_codes"])

    def _coder_architecture(self, rows: Any, *, scaled: bool = True) -> dict[str, Any]:
        """The common entries, and those of the layers."""
        found = self._common_architecture(rows, scaled=scaled)
        channels = sizes_of(self.channels)
        if channels and len(found["shape"]) != 3:
            raise ParameterError(
                f"channels={self.channels!r}: convolutions are for images of shape (n, height, width[, channels]), "
                f"and X is a table; expected ()"
            )
        return {
            **found,
            "n_codes": int(self.n_codes),
            "hidden": sizes_of(self.hidden_layer_sizes),
            "channels": channels,
            "activation": self.activation,
        }

    @abstractmethod
    def _encoded(self, module: Any, batch: MiniBatch) -> Any:
        """The codes of rows."""

    def _pictured(self, module: Any, n: int, labels: Any) -> Any:
        if module.scale.images:  # without the noise of pixels
            return super()._sampled(module, n, labels)
        return self._sampled(module, n, labels)

    def _reconstructed(self, module: Any, batch: MiniBatch) -> Any:
        """Rows that are decoded from the codes of rows."""
        return self._decoded(module, self._encoded(module, batch), batch.target)

    def encode(self, X: Any, y: Any = None) -> np.ndarray:
        """The codes of rows."""
        return self._mapped(self._labelled_rows(X, y), self._encoded)

    def transform(self, X: Any) -> np.ndarray:
        """The codes of rows: `encode` by the name that pipelines have for it."""
        return self.encode(X)

    def inverse_transform(self, Z: Any) -> Any:
        """The rows that codes stand for: `decode` by the name that pipelines have for it."""
        return self.decode(Z)

    def reconstruct(self, X: Any, y: Any = None) -> Any:
        """The rows that are decoded from the codes of rows.

        Returns
        -------
        X : array or data frame
        """
        return self._as_given(self._mapped(self._labelled_rows(X, y), self._reconstructed))

    def reconstruction_error(self, X: Any, y: Any = None) -> np.ndarray:
        """The squared distance of each row from its reconstruction, in the units of X: large for unusual rows.

        Returns
        -------
        error : ndarray of shape (n_samples,)
        """

        def squares(module: Any, batch: MiniBatch) -> Any:
            x = batch.inputs[0].double()
            r = self._reconstructed(module, batch).double() - x
            return r.where(~x.isnan(), 0.0).flatten(1).square().sum(1)

        return self._mapped(self._labelled_rows(X, y), squares)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit to rows X, and return their codes."""
        self.fit(X, y, sample_weight=sample_weight)
        return self.encode(X, y if self.conditional else None)

    @property
    def _n_features_out(self) -> int:
        return self._n_codes()
