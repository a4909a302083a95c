"""The lasso and the elastic net for one alpha. The mathematics is in :mod:`epicycle.linear.lasso._duality`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import MultiOutputMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import ArrayLike, Boolean, Domain, NoneOr, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.linear.lasso._base import DESCENT_PARAMETERS, SparseLinearModel
from epicycle.linear.lasso._constrained import BoundOutcome, minimise_within
from epicycle.linear.lasso._duality import gap_certificate, penalty_factors, penalty_in_words, penalty_of
from epicycle.linear.lasso._path import enet_path, start_of
from epicycle.linear.lasso._problem import LassoProblem, check_given_gram, lasso_problem
from epicycle.optim import Solution
from epicycle.optim._penalties import ElasticNet as ElasticNetPenalty
from epicycle.optim._working_set import Outcome

_PARAMETERS: dict[str, Domain] = {
    "alpha": Real(minimum=0),
    "penalty_weights": NoneOr(ArrayLike()),
    "positive": Boolean(),
    "tol": Real(minimum=0),  # 0 asks for all that rounding leaves
    **DESCENT_PARAMETERS,
}
#: The end of a fit at `max_iter`, in scikit-learn's words.
NOT_CONVERGED = "Objective did not converge. You might want to increase the number of iterations"
_DOCS = {
    "precompute": 'precompute : bool, "auto" or array-like of shape (n_features, n_features), default={default}\n'
    "    A Gram matrix that is given is compared with X and refused where it is another. Whether second moments are\n"
    "    formed follows from the size of the work; the solution does not depend on it.",
    "fit_X": "%(columns)s",
    "fit_y": "y : array-like of shape (n_samples,) or (n_samples, n_targets)\n"
    "    A scan brings its own. Several targets are fitted one by one.",
    "max_iter": "max_iter : int, default={default}\n"
    "    Maximum number of rounds; each chooses a working set and goes over it up to 200 times.",
}


class Lasso(MultiOutputMixin, SparseLinearModel):  # type: ignore[misc]  # scikit-learn has no types
    r"""Least squares with an L1 penalty, which sets coefficients to zero.

    .. math:: \min_{w, b} \; \frac{1}{2 \sum_i v_i} \sum_i v_i \, (y_i - b - w'x_i)^2 + \alpha \sum_j f_j |w_j|

    with sample weights :math:`v_i` and penalty weights :math:`f_j` (ones by default), or the same with a bound
    :math:`\sum_j f_j |w_j| \le t` in place of the penalty. Coordinate descent on working sets, with columns screened
    out by the gap-safe rule and the support finished by Newton's method or Anderson extrapolation; it stops on the
    duality gap.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty. From ``max_j |x_j'(y - mean(y))| / n`` on (x about its mean) all coefficients are zero.
    bound : float, optional
        The bound t of the L1 norm. Where it is given, `alpha` is not used: the one that has the same solution is found.
    penalty_weights : array-like of shape (n_features,), optional
        Factors of alpha (or in the norm) for each feature; 0 leaves a feature unpenalised.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    sparse_coef_ : csr_array of shape (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    alpha_ : float or ndarray of shape (n_targets,)
        The penalty: `alpha`, or what corresponds to `bound` (0 where the bound does not bind).
    bound_ : float or ndarray of shape (n_targets,)
        The L1 norm of the coefficients, with penalty weights: the bound at which the solution is the same.
    %(evidence)s
    history_ : History
        Objective, gap, size of the working set and number of columns not screened out, for every round; with `bound`
        objective, gap, alpha and norm for every alpha tried.

    See Also
    --------
    LassoCV : chooses alpha by cross-validation.
    lasso_path : solutions for many alphas.
    ElasticNet : with an L2 penalty too.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import Lasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Lasso(alpha=0.5).fit(X, y)
    >>> (model.coef_ != 0).nonzero()[0]
    array([2, 3, 6, 8])
    >>> model.certificate_.holds
    True
    >>> bounded = Lasso(bound=model.bound_).fit(X, y)
    >>> round(bounded.alpha_, 6)
    0.5
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**_PARAMETERS, "bound": NoneOr(Real(minimum=0))}
    _docs: ClassVar[Mapping[str, str]] = _DOCS

    @stores_arguments(
        fit_intercept=True, tol=1e-8, max_iter=1000, warm_start=False, random_state=None, n_jobs=None, verbose=0
    )
    def __init__(
        self,
        alpha: float = 1.0,
        *,
        bound: float | None = None,
        penalty_weights: Any = None,
        precompute: Any = False,
        copy_X: bool = True,
        positive: bool = False,
        selection: str = "cyclic",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    path = staticmethod(enet_path)

    @fitting
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        check_input: bool = True,
        coef_init: Any = None,
    ) -> Self:
        """Fit to rows X with targets y."""
        outcomes = fit_penalised(self, X, y, sample_weight, coef_init, l1_ratio=1.0, bound=self.bound)
        factors = np.ones(self.n_features_in_) if self.penalty_weights is None else np.asarray(self.penalty_weights)
        alphas = np.array([o.alpha if isinstance(o, BoundOutcome) else float(self.alpha) for o in outcomes])
        bounds = np.array([float(factors @ np.abs(outcome.x)) for outcome in outcomes])
        vector = self.coef_.ndim == 1
        self.alpha_: float | np.ndarray = float(alphas[0]) if vector else alphas
        self.bound_: float | np.ndarray = float(bounds[0]) if vector else bounds
        return self

    def _penalty_line(self) -> str:
        return penalty_in_words(self.alpha, 1.0, self.penalty_weights, self.positive, bound=self.bound)


class ElasticNet(MultiOutputMixin, SparseLinearModel):  # type: ignore[misc]  # scikit-learn has no types
    r"""Least squares with an L1 and an L2 penalty: sparse like the lasso, and kind to groups of correlated features.

    .. math::
        \min_{w, b} \; \frac{1}{2 \sum_i v_i} \sum_i v_i \, (y_i - b - w'x_i)^2
        + \alpha \sum_j f_j \left( \rho |w_j| + \tfrac{1 - \rho}{2} w_j^2 \right)

    with sample weights :math:`v_i`, penalty weights :math:`f_j` (ones by default) and :math:`\rho` = `l1_ratio`.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty.
    l1_ratio : float, default=0.5
        Share of the L1 term, between 0 (ridge) and 1 (lasso).

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    sparse_coef_ : csr_array of shape (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    %(evidence)s
    history_ : History
        Objective, gap, size of the working set and number of columns not screened out, for every round.

    See Also
    --------
    ElasticNetCV : chooses alpha and l1_ratio by cross-validation.
    enet_path : solutions for many alphas.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import ElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNet(alpha=0.01, l1_ratio=0.9).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.491
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**_PARAMETERS, "l1_ratio": Real(minimum=0, maximum=1)}
    _docs: ClassVar[Mapping[str, str]] = _DOCS

    @stores_arguments(
        fit_intercept=True, tol=1e-8, max_iter=1000, warm_start=False, random_state=None, n_jobs=None, verbose=0
    )
    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        penalty_weights: Any = None,
        precompute: Any = False,
        copy_X: bool = True,
        positive: bool = False,
        selection: str = "cyclic",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    path = staticmethod(enet_path)

    @fitting
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        check_input: bool = True,
        coef_init: Any = None,
    ) -> Self:
        """Fit to rows X with targets y."""
        fit_penalised(self, X, y, sample_weight, coef_init, l1_ratio=self.l1_ratio)
        return self

    def _penalty_line(self) -> str:
        return penalty_in_words(self.alpha, self.l1_ratio, self.penalty_weights, self.positive)


def fit_penalised(
    model: SparseLinearModel,
    X: Any,
    y: Any,
    sample_weight: Any,
    coef_init: Any,
    *,
    l1_ratio: float,
    bound: float | None = None,
    together: bool = False,
) -> list[Outcome]:
    """Fit with the penalty alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2), or with a bound of |w|_1 in its place.

    With `together` a feature is used for all targets or for none, and |w|_1 is the sum of lengths over the targets.
    """
    if coef_init is None and model.warm_start:
        coef_init = model._run.earlier.get("coef_")
    data = model._fit_data(X, y, sample_weight, target="numeric", multi_output=True, check_finite=False)
    p, k = data.n_features, data.n_targets
    positive = getattr(model, "positive", False)
    factors = penalty_factors(getattr(model, "penalty_weights", None), p, positive)
    alpha = model.alpha if bound is None else 1.0
    if alpha == 0:
        penalty_factors(np.zeros(p), p, positive)  # nothing is penalised: the rules for unpenalised columns hold
    penalty = penalty_of(alpha, l1_ratio, factors, positive)
    state = model._resume_state()
    given = coef_init if state is None else state["coef"]
    W = np.zeros((k, p)) if given is None else start_of(given, k, p)
    check_given_gram(getattr(model, "precompute", None), data, model.fit_intercept)
    problem = lasso_problem(data, centre=model.fit_intercept, n_jobs=model.n_jobs, together=together)
    monitor = model._monitor((model.max_iter + 1) * k, lambda x: model._attributes(data, problem, x.reshape(k, p)))
    outcomes = _minimise(problem, penalty, bound, W, monitor, model.tol, model.max_iter)
    for name, value in model._attributes(data, problem, W).items():
        setattr(model, name, value)
    gaps = np.array([outcome.gap for outcome in outcomes])
    model.dual_gap_ = float(gaps[0]) if len(gaps) == 1 else gaps
    certificates = [
        gap_certificate(outcome.gap, solver.total, model.tol)
        for outcome, solver in zip(outcomes, problem.solvers, strict=True)
    ]
    worst = int(np.argmax([certificate.value for certificate in certificates]))
    history, value = monitor.history(), float(sum(outcome.objective for outcome in outcomes))
    reason, resume = outcomes[worst].reason, {"coef": W.copy()}
    # Where a start was given and is the solution, no round is needed.
    n_iter = 0 if given is not None and all(o.n_rounds == 0 for o in outcomes) else max(1, history.n_iter)
    message = NOT_CONVERGED if reason == "max_iter" else ""
    model._conclude(Solution(W.ravel(), value, history, certificates[worst], n_iter, reason, message, state=resume))
    return outcomes


def _minimise(
    problem: LassoProblem,
    penalty: ElasticNetPenalty,
    bound: float | None,
    W: np.ndarray,
    monitor: Monitor,
    tol: float,
    max_iter: int,
) -> list[Outcome]:
    """Minimise for every target in turn, from the rows of W on; W follows."""
    outcomes: list[Outcome] = []
    rounds = count(1)
    for t, solver in enumerate(problem.solvers):
        # One solver for all targets has all rows of W.
        rows = slice(None) if len(problem.solvers) < len(W) else slice(t, t + 1)
        if W[rows].any():
            solver.start_at(W[rows].T.reshape(solver.w.shape))
        which = {"target": float(t)} if len(problem.solvers) > 1 else {}

        def report(
            _: int, w: np.ndarray, objective: float, *, rows: slice = rows, which: Any = which, **columns: float
        ) -> bool:
            W[rows] = w
            state = lambda: {"coef": W.copy()}  # noqa: E731
            return monitor(next(rounds), W.ravel(), objective=objective, state=state, **columns, **which)

        if bound is None:
            outcome: Outcome = solver.minimise(penalty, tol, max_iter, report)
        else:
            outcome = minimise_within(solver, bound, penalty.l1, penalty.positive, tol, max_iter, report)
        W[rows] = outcome.x
        outcomes.append(outcome)
    return outcomes
