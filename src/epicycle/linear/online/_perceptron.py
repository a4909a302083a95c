"""The perceptron:  on a mistake, y_i (w'x_i + b) <= 0,  w <- w + y_i x_i  and  b <- b + y_i.

If some unit vector u has y_i u'(x_i, 1) >= gamma for all rows, and no row is longer than D, the number of mistakes is
at most (D / gamma)^2, whatever the order of the rows and however often they come: each mistake adds at least gamma to
u'w and at most D^2 to |w|^2, and u'w <= |w|.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import Choice, Domain
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Batch
from epicycle.linear.online._base_classifier import OnlineClassifier
from epicycle.linear.online._base_sgd import Task
from epicycle.linear.online._epochs import Run
from epicycle.linear.online._learner import Piece, Rule
from epicycle.linear.online._margin import Margin, Separation
from epicycle.linear.online._parameters import CLASS_WEIGHT, PENALTY_PARAMETERS, SHARED_PARAMETERS
from epicycle.stats._class_scores import choose_class, one_or_all

# --------------------------------------------------------------------------------------------------------------------
# The voted perceptron's memory: every weight vector that it ever had, and how many rows each survived.


#: For each model: weight vectors of shape (M, p + 1), the intercept last, and the rows that each survived.
Survivors = dict[str, list[np.ndarray]]


def no_survivors(p: int, K: int) -> Survivors:
    """Vectors of zeros that have survived nothing yet."""
    return {"vectors": [np.zeros((1, p + 1)) for _ in range(K)], "votes": [np.zeros(1) for _ in range(K)]}


def add_survivors(kept: Survivors, piece: Piece, positive: np.ndarray, scores: np.ndarray, rule: Rule) -> Survivors:
    """The vectors after rows that had these scores; a mistake on row x makes w + eta0 y x the next vector."""
    m, X = len(scores), piece.X
    sparse = sp.issparse(X)
    rows = np.arange(m) if piece.order is None else piece.order
    share = np.ones(m) if piece.fraction is None else piece.fraction
    vectors, votes = [], []
    for k in range(len(positive)):
        sign = np.where(piece.y[rows] == positive[k], 1.0, -1.0)
        hits = np.flatnonzero(sign * scores[:, k] <= 0)
        before, counts = kept["vectors"][k], kept["votes"][k]
        require_memory(
            8.0 * (len(before) + len(hits)) * before.shape[1],
            f"Perceptron(variant='voted'), which keeps a vector for each of {len(before) + len(hits) - 1} mistakes,",
            "use variant='averaged', which keeps one",
        )
        found = np.empty((len(hits), before.shape[1]))
        current = before[-1].copy()
        for i, hit in enumerate(hits):  # one vector is written for each, so the loop is not what it costs
            row, step = rows[hit], rule.eta0 * sign[hit] * share[hit]
            if sparse:
                start, stop = X.indptr[row], X.indptr[row + 1]
                np.add.at(current, X.indices[start:stop], step * X.data[start:stop])
            else:
                current[:-1] += step * X[row]
            current[-1] += step if rule.intercept else 0.0
            found[i] = current
        # A vector survives from the row that made it up to the next mistake.
        ends = np.concatenate([[0.0], np.cumsum(share)])
        at = np.concatenate([ends[hits], ends[-1:]])
        counts = np.concatenate([counts, np.diff(at)])
        counts[len(before) - 1] += at[0]
        vectors.append(np.concatenate([before, found]))
        votes.append(counts)
    return {"vectors": vectors, "votes": votes}


def votes_batch(batch: Batch, kept: Survivors, models: list[int]) -> Any:
    """The mean vote of each model's vectors, between -1 and 1, shape (n, K)."""
    out = np.empty((batch.n_rows, len(models)))
    for column, k in enumerate(models):
        vectors, votes = kept["vectors"][k], kept["votes"][k]
        signs = np.sign(np.asarray(batch.X @ vectors[:, :-1].T) + vectors[:, -1])
        out[:, column] = signs @ votes / max(float(votes.sum()), 1.0)
    return out


