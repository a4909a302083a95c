"""Common parts of all mixtures as estimators: starts, the climb, and what is computed from a fitted one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils import ClassifierTags

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._checks import count
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, Real
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting
from epicycle.data import ArrayData, Batch, Data, as_data
from epicycle.em._run_em import EMSolution, fit_by_em
from epicycle.mixture import _starts
from epicycle.mixture._mixture_model import MixtureModel, shares


class MixtureArguments(SharedArguments, total=False):
    """Arguments of the constructors of all mixtures."""

    n_init: int
    init_params: str
    accelerate: bool


MIXTURE_DEFAULTS: Mapping[str, Any] = {
    "n_init": 1,
    "init_params": "kmeans",
    "accelerate": False,
    "tol": 1e-3,
    "max_iter": 100,
    "random_state": None,
    "warm_start": False,
    "verbose": 0,
    "n_jobs": None,
}


class Mixture(DensityMixin, Estimator):  # type: ignore[misc]  # untyped
    """Base of all mixtures: a fit is the best of several climbs by EM."""

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": Integer(minimum=1),
        "tol": Real(minimum=0),
        "max_iter": Integer(minimum=0),
        "init_params": Choice(*_starts.METHODS),
        "accelerate": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="mixture", catalogue=("E4",), engines=("memory", "files", "dask"), certificate="stationarity"
    )
    _takes_sparse = True
    #: Whether entries may be missing.
    _takes_missing: ClassVar[bool] = False
    _docs: ClassVar[Mapping[str, str]] = {
        "n_components": "n_components : int, default={default}\n    k.",
        "tol": "tol : float, default={default}\n"
        "    Ends when two steps in a row raise the mean log-likelihood (or its bound) by at most `tol` each.",
        "n_init": "n_init : int, default={default}\n"
        "    Number of starts, of which the best is kept; they share the threads.",
        "init_params": 'init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default={default}\n'
        "    Starts: the clusters of k-means; the rows nearest to k rows that are drawn, far from each other or at\n"
        "    random; or random shares. Rows that are not in memory are represented by a sample of 50,000.",
        "accelerate": "accelerate : bool, default={default}\n"
        "    Whether to extrapolate steps (SQUAREM) where this raises the likelihood: fewer steps where components\n"
        "    overlap. Off, the steps are those of scikit-learn.",
        "warm_start": "warm_start : bool, default={default}\n"
        "    Whether a new fit starts from the solution of the one before, with one start.",
        "weights_": "weights_ : ndarray of shape (n_components,)\n    Weights of the components.",
        "lower_bound_": "lower_bound_ : float\n    Mean log-likelihood of a row at the solution.",
        "lower_bounds_": "lower_bounds_ : list of float\n    The same after every step of the best start.",
        "history_": "history_ : History\n"
        "    A row for each step of every start: `log_likelihood`, which never falls within a start, and `step`.",
        "certificate_": "certificate_ : Certificate\n    Stationarity: the gain of the last step.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("weights_", "lower_bound_", "lower_bounds_")

    n_components: int
    init_params: str
    n_init: int
    max_iter: int
    tol: float
    verbose: int
    warm_start: bool
    random_state: Any
    n_jobs: int | None = None
    accelerate: bool = False
    weights_: np.ndarray
    lower_bound_: float
    lower_bounds_: list[float]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags()  # for `predict_proba`: scikit-learn's checks read its columns here
        return tags

    # ------------------------------------------------------------------------------------------- of each mixture

    @abstractmethod
    def _model(self, n_features: int, names: Sequence[str], *, missing: bool = False) -> MixtureModel:
        """The model that EM climbs."""

    @abstractmethod
    def _given_start(self, model: MixtureModel, parameters: dict[str, Any]) -> dict[str, Any]:
        """A start with what the user gave in its place."""

    @abstractmethod
    def _attributes(self, model: MixtureModel, parameters: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
        """Fitted attributes from parameters."""

    @abstractmethod
    def _fitted_parameters(self) -> dict[str, Any]:
        """Parameters from fitted attributes."""

    def _prediction_parameters(self) -> dict[str, Any]:
        """Parameters for new rows, from fitted attributes."""
        return self._fitted_parameters()

    def _start_is_given(self) -> bool:
        """Whether the user gave all that a start needs."""
        return False

    def _prepare(self, model: MixtureModel, data: Data) -> None:
        """Refuse rows that the components cannot have, and tell the model what it has to know of all rows."""

    # ------------------------------------------------------------------------------------------- the fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the mixture to rows X."""
        self._fit(X, sample_weight)
        return self

    def _fit(self, X: Any, sample_weight: Any) -> Data:
        missing = self._takes_missing
        data = self._fit_data(X, None, sample_weight, target="none", check_finite=not missing, missing=missing)
        names = self._names()
        (found,) = engine.sum(_starts.look, data, n_jobs=self.n_jobs)
        found.refuse(names, allow_missing=missing)
        if found.n_rows < self.n_components:
            raise DataError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {found.n_rows}"
            )
        model = self._model(data.n_features, names, missing=bool(found.missing.any()))
        self._prepare(model, data)
        dtype = np.float32 if data.dtype == np.float32 else np.float64
        solution = self._climb(model, data, dtype)
        for name, value in self._attributes(model, solution.parameters, dtype).items():
            setattr(self, name, value)
        weight = solution.expectation.weight
        self.lower_bound_ = solution.log_likelihood / weight
        mine = solution.history["start"] == solution.start if "start" in solution.history else slice(None)
        self.lower_bounds_ = (solution.history.log_likelihood[mine] / weight).tolist() if solution.n_iter else []
        self._conclude(solution)
        return data

    def _climb(self, model: MixtureModel, data: Data, dtype: Any) -> EMSolution:
        state = self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        earlier = self._earlier_parameters(model) if self.warm_start else None
        starts = 1 if earlier is not None else int(self.n_init)
        rows = None
        if earlier is None and not self._start_is_given():
            rows = _starts.rows_for_starts(data, seed, self.n_jobs)

        @lru_cache(maxsize=1)  # callbacks ask for the shapes of the first one again and again
        def begin(number: int) -> dict[str, Any]:
            if rows is None:
                return self._given_start(model, {}) if earlier is None else earlier
            first = _starts.start(model, rows, str(self.init_params), seed, number, self.n_jobs)
            return self._given_start(model, first)

        def attributes(x: np.ndarray) -> dict[str, Any]:
            return self._attributes(model, model.from_vector(x, begin(0)), dtype)

        return fit_by_em(self, model, data, starts, begin, attributes, seed=seed, state=state)

    def _earlier_parameters(self, model: MixtureModel) -> dict[str, Any] | None:
        """Those of the fit before, where it had the same shapes."""
        before = self._run.earlier
        if "weights_" not in before or before.get("n_features_in_") != model.p:
            return None
        if len(before["weights_"]) != model.k:
            return None
        kept = dict(vars(self))
        self.__dict__.update({name: value for name, value in before.items() if name.endswith("_")})
        try:
            return self._fitted_parameters()
        finally:
            self.__dict__.clear()
            self.__dict__.update(kept)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return the most likely component of every row.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self.fit(X, sample_weight=sample_weight).predict(X)

    # ------------------------------------------------------------------------------------------- use of a fit

    def _joint(self, X: Any, function: Any) -> Any:
        data = self._predict_data(X, missing=self._takes_missing)
        model = self._fitted_model(data)
        prepared = model.prepared(self._prediction_parameters())
        return engine.map(function, data, model, prepared, n_jobs=self.n_jobs)

    def _fitted_model(self, data: Data) -> MixtureModel:
        if self._takes_missing and isinstance(data, ArrayData):
            (found,) = engine.sum(_starts.look, data, n_jobs=self.n_jobs)
            if found.infinite.any():
                found.refuse(self._names(), allow_missing=True)
            return self._model(self.n_features_in_, self._names(), missing=bool(found.missing.any()))
        return self._model(self.n_features_in_, self._names(), missing=self._takes_missing)

    def score_samples(self, X: Any) -> Any:
        """The logarithm of the density of every row."""
        return self._joint(X, _densities)

    def predict(self, X: Any) -> Any:
        """The most likely component of every row."""
        return self._joint(X, _labels)

    def predict_proba(self, X: Any) -> Any:
        """The probability of every component for every row.

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        return self._joint(X, _probabilities)

    def _totals(self, X: Any, sample_weight: Any) -> tuple[float, float, float]:
        """(log-likelihood, entropy of the shares, weight) of rows X."""
        self._check_fitted()
        data = as_data(
            X,
            None,
            sample_weight,
            estimator_name=type(self).__name__,
            accept_sparse=True,
            check_finite=not self._takes_missing,
            missing=self._takes_missing,
        )
        self._check_features(X, data, reset=False)
        model = self._fitted_model(data)
        prepared = model.prepared(self._prediction_parameters())
        value, entropy, weight = engine.sum(_totals, data, model, prepared, n_jobs=self.n_jobs)
        return float(value), float(entropy), float(weight)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of rows X."""
        value, _, weight = self._totals(X, sample_weight)
        return value / weight

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows, and the components that they are from, one component after the other.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
        """
        self._check_fitted()
        try:
            n = count("n_samples", n_samples, low=1)
        except ParameterError as error:  # scikit-learn's words, which programs match
            raise ParameterError(f"Invalid value for 'n_samples': {error}") from None
        rng = stream(seed_of(self.random_state), "sample")
        weights = np.asarray(self.weights_, dtype=np.float64)
        each = rng.multinomial(n, weights / weights.sum())
        parts = [self._draw(a, int(m), rng) for a, m in enumerate(each)]
        return np.concatenate(parts), np.repeat(np.arange(len(each)), each)

    @abstractmethod
    def _draw(self, component: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """n rows of one component."""


def _densities(batch: Batch, model: MixtureModel, prepared: Any) -> np.ndarray:
    return np.asarray(logsumexp(model.log_joint(batch.X, prepared), axis=1))


def _labels(batch: Batch, model: MixtureModel, prepared: Any) -> np.ndarray:
    return np.asarray(model.log_joint(batch.X, prepared).argmax(axis=1))


def _probabilities(batch: Batch, model: MixtureModel, prepared: Any) -> np.ndarray:
    return shares(model.log_joint(batch.X, prepared))[1]


def _totals(batch: Batch, model: MixtureModel, prepared: Any) -> tuple[float, float, float]:
    total, r = shares(model.log_joint(batch.X, prepared))
    entropy = -(r * np.log(np.where(r > 0, r, 1.0))).sum(axis=1)
    w = np.ones(len(total)) if batch.weight is None else batch.weight
    return float(w @ np.where(w > 0, total, 0.0)), float(w @ entropy), float(w.sum())
