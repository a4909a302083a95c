"""Shared by the linear models that learn row by row: their parameters, the rule these mean, epochs and the evidence."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceError, DataError, ParameterError
from epicycle.core._history import History
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting
from epicycle.data import ArrayData, Data
from epicycle.data._matrix import in_type_if_it_fits
from epicycle.linear.online._epochs import NoImprovement, Run, StoppingRule, run_epochs
from epicycle.linear.online._learner import (
    STEP,
    Piece,
    Presentations,
    Rule,
    State,
    coefficients,
    copy_state,
    learn,
    new_state,
)
from epicycle.linear.online._parameters import DOCS
from epicycle.linear.online._suboptimality import suboptimality
from epicycle.optim import Solution
from epicycle.stats._class_scores import linear_predictor

_NO_VALIDATION_WEIGHT = "The sample weights for validation set are all zero, consider using a different random state."


@dataclass(frozen=True)
class Task:
    """Data and settings of a fit."""

    data: Data
    rule: Rule
    rows: Presentations
    #: The code that is +1 for each model; None where y is a number.
    positive: np.ndarray | None
    #: Factors on the weights of the classes.
    factors: np.ndarray | None
    #: (n, K), to which the derivatives of all losses are added; None where they are not kept.
    dual: np.ndarray | None
    n_models: int
    #: Whether the coefficients were given, and whether an earlier run goes on.
    warm: bool
    resumed: bool


def _where_averaged(part: int, *, mean: bool) -> Any:
    """scikit-learn's private attribute of averaged models: the mean of the coefficients, or the last ones."""

    def value(self: Any) -> np.ndarray:
        if not self.average:
            raise AttributeError(f"{type(self).__name__}(average=False) has no mean of its coefficients")
        found: np.ndarray = self._weights(mean=mean)[part]
        return found if part or hasattr(self, "classes_") else found[0]

    return property(value)


