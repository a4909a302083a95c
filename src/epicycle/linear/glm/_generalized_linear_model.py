"""Generalized linear models. The mathematics is in the other modules of this package, beginning with `_objective`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, ClassVar, Unpack

import numpy as np
from sklearn.base import RegressorMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataTypeError, ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, InstanceOf, NoneOr, Real
from epicycle.core._random import stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data._dask_data import is_dask
from epicycle.linear._scikit_learn import GLM_SOLVERS
from epicycle.linear._storage import stored_type
from epicycle.linear.glm._certificates import as_stored
from epicycle.linear.glm._design import Design
from epicycle.linear.glm._evaluation import KINDS, deviances, mean, open_fitted, predict_linear, residuals
from epicycle.linear.glm._fit import Fit, Problem, fit, polish
from epicycle.linear.glm._inference import (
    TestResult,
    covariance_of,
    likelihood_ratio_test,
    score_test,
    statistics_of,
    summarise,
)
from epicycle.linear.glm._inputs import Target, coded, gather, is_raw, levels_of, penalty_factors
from epicycle.linear.glm._multinomial import fit_multinomial, multinomial_deviances, multinomial_mean
from epicycle.linear.glm._objective import MAX_HESSIAN, GlmObjective
from epicycle.linear.glm._response import response_of
from epicycle.optim import SOLVERS
from epicycle.optim._penalties import ElasticNet
from epicycle.stats._family import Family
from epicycle.stats._summary import Summary
from epicycle.stats.families import FAMILIES, Multinomial, as_family
from epicycle.stats.links import LINKS, Link


class GeneralizedLinearModel(RegressorMixin, Estimator):  # type: ignore[misc]
    r"""Generalized linear model: any exponential family, any link, elastic-net penalty, inference.

    The mean :math:`\mu_i` of a response with variance :math:`\phi V(\mu_i) / v_i` follows from
    :math:`g(\mu_i) = b + w'x_i + \mathrm{offset}_i`, and with unit deviances d the fit minimises

    .. math::

        \frac{1}{2 \sum_i v_i} \sum_i v_i \, d(y_i, \mu_i)
        + \alpha \sum_j f_j \left( \rho |w_j| + \tfrac{1 - \rho}{2} w_j^2 \right) ,

    which for :math:`\alpha = 0` is maximum likelihood. Columns of categories are kept as codes and never made
    indicator columns.

    Parameters
    ----------
    family : str or Family, default="gaussian"
        "gaussian", "binomial", "poisson", "gamma", "exponential", "inverse_gaussian", "tweedie" (power 1.5),
        "negative_binomial" (alpha 1), "multinomial", or an object such as ``families.Tweedie(1.7)``,
        ``families.NegativeBinomial("estimate")`` or a :class:`Family` of one's own.
    link : str or Link, default="auto"
        "identity", "log", "logit", "probit", "cloglog", "inverse", "inverse_squared", "sqrt", "canonical", or an object
        such as ``links.Power(1/3)``. "auto" is identity for the Gaussian family, logit for the binomial, and the
        logarithm for all others, which keeps means positive; for a family of one's own the canonical link.
    alpha : float, default=0.0
        Strength of the penalty; 0 fits without one and gives inference.
    l1_ratio : float, default=0.0
        Share rho of the L1 term.
    penalty_weights : array-like of shape (n_features,), optional
        Factors f of alpha for each column (all levels of one); 0 leaves a column unpenalised.
    dispersion : {"auto", "pearson", "deviance"} or float, default="auto"
        The phi of standard errors: "auto" is 1 where the family knows it and Pearson's estimate otherwise.
    categorical_features : "from_dtype", list or None, default="from_dtype"
        Columns of categories: those of a frame with a categorical type, or names, numbers or a mask.
    drop : {"auto", "first"} or None, default="auto"
        Whether the first level of each is left out, for others to be compared with; "auto" does so without a penalty.
    handle_unknown : {"error", "ignore"}, default="error"
        What a level does at prediction that the fit did not see; ignored, it has no effect.
    solver : str, default="auto"
        "auto" takes Newton's method on summed Hessians, proximal Newton with an L1 term, and L-BFGS for thousands of
        coefficients; "irls" is Newton's method with expected Hessians (Fisher scoring); any solver of
        :data:`epicycle.optim.SOLVERS` can be named for a smooth penalty.
    solver_options : dict, optional
        Options of that solver.
    tol : float, default=1e-8
        Bound on the distance of the objective from its minimum, relative to that of the model without features.
    max_iter : int, default=1000
        Maximum number of iterations (epochs for the stochastic solvers).
    random_state : int, Generator, RandomState or None, default=None
        Order of rows of the stochastic solvers.

    Attributes
    ----------
    coef_ : ndarray of shape (n_coefficients,) or (n_classes, n_features)
        In the order of the columns of X, each level where its column stands.
    intercept_ : float or ndarray of shape (n_classes,)
    coefficient_names_ : list of str
        Columns, or "column[level]".
    categories_ : dict of int to ndarray
        Levels of the columns of categories, by the number of the column.
    family_ : Family
        The family that was fitted, with an estimated parameter filled in.
    link_ : str
        Name of its link.
    classes_ : ndarray
        Of the multinomial family alone.
    deviance_, null_deviance_ : float
        Deviance of the model, and of that with a constant (and offsets) alone.
    n_observations_ : int
        Rows of positive weight.
    effective_parameters_ : float
        Rank of the design; less with a penalty.
    residual_degrees_ : float
        Their difference.
    pearson_dispersion_, deviance_dispersion_ : float
        Both estimates of phi.
    dispersion_ : float
        The phi that `summary` uses.
    log_likelihood_, aic_, bic_ : float
        At that phi (for the Gaussian family with identity link at its own best one).
    certificate_ : Certificate
        A proven bound on the distance from the minimum; where the deviance is not convex in the coefficients
        ("stationarity") what a Newton step would gain.
    history_ : History
        Objective, step, gradient norm and seconds of every iteration.

    See Also
    --------
    LogisticRegression : labels of any kind, with scikit-learn's conventions.
    Family : a distribution from the pieces of its exponential family.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import GeneralizedLinearModel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = rng.poisson(np.exp(0.5 + X @ [0.3, -0.2]))
    >>> model = GeneralizedLinearModel(family="poisson").fit(X, y)
    >>> model.coef_.round(1)
    array([ 0.3, -0.2])
    >>> model.certificate_.holds
    True
    """

    coef_: np.ndarray
    intercept_: Any
    family_: Family
    categories_: dict[int, np.ndarray]
    coefficient_names_: list[str]
    classes_: np.ndarray
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
    _covariance_: np.ndarray

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "family": AnyOf(Choice(*FAMILIES), InstanceOf(Family)),
        "link": AnyOf(Choice("auto", "canonical", *LINKS), InstanceOf(Link)),
        "alpha": Real(minimum=0),
        "l1_ratio": Real(minimum=0, maximum=1),
        "penalty_weights": NoneOr(ArrayLike()),
        "dispersion": AnyOf(Choice("auto", "pearson", "deviance"), Real(minimum=0, inclusive=False)),
        "categorical_features": NoneOr(AnyOf(Choice("from_dtype"), ArrayLike())),
        "drop": NoneOr(Choice("auto", "first")),
        "handle_unknown": Choice("error", "ignore"),
        "solver": Choice("auto", "irls", *SOLVERS, *GLM_SOLVERS),
        "solver_options": NoneOr(InstanceOf(dict)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A11",), engines=("memory", "files", "dask"), certificate="newton decrement"
    )
    _takes_sparse: ClassVar[bool] = True
    #: Whether the coefficients of a penalised fit are brought to their last digits too, by another Newton step or two.
    _polishes: ClassVar[bool] = False

    @stores_arguments(fit_intercept=True, tol=1e-8, max_iter=1000, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        family: str | Family = "gaussian",
        *,
        link: str | Link = "auto",
        alpha: float = 0.0,
        l1_ratio: float = 0.0,
        penalty_weights: Any = None,
        dispersion: str | float = "auto",
        categorical_features: Any = "from_dtype",
        drop: str | None = "auto",
        handle_unknown: str = "error",
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None, exposure: Any = None
    ) -> GeneralizedLinearModel:
        """Fit to rows X with responses y.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or (n_samples, 2) for the binomial family
            Responses; two columns are successes and failures. Labels for the multinomial family. A scan brings its own.
        sample_weight : array-like of shape (n_samples,), optional
            Weights v: the variance of a row is divided by its weight. A whole number acts on the coefficients as that
            many equal rows would.
        offset : array-like of shape (n_samples,) or name of a column of scanned files, optional
            Added to the linear predictor.
        exposure : array-like of shape (n_samples,) or name of a column of scanned files, optional
            For the logarithmic link: its logarithm is added to the linear predictor.
        """
        family = as_family(self.family)
        if not type(family).__module__.startswith("epicycle."):
            family.check()  # what users say about mean and variance
        if isinstance(family, Multinomial):
            fit_multinomial(self, X, y, sample_weight, offset, exposure)
            return self
        response = response_of(family, self._link())
        if exposure is not None and response.link.name != "log":
            raise ParameterError(f"exposure: is for link='log'; the link is {response.link.name!r} (use offset)")
        name = type(self).__name__
        levels = levels_of(X, self.categorical_features, name)
        given = gather(X, y, offset, exposure, Target(family), name)
        raw = is_raw(given.X)
        data = self._fit_data(
            coded(given.X, levels, ignore_unknown=False, estimator_name=name),
            given.y,
            sample_weight,
            target="numeric",
            multi_output=given.multi_output,
        )
        drop = self.drop == "first" or (self.drop == "auto" and self.alpha == 0)
        design = Design(data.n_features, levels, drop=drop, raw=raw)
        factors = self.alpha * penalty_factors(self.penalty_weights, design, data.n_features)
        problem = Problem(
            given.target.encode(data),
            given.target,
            design,
            self._link(),
            ElasticNet(factors * self.l1_ratio, factors * (1 - self.l1_ratio)),
            self.fit_intercept,
            GLM_SOLVERS.get(self.solver, self.solver),
            self.solver_options or {},
            self.tol,
            self.max_iter,
            self.random_state,
            self.n_jobs,
        )
        self.categories_, self._drop_ = levels, drop
        self.coefficient_names_ = names = design.names(self._names())
        worked = [names[k] for k in np.argsort(design.reported())]  # names in the order of work
        fitted = fit(
            problem,
            lambda objective: self._monitor(self.max_iter, lambda x: self._attributes(objective, x)),
            self._resume_state(),
            worked,
            self._earlier_start,
        )
        fitted = self._keep_inference(fitted, worked)
        for attribute, value in self._attributes(fitted.objective, fitted.solution.x).items():
            setattr(self, attribute, value)
        statistics = statistics_of(fitted, self.dispersion)
        for field in fields(statistics):
            setattr(self, f"{field.name}_", getattr(statistics, field.name))
        stored = self._worked(fitted.objective, self.coef_, self.intercept_)
        self._conclude(as_stored(fitted.objective, fitted.solution, stored, self.coef_.dtype))
        return self

    def _attributes(self, objective: GlmObjective, x: np.ndarray) -> dict[str, Any]:
        w, b = objective.unpack(x)
        design = objective.model.design
        b = b - float(objective.model.shift @ w[: design.n_dense])
        dtype = stored_type(objective.data.dtype, w, b)
        return {
            "coef_": w[design.reported()].astype(dtype),
            "intercept_": dtype.type(b) if self.fit_intercept else 0.0,
            "family_": objective.model.response.family,
            "link_": objective.model.response.link.name,
            "categories_": self.categories_,
            "coefficient_names_": self.coefficient_names_,
            "_drop_": self._drop_,
        }

    def _link(self) -> Any:
        """The link that was asked for."""
        return self.link

    def _earlier_start(self, objective: GlmObjective) -> np.ndarray | None:
        """The parameters of the earlier fit, where the next is to start from them and has as many."""
        earlier = self._run.earlier
        design = objective.model.design
        if not getattr(self, "warm_start", False) or np.shape(earlier.get("coef_", ())) != (design.size,):
            return None
        return self._worked(objective, earlier["coef_"], earlier["intercept_"])

    @staticmethod
    def _worked(objective: GlmObjective, coef: np.ndarray, intercept: Any) -> np.ndarray:
        """The parameters of the objective for coefficients as they are reported."""
        design, shift = objective.model.design, objective.model.shift
        w = np.empty(design.size)
        w[design.reported()] = coef
        b = Fraction(float(intercept))
        for j in np.flatnonzero(shift):  # rounded once, at the end: b and its shift nearly cancel
            b += Fraction(float(shift[j])) * Fraction(float(w[j]))
        return np.append(w, float(b)) if objective.intercept else w

    def _keep_inference(self, fitted: Fit, names: list[str]) -> Fit:
        """The inverse information of an unpenalised fit. Polishes the solution."""
        objective = fitted.objective
        wanted = self._polishes or not objective.penalty.any
        if not wanted or objective.size > MAX_HESSIAN or not fitted.solution.converged:
            return fitted
        fitted, information = polish(fitted, names)
        covariance = None if information is None else covariance_of(fitted, information)
        if covariance is not None:
            order = objective.model.design.reported()
            if self.fit_intercept:
                order = np.append(order, objective.size - 1)
            self._covariance_ = covariance[np.ix_(order, order)]
        return fitted

    def _penalty_line(self) -> str:
        if self.alpha == 0:
            return "no penalty"
        rho = self.l1_ratio
        terms = [f"{rho:g} |w|_1"] * (rho > 0) + [f"{(1 - rho) / 2:g} |w|^2"] * (rho < 1)
        extra = ", with a factor for each column" if self.penalty_weights is not None else ""
        return f"{self.alpha:g} ({' + '.join(terms)}){extra}"

    # ------------------------------------------------------------------------------------------- evaluation

    def predict(self, X: Any, *, offset: Any = None, exposure: Any = None) -> Any:
        """The mean of the response for every row; for the multinomial family the probability of every class.

        Parameters
        ----------
        offset, exposure : array-like of shape (n_samples,) or name of a column of scanned files, optional
            As in `fit`. They are not remembered: a model with offsets predicts without them unless they are given.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            A lazy Dask array for a Dask collection. Rows whose linear predictor is outside the domain of the link
            (below zero for "inverse" and "sqrt") have no mean and are refused; `predict_linear` takes them.
        """
        eta = self.predict_linear(X, offset=offset, exposure=exposure)
        if isinstance(self.family_, Multinomial):
            return multinomial_mean(eta)
        response = response_of(self.family_, self.link)
        return eta.map_blocks(mean, response, dtype=eta.dtype) if is_dask(eta) else mean(eta, response)

    def predict_linear(self, X: Any, *, offset: Any = None, exposure: Any = None) -> Any:
        """The linear predictor eta for every row, offsets among it; the arguments are those of `predict`."""
        self._check_fitted()
        return predict_linear(self, X, offset, exposure)

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None, exposure: Any = None
    ) -> float:
        """D^2 = 1 - deviance / null deviance: the share of the deviance that the model explains on these rows.

        For the Gaussian family this is R^2. The null model is the mean of these rows (next to the offsets).

        Parameters
        ----------
        X, y, sample_weight, offset, exposure
            As in `fit`.
        """
        self._check_fitted()
        if isinstance(self.family_, Multinomial):
            deviance, null = multinomial_deviances(self, X, y, sample_weight)
        else:
            deviance, null = deviances(self, *open_fitted(self, X, y, sample_weight, offset, exposure))
        return 1 - deviance / null if null > 0 else float(deviance <= 0) * 1.0

    def residuals(
        self,
        X: Any,
        y: Any = None,
        kind: str = "deviance",
        *,
        sample_weight: Any = None,
        offset: Any = None,
        exposure: Any = None,
        random_state: Any = None,
    ) -> Any:
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
        opened = open_fitted(self, X, y, sample_weight, offset, exposure)
        seed = int(stream(random_state).integers(2**62)) if kind == "quantile" else 0
        return residuals(self, *opened, kind, seed)

    # ------------------------------------------------------------------------------------------- inference

    def summary(self, confidence: float = 0.95) -> Summary:
        """Coefficients, standard errors, z or t, p-values and intervals.

        They follow from the likelihood and its expected information, so only an unpenalised fit has them. The statistic
        is normal (z) where the dispersion is known and Student's t where it is estimated.
        """
        self._check_fitted()
        return summarise(self, confidence)

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
        return likelihood_ratio_test(self, small, X, y, sample_weight, offset, exposure)

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
        """
        return score_test(self, X, y, sample_weight, offset, exposure)
