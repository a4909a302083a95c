"""AdaBoost: a weighted vote of weak classifiers, each trained on the errors of those before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataTypeError, ParameterError, ParameterTypeError
from epicycle.core._parameters import Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Batch, Data, as_data
from epicycle.optim import Solution
from epicycle.stats._class_scores import choose_class, probabilities
from epicycle.stats._labels import codes
from epicycle.tree._base import TreeModel, check_positive_weight
from epicycle.tree._classes import encode_classes, map_rows, second_of_two
from epicycle.tree._ensemble import (
    Ensemble,
    average_score,
    expected_scores,
    n_trees,
    scores_of_batch,
    scores_of_data,
    shapley_values,
)
from epicycle.tree._nodes import leaf_nodes, left_children, split_features
from epicycle.tree._parameters import TREE_DOMAINS
from epicycle.tree.adaboost._stumps import Stump, stump_ensemble, stumps_as_trees
from epicycle.tree.adaboost._weak_learners import (
    ClonedEstimators,
    Stumps,
    VoteState,
    WeakLearner,
    discrete_votes,
    flat,
    predict_member,
    real_votes,
)
from epicycle.tree.cart._classifier import DecisionTreeClassifier


class AdaBoostClassifier(ClassifierMixin, TreeModel):  # type: ignore[misc]  # the mixin is untyped
    r"""AdaBoost, by stumps or any other weak classifier.

    Classifiers are added one at a time to a vote :math:`F_m(x) = F_{m-1}(x) + \beta_m h_m(x)` that lowers the
    exponential loss :math:`\frac1n \sum_i e^{-y_i F(x_i)}`, with :math:`y_i = \pm 1`. Rows weigh
    :math:`D_i \propto e^{-y_i F_{m-1}(x_i)}`; the new classifier is the one with the smallest weighted error
    :math:`\varepsilon_m`, and its vote is

    .. math:: \beta_m = \tfrac12 \log \frac{1 - \varepsilon_m}{\varepsilon_m}, \qquad
              \text{training error} \le \frac1n \sum_i e^{-y_i F(x_i)}
              = \prod_m 2 \sqrt{\varepsilon_m (1 - \varepsilon_m)} .

    More than two classes vote by SAMME,
    :math:`\beta_m = \log \frac{1 - \varepsilon_m}{\varepsilon_m} + \log (K - 1)`. With ``algorithm="real"`` members
    vote with their confidence, half the log odds of their probabilities (SAMME.R for more than two classes; stumps,
    which separate two groups at a time, are then too weak for many classes).

    Parameters
    ----------
    estimator : classifier, optional
        Classifier that the members are clones of; its `fit` takes `sample_weight`. None: stumps, searched among all
        features and thresholds; missing numbers go to the side with the smaller error. With categories the members
        are decision trees of one split, which divides the levels in two sets.
    n_estimators : int, default=50
        Maximum number of members.
    learning_rate : float, default=1.0
        Factor on every vote.
    algorithm : {"discrete", "real"}, default="discrete"
        Whether members vote with their class, or with their probabilities.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the members that take one.

    Attributes
    ----------
    %(classes_)s
    estimators_ : list
        The members; stumps as trees of one split, made anew on every access.
    estimator_ : classifier
        What the members are clones of.
    n_classes_ : int
        Number of classes.
    trees_ : dict of ndarray
        The stumps as arrays, where members are stumps; see :mod:`epicycle.tree._ensemble`.
    %(categories_)s
    estimator_weights_, estimator_errors_ : ndarray of shape (n_members,)
        :math:`\beta_m` (one where members vote with their confidence) and :math:`\varepsilon_m`.
    n_estimators_ : int
        Number of members.
    feature_importances_ : ndarray of shape (n_features,)
        Shares of the features in the votes of the stumps.
    certificate_ : Certificate
        None: the vote is grown greedily. Its value is the bound on the training error.
    history_ : History
        After every round the exponential loss, the member's weighted error (``error``) and vote (``weight``), the
        training error of the vote (``training_error``) and its bound (``bound``).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from epicycle import AdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaBoostClassifier(n_estimators=100).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.95
    >>> bool(model.history_["training_error"][-1] <= model.history_["bound"][-1])
    True
    """

    _docs: ClassVar[dict[str, str]] = {
        "fit_X": "X : array, sparse matrix or data frame of shape (n_samples, n_features)\n"
        "    With stumps NaN counts as missing. Columns of a categorical type are split by sets of levels.",
    }
    _parameters: ClassVar[dict[str, Domain]] = {
        "estimator": NoneOr(InstanceOf(BaseEstimator)),
        "n_estimators": Integer(1),
        "learning_rate": Real(0, inclusive=False),
        "algorithm": Choice("discrete", "real"),
        "categorical_features": TREE_DOMAINS["categorical_features"],
    }
    _target = "labels"
    _card: ClassVar[MethodCard] = MethodCard(family="tree", catalogue=("D3",), engines=("memory",), certificate="none")

    handle_unknown = "missing"

    trees_: Ensemble

    @stores_arguments(random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        algorithm: str = "discrete",
        categorical_features: Any = "from_dtype",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None
        tags.input_tags.categorical = self.estimator is None
        return tags

    # ------------------------------------------------------------------------------------------- fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AdaBoostClassifier:
        """Fit to rows X with labels y."""
        if self.estimator is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ParameterTypeError(
                f"estimator: {type(self.estimator).__name__} doesn't support sample_weight, by which AdaBoost weighs "
                "the rows"
            )
        if self.estimator is not None and is_regressor(self.estimator):
            raise ParameterTypeError(f"estimator={self.estimator!r:.60} is a regressor; expected a classifier")
        if self.estimator is None:
            data = self._training_data(X, y, sample_weight)
        else:
            data = self._fit_data(flat(X), y, sample_weight, target=self._target)
        if not isinstance(data, ArrayData):
            raise DataTypeError(
                f"X: AdaBoostClassifier is fitted in memory; expected an array or a frame, got {type(X).__name__} "
                "(predict takes files and Dask collections with stumps)"
            )
        if data.weight is not None:
            check_positive_weight(data.weight)
        self.classes_, _, _ = encode_classes(data, self.n_jobs)
        real, state = self.algorithm == "real", self._resume_state() or {}
        seed = int(state.get("seed", seed_of(self.random_state)))
        # A row without weight counts for nothing, and its label may be none of the classes.
        rows = None if data.weight is None or data.weight.all() else np.flatnonzero(data.weight)
        labels, weight = np.asarray(data.y), data.weight
        if rows is not None and weight is not None:
            labels, weight = labels[rows], weight[rows]
        K = len(self.classes_)
        y_codes = codes(labels, labels=self.classes_) if K > 1 else np.zeros(len(labels), np.intp)
        learner: WeakLearner
        if self.estimator is None and not self.categories_:
            matrix = data.X if rows is None else data.X[rows]
            learner = Stumps(matrix, y_codes, K, real=real, n_jobs=self.n_jobs)
        else:
            given = data.X if self.estimator is None else X
            given = given.tocsr() if sp.issparse(given) and given.format not in ("csr", "csc") else given
            given = given if rows is None else _safe_indexing(given, rows)
            learner = ClonedEstimators(self._member(), given, labels, self.classes_, real=real, seed=seed)
        start = VoteState(y_codes, weight, K, float(self.learning_rate))
        self._conclude(self._rounds(start, learner, state, seed))
        return self

    def _rounds(self, votes: VoteState, learner: WeakLearner, state: Mapping[str, Any], seed: int) -> Solution:
        real, stumps = self.algorithm == "real", isinstance(learner, Stumps)
        members: list[tuple[Any, tuple[int, int], np.ndarray]] = []  # model, rows of the sides of a stump, votes
        weights: list[float] = []
        errors: list[float] = []
        known = self._known(state)

        def attributes(x: np.ndarray | None = None) -> dict[str, Any]:
            m = len(members) if x is None else int(x[0])
            found: dict[str, Any] = {
                "classes_": self.classes_,
                "n_estimators_": m,
                "estimator_weights_": np.array(weights[:m]),
                "estimator_errors_": np.array(errors[:m]),
            }
            if stumps:
                return {**found, "trees_": stump_ensemble(members[:m])}
            return {**found, "estimators_": [model for model, *_ in members[:m]]}

        def left() -> dict[str, Any]:
            models = [model for model, *_ in members]
            if not stumps:
                return {"estimators": models, "seed": seed}
            return {"stumps": np.array([[m.feature, m.threshold, m.missing_left] for m in models]), "seed": seed}

        monitor = self._monitor(self.n_estimators, attributes)
        reason = "converged"
        guessing = 1 - 1 / votes.K
        while len(members) < self.n_estimators and votes.K > 1:  # one class needs no vote
            number, before = len(members), votes.loss
            model = known[number] if number < len(known) else learner.search(votes.D, number)
            member = learner.member(model, votes.D)
            error = votes.error(member)
            if error >= guessing * (1 - 1e-12) and not real:
                if number == 0 and self.estimator is not None:
                    raise ParameterError(
                        f"estimator={self.estimator!r:.60}: the first member is worse than random, with a weighted "
                        f"error of {error:.3g}; expected less than {guessing:.3g}"
                    )
                break  # no better than chance; the weights would stay as they are, and so would the next member
            alpha, vote = (1.0, votes.real(member)) if real else votes.discrete(member, error)
            n_right = int(np.count_nonzero(member.group))
            members.append((model, (len(member.group) - n_right, n_right), vote))
            weights.append(alpha / 2 if votes.K == 2 and not real else alpha)
            errors.append(error)
            if number >= len(known) and monitor(
                len(members),
                np.array([float(len(members))]),
                objective=votes.loss,
                state=left,
                error=error,
                weight=weights[-1],
                training_error=votes.training_error(),
                bound=votes.bound(),
            ):
                reason = "stopped"
                break
            # A perfect member ends the fit, and so does one that does not lower the loss any more.
            if error == 0 or (real and votes.loss >= before * (1 - 1e-12)):
                break
        for name, value in attributes().items():
            setattr(self, name, value)
        bound = votes.bound()
        certificate = Certificate(
            "none",
            bound,
            bound,
            "boosting is greedy: no distance from an optimum is known; the training error "
            f"{votes.training_error():.3g} is under its bound {bound:.3g}",
        )
        final = left() if reason == "stopped" else {}
        return Solution(np.zeros(1), votes.loss, monitor.history(), certificate, len(members), reason, state=final)

    def _known(self, state: Mapping[str, Any]) -> list[Any]:
        """The models of an interrupted fit; its rounds are gone through again without searching."""
        if "estimators" in state:
            return list(state["estimators"])
        return [Stump(int(j), float(threshold), bool(m)) for j, threshold, m in state.get("stumps", [])]

    # ------------------------------------------------------------------------------------------- prediction

    def votes(self, X: Any) -> Any:
        """Return votes F: (n_samples,) for two classes, positive for ``classes_[1]``, else (n_samples, n_classes)."""
        votes = self._votes(X)
        return votes[:, 0] if len(self.classes_) == 2 else votes

    def decision_function(self, X: Any) -> Any:
        r"""Return the votes on scikit-learn's scale: divided by the sum of all, and zero on average over the classes.

        For two classes :math:`2 F(x) / \sum_m \beta_m`, between -2 and 2, else (n_samples, n_classes), at most 1.
        """
        scores = map_rows(self._votes(X), _mean_votes, *self._vote_scale(self.n_estimators_))
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _vote_scale(self, m: int) -> tuple[float, bool]:
        """(the sum of the weights of the first m members, whether members vote for one class alone)."""
        return float(self.estimator_weights_[:m].sum()), self.algorithm == "discrete"

    def predict(self, X: Any) -> Any:
        """Predict the class with most votes for every row."""
        return map_rows(self._votes(X), _choose, self.classes_)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the votes: 1 / (1 + exp(-2 F)), or softmax(F / (K - 1)) for more classes."""
        return map_rows(self._votes(X), _probabilities, self.n_classes_)

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        self._check_fitted()
        return len(self.classes_)

    @property
    def estimator_(self) -> Any:
        """The classifier that the members are clones of: `estimator`, or a tree of one split."""
        self._check_fitted()
        return self._member()

    def _member(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        return DecisionTreeClassifier(max_depth=1, categorical_features=list(getattr(self, "categories_", {})) or None)

    def __getattr__(self, name: str) -> Any:
        # Stumps are stored as arrays; as a list of trees they are made on demand.
        if name == "estimators_" and "trees_" in vars(self):
            return stumps_as_trees(self.trees_, self.classes_, self.n_features_in_)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities."""
        return np.log(self.predict_proba(X))

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield the accuracy after each round."""
        for labels in self.staged_predict(X):
            yield float(accuracy_score(y, labels, sample_weight=sample_weight))

    def staged_votes(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the votes after each round."""
        for votes in self._staged(X):
            yield votes[:, 0] if len(self.classes_) == 2 else votes

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores of :meth:`decision_function` after each round."""
        for m, votes in enumerate(self._staged(X), start=1):
            scores = _mean_votes(votes, *self._vote_scale(m))
            yield scores[:, 0] if len(self.classes_) == 2 else scores

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the class with most votes after each round."""
        for votes in self._staged(X):
            yield _choose(votes, self.classes_)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the probabilities after each round."""
        for votes in self._staged(X):
            yield _probabilities(votes, self.n_classes_)

    def _split_totals(self, kind: str) -> np.ndarray:
        """Differences of the two votes of stumps; of other members their own importances, weighted by their votes."""
        if "trees_" not in vars(self):
            if kind == "split":
                raise ParameterError("kind='split': members are not stumps; expected 'gain'")
            shares = self.estimator_weights_ / self.estimator_weights_.sum()
            return np.asarray(sum(w * m.feature_importances_ for w, m in zip(shares, self.estimators_, strict=True)))
        nodes = self.trees_["nodes"]
        inner = np.flatnonzero(~leaf_nodes(nodes))
        left, feature = inner + left_children(nodes)[inner], split_features(nodes)[inner]
        values = self.trees_["values"]
        apart = np.abs(values[left] - values[left + 1]) if kind == "gain" else None
        return np.bincount(feature, apart, minlength=self.n_features_in_).astype(np.float64)

    def _raw_outputs(self, X: np.ndarray) -> np.ndarray:
        self._check_stumps()
        zero = np.zeros(self._n_votes)
        return scores_of_batch(Batch(X), self.trees_, zero, 0, n_trees(self.trees_), self.n_jobs)

    def _check_stumps(self) -> None:
        self._check_fitted()
        if "trees_" not in vars(self):
            raise ParameterError("estimator: inspection needs stumps as members; use sklearn.inspection for others")

    def _row_losses(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(choose_class(outputs, np.arange(len(self.classes_))) != y, np.float64)

    def _responses(self, X: np.ndarray) -> np.ndarray:
        return second_of_two(_probabilities(self._raw_outputs(X), self.n_classes_))

    def _expected_outputs(self, columns: list[int], points: np.ndarray) -> np.ndarray:
        self._check_stumps()
        return expected_scores(self.trees_, np.zeros(self._n_votes), columns, points)

    @property
    def _n_votes(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def shap_values(self, X: Any) -> Any:
        """Compute exact Shapley values of the votes of stumps; they add up to the votes less :attr:`average_score_`."""
        self._check_stumps()
        return shapley_values(self._predict_data(X), self.trees_, self._n_votes, self.n_jobs)

    @property
    def average_score_(self) -> np.ndarray | float:
        """Average votes of the training rows, stump by stump."""
        return average_score(self.trees_, np.zeros(self._n_votes))

    def _votes(self, X: Any) -> Any:
        self._check_fitted()
        zero = np.zeros(self._n_votes)
        if "trees_" in vars(self):
            return scores_of_data(self._predict_data(X), self.trees_, zero, self.n_jobs)
        total = zero[None]
        for stage in self._staged(X):
            total = stage
        return total

    def _staged(self, X: Any) -> Iterator[np.ndarray]:
        data = self._predict_data(X)
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: expected data in memory, got {type(X).__name__}")
        K = self._n_votes
        F = np.zeros((data.n_rows, K))
        given = data.X if self.estimator is None else X
        for m in range(self.n_estimators_):
            if "trees_" in vars(self):
                batch = data.rows(0, data.n_rows)
                F = F + scores_of_batch(batch, self.trees_, np.zeros(K), m * K, (m + 1) * K, self.n_jobs)
            else:
                F = F + self._vote(self.estimators_[m], given, self.estimator_weights_[m])
            yield F

    def _vote(self, model: Any, X: Any, weight: float) -> np.ndarray:
        """The votes of a user's classifier."""
        K, member = len(self.classes_), predict_member(model, X, self.classes_, real=self.algorithm == "real")
        if member.probabilities is not None:
            return real_votes(member.probabilities, float(self.learning_rate))
        return discrete_votes(member.group, K, 2 * weight if K == 2 else weight)

    def _predict_data(self, X: Any, *, missing: bool = True) -> Data:
        self._check_fitted()
        if self.estimator is None and getattr(self, "categories_", {}):
            return super()._predict_data(X, missing=missing)
        X = X if self.estimator is None else flat(X)
        data = as_data(X, estimator_name=type(self).__name__, check_finite=self.estimator is not None)
        self._check_features(X, data, reset=False)
        return data


def _choose(F: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return np.repeat(classes, len(F)) if len(classes) == 1 else choose_class(F, classes)


def _mean_votes(F: np.ndarray, total: float, centred: bool) -> np.ndarray:
    """The votes for each unit of weight; those for one of K classes count -1 / (K - 1) for the others."""
    if total == 0:  # a single class: there are no members
        return np.zeros_like(F)
    if F.shape[1] == 1:
        return np.asarray(2 * F / total)
    mean = F / total
    return np.asarray(mean - (1 - mean) / (F.shape[1] - 1) if centred else mean)


def _probabilities(F: np.ndarray, n_classes: int) -> np.ndarray:
    if n_classes == 1:
        return np.ones((len(F), 1))
    return probabilities(2 * F if F.shape[1] == 1 else F / (F.shape[1] - 1))
