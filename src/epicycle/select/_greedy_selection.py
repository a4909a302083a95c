"""Forward and backward selection: one feature at a time, by cross-validated score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Boolean, Domain, Integer, NoneOr
from epicycle.core._plot_style import Axes, axes_of, styled
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.optim import Solution
from epicycle.select._base import COMMON, FeatureSelection, chosen_size, rounding
from epicycle.select._inputs import Rows, Split
from epicycle.select._scorers import Scorer
from epicycle.select._subset_scores import Subset, SubsetScores, subset_scores
from epicycle.stats._intervals import standard_error


class Move:
    """One step of the search: the feature that was added or removed, and the subset with its score."""

    def __init__(self, subset: Subset, feature: float, scores: np.ndarray) -> None:
        self.subset, self.feature = subset, feature
        self.score = float(np.mean(scores))
        self.std_error = float(standard_error(scores))


class SearchPath:
    """Path of a greedy search, with the best subset of every size."""

    def __init__(self, scores: SubsetScores, *, forward: bool, n_features: int, tol: float) -> None:
        self.scores, self.forward, self.p, self.tol = scores, forward, n_features, tol
        self.moves: list[Move] = []
        self.best: dict[int, Move] = {}

    def mask(self, subset: Subset) -> np.ndarray:
        x = np.zeros(self.p)
        x[list(subset)] = 1.0
        return x

    def step(self, subset: Subset, *, add: bool) -> tuple[Subset, int, np.ndarray]:
        """The best subset with one feature more, or one less."""
        others = [j for j in range(self.p) if (j in subset) != add]
        neighbours = [subset | {j} if add else subset - {j} for j in others]
        scores = self.scores(neighbours)
        means = scores.mean(axis=1)
        if not np.isfinite(means).any():
            raise ParameterError("scoring: has no finite value on the folds; choose another metric, or other splits")
        means = np.where(np.isfinite(means), means, -np.inf)
        # Differences of rounding do not decide: of equal features the first is taken.
        at = int(np.argmax(means >= means.max() - rounding(means)))  # of equals the first
        return neighbours[at], others[at], scores[at]

    def record(self, subset: Subset, feature: float, scores: np.ndarray) -> Move:
        move = Move(subset, feature, scores)
        self.moves.append(move)
        known = self.best.get(len(subset))
        if known is None or move.score > known.score:
            self.best[len(subset)] = move
        return move

    def walk(self, wanted: int | None, *, patience: int | None, floating: bool) -> Iterator[Move]:
        """Generate the moves one after the other."""
        if self.forward:
            current: Subset = frozenset()
            last = self.p if wanted is None else wanted
        else:
            current = frozenset(range(self.p))
            last = 1 if wanted is None else wanted
            yield self.record(current, np.nan, self.scores([current])[0])
        since, best = 0, -np.inf
        while len(current) != last:
            current, feature, found = self.step(current, add=self.forward)
            move = self.record(current, feature, found)
            yield move
            while floating and 1 < len(current) < self.p:
                # Back for as long as that leads to a better set than is known of its size.
                back, feature, found = self.step(current, add=not self.forward)
                if len(back) in self.best and self.best[len(back)].score >= np.mean(found) - rounding(found):
                    break
                yield self.record(back, feature, found)
                current = back
            if patience is not None:
                since, best = (0, move.score) if move.score > best + self.tol else (since + 1, best)
                if since >= patience:
                    return

    def choose(self, wanted: int | None, tol: float, one_se: bool) -> Subset:
        sizes = np.array(sorted(self.best))
        if wanted is not None:
            return self.best[wanted].subset
        moves = [self.best[k] for k in sizes]
        score, error = np.array([m.score for m in moves]), np.array([m.std_error for m in moves])
        return moves[chosen_size(sizes, score, error, tol, one_se)].subset

    def preference(self) -> list[int]:
        """All features by preference: in the order of addition, or in the reverse order of removal."""
        moved = [int(m.feature) for m in self.moves if m.feature == m.feature]
        order = list(dict.fromkeys(moved if self.forward else moved[::-1]))
        rest = [j for j in range(self.p) if j not in order]
        return order + rest if self.forward else rest + order

    def attributes(self) -> dict[str, Any]:
        sizes = sorted(self.best)
        return {
            "order_": np.array([int(m.feature) for m in self.moves if m.feature == m.feature], dtype=np.int64),
            "path_n_features_": np.array(sizes, dtype=np.int64),
            "path_scores_": np.array([self.best[k].score for k in sizes]),
            "path_std_errors_": np.array([self.best[k].std_error for k in sizes]),
        }


class GreedySelection(FeatureSelection):
    """Greedy search forward or backward, by the class attribute `_forward`."""

    _docs: ClassVar[Mapping[str, str]] = {
        "greedy_attributes": """%(support_)s
