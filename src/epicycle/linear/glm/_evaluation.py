"""What a fitted generalized linear model does with rows: predictions, scores, residuals, tests, the summary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataTypeError, ParameterError
from epicycle.core._random import stream
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import Batch, Data, Scan, as_data
from epicycle.data._dask_data import is_dask
from epicycle.linear.glm._design import Design
from epicycle.linear.glm._inputs import Predictor, coded, is_raw, offset_of, open_rows
from epicycle.linear.glm._multinomial import multinomial_deviances, multinomial_mean
from epicycle.linear.glm._null_model import null_model
from epicycle.linear.glm._objective import GlmObjective, Penalty
from epicycle.linear.glm._residuals import KINDS, residuals
from epicycle.linear.glm._response import Response, response_of
from epicycle.linear.glm._statistics import Model
from epicycle.linear.glm._targets import Target, gather
from epicycle.stats.families import Family, Multinomial

__all__ = ["Evaluation"]

Array = np.ndarray


class Evaluation(Estimator):
    """The methods of :class:`GeneralizedLinearModel` after `fit`."""

    coef_: Array
    intercept_: Any
    family_: Family
    link: Any
    alpha: float
    fit_intercept: bool
    handle_unknown: str
    dispersion: str | float
    n_jobs: int | None
    categories_: dict[int, Array]
    coefficient_names_: list[str]
    classes_: Array
    link_: str
    deviance_: float
    null_deviance_: float
    n_observations_: int
    effective_parameters_: float
    residual_degrees_: float
    pearson_dispersion_: float
    deviance_dispersion_: float
    dispersion_: float
    log_likelihood_: float
    aic_: float
    bic_: float
    _drop_: bool
    _covariance_: Array

    # ------------------------------------------------------------------------------------------- prediction

    def predict(self, X: Any, *, offset: Any = None, exposure: Any = None) -> Any:
        """The mean of the response for every row; for the multinomial family the probability of every class.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
        offset, exposure : array-like of shape (n_samples,) or name of a column of scanned files, optional
            As in `fit`. They are not remembered: a model with offsets predicts without them unless they are given.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            A lazy Dask array for a Dask collection.
        """
        eta = self.predict_linear(X, offset=offset, exposure=exposure)
        if isinstance(self.family_, Multinomial):
            return multinomial_mean(eta)
        response = self._response()
        if is_dask(eta):
            return eta.map_blocks(_mean, response, dtype=eta.dtype)
        return _mean(eta, response)

    def predict_linear(self, X: Any, *, offset: Any = None, exposure: Any = None) -> Any:
        """The linear predictor eta for every row, offsets among it; the arguments are those of `predict`."""
        self._check_fitted()
        if isinstance(self.family_, Multinomial):
            data = self._predict_data(X)
            return engine.map(_scores, data, self.coef_, self.intercept_, n_jobs=self.n_jobs)
        if exposure is not None and self._response().link.name != "log":
            raise ParameterError(f"exposure: is for link='log'; the link is {self._response().link.name!r}")
        w, b = self._internal()
        if isinstance(X, Scan) and (offset is not None or exposure is not None):
            bare = Scan(X.tables, X.columns, (), X.weight, False, X.batch_rows)
            given = gather(bare, None, offset, exposure, Target(self.family_), type(self).__name__)
            data = as_data(given.X, target="numeric", multi_output=True, estimator_name=type(self).__name__)
            self._check_features(given.X, data, reset=False)
            design = self._design(raw=True)
            return Predictor(design, w, b)(data, given.target, self.n_jobs)
        extra = offset_of(X, offset, exposure)
        ignore = self.handle_unknown == "ignore"
        data = self._predict_data(coded(X, self.categories_, ignore_unknown=ignore, estimator_name=type(self).__name__))
        eta = Predictor(self._design(raw=is_raw(X)), w, b)(data, None, self.n_jobs)
        return eta if extra is None else eta + extra

    def _response(self) -> Response:
        return response_of(self.family_, self.link)

    def _design(self, *, raw: bool) -> Design:
        ignore = self.handle_unknown == "ignore"
        return Design(self.n_features_in_, self.categories_, drop=self._drop_, raw=raw, ignore_unknown=ignore)

    def _internal(self) -> tuple[Array, float]:
        """Coefficients in the order of work, and the intercept."""
        w = np.empty_like(self.coef_)
        w[self._design(raw=False).reported()] = self.coef_
        return w, float(self.intercept_)

    # ------------------------------------------------------------------------------------------- rows with responses

    def _open(self, X: Any, y: Any, sample_weight: Any, offset: Any, exposure: Any) -> tuple[Data, Target, Design]:
        self._check_fitted()
        name, ignore = type(self).__name__, self.handle_unknown == "ignore"
        if isinstance(self.family_, Multinomial):
            raise ParameterError("family='multinomial': this is not defined for labels")
        raw = is_raw(X)
        X = coded(X, self.categories_, ignore_unknown=ignore, estimator_name=name)
        data, target = open_rows(X, y, sample_weight, offset, exposure, Target(self.family_), name)
        if not isinstance(X, Scan) or data.n_features == self.n_features_in_:
            self._check_features(X if not isinstance(X, Scan) else data, data, reset=False)
        return data, target, self._design(raw=raw)

    def _objective_on(self, data: Data, target: Target, design: Design) -> tuple[GlmObjective, float]:
        """The unpenalised objective on other rows, and its null deviance."""
        response = self._response()
        null = null_model(data, target, response, intercept=False, n_jobs=self.n_jobs)
        nothing = np.zeros(design.size)
        model = Model(response, target, design, np.zeros(design.n_dense))
        objective = GlmObjective(
            data, model, Penalty(nothing, nothing), intercept=True, totals=null.totals, n_jobs=self.n_jobs
        )
        return objective, null.deviance

    def _deviances(self, data: Data, target: Target, design: Design) -> tuple[float, float]:
        """Deviance of the model and of the null model on rows."""
        objective, null = self._objective_on(data, target, design)
        w, b = self._internal()
        return 2 * objective.totals.weight * objective.value(np.append(w.astype(np.float64), b)), null

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None, exposure: Any = None
    ) -> float:
        """D^2 = 1 - deviance / null deviance: the share of the deviance that the model explains on these rows.

        For the Gaussian family this is R^2. The null model is the mean of these rows (next to the offsets).

        Parameters
        ----------
        X, y, sample_weight, offset, exposure
            As in `fit`.

        Returns
        -------
        float
        """
        self._check_fitted()
        if isinstance(self.family_, Multinomial):
            deviance, null = multinomial_deviances(self, X, y, sample_weight)
        else:
            deviance, null = self._deviances(*self._open(X, y, sample_weight, offset, exposure))
        return 1 - deviance / null if null > 0 else float(deviance <= 0) * 1.0

    def residuals(
        self, X: Any, y: Any = None, kind: str = "deviance", *, sample_weight: Any = None, offset: Any = None,
        exposure: Any = None, random_state: Any = None,
    ) -> Any:  # fmt: skip
        """Residuals of rows.

        Parameters
        ----------
        X, y, sample_weight, offset, exposure
            As in `fit`.
        kind : {"response", "pearson", "deviance", "working", "anscombe", "quantile"}, default="deviance"
            Quantile residuals are standard normal under the model; for discrete responses they are randomised.
        random_state : int, Generator, RandomState or None
            For quantile residuals of discrete responses.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if kind not in KINDS:
            raise ParameterError(f"kind={kind!r}; expected one of {', '.join(map(repr, KINDS))}")
        if is_dask(X):
            raise DataTypeError("X: residuals are given for rows in memory and in files, not for a Dask collection")
        data, target, design = self._open(X, y, sample_weight, offset, exposure)
        w, b = self._internal()
        seed = int(stream(random_state).integers(2**62)) if kind == "quantile" else 0
        phi = self.dispersion_ if self.family_.dispersion is None else 1.0
        model = Model(self._response(), target, design, np.zeros(design.n_dense))
        return engine.map(_residuals, data, model, w, b, kind, phi, seed, n_jobs=self.n_jobs)


def _mean(eta: Array, response: Response) -> Array:
    with np.errstate(over="ignore"):
        return response.mean(eta).astype(eta.dtype, copy=False)


def _scores(batch: Batch, coef: Array, intercept: Array) -> Array:
    return np.asarray(batch.X @ coef.T) + intercept


def _residuals(batch: Batch, model: Model, w: Array, b: float, kind: str, phi: float, seed: int) -> Array:
    rows = model.target.rows(batch)
    eta = model.design.predictor(batch.X, w.astype(np.float64)) + b
    if rows.offset is not None:
        eta = eta + rows.offset
    return residuals(kind, model.response, replace(rows), eta, phi, stream(seed, batch.start))
