"""Shared by SGDClassifier and SGDRegressor: their parameters, the rule these mean, epochs and the evidence."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceError, DataError, DataTypeError, ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData, DaskData, Data
from epicycle.linear.online._epochs import NoImprovement, Run, run_epochs
from epicycle.linear.online._learner import STEP, Piece, Presentations, Rule, State, coefficients, copy_state, learn
from epicycle.linear.online._suboptimality import suboptimality
from epicycle.optim import Solution

_POSITIVE = Real(0, inclusive=False)

SHARED_PARAMETERS: Mapping[str, Domain] = {
    "penalty": NoneOr(Choice("l2", "l1", "elasticnet")),
    "alpha": Real(0),
    "l1_ratio": Real(0, 1),
    "intercept_rate": AnyOf(Choice("auto"), _POSITIVE),
    "tol": NoneOr(Real(0)),
    "shuffle": Boolean(),
    "epsilon": Real(0),
    "learning_rate": Choice("optimal", "constant", "invscaling", "adaptive", "c/t", "a/(b+k)"),
    "eta0": _POSITIVE,
    "power_t": Real(0),
    "offset": Real(0),
    "early_stopping": Boolean(),
    "validation_fraction": Real(0, 1, inclusive=False),
    "n_iter_no_change": Integer(1),
    "average": AnyOf(Boolean(), Integer(0)),
}

#: Docstring entries of all models that learn row by row.
ONLINE_DOCS: Mapping[str, str] = {
    "max_iter": """max_iter : int, default={default}
    Maximum number of passes of `fit` over the rows.""",
    "shuffle": """shuffle : bool, default={default}
    Whether each pass of `fit` takes the rows in a new order. In memory this order depends on what is in the rows,
    not on how they are stored; from files each block is shuffled.""",
    "random_state": """random_state : int, Generator, RandomState or None, default={default}
    Order of the rows.""",
    "n_jobs": """n_jobs : int, optional
    Threads for prediction. Learning is in order, on one.""",
}


class SparsifyOnline:
    """`coef_` as a sparse matrix on request; learning keeps it dense."""

    _sparse_: bool

    def sparsify(self) -> Self:
        """Give `coef_` as a sparse matrix.

        Returns
        -------
        self
        """
        self._check_fitted()  # type: ignore[attr-defined]
        self._sparse_ = True
        return self

    def densify(self) -> Self:
        """Give `coef_` as an array, as it is after `fit`.

        Returns
        -------
        self
        """
        self._check_fitted()  # type: ignore[attr-defined]
        self._sparse_ = False
        return self


class StochasticModel(Estimator, ABC):
    """Base of the linear models that are fitted by stochastic gradient steps."""

    _docs: ClassVar[Mapping[str, str]] = {
        **ONLINE_DOCS,
        "penalty": """penalty : {"l2", "l1", "elasticnet"} or None, default={default}
    rho is 0, 1 or `l1_ratio`. "l1" sets coefficients to exactly zero.""",
        "alpha": """alpha : float, default={default}
    Strength of the penalty; also the step of "optimal".""",
        "l1_ratio": """l1_ratio : float, default={default}
    Share of the L1 penalty in "elasticnet".""",
        "fit_intercept": """fit_intercept : bool, default={default}
    Whether b is learnt or 0. It is not penalised.""",
        "intercept_rate": """intercept_rate : float or "auto", default={default}
    Length of the steps of b, relative to those of w. "auto" is 1 for dense rows and 0.01 for sparse ones, whose
    coefficients move rarely while b moves with every row.""",
        "tol": """tol : float or None, default={default}
    `fit` ends when the mean objective has not improved by tol in `n_iter_no_change` passes; None makes all passes.""",
        "epsilon": """epsilon : float, default={default}
    Parameter of the losses "huber" and (squared) "epsilon_insensitive".""",
        "learning_rate": """learning_rate : str, default={default}
    Length of step t: "optimal" 1 / (alpha (t0 + t)), "constant" eta0, "invscaling" eta0 / t^power_t, "adaptive"
    eta0 divided by 5 whenever passes stop to improve, "c/t" eta0 / t, "a/(b+k)" eta0 / (offset + t).""",
        "eta0": """eta0 : float, default={default}
    See `learning_rate`.""",
        "power_t": """power_t : float, default={default}
    See `learning_rate`.""",
        "offset": """offset : float, default={default}
    See `learning_rate`.""",
        "n_iter_no_change": """n_iter_no_change : int, default={default}
    Passes without improvement before `fit` ends.""",
        "average": """average : bool or int, default={default}
    Use the mean of the coefficients over all steps, or over those from step `average` on.""",
    }

    loss: str
    penalty: str | None
    alpha: float
    l1_ratio: float
    fit_intercept: bool
    intercept_rate: float | str
    max_iter: int
    tol: float | None
    shuffle: bool
    epsilon: float
    random_state: Any
    learning_rate: str
    eta0: float
    power_t: float
    offset: float
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    warm_start: bool
    average: bool | int
    n_jobs: int | None
    verbose: int

    _learner_: State

    _takes_sparse: ClassVar[bool] = True

    def _rule(self) -> Rule:
        if self.learning_rate == "optimal" and self.alpha == 0:
            raise ParameterError(
                f"{type(self).__name__}: learning_rate='optimal' divides by alpha, which is 0; expected alpha > 0, or "
                "another learning_rate"
            )
        share = {None: 0.0, "l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio}[self.penalty]
        strength = 0.0 if self.penalty is None else float(self.alpha)
        return Rule(
            self.loss,
            self.learning_rate,
            epsilon=float(self.epsilon),
            eta0=float(self.eta0),
            exponent=float(self.power_t),
            offset=float(self.offset),
            alpha=float(self.alpha),
            l2=strength * (1.0 - share),
            l1=strength * share,
            intercept=bool(self.fit_intercept),
            intercept_rate=None if self.intercept_rate == "auto" else float(self.intercept_rate),
            average_from=int(self.average),
        )

    def _penalty_line(self) -> str:
        shapes = {
            "l2": "|w|^2 / 2",
            "l1": "|w|_1",
            "elasticnet": f"({1 - self.l1_ratio:g} |w|^2 / 2 + {self.l1_ratio:g} |w|_1)",
        }
        return "no penalty" if self.penalty is None else f"{self.alpha:g} {shapes[self.penalty]}"

    # ------------------------------------------------------------------------------------------- epochs

    def _run_epochs(
        self,
        data: Data,
        rule: Rule,
        state: State,
        positive: np.ndarray | None,
        factors: np.ndarray | None,
        attributes: Callable[[State], Mapping[str, Any]],
        holdout: Callable[[ArrayData, np.random.Generator], np.ndarray],
        score: Callable[[ArrayData, np.ndarray, State], float],
    ) -> None:
        """Learn from all rows, epoch after epoch, and conclude with the evidence."""
        resume = self._resume_state()
        seed = int(resume["seed"]) if resume is not None else seed_of(self.random_state)
        keep, validate = None, None
        if self.early_stopping:
            if not isinstance(data, ArrayData):
                raise ParameterError("early_stopping=True holds rows out, which needs data in memory")
            held = holdout(data, np.random.default_rng(seed))
            keep = ~held

            def validate(state: State) -> float:
                return score(data, held, state)

        rows = Presentations(data, shuffle=self.shuffle, seed=seed, factors=factors, keep=keep)
        self._learner_ = state

        def observe(state: State) -> None:
            self._learner_ = state

        dual = None  # kept where it is small beside the rows
        if rule.l2 > 0 and rows.memory is not None and not self.early_stopping and len(state["b"]) <= data.n_features:
            dual = np.zeros((len(rows.memory.y), len(state["b"])))
        tol = self.tol if self.tol is None or self.early_stopping else self.tol * len(state["b"])
        monitor = self._monitor(self.max_iter, lambda _x: attributes(copy_state(self._learner_)))
        run = run_epochs(
            state,
            rule,
            rows,
            NoImprovement(tol, self.n_iter_no_change, adaptive=rule.schedule == "adaptive"),
            positive=positive,
            max_iter=self.max_iter,
            seed=seed,
            resume=resume,
            score=validate,
            observe=observe,
            monitor=monitor,
            dual=dual,
        )
        for name, value in attributes(run.state).items():
            setattr(self, name, value)
        self.t_ = float(run.state["number"][STEP])
        if dual is not None:  # to the mean over the epochs of this run
            epochs = run.n_epochs - (0 if resume is None else int(resume["epoch"]))
            dual /= max(epochs, 1) * rows.counts()[:, None]
        self._conclude(self._solution(run, monitor.history(), data, rule, positive, factors, dual))

    def _solution(
        self,
        run: Run,
        history: History,
        data: Data,
        rule: Rule,
        positive: np.ndarray | None,
        factors: np.ndarray | None,
        mean_slopes: np.ndarray | None,
    ) -> Solution:
        tol = 1e-3 if self.tol is None else float(self.tol)
        models = run.state["v"].shape[1]
        reason, gap, value = run.reason, math.inf, run.objective
        if not self.early_stopping:
            W, b = coefficients(run.state, rule)
            value, gap = suboptimality(data, rule, W, b, positive, factors, mean_slopes)
        if gap <= tol * models:
            meaning = f"the mean objective, {value:.4g}, is within {gap:.1e} of its minimum"
            certificate = Certificate("duality gap", gap, tol * models, meaning)
            reason = "converged" if reason == "max_iter" else reason
        else:
            if self.tol is None and reason == "max_iter":
                reason = "converged"  # all the passes that were asked for
            stopped = reason == "converged"
            what = "validation score" if self.early_stopping else "mean objective"
            passes = f"{run.n_epochs} passes"
            if self.tol is not None and stopped:
                passes += f", in the last {self.n_iter_no_change} of which the {what} did not improve by {tol:g}"
            bound = f"at most {gap:.1e} above its minimum" if math.isfinite(gap) else "no distance from it is known"
            certificate = Certificate(
                "none",
                0.0 if stopped else 1.0,
                0.0,
                f"stochastic steps do not settle at the minimum; {passes}; the objective is {value:.4g}, {bound}",
            )
        return Solution(np.zeros(1), value, history, certificate, run.n_epochs, reason, state=run.saved)


def learn_piece(
    model: Estimator,
    state: State,
    rule: Rule,
    piece: Piece,
    positive: np.ndarray | None,
    *,
    scores: np.ndarray | None = None,
    one: bool,
) -> float:
    """Learn from rows of a stream, in place."""
    losses = learn(
        state, rule, piece.X, piece.y, positive, order=piece.order, fraction=piece.fraction, scores=scores, one=one
    )
    if not math.isfinite(losses):
        raise ConvergenceError(
            f"{type(model).__name__}: a score overflowed, and nothing of this batch was learnt; lower eta0, or scale "
            "the features (StandardScaler, say)"
        )
    return losses


def stream_evidence(model: Any, state: State, losses: float, total: float) -> None:
    """The evidence after a batch of a stream: the mean loss of its rows before they were learnt."""
    model.t_ = float(state["number"][STEP])
    model.n_iter_ = 1
    model.converged_ = True
    model.history_ = History(objective=[losses / total if total else math.nan], rows=[total])
    model.certificate_ = _STREAM


_STREAM = Certificate("none", 0.0, 0.0, "learnt from a stream, each row once: there is no minimum to be far from")


def refuse_dask(data: Data, name: str) -> None:
    if isinstance(data, DaskData):
        raise DataTypeError(
            f"X: {name} learns row after row, in memory or from files; expected an array, a frame or ep.scan(...), got "
            "a Dask collection"
        )


def start_from(state: State, coef: Any, intercept: Any) -> None:
    """Put given coefficients, of shapes (K, p) and (K,), into a new state."""
    p, K = state["v"].shape
    for name, given, shape in (("coef_init", coef, (K, p)), ("intercept_init", intercept, (K,))):
        if given is None:
            continue
        try:
            array = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"{name}: expected an array of numbers") from None
        if array.size != math.prod(shape) or not np.isfinite(array).all():
            raise DataError(f"{name}: expected finite numbers of shape {shape}, got shape {array.shape}")
        if name == "coef_init":
            state["v"][...] = array.reshape(shape).T
        else:
            state["b"][...] = array.reshape(shape)
