"""The state of a learner, the one call that changes it, and the order in which it takes rows.

The state is a dictionary of arrays: with w = s v for each of K models,

    v (p, K), b (K,)             coefficients and intercepts
    number (8,)                  step t, scale s, L1 penalty owed, sums for the mean, the step of "adaptive", ...
    mistakes (K,)                rows that were on the wrong side before they were learnt
    a, base (p, K), b_sum (K,)   of the mean of w over the steps, where it is asked for
    q (p, K)                     L1 penalty that each coefficient has paid, where there is one

Its mathematics is written down in native/online/sgd.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._random import stream
from epicycle.data import ArrayData, Batch, Data, Matrix
from epicycle.engine._row_order import batches_in_order, content_order, repeated
from epicycle.optim._losses import LOSSES

State = dict[str, np.ndarray]

SCHEDULES = ("optimal", "constant", "invscaling", "adaptive", "c/t", "a/(b+k)", "pa1", "pa2")
#: The intercept of sparse rows moves with every row, any coefficient with few: it takes shorter steps.
SPARSE_RATE = 0.01
STEP, SCALE, OWED, SUM, COUNT, ETA, CAPPED, FIRST = range(8)


@dataclass(frozen=True)
class Rule:
    """The change of the models by a row: the loss, the schedule of steps and the penalty."""

    loss: str
    schedule: str
    epsilon: float = 0.1
    eta0: float = 1.0
    exponent: float = 0.5
    offset: float = 1.0
    alpha: float = 0.0
    l2: float = 0.0
    l1: float = 0.0
    intercept: bool = True
    #: Length of the intercept's steps relative to the others; None follows the rows.
    intercept_rate: float | None = 1.0
    average_from: int = 0
    #: Slope of the objective in the intercept, beside that of the losses: nu of the one-class machine.
    pull: float = 0.0

    def native(self, sparse: bool) -> _native.online.Rule:
        """The rule of the kernel."""
        rate = self.intercept_rate if self.intercept_rate is not None else SPARSE_RATE if sparse else 1.0
        twin: Any = LOSSES[self.loss].native  # every loss of an online model has one
        return _native.online.Rule(
            loss=twin,
            epsilon=self.epsilon,
            schedule=SCHEDULES.index(self.schedule),
            eta0=self.eta0,
            exponent=self.exponent,
            offset=self.offset,
            alpha=self.alpha,
            l2=self.l2,
            l1=self.l1,
            intercept=rate if self.intercept else 0.0,
            average_from=self.average_from,
            pull=self.pull,
        )

    def penalty(self, W: np.ndarray, b: np.ndarray) -> float:
        """The penalty of the objective, over all models, of shapes (K, p) and (K,)."""
        value = self.pull * float(b.sum())
        if self.l2:
            value += self.l2 / 2 * float(np.vdot(W, W))
        if self.l1:
            value += self.l1 * float(np.abs(W).sum())
        return value


def new_state(rule: Rule, p: int, K: int) -> State:
    """A learner that has seen nothing."""
    state = {"v": np.zeros((p, K)), "b": np.zeros(K), "number": np.zeros(8), "mistakes": np.zeros(K)}
    number = state["number"]
    number[STEP] = number[SCALE] = 1.0
    number[ETA] = rule.eta0
    complete(state, rule)
    return state


def complete(state: State, rule: Rule) -> None:
    """Add the arrays that the rule needs and the state does not have yet: the penalty or the mean begins here."""
    p, K = state["v"].shape
    if rule.average_from and "a" not in state:
        state.update(a=np.zeros((p, K)), base=np.zeros((p, K)), b_sum=np.zeros(K))
    if rule.l1 and "q" not in state:
        state["q"] = np.zeros((p, K))
    if rule.schedule == "optimal":
        # t begins such that the first step is that of a typical weight, 1 / alpha^(1/4), for a slope of one.
        state["number"][FIRST] = rule.alpha**-0.75


def copy_state(state: State) -> State:
    return {name: array.copy() for name, array in state.items()}


def learn(
    state: State,
    rule: Rule,
    X: Matrix,
    y: np.ndarray,
    positive: np.ndarray | None,
    *,
    order: np.ndarray | None = None,
    fraction: np.ndarray | None = None,
    dual: np.ndarray | None = None,
    scores: np.ndarray | None = None,
    one: bool = False,
) -> float:
    """Learn from rows, in place; gives the sum of the losses, each taken before its row was learnt.

    Parameters
    ----------
    X, y : rows and their float64 targets or codes of labels.
    positive : the code that is +1 for each model, None for regression.
    order, fraction : which row is shown when, and how much of a row it counts for; None for each once, as they come.
    dual : (n, K), to which the derivative of every row's loss is added.
    scores : (m, K), where the score of every presentation before its step is written.
    one : whether there is only ever one model, for which there is a faster loop with sums in another order.

    Returns
    -------
    float
        nan where a score overflowed; the state is then of no use.
    """
    complete(state, rule)
    learner = _native.online.State(
        v=state["v"],
        b=state["b"],
        number=state["number"],
        a=state.get("a"),
        base=state.get("base"),
        b_sum=state.get("b_sum"),
        q=state.get("q"),
    )
    y = np.ascontiguousarray(y)
    return _native.online.learn(
        X, rule.native(sp.issparse(X)), learner, y, positive, order, fraction, dual, scores, state["mistakes"], one
    )


def coefficients(state: State, rule: Rule, *, mean: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """(W, b) of shapes (K, p) and (K,), every penalty paid: the mean where it is wanted and has begun."""
    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks whether they are finite
        return _coefficients(state, mean=mean and rule.average_from > 0)


def _coefficients(state: State, *, mean: bool) -> tuple[np.ndarray, np.ndarray]:
    v, number = state["v"], state["number"]
    if mean and "a" in state and number[COUNT] > 0:
        W = (state["base"] + number[SUM] * v - state["a"]) / number[COUNT]
        return W.T, state["b_sum"] / number[COUNT]
    if "q" in state:
        owed, paid = number[OWED], state["q"]
        v = np.where(v > 0, np.maximum(v - (owed + paid), 0.0), np.minimum(v + (owed - paid), 0.0))
    return (number[SCALE] * v).T, state["b"].copy()


def pick_models(state: State, columns: list[int]) -> State:
    """The same learner with the models `columns`, in this order; a model may be taken more than once."""
    chosen = dict(state)
    for name in ("v", "b", "mistakes", "a", "base", "b_sum", "q"):
        if name in state:
            chosen[name] = np.ascontiguousarray(state[name][..., columns])
    chosen["number"] = state["number"].copy()
    return chosen


# --------------------------------------------------------------------------------------------------------------------
# Which row is shown when.
#
# A row of weight v counts as v rows: it is shown as often as its weight says, and a last time for the fraction that
# is left. Shuffled, the order of an epoch depends on the seed, the epoch and what is in the rows, never on how they
# are stored. So a fit is the same for rows in another order, for rows that are repeated instead of weighted, and for
# rows of weight zero that are left out.


@dataclass(frozen=True)
class Piece:
    """Rows in memory and the order in which they are shown."""

    X: Matrix
    y: np.ndarray
    order: np.ndarray | None
    fraction: np.ndarray | None
    start: int = 0

    @property
    def n_shown(self) -> int:
        """Number of presentations."""
        return len(self.y) if self.order is None else len(self.order)

    @property
    def total(self) -> float:
        """Number of rows that they count for."""
        if self.fraction is not None:
            return float(self.fraction.sum())
        return float(self.n_shown)


class Presentations:
    """The rows of a data set, epoch after epoch.

    Parameters
    ----------
    data : Data
        With targets, codes of labels, or neither.
    shuffle : bool
        In memory all rows are shuffled, from files and partitions those of each block.
    seed : int
    factors : ndarray, optional
        A factor on the weight of each class.
    keep : ndarray of bool, optional
        The rows to learn from, for data in memory.
    """

    def __init__(
        self, data: Data, *, shuffle: bool, seed: int, factors: np.ndarray | None = None, keep: np.ndarray | None = None
    ) -> None:
        self.data, self.shuffle, self.seed, self.factors = data, shuffle, seed, factors
        self.memory: Piece | None = None
        if isinstance(data, ArrayData):
            y = row_targets(data)
            weight = self._weight(data.weight, y)
            rows = content_order(data.X, y, weight) if shuffle else None
            if keep is not None:
                rows = np.flatnonzero(keep) if rows is None else rows[keep[rows]]
            self.memory = Piece(data.X, y, *repeated(weight, rows))

    def epoch(self, number: int) -> Iterator[Piece]:
        """The rows of one epoch, in pieces."""
        rng = stream(self.seed, "epoch", number)
        if self.memory is not None:
            yield _shuffled(self.memory, rng) if self.shuffle else self.memory
            return
        for batch in row_batches(self.data):
            y = row_targets(batch)
            piece = Piece(batch.X, y, *repeated(self._weight(batch.weight, y)), batch.start)
            yield _shuffled(piece, rng) if self.shuffle else piece

    def counts(self) -> np.ndarray:
        """For data in memory, how many rows each row counts for in an epoch; 1 for those that are not shown."""
        if self.memory is None:
            raise ValueError("rows of files are not counted one by one")
        shown = np.zeros(len(self.memory.y))
        if self.memory.order is None:
            return np.ones(len(shown))
        np.add.at(shown, self.memory.order, 1.0 if self.memory.fraction is None else self.memory.fraction)
        return np.where(shown > 0, shown, 1.0)

    def _weight(self, weight: np.ndarray | None, y: np.ndarray) -> np.ndarray | None:
        if self.factors is None:
            return weight
        factors = self.factors[y.astype(np.intp)]
        return factors if weight is None else factors * weight


def _shuffled(piece: Piece, rng: np.random.Generator) -> Piece:
    shown = np.arange(len(piece.y)) if piece.order is None else piece.order
    permutation = rng.permutation(len(shown))
    fraction = None if piece.fraction is None else piece.fraction[permutation]
    return Piece(piece.X, piece.y, shown[permutation], fraction, piece.start)


def row_batches(data: Data) -> Iterator[Batch]:
    """All rows in order, in batches whose rows lie together in memory."""
    for batch in batches_in_order(data):
        X = batch.X if sp.issparse(batch.X) or isinstance(data, ArrayData) else np.ascontiguousarray(batch.X)
        yield Batch(X, batch.y, batch.weight, batch.start)


def row_targets(data: ArrayData | Batch) -> np.ndarray:
    """Targets or codes in float64; ones where there are no targets."""
    return np.ones(data.n_rows) if data.y is None else np.ascontiguousarray(data.y, dtype=np.float64)


def row_squares(X: Matrix) -> np.ndarray:
    """|x_i|^2."""
    return _native.core.row_squares(X)
