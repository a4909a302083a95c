r"""Voting: members :math:`f_1, ..., f_M` with weights :math:`w_m` decide together.

regression   f(x) = sum_m w_m f_m(x) / sum_m w_m
soft         p_k(x) = sum_m w_m p_mk(x) / sum_m w_m, and the class of the largest p_k
hard         the class k of the largest sum of the weights w_m of the members that predict k
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names_in

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import ArrayLike, Boolean, Choice, Domain, NoneOr
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.ensemble._base import Ensemble, NamedEnsemble, checked_metadata, clones, fit_member, label_table


class SeveralLabelsError(DataError, NotImplementedError):
    """Several labels for each row, which voting does not count; scikit-learn raises NotImplementedError for them."""


class Voting(TransformerMixin, NamedEnsemble, Ensemble):  # type: ignore[misc]  # the mixin is untyped
    """Members that are fitted to all rows, each for itself."""

    _docs: ClassVar[dict[str, str]] = {
        "fit_y": "%(y)s",
        "weights": "weights : array-like of shape (n_estimators,), optional\n"
        "    Weights of the members, dropped ones among them; None gives all the same.",
        "voting_evidence": "certificate_ : Certificate\n"
        '    The worst of the members\'; "none" where they have none.\nhistory_ : History\n'
        "    One row for each member: its last objective, iterations, certificate and seconds, as far as it has them.\n"
        "n_iter_ : int\n    Number of members.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("voting_evidence",)
    _parameters: ClassVar[dict[str, Domain]] = {**NamedEnsemble._parameters, "weights": NoneOr(ArrayLike())}
    _card: ClassVar[MethodCard] = MethodCard(
        family="ensemble", catalogue=("D2",), engines=("memory",), certificate="worst of the parts"
    )

    weights: Any
    verbose: int

    @fitting
    def fit(self, /, X: Any, y: Any = None, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the members to rows X with targets y."""
        params = checked_metadata({"sample_weight": sample_weight, **fit_params}, self, "fit")
        named = self._checked_members()
        if self.weights is not None and len(self.weights) != len(self._named()):
            raise ParameterError(
                f"weights: Number of `estimators` and weights must be equal; got {len(self.weights)} weights, "
                f"{len(self._named())} estimators"
            )
        y = self._fit_data(X, y, sample_weight)
        routed = self._routed(params, [name for name, _ in named])
        members = clones(named)

        def work(i: int) -> tuple[Any, None]:
            return fit_member(members[i], X, y, routed[named[i][0]]), None

        self.estimators_, _, solution = self._fit_members(
            len(named), work, lambda fitted: {"estimators_": fitted, **self._labels()}
        )
        self._take_names()
        if self.verbose:
            for i, ((name, _), seconds) in enumerate(zip(named, solution.history["fit_seconds"], strict=False)):
                title = f"({i + 1} of {len(named)}) Processing {name}, total="
                print(f"[Voting] {title:.>60} {seconds:.1f}s")
        self._conclude(solution)
        return self

    def _labels(self) -> dict[str, Any]:
        return {"classes_": self.classes_} if hasattr(self, "classes_") else {}

    def _member_weights(self) -> np.ndarray | None:
        """The weights of the members that were not dropped."""
        if self.weights is None:
            return None
        kept = [not isinstance(member, str) for _, member in self._named()]
        weights: np.ndarray = np.asarray(self.weights, np.float64)[np.asarray(kept)]
        return weights

    def _responses(self, X: Any, method: str) -> list[np.ndarray]:
        """Predictions of each member, in their order."""
        self._check_fitted()
        found: list[np.ndarray] = []
        self._in_order(len(self.estimators_), lambda i: getattr(self.estimators_[i], method)(X), found.append)
        return [np.asarray(one) for one in found]

    def transform(self, X: Any) -> np.ndarray:
        """Return the predictions of all members, one column each."""
        return np.stack(self._responses(X, "predict"), axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of :meth:`transform`: class name and member."""
        self._check_fitted()
        _check_feature_names_in(self, input_features, generate_names=False)
        return np.asarray(self._column_names(), dtype=object)

    def _column_names(self) -> list[str]:
        prefix = type(self).__name__.lower()
        return [f"{prefix}_{name}" for name, member in self._named() if not isinstance(member, str)]


class VotingClassifier(ClassifierMixin, Voting):  # type: ignore[misc]  # the mixin is untyped
    r"""Several classifiers decide together, by their votes or by their probabilities.

    Hard voting takes the class with the largest sum of the weights of the members that predict it, soft voting the
    largest average probability,

    .. math:: p_k(x) = \frac{\sum_m w_m\, p_{mk}(x)}{\sum_m w_m} .

    Parameters
    ----------
    voting : {"hard", "soft"}, default="hard"
        Whether predicted classes or probabilities are combined. Of equal votes the first class wins.
    flatten_transform : bool, default=True
        Whether :meth:`transform` with soft voting gives a table (n_samples, n_estimators * n_classes), and not an array
        (n_estimators, n_samples, n_classes).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted. Members are fitted to their numbers.
    le_ : LabelEncoder
        From labels to these numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import LogisticRegression, KNeighborsClassifier, VotingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("logistic", LogisticRegression()), ("neighbours", KNeighborsClassifier())]
    >>> model = VotingClassifier(members, voting="soft").fit(X, y)
    >>> round(model.score(X, y), 2)
    0.97
    """

    _members_are = "classifier"
    _parameters: ClassVar[dict[str, Domain]] = {
        **Voting._parameters,
        "voting": Choice("hard", "soft"),
        "flatten_transform": Boolean(),
    }
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"transformer_tags.preserves_dtype": []}

    @stores_arguments
    def __init__(
        self,
        estimators: Any = None,
        *,
        voting: str = "hard",
        weights: Any = None,
        n_jobs: int | None = None,
        flatten_transform: bool = True,
        verbose: bool = False,
    ) -> None: ...

    def _encoded(self, y: Any, n: int) -> np.ndarray:
        if label_table(y) is not None:
            raise SeveralLabelsError(
                f"y: {type(self).__name__} only supports binary or multiclass classification; Multilabel and "
                "multi-output classification are not supported: expected one label for each row"
            )
        return super()._encoded(y, n)

    @property
    def le_(self) -> LabelEncoder:
        """From labels to the numbers that the members are fitted to."""
        self._check_fitted()
        return LabelEncoder().fit(self.classes_)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of every row."""
        self._check_fitted()
        if self.voting == "soft":
            return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])
        votes = np.stack(self._responses(X, "predict"), axis=1).astype(np.intp)
        weights, count = self._member_weights(), np.zeros((len(votes), len(self.classes_)))
        for m in range(votes.shape[1]):
            count[np.arange(len(votes)), votes[:, m]] += 1.0 if weights is None else weights[m]
        return np.asarray(self.classes_[np.argmax(count, axis=1)])

    def _is_soft(self) -> bool:
        if self.voting == "hard":
            raise AttributeError(f"predict_proba is not available when voting={self.voting!r}")
        return True

    @available_if(_is_soft)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the weighted average of the members' probabilities."""
        shares = self._responses(X, "predict_proba")
        return np.asarray(np.average(np.stack(shares), axis=0, weights=self._member_weights()))

    def transform(self, X: Any) -> np.ndarray:
        """Return the members' probabilities with soft voting, and the numbers of their classes with hard voting."""
        if self.voting == "hard":
            return super().transform(X)
        shares = self._responses(X, "predict_proba")
        return np.hstack(shares) if self.flatten_transform else np.stack(shares)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of :meth:`transform`: class name, member, and number of the class."""
        if self.voting == "soft" and not self.flatten_transform:
            raise ParameterError(
                "get_feature_names_out is not supported when `voting='soft'` and `flatten_transform=False`: expected "
                "flatten_transform=True"
            )
        return super().get_feature_names_out(input_features)

    def _column_names(self) -> list[str]:
        names = super()._column_names()
        return names if self.voting == "hard" else [f"{name}{k}" for name in names for k in range(len(self.classes_))]


class VotingRegressor(RegressorMixin, Voting):  # type: ignore[misc]  # the mixin is untyped
    r"""The weighted average of several regressors.

    .. math:: f(x) = \frac{\sum_m w_m f_m(x)}{\sum_m w_m}

    Its squared error is the average one of the members less their spread around it (the ambiguity), so that members
    which err differently help most.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import KNeighborsRegressor, Ridge, VotingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = VotingRegressor([("ridge", Ridge(alpha=0.1)), ("neighbours", KNeighborsRegressor())]).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.59
    """

    _members_are = "regressor"

    @stores_arguments
    def __init__(
        self, estimators: Any = None, *, weights: Any = None, n_jobs: int | None = None, verbose: bool = False
    ) -> None: ...

    def predict(self, X: Any) -> np.ndarray:
        """Predict the weighted average for every row."""
        return np.asarray(
            np.average(np.stack(self._responses(X, "predict"), axis=1), axis=1, weights=self._member_weights())
        )
