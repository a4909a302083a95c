"""Forward and backward search: one feature at a time, judged by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Boolean, Domain, Integer, NoneOr
from epicycle.core.estimator._estimator import MethodCard
from epicycle.optim import Solution
from epicycle.plot import axes_of, styled
from epicycle.select._base import COMMON, FeatureSelection
from epicycle.select._inputs import Rows, Split
from epicycle.select._scorers import Scorer
from epicycle.select._search_path import SearchPath
from epicycle.select._subset_moments import subset_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BackwardSelection", "ForwardSelection"]


class GreedySelection(FeatureSelection):
    """The search itself; a subclass says where it begins and which way it goes."""

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **COMMON,
        "n_features_to_select": NoneOr(Integer(1)),
        "floating": Boolean(),
        "patience": NoneOr(Integer(1)),
    }
    _forward: ClassVar[bool]

    order_: np.ndarray

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_features_to_select: int | None = None,
        cv: Any = 5,
        scoring: Any = None,
        tol: float = 0.0,
        one_standard_error: bool = False,
        patience: int | None = None,
        floating: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.cv = cv
        self.scoring = scoring
        self.tol = tol
        self.one_standard_error = one_standard_error
        self.patience = patience
        self.floating = floating
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
        """Draw the cross-validated score against the number of features, with the choice.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Axes
        """
        self._check_fitted()
        return self._draw_sizes(axes_of(ax), "features")


class ForwardSelection(GreedySelection):
    r"""Forward search for features: one at a time, the one that helps most, by cross-validation.

    Starting from none, every feature outside the set :math:`F` is tried, and the best joins:

    .. math:: F \leftarrow F \cup \{\arg\max_{i \notin F} \mathrm{CV}(F \cup \{i\})\} .

    The best set met on the way is chosen, and the model is fitted to it. Its own score is the best of many and too
    good; :func:`~epicycle.select.k_fold` of the whole search gives an honest one.

    Parameters
    ----------
    estimator : estimator, optional
        The model, any regressor or classifier; by default :class:`LinearRegression`. It is cloned, and stays as it is.
    n_features_to_select : int, optional
        How many; None takes the number with the best cross-validated score.
    cv : int, splitter or splits, default=5
        Folds, in random order and with equal shares of classes for classifiers; or a splitter of scikit-learn.
    scoring : str or callable, optional
        A scorer of scikit-learn, larger is better; by default R2 or accuracy.
    tol : float, default=0.0
        Scores this close count as equal, and the smaller set is taken.
    one_standard_error : bool, default=False
        Take the smallest set whose score is within one standard error of the best.
    patience : int, optional
        Stop after so many steps without a better score; None goes on to the end. Where `n_features_to_select` is given
        it is not used.
    floating : bool, default=False
        After every step, go back for as long as that finds a better set of its size.
    n_jobs : int, optional
        Threads; None uses all there are. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default=0
        Draws the folds, and fixes what the model leaves to chance.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every step.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,)
        Which features were chosen.
    n_features_ : int
        How many.
    ranking_ : ndarray of shape (n_features,)
        1 for chosen features, the others from 2 on.
    order_ : ndarray
        The features as they came, or went.
    path_n_features_, path_scores_, path_std_errors_ : ndarray
        For every number of features the best mean score over the folds, and its standard error.
    estimator_ : estimator
        The model on the chosen features.
    metric_ : str
        What was measured.
    certificate_ : Certificate
        None: the search is greedy. Its meaning says what the model on the chosen features proves.
    history_ : History
        Every step: the ``feature``, ``n_features``, ``score`` and ``std_error``; the objective is the score negated.

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
    _card: ClassVar[MethodCard] = MethodCard(
        family="select", catalogue=("J2",), engines=("memory",), certificate="none (greedy)"
    )


class BackwardSelection(GreedySelection):
    r"""Backward search for features: from all of them, one at a time goes, the one that is missed least.

    .. math:: F \leftarrow F \setminus \{\arg\max_{i \in F} \mathrm{CV}(F \setminus \{i\})\} .

    The best set met on the way is chosen, and the model is fitted to it. Features that help only together, which a
    forward search may miss, are kept; it is dearer where few of many features are needed.

    Parameters
    ----------
    estimator : estimator, optional
        The model, any regressor or classifier; by default :class:`LinearRegression`. It is cloned, and stays as it is.
    n_features_to_select : int, optional
        How many; None takes the number with the best cross-validated score.
    cv : int, splitter or splits, default=5
        Folds, in random order and with equal shares of classes for classifiers; or a splitter of scikit-learn.
    scoring : str or callable, optional
        A scorer of scikit-learn, larger is better; by default R2 or accuracy.
    tol : float, default=0.0
        Scores this close count as equal, and the smaller set is taken.
    one_standard_error : bool, default=False
        Take the smallest set whose score is within one standard error of the best.
    patience : int, optional
        Stop after so many steps without a better score; None goes on to the end. Where `n_features_to_select` is given
        it is not used.
    floating : bool, default=False
        After every step, go back for as long as that finds a better set of its size.
    n_jobs : int, optional
        Threads; None uses all there are. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default=0
        Draws the folds, and fixes what the model leaves to chance.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every step.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,)
        Which features were chosen.
    n_features_ : int
        How many.
    ranking_ : ndarray of shape (n_features,)
        1 for chosen features, the others from 2 on.
    order_ : ndarray
        The features as they came, or went.
    path_n_features_, path_scores_, path_std_errors_ : ndarray
        For every number of features the best mean score over the folds, and its standard error.
    estimator_ : estimator
        The model on the chosen features.
    metric_ : str
        What was measured.
    certificate_ : Certificate
        None: the search is greedy. Its meaning says what the model on the chosen features proves.
    history_ : History
        Every step: the ``feature``, ``n_features``, ``score`` and ``std_error``; the objective is the score negated.

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
    _card: ClassVar[MethodCard] = MethodCard(
        family="select", catalogue=("J2",), engines=("memory",), certificate="none (greedy)"
    )
