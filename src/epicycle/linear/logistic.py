"""Logistic and softmax regression:  minimise  sum_i w_i loss(b + W x_i, y_i) + ||W||^2 / (2 C).

For two classes the gradient is X'W(p - y) + w / C and the Hessian X' diag(w p (1 - p)) X + I / C, so Newton's method
is iteratively reweighted least squares. The minimum is unique whenever C is finite; for C = inf it exists unless the
classes are separable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle import engine
from epicycle._labels import class_weights, encode_labels
from epicycle.base import Estimator, MethodCard, fitting
from epicycle.data import Batch
from epicycle.linear.inference import Summary, wald_summary
from epicycle.linear.logistic_objective import MAX_HESSIAN, LogisticObjective, far_shift
from epicycle.linear.logistic_solving import minimise, polish, refuse_separation
from epicycle.linear.prediction import linear_predictor, predictor_batch
from epicycle.optim import SOLVERS, Solution
from epicycle.parameters import AnyOf, Boolean, Choice, Domain, InstanceOf, Integer, NoneOr, RandomState, Real

__all__ = ["LogisticRegression"]


class LogisticRegression(ClassifierMixin, Estimator):
    r"""Logistic regression for two classes, softmax regression for more, with an L2 penalty.

    Two classes :math:`y \in \{0, 1\}` with :math:`p(x) = 1 / (1 + e^{-b - w'x})` minimise

    .. math:: \sum_i w_i \bigl[\log(1 + e^{z_i}) - y_i z_i\bigr] + \frac{1}{2C} \|w\|^2, \qquad z_i = b + w'x_i ,

    and :math:`K > 2` classes the sum of :math:`\log \sum_k e^{z_{ik}} - z_{i y_i}` in the same way. The intercept is
    not penalised.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty; ``inf`` fits without one.
    fit_intercept : bool, default=True
        Whether b is fitted or 0.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the classes.
    solver : str, default="auto"
        "auto" takes Newton's method while the Hessian is small and a preconditioned L-BFGS beyond; any solver of
        :data:`epicycle.optim.SOLVERS` can be named.
    solver_options : dict, optional
        Options of that solver, such as ``{"step": 0.1}``.
    tol : float, default=1e-8
        Bound on the distance of the objective from its minimum, relative to its value, at which the fit ends.
    max_iter : int, default=1000
        Iterations at most (epochs for the stochastic solvers).
    random_state : int, Generator, RandomState or None, default=None
        Order of rows of the stochastic solvers.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        W; for more than two classes its rows sum to zero.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    certificate_ : Certificate
        Duality gap or Newton decrement, as a bound on the relative distance from the minimum.
    history_ : History
        Objective, step, gradient norm and seconds of every iteration.
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from epicycle import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(C=0.1).fit(X, y)
    >>> model.certificate_.holds
    True
    >>> round(model.score(X, y), 3)
    0.954
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "C": Real(minimum=0, inclusive=False, allow_inf=True),
        "fit_intercept": Boolean(),
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced"))),
        "solver": Choice("auto", *SOLVERS),
        "solver_options": NoneOr(InstanceOf(dict)),
        "tol": Real(minimum=0, inclusive=False),
        "max_iter": Integer(minimum=1),
        "random_state": RandomState(),
        "n_jobs": NoneOr(AnyOf(Integer(minimum=1), Integer(maximum=-1))),
        "verbose": AnyOf(Boolean(), Integer(minimum=0)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear",
        catalogue=("A2", "A9", "A10"),
        engines=("memory", "files", "dask"),
        certificate="duality gap",
    )

    def __init__(
        self,
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LogisticRegression:
        """Fit to rows X with labels y.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels: numbers, booleans or strings. A scan brings its own.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        LogisticRegression
            The fitted estimator.
        """
        data = self._fit_data(X, y, sample_weight, target="labels")
        self.classes_, totals, data = encode_labels(data, type(self).__name__, self.n_jobs)
        objective = LogisticObjective(
            data,
            len(self.classes_),
            0.0 if np.isinf(self.C) else 1.0 / self.C,
            intercept=self.fit_intercept,
            shift=far_shift(data) if self.fit_intercept else np.zeros(data.n_features),
            class_weight=class_weights(self.class_weight, self.classes_, totals),
            n_jobs=self.n_jobs,
        )
        solution = minimise(
            objective,
            self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            monitor=self._monitor(self.max_iter, lambda x: self._attributes(objective, x)),
            state=self._resume_state(),
            options=self.solver_options or {},
            random_state=self.random_state,
        )
        if np.isinf(self.C):
            refuse_separation(objective, solution, self._names())
            solution = self._keep_inference(objective, solution)
        for name, value in self._attributes(objective, solution.x).items():
            setattr(self, name, value)
        self._conclude(solution)
        return self

    def _attributes(self, objective: LogisticObjective, x: np.ndarray) -> dict[str, np.ndarray]:
        params = objective.matrix(x)
        if not objective.binary:  # a constant added to all classes changes no probability, and only grows the penalty
            params = params - params.mean(axis=0)
        W, b = params[:, :-1], params[:, -1] - params[:, :-1] @ objective.shift
        dtype = objective.data.dtype
        return {"coef_": W.astype(dtype), "intercept_": b.astype(dtype), "classes_": self.classes_}

    # ------------------------------------------------------------------------------------------- prediction

    def decision_function(self, X: Any) -> Any:
        """Scores b + W x: one a row for two classes (positive favours ``classes_[1]``), else one for each class."""
        data = self._predict_data(X)
        scores = linear_predictor(data, self.coef_, self.intercept_, self.n_jobs)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """The most probable class of every row."""
        return self._map(X, _predict_batch)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, in the order of `classes_`."""
        return self._map(X, _probability_batch)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities, exact also where they underflow."""
        return self._map(X, _log_probability_batch)

    def _map(self, X: Any, function: Any) -> Any:
        data = self._predict_data(X)
        return engine.map(function, data, self.coef_, self.intercept_, self.classes_, n_jobs=self.n_jobs)

    # ------------------------------------------------------------------------------------------- statistics

    def _keep_inference(self, objective: LogisticObjective, solution: Solution) -> Solution:
        """The inverse Hessian at the optimum: the covariance of an unpenalised two-class fit. Polishes the solution."""
        if not objective.binary or objective.size > MAX_HESSIAN or not solution.converged:
            return solution
        solution, half = polish(objective, solution)
        if half is None:
            return solution
        covariance = half @ half.T
        if self.fit_intercept:  # from b at the shift to b at the origin
            back = np.eye(objective.size)
            back[-1, :-1] = -objective.shift
            covariance = back @ covariance @ back.T
        self._covariance_, self._log_likelihood_ = covariance, -solution.value
        return solution

    def _penalty_line(self) -> str:
        return "no penalty" if np.isinf(self.C) else f"L2 penalty ||W||^2 / (2 C), C={self.C:g}"

    def summary(self, confidence: float = 0.95) -> Summary:
        """Coefficients, standard errors, z, p-values and intervals.

        They follow from the likelihood, so only an unpenalised fit (``C=inf``) of two classes has them; for any other
        fit the summary shows the coefficients and says why.
        """
        self._check_fitted()
        if hasattr(self, "_covariance_"):
            return wald_summary(
                self._names(), self.coef_[0], self.intercept_[0] if self.fit_intercept else None, self._covariance_,
                confidence=confidence, title=self._title(), facts={"log-likelihood": self._log_likelihood_},
            )  # fmt: skip
        if not np.isinf(self.C):
            why = f"penalised ({self._penalty_line()}): naive standard errors do not hold; use C=inf for inference"
        elif len(self.classes_) > 2:
            why = "standard errors are given for two classes"
        elif not self.converged_:
            why = "the fit did not converge"
        else:
            why = "the features depend on each other, or are too many: standard errors do not exist, or were not kept"
        rows = [str(c) for c in (self.classes_[1:] if len(self.classes_) == 2 else self.classes_)]
        return Summary.of_coefficients(
            self._names(), self.coef_, self.intercept_ if self.fit_intercept else None, rows, self._title(), why
        )

    def _title(self) -> str:
        return f"Logistic regression, {len(self.classes_)} classes, {self._penalty_line()}"


# ------------------------------------------------------------------------------------------------ rows


def _predict_batch(batch: Batch, coef: np.ndarray, intercept: np.ndarray, classes: np.ndarray) -> np.ndarray:
    scores = predictor_batch(batch, coef, intercept)
    return classes[(scores[:, 0] > 0).astype(np.intp) if len(classes) == 2 else scores.argmax(axis=1)]


def _log_probability_batch(batch: Batch, coef: np.ndarray, intercept: np.ndarray, classes: np.ndarray) -> np.ndarray:
    scores = predictor_batch(batch, coef, intercept)
    if len(classes) == 2:
        z = scores[:, 0]
        return np.column_stack([-np.logaddexp(0, z), -np.logaddexp(0, -z)])
    scores -= scores.max(axis=1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def _probability_batch(batch: Batch, coef: np.ndarray, intercept: np.ndarray, classes: np.ndarray) -> np.ndarray:
    p = np.exp(_log_probability_batch(batch, coef, intercept, classes))
    return p / p.sum(axis=1, keepdims=True)