%(n_features_)s
%(greedy_ranking_)s
%(order_)s
%(path_)s
%(estimator_)s
%(metric_)s""",
        "n_features_to_select": "n_features_to_select : int, optional\n"
        "    Number of features; None takes the number with the best cross-validated score.",
        "patience": "patience : int, optional\n"
        "    Stop after so many steps without a better score; None goes on to the end. Not used where\n"
        "    `n_features_to_select` is given.",
        "floating": "floating : bool, default={default}\n"
        "    After every step, go back for as long as that finds a better set of its size.",
        "greedy_ranking_": "ranking_ : ndarray of shape (n_features,)\n"
        "    1 for chosen features, the others from 2 on.",
        "order_": "order_ : ndarray\n    The features in the order in which they were added or removed.",
        "certificate_": "certificate_ : Certificate\n"
        "    None: the search is greedy. Its meaning names what the model on the chosen features proves.",
        "history_": "history_ : History\n"
        "    Every step: the ``feature``, ``n_features``, ``score`` and ``std_error``; the objective is the negative "
        "score.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("greedy_attributes",)
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **COMMON,
        "n_features_to_select": NoneOr(Integer(1)),
        "floating": Boolean(),
        "patience": NoneOr(Integer(1)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="select", catalogue=("J2",), engines=("memory",), certificate="none (greedy)"
    )
    _forward: ClassVar[bool]

    order_: np.ndarray

    @stores_arguments(tol=0.0, n_jobs=None, random_state=0, verbose=0)
    def __init__(
        self,
        estimator: Any = None,
        *,
        n_features_to_select: int | None = None,
        cv: Any = 5,
        scoring: Any = None,
        one_standard_error: bool = False,
        patience: int | None = None,
        floating: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def _search(
        self, model: Any, rows: Rows, splits: list[Split], scorer: Scorer, state: Mapping[str, Any], seed: int
    ) -> None:
        p, wanted = self.n_features_in_, self.n_features_to_select
        if wanted is not None and wanted > p:
            raise ParameterError(f"{type(self).__name__}: n_features_to_select={wanted}; X has {p} features")
        scores = subset_scores(model, rows, splits, scorer, self.metric_, p, self.n_jobs)
        scores.restore(state)
        path = SearchPath(scores, forward=self._forward, n_features=p, tol=self.tol)
        replayed = int(state.get("moves", 0))

        def attributes(x: np.ndarray) -> dict[str, Any]:
            return {**self._fit_chosen(model, rows, np.flatnonzero(x)), **path.attributes(), "metric_": self.metric_}

        def left() -> dict[str, Any]:
            return {**scores.state(), "moves": len(path.moves), "seed": seed}

        monitor = self._monitor(None if self.floating else p, attributes)
        reason = "converged"
        moves = path.walk(wanted, patience=self.patience if wanted is None else None, floating=self.floating)
        for number, move in enumerate(moves, 1):
            # A resumed search repeats the moves of its checkpoint from stored scores, without new fits.
            if number <= replayed:
                continue
            if monitor(
                number,
                path.mask(move.subset),
                objective=-move.score,
                state=left,
                score=move.score,
                std_error=move.std_error,
                feature=move.feature,
                n_features=len(move.subset),
            ):
                reason = "stopped"
                break
        for name, value in path.attributes().items():
            setattr(self, name, value)
        best = path.choose(wanted if reason == "converged" else None, self.tol, self.one_standard_error)
        for name, value in self._fit_chosen(model, rows, np.array(sorted(best))).items():
            setattr(self, name, value)
        self.ranking_ = np.where(self.support_, 1, 2)
        for rank, j in enumerate([j for j in path.preference() if not self.support_[j]]):
            self.ranking_[j] = 2 + rank
        direction = "forward" if self._forward else "backward"
        certificate = self._evidence(f"{direction} search is greedy, {len(scores.known)} subsets of 2^{p} were fitted")
        final = left() if reason == "stopped" else {}
        value = -float(np.mean(scores.known[best]))
        self._conclude(
            Solution(np.zeros(1), value, monitor.history(), certificate, len(path.moves), reason, state=final)
        )

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the cross-validated score against the number of features, with the choice."""
        self._check_fitted()
        return self._draw_sizes(axes_of(ax), "features")


class ForwardSelection(GreedySelection):
    r"""Forward selection: add the feature that improves the cross-validated score most, one at a time.

    Starting from none, every feature outside the set :math:`F` is tried, and the best is added:

    .. math:: F \leftarrow F \cup \{\arg\max_{i \notin F} \mathrm{CV}(F \cup \{i\})\} .

    The best set met on the way is chosen, and the model is fitted to it. Its own score is the best of many and
    optimistic; :func:`~epicycle.select.k_fold` of the whole search gives an unbiased one.

    See Also
    --------
    BackwardSelection : starts from all features.
    FilterSelection : ranks features one by one, which is cheaper.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import ForwardSelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 10))
    >>> y = 3 * X[:, 7] - 2 * X[:, 3] + rng.normal(size=200)
    >>> model = ForwardSelection(n_features_to_select=2).fit(X, y)
    >>> model.get_support(indices=True)
    array([3, 7])
    >>> model.transform(X).shape
    (200, 2)
    """

    _forward = True


class BackwardSelection(GreedySelection):
    r"""Backward selection: remove the feature whose loss costs least, one at a time, starting from all.

    .. math:: F \leftarrow F \setminus \{\arg\max_{i \in F} \mathrm{CV}(F \setminus \{i\})\} .

    The best set met on the way is chosen, and the model is fitted to it. Features that help only together, which a
    forward search may miss, are kept; it costs more where few of many features are needed.

    See Also
    --------
    ForwardSelection : starts from none.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import BackwardSelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 6))
    >>> y = 3 * X[:, 5] - 2 * X[:, 3] + rng.normal(size=200)
    >>> BackwardSelection(n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([3, 5])
    """

    _forward = False
