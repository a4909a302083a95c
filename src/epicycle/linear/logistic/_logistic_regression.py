"""Logistic and softmax regression:  minimise  sum_i w_i loss(b + W x_i, y_i) + (r ||W||_1 + (1 - r)/2 ||W||^2) / C.

For two classes the gradient of the loss is X'W(p - y) and its Hessian X' diag(w p (1 - p)) X, so Newton's method is
iteratively reweighted least squares. The minimum exists whenever C is finite; for C = inf it exists unless the classes
are separable.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, EpicycleWarning, ParameterError, SeparationError, SeparationWarning
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._settings import get_config
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData, Data
from epicycle.data._matrix import dense
from epicycle.linear._scikit_learn import LOGISTIC_SOLVERS, NOT_CONVERGED
from epicycle.linear._storage import stored_type
from epicycle.linear.logistic._absent_classes import embedded, ridge_factor, rows_present
from epicycle.linear.logistic._base import LinearClassifier
from epicycle.linear.logistic._duality import contradiction, penalties, penalty_in_words
from epicycle.linear.logistic._inference import class_tables, inference, likelihood_facts
from epicycle.linear.logistic._l1 import NAME, at_origin, csc_labels, minimise_l1
from epicycle.linear.logistic._objective import LogisticObjective, far_shift
from epicycle.linear.logistic._separation import examine_separation
from epicycle.linear.logistic._solve import minimise, solver_of
from epicycle.optim import SOLVERS, Solution
from epicycle.stats._labels import class_weights, encode_labels
from epicycle.stats._summary import Summary


class LogisticRegression(LinearClassifier):
    r"""Logistic regression for two classes, softmax regression for more, with an L2, L1 or elastic net penalty.

    Two classes :math:`y \in \{0, 1\}` with :math:`p(x) = 1 / (1 + e^{-b - w'x})` minimise

    .. math::
        \sum_i v_i \bigl[\log(1 + e^{z_i}) - y_i z_i\bigr]
        + \frac{1}{C} \Bigl[\rho \|w\|_1 + \frac{1 - \rho}{2} \|w\|^2\Bigr], \qquad z_i = b + w'x_i ,

    with sample weights :math:`v_i` and :math:`\rho` = `l1_ratio`, and :math:`K > 2` classes the sum of
    :math:`\log \sum_k e^{z_{ik}} - z_{i y_i}` in the same way. The intercept is not penalised.

    Parameters
    ----------
    penalty : {"auto", "l1", "l2", "elasticnet"} or None, default="auto"
        "auto" follows `C` and `l1_ratio`. The others are older names: "l2" and "l1" for `l1_ratio` 0 and 1,
        "elasticnet" for the `l1_ratio` given, and None for ``C=inf``; what they contradict is ignored with a warning.
    C : float, default=1.0
        Inverse strength of the penalty; ``inf`` fits without one.
    l1_ratio : float, default=0.0
        Share of the L1 term: 0 (or None) is the L2 penalty, 1 the L1 penalty, which sets coefficients to zero.
    dual : bool, default=False
        Accepted for compatibility, with ``solver="liblinear"`` and the L2 penalty: whether the dual problem would be
        solved; the solution is the same.
    fit_intercept : bool, default=True
        Whether b is fitted or 0.
    intercept_scaling : float, default=1.0
        Only with ``solver="liblinear"``: b is the coefficient of a feature that has this value in every row, times that
        value, and is penalised like the others.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the classes. A class of factor 0 gets the probability 0.
    solver : str, default="auto"
        "auto" takes Newton's method while the Hessian is small and a preconditioned L-BFGS beyond; any solver of
        :data:`epicycle.optim.SOLVERS` can be named. With an L1 term it is "proximal-newton": coordinate descent on
        quadratic models, over working sets. The names of scikit-learn's solvers stand for those of :ref:`this table
        <solver-names>`.
    solver_options : dict, optional
        Options of that solver, such as ``{"step": 0.1}``.
    tol : float, default=1e-8
        Bound on the distance of the objective from its minimum, relative to its value, at which the fit ends. Newton's
        method then goes on to coefficients that are settled to about 1e-9. Those of L-BFGS, for which a Hessian is too
        dear, are within :math:`\sqrt{2 C g F}` of the optimum (Euclidean length; g is the value of the certificate, F
        the sum of losses plus :math:`|W|^2 / 2C`): a smaller `tol` makes fits of different engines agree.
    max_iter : int, default=1000
        Iterations at most (epochs for the stochastic solvers); 0 leaves the model where it starts.
    random_state : int, Generator, RandomState or None, default=None
        Order of rows of the stochastic solvers.
    warm_start : bool, default=False
        Whether a fit starts from the coefficients of the earlier one, where classes and features are as many.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        W. For more than two classes its rows sum to zero, unless an L1 term decides otherwise.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        b; for more than two classes it sums to zero.
    solver_ : str
        The solver that ran.
    certificate_ : Certificate
        Duality gap or Newton decrement, as a bound on the relative distance from the minimum. Where the unpenalised
        likelihood has none because the classes are separable but for ties, it says so and does not hold.
    history_ : History
        Objective, step, gradient norm and seconds of every iteration; with an L1 term the gap and the sizes of the
        working sets.
    n_iter_ : ndarray of shape (1,)

    See Also
    --------
    LogisticRegressionCV : chooses C and l1_ratio by cross-validation.
    OneVsRest : one classifier for each class.

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
    >>> sparse = LogisticRegression(C=0.1, l1_ratio=1.0).fit(X, y)
    >>> int((sparse.coef_ != 0).sum())
    6
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "C": Real(minimum=0, inclusive=False, allow_inf=True),
        "l1_ratio": NoneOr(Real(minimum=0, maximum=1)),
        "penalty": NoneOr(Choice("auto", "l1", "l2", "elasticnet", "deprecated")),
        "dual": Boolean(),
        "intercept_scaling": Real(minimum=0, inclusive=False),
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced"))),
        "solver": Choice("auto", *SOLVERS, NAME, *LOGISTIC_SOLVERS),
        "solver_options": NoneOr(InstanceOf(dict)),
        "max_iter": Integer(minimum=0),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A2", "A9", "A10"), engines=("memory", "files", "dask"), certificate="duality gap"
    )

    @stores_arguments
    def __init__(
        self,
        penalty: str | None = "auto",
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Mapping[Any, float] | str | None = None,
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None: ...

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # The strength of the penalty always shows, also where it is the default.
        shown = str(super().__repr__(N_CHAR_MAX))
        name, _, rest = shown.partition("(")
        return (
            f"{name}(C={self.C}{')' if rest == ')' else ', ' + rest}" if self.C == 1 and "(C=" not in shown else shown
        )

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LogisticRegression:
        """Fit to rows X with labels y.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
            With an L1 term a CSC matrix is used as it is and CSR is converted; files and Dask collections are read once
            an iteration for their Hessian, and may have a few thousand coefficients.
        y : array-like of shape (n_samples,)
            Labels: numbers, booleans or strings. A scan brings its own.
        sample_weight : array-like of shape (n_samples,), optional
        """
        self._penalties()
        if self.penalty != "auto" and (notice := contradiction(self.C, self.l1_ratio, self.penalty)):
            self._run.notices.append(EpicycleWarning(f"{notice}."))
        data = self._fit_data(X, y, sample_weight, target="labels")
        solution = self._solve(data, self)
        if solution.reason == "separated":
            self._conclude_separated(solution)
        else:
            self._conclude(solution)
        self.n_iter_ = np.array([solution.n_iter], dtype=np.int32)
        if self._run.warning and solution.reason == "max_iter" and self.solver in NOT_CONVERGED:
            self._run.warning = f"{NOT_CONVERGED[self.solver].format(n=solution.n_iter)} {self._run.warning}"
        return self

    def _solve(self, data: Data, owner: Estimator) -> Solution:
        """Minimise and set what prediction needs; progress, callbacks and a state to resume from are the owner's."""
        l1, l2 = self._penalties()
        self.classes_, totals, data = encode_labels(data, type(owner).__name__, self.n_jobs)
        factors = class_weights(self.class_weight, self.classes_, totals, zero=True)
        K = len(self.classes_)
        if self.solver == "liblinear" and K > 2:
            raise DataError(
                "The 'liblinear' solver does not support multiclass classification: it penalises the intercept of two "
                f"classes, and y has {K}; use another solver, or OneVsRest"
            )
        p, n_jobs = data.n_features, self.n_jobs
        dtype = np.dtype(np.float64) if self.solver == "liblinear" else data.dtype  # as there, which has no float32
        intercept, constant = self.fit_intercept, None
        if self.solver == "liblinear" and self.fit_intercept:
            # The intercept is one more penalised coefficient, that of a constant feature.
            intercept, constant, p = False, float(self.intercept_scaling), p + 1
            data = with_constant(data, constant)
        present = None
        if intercept and factors is not None and not factors.all():
            present = factors > 0
            data, l2 = rows_present(data, present), l2 * ridge_factor(present)
            factors, totals, K = factors[present], totals[present], int(present.sum())
        classes, shift = self.classes_, np.zeros(p)
        attributes = partial(
            _attributes, classes=classes, constant=constant, present=present, sparse=l1 > 0, dtype=dtype
        )
        solver = LOGISTIC_SOLVERS.get(self.solver, self.solver)
        start = self._start(K, p, owner) if self.warm_start else None
        goal: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "state": owner._resume_state()}
        if l1 > 0 or solver == NAME:
            if start is not None and goal["state"] is None:
                goal["state"] = {"solver": NAME, "params": start}
            monitor = owner._monitor(self.max_iter + 1, lambda x: attributes(x.reshape(-1, p + 1), shift))
            solution = minimise_l1(
                data,
                K,
                l1,
                l2,
                intercept=intercept,
                class_weight=factors,
                monitor=monitor,
                n_jobs=n_jobs,
                **goal,
            )
            params, ran = solution.x.reshape(-1, p + 1), NAME
        else:
            if intercept:
                shift = far_shift(data)
            objective = LogisticObjective(
                data, K, l2, intercept=intercept, shift=shift, class_weight=factors, n_jobs=n_jobs
            )
            monitor = owner._monitor(self.max_iter, lambda x: attributes(objective.matrix(x), shift))
            options, seed = self.solver_options or {}, self.random_state
            if start is not None:
                at = at_origin(start, -shift)
                goal["start"] = (at if intercept else at[:, :-1]).ravel()
            solution = minimise(objective, solver, monitor=monitor, options=options, random_state=seed, **goal)
            if l2 == 0:
                solution = self._examine(objective, solution, totals if factors is None else totals * factors, owner)
            params, ran = objective.matrix(solution.x), solver
            if solver == "auto":
                ran = solver_of(objective)
        for name, value in attributes(params, shift).items():
            setattr(self, name, value)
        self.solver_ = ran
        return solution

    def _start(self, K: int, p: int, owner: Estimator) -> np.ndarray | None:
        """(W, b) of the earlier fit, where it is wanted and of the same shape."""
        if self.solver == "liblinear" or owner is not self:
            return None
        earlier, rows = self._run.earlier, 1 if K == 2 else K
        if "coef_" not in earlier or earlier["coef_"].shape != (rows, p) or len(earlier["classes_"]) != K:
            return None
        coef, intercept = earlier["coef_"], earlier["intercept_"]
        return np.column_stack([dense(coef), intercept]).astype(np.float64)

    def _penalties(self) -> tuple[float, float]:
        """(l1, l2), with a solver that can take them."""
        l1, l2 = penalties(self.C, self.l1_ratio, self.penalty)
        if l1 > 0 and self.solver not in ("auto", NAME, "liblinear", "saga"):
            got = "l1" if l2 == 0 else "elasticnet"
            raise ParameterError(
                f"Solver {self.solver} supports only 'l2' or None penalties, got {got} penalty. solver={self.solver!r} "
                "takes smooth objectives; with an L1 term (l1_ratio > 0) "
                f"expected 'auto', {NAME!r}, 'liblinear' or 'saga'"
            )
        if self.solver == "liblinear" and l1 > 0 and l2 > 0:
            raise ParameterError(
                "Only 'saga' solver supports elasticnet penalty, got solver=liblinear; 'auto' does, too"
            )
        if self.dual and (self.solver != "liblinear" or l1 > 0):
            raise ParameterError(
                f"Solver {self.solver} supports only dual=False, got dual=True; 'liblinear' with the L2 penalty takes "
                "both"
            )
        if self.solver == "liblinear" and l1 == l2 == 0:
            raise ParameterError(
                "C=np.inf as well as penalty=None is not supported for the liblinear solver; expected a finite C"
            )
        if l1 == l2 == 0 and self.solver == NAME:
            raise ParameterError(f"solver={NAME!r} needs a penalty; expected a finite C")
        if (l1 > 0 or self.solver == NAME) and self.solver_options:
            raise ParameterError(f"solver_options={self.solver_options!r}: {NAME} has none")
        return l1, l2

    def _fit_data(self, X: Any, y: Any, sample_weight: Any = None, **checks: Any) -> Data:
        """As everywhere, except that for an L1 term CSC stays CSC."""
        checked = X
        by_columns = sp.issparse(X) and X.format == "csc" and X.ndim == 2 and 0 not in X.shape
        if by_columns and penalties(self.C, self.l1_ratio, self.penalty)[0] > 0:
            checked = csc_labels(X, y, sample_weight, estimator_name=type(self).__name__)
        data = super()._fit_data(checked, y, sample_weight, **checks)
        if "X" in self._run.inputs:
            self._run.inputs["X"] = X
        return data

    def _examine(
        self, objective: LogisticObjective, solution: Solution, totals: np.ndarray, owner: Estimator
    ) -> Solution:
        """Separation and the covariance of a fit without a penalty."""
        if separated := examine_separation(objective, solution, owner._names()):
            certificate = Certificate("separation", np.inf, self.tol, separated)
            return replace(solution, certificate=certificate, reason="separated", message=separated)
        solution, found = inference(objective, solution)
        if found is not None and len(totals) == len(self.classes_):  # not where a class has no weight
            self._covariance_, self._log_likelihood_ = found.covariance, found.log_likelihood
            self._class_totals_ = totals
        return solution

    def _conclude_separated(self, solution: Solution) -> None:
        if get_config().on_nonconvergence == "raise":
            raise SeparationError(solution.message)
        self._conclude(solution)
        if self._run.warning:
            self._run.warning = ""
            warnings.warn(f"{type(self).__name__}: {solution.message}.", SeparationWarning, stacklevel=6)

    # ------------------------------------------------------------------------------------------- statistics

    def _penalty_line(self) -> str:
        return penalty_in_words(self.C, self.l1_ratio, self.penalty)

    def summary(self, confidence: float = 0.95) -> Summary:
        """Coefficients, standard errors, z, p-values and intervals, the likelihood-ratio test and measures of fit.

        They follow from the likelihood, so only an unpenalised fit (``C=inf``) has them; for any other fit the summary
        shows the coefficients and says why. More than two classes are shown by their log-odds against the first class.

        Parameters
        ----------
        confidence : float, default=0.95
            Of the intervals.

        Returns
        -------
        Summary
            A table that prints, shows as HTML, and gives a DataFrame.
        """
        self._check_fitted()
        if hasattr(self, "_covariance_"):
            facts = likelihood_facts(
                self._log_likelihood_, self._class_totals_, self.n_features_in_, self.fit_intercept
            )
            weighted = ""
            if self.class_weight is not None:
                weighted = (
                    "the classes are weighted: standard errors, tests and criteria are those of the weighted "
                    "likelihood, and hold only if the weights count rows"
                )
            return class_tables(
                self._names(),
                self.classes_,
                dense(self.coef_),
                self.intercept_ if self.fit_intercept else None,
                self._covariance_,
                confidence=confidence,
                title=self._title(),
                facts=facts,
                note=weighted,
            )
        if self._penalty_line() != "no penalty":
            why = f"penalised ({self._penalty_line()}): naive standard errors do not hold; use C=inf for inference"
        elif self.certificate_.kind == "separation":
            why = f"no standard errors: {self.certificate_.meaning}"
        elif not self.converged_:
            why = "the fit did not converge"
        else:
            why = "the features depend on each other, or are too many: standard errors do not exist, or were not kept"
        rows = [str(c) for c in (self.classes_[1:] if len(self.classes_) == 2 else self.classes_)]
        return Summary.of_coefficients(
            self._names(),
            dense(self.coef_),
            self.intercept_ if self.fit_intercept else None,
            rows,
            self._title(),
            why,
        )

    def _title(self) -> str:
        return f"Logistic regression, {len(self.classes_)} classes, {self._penalty_line()}"


def _attributes(
    params: np.ndarray,
    shift: np.ndarray,
    *,
    classes: np.ndarray,
    constant: float | None,
    present: np.ndarray | None,
    sparse: bool,
    dtype: np.dtype[Any],
) -> dict[str, np.ndarray]:
    """(W, b) as it is kept: b about zero, or from the coefficient of a constant feature; with the absent classes."""
    params = params.copy()
    params[:, -1] -= params[:, :-1] @ shift
    if constant is not None:
        params = np.hstack([params[:, :-2], constant * params[:, -2:-1]])
    if len(params) > 1:  # a constant added to all classes changes no probability, and only grows an L2 penalty
        free = slice(-1, None) if sparse else slice(None)
        params[:, free] -= params[:, free].mean(axis=0)
    if present is not None:
        params = embedded(params, present)
    dtype = stored_type(dtype, params)
    coef, b = params[:, :-1].astype(dtype), params[:, -1].astype(dtype)
    return {"coef_": coef, "intercept_": b, "classes_": classes}


def with_constant(data: Data, value: float) -> ArrayData:
    """The data with one more feature, the same in every row."""
    if not isinstance(data, ArrayData):
        raise DataError(
            "solver='liblinear': its penalised intercept needs X in memory; use another solver, or fit_intercept=False"
        )
    column = np.full((data.n_rows, 1), value, dtype=data.dtype)
    X: Any = data.X
    extended = sp.hstack([X, column], format=X.format) if sp.issparse(X) else np.hstack([X, column])
    return ArrayData(extended, data.y, data.weight)