class Perceptron(OnlineClassifier):
    r"""Linear classifier that learns from its mistakes, with the bound on their number.

    A row on the wrong side, :math:`y_i (w'x_i + b) \le 0` with :math:`y_i \in \{-1, 1\}`, moves the weights,

    .. math:: w \leftarrow w + \eta_0 y_i x_i, \qquad b \leftarrow b + \eta_0 y_i ,

    and any other row does nothing. Where the classes can be separated, with margin :math:`\gamma` in the space of
    :math:`(x, 1)`, it makes at most :math:`(D / \gamma)^2` mistakes, D being the length of the longest row. The fit
    ends with a proof: of the separation it found, with that bound, or of there being none. More than two classes are
    learnt one against the rest.

    Parameters
    ----------
    variant : {"online", "averaged", "voted"}, default="online"
        Predict with the last weights, with their mean over all rows shown, or by a vote of all weights that ever were,
        each with as many votes as rows it survived. The vote keeps a vector for every mistake.
    penalty : {"l2", "l1", "elasticnet"} or None, default=None
        With a penalty the weights shrink at every row, as in :class:`SGDClassifier`; the bound on the mistakes is that
        of the perceptron without one, and is not given.
    alpha : float, default=0.0001
        Strength of the penalty.
    eta0 : float, default=1.0
        Length of the steps. Without a penalty it scales the weights and changes no prediction.
    tol : float or None, default=1e-3
        When the share of mistakes has not fallen by tol in `n_iter_no_change` passes, `fit` asks whether the rows are
        separable at all, and ends if no hyperplane has a margin above tol times D. None passes on to a pass without
        mistakes, or to `max_iter`. With a penalty or early stopping `fit` ends when the objective or the score has not
        improved by tol.
    n_iter_no_change : int, default=5
        See `tol`.
    warm_start : bool, default=False
        Whether `fit` starts from the weights of the earlier fit; the bound then does not hold and is not given.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The last weights, or their mean for "averaged".
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_mistakes_ : int, float or ndarray of shape (n_classes,)
        Mistakes made while learning, rows counted by their weights; for more than two classes those of each model.
    separable_ : bool or ndarray of shape (n_classes,)
        Whether a separating hyperplane is known. Set by `fit`, in memory.
    margin_ : float or ndarray of shape (n_classes,)
        The margin gamma of the best separating hyperplane known, within 0.1% of the largest there is where that could
        be reached; 0 without one.
    radius_ : float
        D, the length of the longest (x, 1), or x without intercept.
    mistake_bound_ : float or ndarray of shape (n_classes,)
        (D / gamma)^2; infinite where no hyperplane is known to separate.
    t_ : float
        One more than the number of rows shown so far, each counted by its weight.
    certificate_ : Certificate
        "separating hyperplane": a whole pass without mistakes. "margin bound": no hyperplane has a larger margin than
        this share of D, by weights a_i >= 0 for which the sum of a_i y_i (x_i, 1) all but vanishes.
    history_ : History
        Mean loss and mistakes of every pass.

    Notes
    -----
    A row of weight v is shown v times, with a last, shorter step for the fraction that is left.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import Perceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Perceptron().fit(X, y == 0)
    >>> print(model.certificate_)
    separating hyperplane 0.00e+00 (tolerance 0.00e+00): holds
    >>> bool(model.n_mistakes_ <= model.mistake_bound_)
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "variant": Choice("online", "averaged", "voted"),
        **SHARED_PARAMETERS,
        **PENALTY_PARAMETERS,
        "class_weight": CLASS_WEIGHT,
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A12",), engines=("memory", "files", "dask"), certificate="separating hyperplane"
    )

    variant: str
    loss = "perceptron"
    learning_rate = "constant"
    intercept_rate = 1.0

    _survivors_: Survivors

    @stores_arguments(
        fit_intercept=True, max_iter=1000, tol=1e-3, warm_start=False, random_state=0, n_jobs=None, verbose=0
    )
    def __init__(
        self,
        *,
        variant: str = "online",
        penalty: str | None = None,
        alpha: float = 0.0001,
        l1_ratio: float | None = 0.15,
        shuffle: bool = True,
        eta0: float = 1.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Mapping[Any, float] | str | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @property
    def average(self) -> int:  # type: ignore[override]
        return int(self.variant == "averaged")

    # ------------------------------------------------------------------------------------------- fit

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, coef_init: Any = None, intercept_init: Any = None
    ) -> Self:
        """Fit to rows X with labels y."""
        if self.variant == "voted" and self.warm_start and hasattr(self, "_learner_"):
            raise ParameterError("warm_start=True with variant='voted': the votes of an earlier fit do not go on")
        if self.variant == "voted" and hasattr(self, "solver_state_"):
            raise ParameterError("variant='voted': its votes are not part of a checkpoint; fit a clone from the start")
        if self.variant == "voted" and self.penalty is not None:
            raise ParameterError(
                f"variant='voted' keeps the sums of mistakes, which are not the weights with penalty={self.penalty!r}; "
                "expected penalty=None"
            )
        return super().fit(X, y, sample_weight, coef_init=coef_init, intercept_init=intercept_init)

    def _stopping(self, task: Task) -> Separation:
        # With a penalty mistakes need not end, and with a validation set they are not what counts.
        plain = self.penalty is None and not self.early_stopping
        return Separation(
            task.rows,
            task.positive,
            task.dual,
            rule=task.rule,
            tol=self.tol,
            patience=self.n_iter_no_change,
            from_zero=not (task.warm or task.resumed or self.penalty is not None),
            otherwise=None if plain else super()._stopping(task),
        )

    def _keeps_dual(self, rule: Rule, K: int) -> bool:
        return True  # minus the sign of a row times the mistakes on it

    def _evidence(self, task: Task, stopping: Any, run: Run) -> tuple[Certificate, float, str]:
        separation: Separation = stopping
        self._set_counts(weighted=task.data.has_weight or task.factors is not None)
        margins = None
        if task.dual is not None:
            margins = [separation.margin(run.state, k, run.n_epochs) for k in range(task.n_models)]
            self._set_margins(margins, task)
        certificate = self._certificate(run, separation, margins)
        reason = "converged" if certificate.holds and run.reason == "max_iter" else run.reason
        return certificate, run.objective, reason

    def _set_counts(self, *, weighted: bool) -> None:
        mistakes = self._learner_["mistakes"][self._models()]
        self.n_mistakes_ = one_or_all(mistakes if weighted else mistakes.astype(np.int64))

    def _set_margins(self, margins: list[Margin], task: Task) -> None:
        """Bounds on the margin of every model, for rows in memory."""
        lower = np.array([m.lower for m in margins])
        self.radius_ = margins[0].radius
        self.margin_ = one_or_all(lower)
        self.separable_ = one_or_all(lower > 0)
        if not task.warm and self.penalty is None:
            memory: Any = task.rows.memory
            longest = 1.0 if memory.fraction is None else max(1.0, float(memory.fraction.max()))
            bound = np.full(len(lower), np.inf)
            with np.errstate(over="ignore"):
                np.divide(self.radius_, lower, out=bound, where=lower > 0)
                self.mistake_bound_ = one_or_all(longest * np.square(bound))

    def _certificate(self, run: Run, separation: Separation, margins: list[Margin] | None) -> Certificate:
        if separation.clean.all():
            meaning = f"pass {run.n_epochs} made no mistake: every row is on its side of the hyperplane"
            if margins is not None:
                least = min(margins, key=lambda m: m.lower)
                meaning += (
                    f"; the largest possible margin is between {least.lower:.4g} and {least.upper:.4g}, the longest "
                    f"row {least.radius:.4g}"
                )
            return Certificate("separating hyperplane", 0.0, 0.0, meaning)
        left = [m for m, clean in zip(margins or [], separation.clean, strict=False) if not clean]
        if margins is not None and not any(m.separable for m in left):
            value = max(m.upper / m.radius if m.radius > 0 else 0.0 for m in left)
            meaning = (
                f"the rows are not separable{'' if len(margins) == 1 else ' (one class from the rest)'}: no hyperplane "
                f"has a margin above {value:.1e} of the longest row"
            )
            certificate = Certificate("margin bound", value, separation.resolution, meaning)
            if certificate.holds or separation.otherwise is None:
                return certificate
        elif margins is not None and separation.otherwise is None:
            meaning = "the rows are separable, and the passes were too few to separate them"
            return Certificate("separating hyperplane", 1.0, 0.0, meaning)
        meaning = f"the last of {run.n_epochs} passes made mistakes still"
        if self.penalty is None and margins is None:  # from files: what the mistakes themselves prove
            w = np.sqrt(np.square(np.vstack([run.state["v"], run.state["b"]])).sum(axis=0)) / self.eta0
            upper = w / np.maximum(run.state["mistakes"], 1e-300)
            meaning += f"; no hyperplane has a margin above {float(upper[~separation.clean].max()):.3g}"
        return Certificate("none", 0.0 if run.reason == "converged" else 1.0, 0.0, meaning)

    # ------------------------------------------------------------------------------------------- votes

    def _wants_scores(self) -> bool:
        return bool(self.variant == "voted")

    def _piece_observer(self, positive: Any) -> Any:
        if self.variant != "voted":
            return None
        return lambda piece, scores: self._after_piece(piece, positive, scores)

    def _after_piece(self, piece: Piece, positive: np.ndarray, scores: np.ndarray) -> None:
        if not hasattr(self, "_survivors_"):
            self._survivors_ = no_survivors(piece.X.shape[1], len(positive))
        self._survivors_ = add_survivors(self._survivors_, piece, positive, scores, self._rule())

    def _after_growth(self, columns: list[int]) -> None:
        if hasattr(self, "_survivors_"):
            self._survivors_ = {name: [arrays[k] for k in columns] for name, arrays in self._survivors_.items()}

    def _after_stream(self, *, weighted: bool) -> None:
        self._set_counts(weighted=weighted or isinstance(getattr(self, "n_mistakes_", 0), float))

    def decision_function(self, X: Any) -> Any:
        """Scores: b + W x, or for "voted" the mean vote between -1 and 1.

        One a row for two classes (positive favours ``classes_[1]``), otherwise one for each class.
        """
        return super().decision_function(X)

    def _scores(self, X: Any) -> Any:
        if self.variant != "voted":
            return super()._scores(X)
        data = self._predict_data(X)
        return engine.map(votes_batch, data, self._survivors_, self._models(), n_jobs=self.n_jobs)

    def predict(self, X: Any) -> Any:
        """The class on whose side every row lies; for more than two, that of the largest score."""
        if self.variant != "voted":
            return super().predict(X)
        data = self._predict_data(X)
        return engine.map(_vote_batch, data, self._survivors_, self._models(), self.classes_, n_jobs=self.n_jobs)


def _vote_batch(batch: Batch, kept: Survivors, models: list[int], classes: np.ndarray) -> np.ndarray:
    return choose_class(votes_batch(batch, kept, models), classes)
