"""Features by their own merit: ranked one by one, and as many as cross-validation asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import is_classifier

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, Callable as CallableDomain, Choice, Domain, Integer
from epicycle.core.estimator._estimator import MethodCard
from epicycle.data._frames import frame_to_matrix, is_frame
from epicycle.optim import Solution
from epicycle.plot import axes_of, bars, styled
from epicycle.select._base import COMMON, FeatureSelection, chosen_size
from epicycle.select._feature_scores import score_features
from epicycle.select._fit_and_score import FoldResult, Task, fit_and_score, run_all
from epicycle.select._inputs import Rows, Split
from epicycle.select._scorers import Scorer
from epicycle.select._uncertainty import standard_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FilterSelection"]


class FilterSelection(FeatureSelection):
    r"""The features that say most about the target, each by itself; how many is found by cross-validation.

    A feature is scored by its correlation with the target, or by their mutual information,

    .. math:: MI(x_j, y) = \sum_{x_j, y} p(x_j, y) \log \frac{p(x_j, y)}{p(x_j)\, p(y)}
              = KL\bigl(p(x_j, y) \,\|\, p(x_j)\, p(y)\bigr) ,

    and the k best are kept. Inside the cross-validation the features are ranked anew in every fold from its training
    rows alone: a ranking that has seen the test rows would flatter itself.

    Parameters
    ----------
    estimator : estimator, optional
        The model that is fitted to the chosen features; by default :class:`LinearRegression`.
    score_func : {"correlation", "mutual_information"} or callable, default="correlation"
        The absolute correlation (for labels the correlation ratio), the mutual information (numbers of more than 20
        values are cut into tenths), or ``score_func(X, y)`` that gives a number for each feature, or a pair of these
        and p-values as those of :mod:`sklearn.feature_selection` do.
    k : int or "cv", default="cv"
        How many features to keep; "cv" tries all numbers up to 20, then ever larger steps.
    cv : int, splitter or splits, default=5
        Folds, in random order and with equal shares of classes for classifiers; or a splitter of scikit-learn.
    scoring : str or callable, optional
        A scorer of scikit-learn, larger is better; by default R2 or accuracy.
    tol : float, default=0.0
        Scores this close count as equal, and fewer features are taken.
    one_standard_error : bool, default=False
        Take the fewest features whose score is within one standard error of the best.
    n_jobs : int, optional
        Threads; None uses all there are. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default=0
        Draws the folds, and fixes what the model leaves to chance.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every number of features.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        The score of every feature; minus infinity where it has none.
    ranking_ : ndarray of shape (n_features,)
        1 for the feature with the largest score, and so on.
    support_ : ndarray of shape (n_features,)
        Which features were chosen.
    n_features_ : int
        How many.
    path_n_features_, path_scores_, path_std_errors_ : ndarray
        For every number of features tried the mean score over the folds, and its standard error; empty where `k` was
        given.
    estimator_ : estimator
        The model on the chosen features.
    metric_ : str
        What was measured.
    certificate_ : Certificate
        None: no subset but those of the ranking was tried.
    history_ : History
        Every number of features tried: ``n_features``, ``score`` and ``std_error``; the objective is the score negated.
        With `k` given one row, with the sum of the chosen features' scores negated.

    See Also
    --------
    ForwardSelection : judges features together, at the cost of many fits.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import FilterSelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 10))
    >>> y = 3 * X[:, 7] - 2 * X[:, 3] + rng.normal(size=200)
    >>> model = FilterSelection(k=2).fit(X, y)
    >>> model.get_support(indices=True)
    array([3, 7])
    >>> FilterSelection(one_standard_error=True).fit(X, y).n_features_
    2
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **COMMON,
        "score_func": AnyOf(Choice("correlation", "mutual_information"), CallableDomain()),
        "k": AnyOf(Integer(1), Choice("cv")),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="select", catalogue=("J3",), engines=("memory",), certificate="none (ranked one by one)"
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        score_func: Literal["correlation", "mutual_information"] | Callable[..., Any] = "correlation",
        k: int | Literal["cv"] = "cv",
        cv: Any = 5,
        scoring: Any = None,
        tol: float = 0.0,
        one_standard_error: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.score_func = score_func
        self.k = k
        self.cv = cv
        self.scoring = scoring
        self.tol = tol
        self.one_standard_error = one_standard_error
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _search(
        self, model: Any, rows: Rows, splits: list[Split], scorer: Scorer, state: Mapping[str, Any], seed: int
    ) -> None:
        p = self.n_features_in_
        if self.k != "cv" and self.k > p:
            raise ParameterError(f"FilterSelection: k={self.k}; X has {p} features")
        matrix = _matrix(self._coded(rows.X))
        labels = bool(is_classifier(model))
        every = np.arange(len(rows.y))
        self.scores_ = self._scores_of(matrix, rows, every, labels)
        order = _descending(self.scores_)
        self.ranking_ = np.empty(p, dtype=np.int64)
        self.ranking_[order] = np.arange(1, p + 1)
        sizes = _sizes(p) if self.k == "cv" else np.array([self.k])
        ranked = []
        if len(sizes) > 1:
            ranked = [_descending(self._scores_of(matrix, rows, train, labels)) for train, _ in splits]
        known = [np.asarray(scores) for scores in state.get("scores", ())]
        found: list[np.ndarray] = []

        def attributes(x: np.ndarray) -> dict[str, Any]:
            return {
                **self._fit_chosen(model, rows, np.flatnonzero(x)),
                **_path(sizes[: len(found)], found),
                "scores_": self.scores_,
                "ranking_": self.ranking_,
                "metric_": self.metric_,
            }

        def left() -> dict[str, Any]:
            return {"scores": np.array(found), "seed": seed}

        def score_of(size: int) -> np.ndarray:
            tasks = [Task("", model, j, split, np.sort(ranked[j][:size])) for j, split in enumerate(splits)]

            def work(task: Task) -> FoldResult:
                return fit_and_score(task, rows, scorer, forgive=False)

            return np.array([result.score for result in run_all(work, tasks, self.n_jobs)])

        monitor = self._monitor(len(sizes), attributes)
        reason = "converged"
        for number, size in enumerate(sizes, 1):
            mask = np.zeros(p)
            mask[order[:size]] = 1.0
            if len(sizes) == 1:
                chosen = self.scores_[order[:size]]
                monitor(1, mask, objective=-float(chosen[np.isfinite(chosen)].sum()), n_features=float(size))
                break
            if number <= len(known):
                found.append(known[number - 1])
                continue
            found.append(score_of(int(size)))
            mean, error = _mean_and_error(found[-1])
            if monitor(number, mask, objective=-mean, state=left, score=mean, std_error=error, n_features=float(size)):
                reason = "stopped"
                break
        if len(sizes) > 1 and not np.isfinite([s.mean() for s in found]).any():
            raise ParameterError("scoring: has no finite value on the folds; choose another metric, or other splits")
        path = _path(sizes[: len(found)], found)
        at = 0
        if found:
            means = np.where(np.isfinite(path["path_scores_"]), path["path_scores_"], -np.inf)
            at = chosen_size(sizes[: len(found)], means, path["path_std_errors_"], self.tol, self.one_standard_error)
        for name, value in {**self._fit_chosen(model, rows, order[: sizes[at]]), **path}.items():
            setattr(self, name, value)
        certificate = self._evidence("features are ranked one by one")
        value = -float(path["path_scores_"][at]) if found else float(monitor.history().objective[-1])
        n_iter = len(found) if found else 1
        final = left() if reason == "stopped" else {}
        self._conclude(Solution(np.zeros(1), value, monitor.history(), certificate, n_iter, reason, state=final))

    def _scores_of(self, matrix: Any, rows: Rows, part: np.ndarray, labels: bool) -> np.ndarray:
        weight = None if rows.weight is None else rows.weight[part]
        return score_features(self.score_func, matrix[part], rows.y[part], weight, labels=labels)

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the cross-validated score against the number of features; where `k` was given, the features' scores.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Axes
        """
        self._check_fitted()
        if len(self.path_n_features_) == 0:
            order = np.argsort(self.ranking_)[:30]
            ax = axes_of(ax, (6.4, 1.2 + 0.26 * len(order)))
            names, kept = self._names(), [bool(self.support_[j]) for j in order]
            values = np.where(np.isfinite(self.scores_), self.scores_, 0.0)[order]
            bars(ax, [names[j] for j in order], values, colour=["vermilion" if k else "sky" for k in kept])
            what = self.score_func if isinstance(self.score_func, str) else self.score_func.__name__
            ax.set(xlabel=f"{what.replace('_', ' ')} with the target (darker: chosen)")
            return ax
        return self._draw_sizes(axes_of(ax), "features, in the order of their scores")


def _matrix(X: Any) -> Any:
    if is_frame(X):
        X = frame_to_matrix(X)
    return X.tocsr() if hasattr(X, "tocsr") else X


def _descending(scores: np.ndarray) -> np.ndarray:
    return np.argsort(-scores, kind="stable")


def _sizes(p: int) -> np.ndarray:
    """All numbers up to 20, then by factors of a quarter, and all features."""
    sizes = list(range(1, min(p, 20) + 1))
    while sizes[-1] < p:
        sizes.append(min(p, int(sizes[-1] * 1.25) + 1))
    return np.array(sizes, dtype=np.int64)


def _mean_and_error(scores: np.ndarray) -> tuple[float, float]:
    return float(scores.mean()), float(standard_error(scores))


def _path(sizes: np.ndarray, found: list[np.ndarray]) -> dict[str, np.ndarray]:
    both = [_mean_and_error(scores) for scores in found]
    return {
        "path_n_features_": np.asarray(sizes[: len(found)], dtype=np.int64),
        "path_scores_": np.array([mean for mean, _ in both]),
        "path_std_errors_": np.array([error for _, error in both]),
    }