class StochasticModel(Estimator, ABC):
    """Base of the linear models that learn row by row."""

    _docs: ClassVar[Mapping[str, str]] = DOCS
    _documented_attributes: ClassVar[tuple[str, ...]] = ("online_attributes",)
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A13",), engines=("memory", "files", "dask"), certificate="duality gap, or none"
    )

    # Parameters; those with a value here are not in the constructor of every class.
    loss: str
    penalty: str | None = None
    alpha: float = 0.0
    l1_ratio: float | None = 0.0
    fit_intercept: bool
    intercept_rate: float | str = "auto"
    max_iter: int
    tol: float | None
    shuffle: bool
    epsilon: float = 0.1
    random_state: Any
    learning_rate: str
    eta0: float
    power_t: float = 0.5
    offset: float = 1.0
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    warm_start: bool
    average: bool | int = False
    n_jobs: int | None = None
    verbose: int

    _learner_: State
    #: The type of X, "float32" or "float64".
    _float_: str
    #: Whether `coef_` is given as a sparse matrix.
    _sparse_: bool

    _takes_sparse: ClassVar[bool] = True
    #: The loss for which passive-aggressive steps are defined.
    _passive_loss: ClassVar[str] = "hinge"

    def _rule(self) -> Rule:
        """The change of the models by a row."""
        if self.learning_rate == "optimal" and self.alpha == 0:
            raise ParameterError(
                f"{type(self).__name__}: learning_rate='optimal' divides by alpha, which is 0; expected alpha > 0, or "
                "another learning_rate"
            )
        if self.learning_rate in ("pa1", "pa2") and self.loss != self._passive_loss:
            raise ParameterError(
                f"learning_rate={self.learning_rate!r} is defined for loss={self._passive_loss!r} alone, got "
                f"loss={self.loss!r}"
            )
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise ParameterError("l1_ratio must be set when penalty is 'elasticnet'")
        share = {None: 0.0, "l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio or 0.0}[self.penalty]
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
        shapes = {"l2": "|w|^2 / 2", "l1": "|w|_1"}
        if self.penalty == "elasticnet" and self.l1_ratio is not None:
            shapes["elasticnet"] = f"({1 - self.l1_ratio:g} |w|^2 / 2 + {self.l1_ratio:g} |w|_1)"
        return f"{self.alpha:g} {shapes[self.penalty]}" if self.penalty in shapes else "no penalty"

    # ------------------------------------------------------------------------------------------- fit

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, coef_init: Any = None, intercept_init: Any = None
    ) -> Self:
        """Fit to rows X with targets or labels y.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Targets; for a classifier labels: numbers, booleans or strings. A scan brings its own.
        """
        earlier = None
        if self.warm_start and hasattr(self, "n_iter_"):
            earlier = getattr(self, "classes_", None)
            W, b = self._weights()
            coef_init = W if coef_init is None else coef_init
            intercept_init = b if intercept_init is None else intercept_init
        return self._fit(X, y, sample_weight, coef_init, intercept_init, earlier)

    @fitting
    def _fit(self, X: Any, y: Any, sample_weight: Any, coef_init: Any, intercept_init: Any, earlier: Any) -> Self:
        """Learn from all rows, epoch after epoch, and conclude with the evidence."""
        if self.early_stopping and sample_weight is not None and not np.any(sample_weight):
            raise DataError(_NO_VALIDATION_WEIGHT)
        data, positive, factors = self._targets(X, y, sample_weight)
        if earlier is not None and not np.array_equal(earlier, self.classes_):
            raise DataError("y: warm_start goes on with the classes of the earlier fit; these are others")
        rule, resume = self._rule(), self._resume_state()
        if self.power_t < 0:
            message = "Negative values for `power_t` are deprecated, as in scikit-learn: the steps grow"
            warnings.warn(message, FutureWarning, stacklevel=4)
        K = 1 if positive is None else len(positive)
        self._learner_, self._float_ = self._first_state(rule, data.n_features, K), str(data.dtype)
        start_from(self._learner_, coef_init, intercept_init)
        drawn = deepcopy(self.random_state)  # as it was before the seed is drawn from it
        seed = int(resume["seed"]) if resume is not None else seed_of(self.random_state)
        keep = score = None
        if self.early_stopping:
            held = self._held_out(data, drawn if isinstance(drawn, np.random.RandomState) else seed % 2**32)
            keep = ~held
            if isinstance(data, ArrayData) and data.weight is not None and not data.weight[keep].any():
                raise DataError(
                    "sample_weight: all rows that are left beside the validation set have the weight 0; expected "
                    "another random_state or validation_fraction"
                )

            def score(state: State) -> float:
                rows: Any = data  # in memory, or nothing could be held out
                return self._validation_score(rows, held, *coefficients(state, rule))

        rows = Presentations(data, shuffle=self.shuffle, seed=seed, factors=factors, keep=keep)
        dual = None
        if rows.memory is not None and self._keeps_dual(rule, K):
            dual = np.zeros((len(rows.memory.y), K))
        warm = coef_init is not None or intercept_init is not None
        task = Task(data, rule, rows, positive, factors, dual, K, warm, resume is not None)
        stopping = self._stopping(task)
        monitor = self._monitor(self.max_iter, lambda _x: self._reconstruction())
        run = run_epochs(
            self._learner_,
            rule,
            rows,
            stopping,
            positive=positive,
            max_iter=self.max_iter,
            seed=seed,
            resume=resume,
            score=score,
            observe=lambda state: setattr(self, "_learner_", state),
            monitor=monitor,
            dual=dual,
            after_piece=self._piece_observer(positive),
        )
        self._learner_ = run.state
        self.t_ = float(run.state["number"][STEP])
        certificate, value, reason = self._evidence(task, stopping, run)
        self._conclude(
            Solution(np.zeros(1), value, monitor.history(), certificate, run.n_epochs, reason, state=run.saved)
        )
        return self

    @abstractmethod
    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Data, np.ndarray | None, np.ndarray | None]:
        """(data with float64 targets or codes, the code that is +1 for each model, factors of the classes)."""

    @abstractmethod
    def _validation_score(self, data: ArrayData, held: np.ndarray, W: np.ndarray, b: np.ndarray) -> float:
        """The score of these coefficients on the rows that are held out."""

    def _first_state(self, rule: Rule, p: int, K: int) -> State:
        """The learner before the first row."""
        return new_state(rule, p, K)

    def _stopping(self, task: Task) -> StoppingRule:
        tol = self.tol if self.tol is None or self.early_stopping else self.tol * task.n_models
        return NoImprovement(tol, self.n_iter_no_change, adaptive=task.rule.schedule == "adaptive")

    def _certified_rule(self, rule: Rule, total: float) -> Rule:
        """The objective from whose minimum the distance is bounded, for rows that count for `total`."""
        return rule

    def _keeps_dual(self, rule: Rule, K: int) -> bool:
        """Whether the mean derivatives of all rows are kept: where they are of use and small beside the rows."""
        return self._certified_rule(rule, 1.0).l2 > 0 and not self.early_stopping and self.n_features_in_ >= K

    def _piece_observer(self, positive: np.ndarray | None) -> Any:
        """The callback for every piece of rows and their scores before they were learnt; None for nothing."""
        return None

    def _reconstruction(self) -> dict[str, Any]:
        """The attributes that prediction needs, for callbacks while learning."""
        names = ("classes_", "_open_", "_float_", "_survivors_")
        return {name: vars(self)[name] for name in names if name in vars(self)} | {
            "_learner_": copy_state(self._learner_)
        }

    def _held_out(self, data: Data, random_state: Any) -> np.ndarray:
        """A mask of the rows of the validation set, those that scikit-learn holds out for the same random_state."""
        if not isinstance(data, ArrayData):
            raise ParameterError("early_stopping=True holds rows out, which needs data in memory")
        y = np.asarray(data.y)
        splitter = StratifiedShuffleSplit if hasattr(self, "classes_") else ShuffleSplit
        split = splitter(1, test_size=self.validation_fraction, random_state=random_state)
        try:
            _, held = next(split.split(np.zeros((len(y), 1)), y))
        except ValueError as error:
            raise DataError(f"validation_fraction={self.validation_fraction:g}: {error}") from None
        if data.weight is not None and not data.weight[held].any():
            raise DataError(_NO_VALIDATION_WEIGHT)
        mask = np.zeros(len(y), dtype=bool)
        mask[held] = True
        return mask

    def _evidence(self, task: Task, stopping: StoppingRule, run: Run) -> tuple[Certificate, float, str]:
        """(certificate, objective, reason of the end)."""
        tol = 1e-3 if self.tol is None else float(self.tol)
        reason, gap, value = run.reason, math.inf, run.objective
        if not self.early_stopping:
            W, b = coefficients(run.state, task.rule)
            rule = self._certified_rule(task.rule, run.total)
            mean = None if task.dual is None else task.dual / (max(run.passes, 1) * task.rows.counts()[:, None])
            value, gap = suboptimality(task.data, rule, W, b, task.positive, task.factors, mean)
        if gap <= tol * task.n_models:
            meaning = f"the mean objective, {value:.4g}, is within {gap:.1e} of its minimum"
            certificate = Certificate("duality gap", gap, tol * task.n_models, meaning)
            return certificate, value, "converged" if reason == "max_iter" else reason
        if self.tol is None and reason == "max_iter":
            reason = "converged"  # all the passes that were asked for
        stopped = reason == "converged"
        passes = f"{run.n_epochs} passes"
        if self.tol is not None and stopped:
            what = "validation score" if self.early_stopping else "mean objective"
            passes += f", in the last {self.n_iter_no_change} of which the {what} did not improve by {tol:g}"
        bound = f"at most {gap:.1e} above its minimum" if math.isfinite(gap) else "no distance from it is known"
        meaning = f"stochastic steps do not settle at the minimum; {passes}; the objective is {value:.4g}, {bound}"
        return Certificate("none", 0.0 if stopped else 1.0, 0.0, meaning), value, reason

    # ------------------------------------------------------------------------------------------- a stream

    def _stream_rule(self) -> Rule:
        if self.early_stopping:
            raise ParameterError("early_stopping should be False with partial_fit: a stream has no validation set")
        return self._rule()

    def _learn_piece(
        self, state: State, rule: Rule, piece: Piece, positive: np.ndarray | None, scores: np.ndarray | None, one: bool
    ) -> float:
        """Learn from rows of a stream, in place; gives the sum of their losses."""
        losses = learn(
            state, rule, piece.X, piece.y, positive, order=piece.order, fraction=piece.fraction, scores=scores, one=one
        )
        if not math.isfinite(losses):
            raise ConvergenceError(
                f"{type(self).__name__}: a score overflowed, and nothing of this batch was learnt; lower eta0, or "
                "scale the features (StandardScaler, say)"
            )
        return losses

    def _conclude_stream(self, losses: float, total: float) -> None:
        """The evidence after a batch of a stream: the mean loss of its rows before they were learnt."""
        self.t_ = float(self._learner_["number"][STEP])
        self.n_iter_ = 1
        self.converged_ = True
        self.history_ = History(objective=[losses / total if total else math.nan], rows=[total])
        self.certificate_ = _STREAM

    # ------------------------------------------------------------------------------------------- the model

    def _models(self) -> list[int]:
        """The models that predict."""
        return [0]

    def _weights(self, *, mean: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """(W, b) of the models that predict, in float64; the last ones in place of their mean on request."""
        if "_learner_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no coefficients before it is fitted")
        W, b = coefficients(self._learner_, self._rule(), mean=mean)
        models = self._models()
        return W[models], b[models]

    _average_coef = _where_averaged(0, mean=True)
    _average_intercept = _where_averaged(1, mean=True)
    _standard_coef = _where_averaged(0, mean=False)
    _standard_intercept = _where_averaged(1, mean=False)

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        """(W, b) in the type of X."""
        W, b = self._weights()
        return in_type_if_it_fits(W, self._float_), in_type_if_it_fits(b, self._float_)

    @property
    def coef_(self) -> Any:
        """Coefficients: a vector for a regression, one row for two classes, otherwise one for each class."""
        W = self._linear()[0]
        if getattr(self, "_sparse_", False):
            return sp.csr_array(W)
        return W if hasattr(self, "classes_") else W[0]

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, one for each row of the coefficients."""
        return self._linear()[1]

    def _scores(self, X: Any) -> Any:
        """b + W x, of shape (n, K)."""
        data = self._predict_data(X)
        return linear_predictor(data, *self._linear(), self.n_jobs)

    def sparsify(self) -> Self:
        """Give `coef_` as a sparse matrix; learning keeps it dense."""
        self._check_fitted()
        self._sparse_ = True
        return self

    def densify(self) -> Self:
        """Give `coef_` as an array, as it is after `fit`."""
        self._check_fitted()
        self._sparse_ = False
        return self


_STREAM = Certificate("none", 0.0, 0.0, "learnt from a stream, each row once: there is no minimum to be far from")


def start_from(state: State, coef: Any, intercept: Any) -> None:
    """Put given coefficients, of shapes (K, p) and (K,), into a new state."""
    p, K = state["v"].shape
    for name, given, shape in (("coef_init", coef, (K, p)), ("intercept_init", intercept, (K,))):
        if given is None:
            continue
        try:
            array = np.array(given.toarray() if sp.issparse(given) else given, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"{name}: expected an array of numbers") from None
        if array.size != math.prod(shape) or not np.isfinite(array).all():
            raise DataError(
                f"Provided {name} does not match dataset: expected finite numbers of shape {shape}, got {array.shape}"
            )
        if name == "coef_init":
            state["v"][...] = array.reshape(shape).T
        else:
            state["b"][...] = array.reshape(shape)
