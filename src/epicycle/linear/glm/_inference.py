"""What a fitted generalized linear model infers: the summary, and tests between nested models."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.linear.glm._design import Design
from epicycle.linear.glm._evaluation import Evaluation
from epicycle.linear.glm._inputs import open_rows
from epicycle.linear.glm._model_tests import TestResult, likelihood_ratio, score
from epicycle.linear.glm._targets import Target
from epicycle.stats._summary import Summary, wald_summary
from epicycle.stats.families import Multinomial

__all__ = ["Inference"]

Array = np.ndarray


class Inference(Evaluation):
    """The methods of :class:`GeneralizedLinearModel` that draw conclusions."""

    def summary(self, confidence: float = 0.95) -> Summary:
        """Coefficients, standard errors, z or t, p-values and intervals.

        They follow from the likelihood and its expected information, so only an unpenalised fit has them. The statistic
        is normal (z) where the dispersion is known and Student's t where it is estimated.
        """
        self._check_fitted()
        title = f"Generalized linear model, {self.family_.name} family, {self.link_} link, {self._penalty_line()}"
        if isinstance(self.family_, Multinomial):
            return Summary.of_coefficients(
                self._names(), self.coef_, self.intercept_ if self.fit_intercept else None,
                [str(c) for c in self.classes_], title, "standard errors are not given for the multinomial family",
            )  # fmt: skip
        intercept = float(self.intercept_) if self.fit_intercept else None
        if hasattr(self, "_covariance_") and np.isfinite(self.dispersion_):
            facts = {
                "deviance": self.deviance_, "null deviance": self.null_deviance_, "dispersion": self.dispersion_,
                "log-likelihood": self.log_likelihood_, "AIC": self.aic_,
            }  # fmt: skip
            estimated = self.dispersion in ("pearson", "deviance") or (
                self.dispersion == "auto" and self.family_.dispersion is None
            )
            return wald_summary(
                self.coefficient_names_, self.coef_, intercept, self.dispersion_ * self._covariance_,
                confidence=confidence, title=title, facts=facts,
                degrees_of_freedom=self.residual_degrees_ if estimated else None,
            )  # fmt: skip
        if self.alpha > 0:
            why = f"penalised ({self._penalty_line()}): naive standard errors do not hold; use alpha=0 for inference"
        elif not self.converged_:
            why = "the fit did not converge"
        else:
            why = "the columns depend on each other, or are too many for the rows: standard errors do not exist"
        b = None if intercept is None else np.array([intercept])
        return Summary.of_coefficients(self.coefficient_names_, self.coef_[None, :], b, ["y"], title, why)

    def likelihood_ratio_test(
        self, small: Any, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None, exposure: Any = None
    ) -> TestResult:
        """Test a smaller model against this one, both fitted to these rows without a penalty.

        Parameters
        ----------
        small : GeneralizedLinearModel
            Fitted to some of the columns of X: found by name in a data frame; for an array its first columns.
        X, y, sample_weight, offset, exposure
            The rows that both were fitted to.

        Returns
        -------
        TestResult
            Chi-square where the dispersion is known, F where it is estimated.
        """
        self._check_unpenalised(small)
        deviances = []
        for model in (small, self):
            part = X if model is self else _columns_of(X, small)
            deviances.append(model._deviances(*model._open(part, y, sample_weight, offset, exposure))[0])
            if abs(deviances[-1] - model.deviance_) > 1e-6 * max(abs(model.deviance_), 1e-300):
                which = "small" if model is small else "the model"
                there, here = model.deviance_, deviances[-1]
                raise DataError(
                    f"X, y: {which} was fitted to other rows: its deviance is {there:g} there, {here:g} here"
                )
        q = self.effective_parameters_ - small.effective_parameters_
        known = self.family_.dispersion
        phi = known if self.dispersion == "auto" else self.dispersion if not isinstance(self.dispersion, str) else None
        return likelihood_ratio(deviances[0], deviances[1], q, phi, self.dispersion_, self.residual_degrees_)

    def score_test(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None, exposure: Any = None
    ) -> TestResult:
        """Test whether columns that this model does not have would improve it, without fitting the larger model.

        Parameters
        ----------
        X : array or data frame
            The columns of this model (by name in a frame; for an array its first columns) and those to be tested.
        y, sample_weight, offset, exposure
            The rows that this model was fitted to.

        Returns
        -------
        TestResult
        """
        self._check_unpenalised(self)
        if self.categories_:
            raise ParameterError("score_test: the model has columns of categories; expected dense or sparse columns")
        own, n_columns = _positions(X, self)
        data, target = open_rows(X, y, sample_weight, offset, exposure, Target(self.family_), type(self).__name__)
        design = Design(n_columns)
        objective, _ = self._objective_on(data, target, design)
        x = np.zeros(n_columns + 1)
        x[own], x[-1] = self.coef_, self.intercept_
        V = objective.totals.weight
        _, g = objective.value_and_gradient(x)
        information = objective.information(x)
        keep = np.arange(n_columns + self.fit_intercept)
        tested = np.setdiff1d(np.arange(n_columns), own)
        if len(tested) == 0:
            raise DataError("X: has no column besides those of the model; expected some to test")
        return score(V * g[keep], information[np.ix_(keep, keep)], tested, self.dispersion_)

    def _check_unpenalised(self, small: Any) -> None:
        if not isinstance(small, Inference):
            raise ParameterTypeError(f"small: expected a fitted model of this class, got {type(small).__name__}")
        for model in (self, small):
            model._check_fitted()
            if model.alpha > 0 or isinstance(model.family_, Multinomial):
                raise ParameterError("tests between models need unpenalised fits (alpha=0) of one response")
        if self.family_ != small.family_ or self.link_ != small.link_:
            raise ParameterError(f"small: its family is {small.family_!r}, this model's {self.family_!r}")


def _positions(X: Any, model: Evaluation) -> tuple[Array, int]:
    """Where the columns of a model stand in X, and how many X has."""
    names = getattr(model, "feature_names_in_", None)
    if hasattr(X, "columns") and names is not None:
        have = [str(c) for c in X.columns]
        missing = [n for n in names if n not in have]
        if missing:
            raise DataError(f"X: has no column {missing[0]!r}, which the smaller model has")
        return np.array([have.index(n) for n in names]), len(have)
    p = int(np.shape(X)[1]) if not hasattr(X, "shape") else int(X.shape[1])
    if model.n_features_in_ > p:
        raise DataError(f"X: has {p} columns, the smaller model {model.n_features_in_}")
    return np.arange(model.n_features_in_), p


def _columns_of(X: Any, model: Evaluation) -> Any:
    """The columns of a smaller model."""
    at, p = _positions(X, model)
    if len(at) == p and (at == np.arange(p)).all():
        return X
    if hasattr(X, "columns"):
        return X[[X.columns[j] for j in at]]
    return X[:, : len(at)] if hasattr(X, "shape") else np.asarray(X)[:, : len(at)]
