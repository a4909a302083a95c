"""Mixtures of binary rows, counts and words:  maximise  sum_i v_i log sum_k pi_k p_k(x_i) + log prior."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import ArrayLike, Domain, NoneOr, Real
from epicycle.core._random import whole_counts
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Batch, Data
from epicycle.mixture._base import MIXTURE_DEFAULTS, Mixture, MixtureArguments
from epicycle.mixture._criteria import LikelihoodMixture
from epicycle.mixture._linear_model import BernoulliModel, LinearModel, MultinomialModel, PoissonModel
from epicycle.mixture._mixture_model import MixtureModel, checked_shape, checked_weights


class LinearMixture(Mixture):
    """Common parts of mixtures over binary rows and counts."""

    #: The fitted attribute, without its underscore, that holds the table of the components.
    _values: ClassVar[str] = "probabilities"
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **Mixture._parameters,
        "alpha": Real(minimum=0),
        "weights_init": NoneOr(ArrayLike()),
        "probabilities_init": NoneOr(ArrayLike()),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="mixture", catalogue=("E5",), engines=("memory", "files", "dask"), certificate="stationarity"
    )
    _docs: ClassVar[Mapping[str, str]] = {
        "weights_init": "weights_init : array-like of shape (n_components,), optional\n"
        "    Weights to start from, in place of those of `init_params`.",
        "probabilities_init": "probabilities_init : array-like of shape (n_components, n_features), optional\n"
        "    Probabilities to start from, strictly between 0 and 1.",
    }

    #: Whether entries are counts, which are not negative.
    _counts: ClassVar[bool] = True

    alpha: float
    weights_init: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self._counts
        return tags

    @abstractmethod
    def _model(self, n_features: int, names: Sequence[str], *, missing: bool = False) -> LinearModel:
        """The model that EM climbs."""

    def _given_start(self, model: MixtureModel, parameters: dict[str, Any]) -> dict[str, Any]:
        given = dict(parameters)
        if self.weights_init is not None:
            given["weights"] = checked_weights(self.weights_init, model.k)
        table = getattr(self, f"{self._values}_init")
        if table is not None:
            values = checked_shape(np.array(table, dtype=np.float64), (model.k, model.p), self._values)
            if not model.feasible({"weights": np.ones(model.k), "values": values}):
                raise DataError(f"{self._values}_init: expected numbers above 0, and probabilities below 1")
            given["values"] = values
        return given

    def _start_is_given(self) -> bool:
        return self.weights_init is not None and getattr(self, f"{self._values}_init") is not None

    def _prepare(self, model: MixtureModel, data: Data) -> None:
        assert isinstance(model, LinearModel)
        negative, carried, sums, weight = engine.sum(_first_look, data, model, n_jobs=self.n_jobs)
        if negative and self._counts:
            name = type(self).__name__
            raise DataError(f"Negative values in data passed to {name} (input X): {negative} entries; expected counts")
        if not np.isfinite(sums).all():
            raise DataError("X: sums of its columns overflow; scale them down")
        model.carried, model.mean = float(carried), sums / weight

    def _attributes(self, model: MixtureModel, parameters: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
        found = {"weights_": parameters["weights"], f"{self._values}_": parameters["values"]}
        return {name: np.asarray(value, dtype=dtype) for name, value in found.items()}

    def _fitted_parameters(self) -> dict[str, Any]:
        values = np.asarray(getattr(self, f"{self._values}_"), dtype=np.float64)
        # What was 1e-300 or 1 - 1e-15 is 0 or 1 in single precision.
        top = 1.0 - 1e-15 if self._values == "probabilities" else np.inf
        return {"weights": np.asarray(self.weights_, dtype=np.float64), "values": np.clip(values, 1e-300, top)}


def _first_look(batch: Batch, model: LinearModel) -> tuple[int, float, np.ndarray, float]:
    """(entries below 0, sum of v h(x), sums of the columns, weight)."""
    X = batch.X if isinstance(batch.X, np.ndarray) else batch.X.data
    negative = int(np.count_nonzero(X < 0))
    w = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    rows = model.rows(batch.X)
    with np.errstate(invalid="ignore", over="ignore"):
        carried = 0.0 if negative else float(w @ model.carrier(rows))
        return negative, carried, np.asarray(rows.T @ w, dtype=np.float64), float(w.sum())


class BernoulliMixture(LinearMixture, LikelihoodMixture):
    r"""A mixture of rows of independent yes-or-no entries.

    .. math:: p(x) = \sum_k \pi_k \prod_j p_{kj}^{x_j} (1 - p_{kj})^{1 - x_j}

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-count of either answer in every component: a beta prior, whose density is part of what is maximised.
    binarize : float or None, default=0.0
        Entries above this are 1, others 0; None takes X as it is, of zeros and ones.

    Attributes
    ----------
    %(weights_)s
    probabilities_ : ndarray of shape (n_components, n_features)
        Of a 1.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import BernoulliMixture
    >>> rng = np.random.default_rng(0)
    >>> planted = np.where(rng.random((200, 1)) < 0.5, [0.9, 0.9, 0.1], [0.1, 0.2, 0.8])
    >>> model = BernoulliMixture(2, random_state=0).fit(rng.random((200, 3)) < planted)
    >>> sorted(model.probabilities_.round(1).tolist())
    [[0.1, 0.2, 0.8], [0.9, 0.9, 0.1]]
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**LinearMixture._parameters, "binarize": NoneOr(Real())}

    _counts = False  # entries may be negative: they are compared with a threshold
    probabilities_: np.ndarray

    @stores_arguments(**MIXTURE_DEFAULTS)
    def __init__(
        self,
        n_components: int = 1,
        *,
        alpha: float = 1.0,
        binarize: float | None = 0.0,
        weights_init: Any = None,
        probabilities_init: Any = None,
        **shared: Unpack[MixtureArguments],
    ) -> None: ...

    def _model(self, n_features: int, names: Sequence[str], *, missing: bool = False) -> BernoulliModel:
        return BernoulliModel(int(self.n_components), n_features, float(self.alpha), self.binarize)

    def _prepare(self, model: MixtureModel, data: Data) -> None:
        if self.binarize is None:
            (others,) = engine.sum(_not_binary, data, n_jobs=self.n_jobs)
            if others:
                raise DataError(f"X: {others} entries are neither 0 nor 1; give binarize, a threshold")
        elif self.binarize < 0 and data.sparse:
            raise ParameterError(f"binarize={self.binarize!r}; expected at least 0 for sparse rows, whose zeros stay")
        super()._prepare(model, data)

    def _draw(self, component: int, n: int, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(rng.random((n, self.n_features_in_)) < self.probabilities_[component], dtype=np.float64)


def _not_binary(batch: Batch) -> tuple[int]:
    X = batch.X if isinstance(batch.X, np.ndarray) else batch.X.data
    return (int(np.count_nonzero((X != 0) & (X != 1))),)


class MultinomialMixture(LinearMixture, LikelihoodMixture):
    r"""A mixture of rows of counts, such as words in documents: clusters of texts.

    .. math:: p(x) = \sum_k \pi_k \frac{n!}{\prod_j x_j!} \prod_j p_{kj}^{x_j}, \qquad n = \sum_j x_j

    Naive Bayes without labels: the length of a row is given, and says nothing about its component.

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-count of every feature in every component: a Dirichlet prior, whose density is part of what is
        maximised.

    Attributes
    ----------
    %(weights_)s
    probabilities_ : ndarray of shape (n_components, n_features)
        They add up to one for each component.
    mean_total_ : float
        Mean of n, for `sample`.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MultinomialMixture
    >>> rng = np.random.default_rng(0)
    >>> planted = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    >>> words = np.array([rng.multinomial(30, planted[i % 2]) for i in range(100)])
    >>> model = MultinomialMixture(2, random_state=0).fit(words)
    >>> sorted(model.probabilities_.round(1).tolist())
    [[0.1, 0.3, 0.6], [0.6, 0.3, 0.1]]
    """

    probabilities_: np.ndarray
    mean_total_: float

    @stores_arguments(**MIXTURE_DEFAULTS)
    def __init__(
        self,
        n_components: int = 1,
        *,
        alpha: float = 1.0,
        weights_init: Any = None,
        probabilities_init: Any = None,
        **shared: Unpack[MixtureArguments],
    ) -> None: ...

    def _model(self, n_features: int, names: Sequence[str], *, missing: bool = False) -> MultinomialModel:
        return MultinomialModel(int(self.n_components), n_features, float(self.alpha))

    def _attributes(self, model: MixtureModel, parameters: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
        assert isinstance(model, LinearModel)
        return {**super()._attributes(model, parameters, dtype), "mean_total_": float(model.mean.sum())}

    def _draw(self, component: int, n: int, rng: np.random.Generator) -> np.ndarray:
        p = np.asarray(self.probabilities_[component], dtype=np.float64)
        return rng.multinomial(round(float(whole_counts(self.mean_total_))), p / p.sum(), size=n).astype(np.float64)


class PoissonMixture(LinearMixture, LikelihoodMixture):
    r"""A mixture of rows of independent Poisson counts.

    .. math:: p(x) = \sum_k \pi_k \prod_j \frac{\lambda_{kj}^{x_j} e^{-\lambda_{kj}}}{x_j!}

    Parameters
    ----------
    alpha : float, default=1.0
        Every component has this many further rows at the mean of all rows: a gamma prior, whose density is part of
        what is maximised.
    rates_init : array-like of shape (n_components, n_features), optional
        Rates to start from, above 0.

    Attributes
    ----------
    %(weights_)s
    rates_ : ndarray of shape (n_components, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import PoissonMixture
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(np.repeat([[2.0, 9.0], [8.0, 1.0]], 200, axis=0))
    >>> model = PoissonMixture(2, random_state=0).fit(counts)
    >>> sorted(model.rates_.round().tolist())
    [[2.0, 9.0], [8.0, 1.0]]
    """

    _values = "rates"
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **{name: domain for name, domain in LinearMixture._parameters.items() if name != "probabilities_init"},
        "rates_init": NoneOr(ArrayLike()),
    }

    rates_: np.ndarray

    @stores_arguments(**MIXTURE_DEFAULTS)
    def __init__(
        self,
        n_components: int = 1,
        *,
        alpha: float = 1.0,
        weights_init: Any = None,
        rates_init: Any = None,
        **shared: Unpack[MixtureArguments],
    ) -> None: ...

    def _model(self, n_features: int, names: Sequence[str], *, missing: bool = False) -> PoissonModel:
        return PoissonModel(int(self.n_components), n_features, float(self.alpha))

    def _draw(self, component: int, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(whole_counts(self.rates_[component]), size=(n, self.n_features_in_)).astype(np.float64)
