r"""Bagging: members fitted to random samples of the rows and features, and averaged.

    f(x) = 1/M sum_m f_m(x)

Row by row the squared error of the average is the average squared error of the members less their spread around it
(Krogh and Vedelsby, 1995):

    (f - y)^2 = 1/M sum_m (f_m - y)^2 - 1/M sum_m (f_m - f)^2.

The rows that a member has not drawn give its error on new rows: with the members that did not draw row i in place of
all members, both sides are averaged over the rows.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self, Unpack

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.validation import _num_samples, check_consistent_length, has_fit_parameter, validate_data

from epicycle.core._arguments import SharedArguments
from epicycle.core._docs import SHARED_DOCS, entries_of
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.core.estimator._inner_tags import inner_tags
from epicycle.data._target import as_weight, require_target
from epicycle.ensemble._bagging_sampling import n_drawn, n_features_drawn, row_ranks
from epicycle.ensemble._base import (
    Ensemble,
    checked_metadata,
    errors_of_ours,
    fit_member,
    routing_enabled,
)
from epicycle.ensemble._out_of_bag import DECOMPOSITION, OutOfBagSums, oob_certificate
from epicycle.tree.forest._sampling import RowSamples

_SHARE = Real(0, 1, inclusive=(False, True))
# Of 20 samples of a few rows from two classes in equal parts one has both classes, but for one case in 10^6 or less.
_MAX_DRAWS = 20
# Added to the number of a member for the stream of its next sample: beyond the number of members.
_NEXT_ATTEMPT = 1 << 24


class Bagging(Ensemble, ABC):
    """Copies of one estimator, each fitted to a sample of the rows and features."""

    _docs: ClassVar[dict[str, str]] = {
        **entries_of("""n_estimators : int, default=10
    Number M of members.
max_samples : int, float or None, default=None
    Number of rows that a member is fitted to, or their share (of the sum of the weights, where there are weights); None
    draws as many as there are, whole weights counted as repetitions.
max_features : int or float, default=1.0
    Number of features of a member, or their share.
bootstrap : bool, default=True
    Whether rows are drawn with replacement.
bootstrap_features : bool, default=False
    Whether features are drawn with replacement.
oob_score : bool, default=False
    Whether to predict every row by the members that did not draw it, for an estimate of the error on new rows.
warm_start : bool, default=False
    Whether another `fit` adds members to the earlier ones, up to `n_estimators`."""),
        "bagging_attributes": """estimator_ : estimator
    What the members are copies of.
estimators_ : list
    The fitted members.
estimators_features_ : list of ndarray
    The features of each member.
estimators_samples_ : list of ndarray
    The rows that each member was fitted to, drawn anew on every access.
oob_score_ : float
    {score} of the out-of-bag predictions, where `oob_score` is set.
oob_decomposition_ : dict
    Of the out-of-bag predictions: ``error`` ({error}) with its 95% interval from ``low`` to ``high``, the mean squared
    error ``squared`` ({squared}), that of the members ``members``, and the ``ambiguity`` that the average takes off it;
    where `oob_score` is set.
certificate_ : Certificate
    "none": an average optimises nothing. With `oob_score` its value is the out-of-bag error, its tolerance the upper
    end of the 95% interval. Where members miss a certificate of their own it is the worst of these.
history_ : History
    One row for each member: its last objective, iterations, certificate and seconds, as far as it has them.
n_iter_ : int
    Number of members.""",
        "fit_X": SHARED_DOCS["X"],
        "X": "X : as for :meth:`fit`",
        "params": "**params\n    Metadata for the members, where scikit-learn's metadata routing is enabled.",
        "random_state": "random_state : int, Generator, RandomState or None, default={default}\n"
        "    Seed of the samples, and of the members that have a `random_state`.",
        "fit_sample_weight": "sample_weight : array-like of shape (n_samples,), optional\n"
        "    Rows are drawn with probabilities in proportion to their weights: a row of weight 3 as three equal rows.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("bagging_attributes",)
    _parameters: ClassVar[dict[str, Domain]] = {
        "estimator": NoneOr(InstanceOf(BaseEstimator)),
        "n_estimators": Integer(1),
        "max_samples": NoneOr(AnyOf(Integer(1), _SHARE)),
        "max_features": AnyOf(Integer(1), _SHARE),
        "bootstrap": Boolean(),
        "bootstrap_features": Boolean(),
        "oob_score": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="ensemble", catalogue=("D2",), engines=("memory",), certificate="out-of-bag error"
    )

    estimator: Any
    n_estimators: int
    max_samples: float | None
    max_features: float
    bootstrap: bool
    bootstrap_features: bool
    oob_score: bool
    warm_start: bool
    random_state: Any

    estimator_: Any
    estimators_features_: list[np.ndarray]
    oob_decomposition_: dict[str, float]
    oob_score_: float
    # Of the samples: seed, numbers of rows and features, weights, and the ranks of the rows by content (as bytes).
    _seed_: int
    _n_drawn_: int | None
    _n_features_drawn_: int
    _draw_weight_: np.ndarray | None
    _ranks_: np.ndarray
    _attempts_: list[int]  # how often the sample of each member was drawn again

    @stores_arguments(warm_start=False, n_jobs=None, random_state=None, verbose=0)
    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: float | None = None,
        max_features: float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @abstractmethod
    def _base(self) -> Any:
        """The estimator that the members are copies of."""

    @abstractmethod
    def _target(self, y: Any, n: int) -> np.ndarray:
        """The target as the members see it."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = inner_tags(self, self._base())
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.input_tags.sparse, inner.input_tags.allow_nan
        return tags

    def __len__(self) -> int:
        return len(self.estimators_)

    def __getitem__(self, index: Any) -> Any:
        return self.estimators_[index]

    def __iter__(self) -> Any:
        return iter(self.estimators_)

    # ------------------------------------------------------------------------------------------- fit

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """The rows as the members see them: an array or a sparse matrix; a frame with columns of text stays a frame."""
        with errors_of_ours():
            if nw.dependencies.is_into_dataframe(X) and _has_other_columns(X):
                validate_data(self, X=X, reset=reset, skip_check_array=True)
                return X
            kinds = {"accept_sparse": ["csr", "csc"], "dtype": None, "ensure_all_finite": False}
            return validate_data(self, X, reset=reset, **kinds)

    def _fit_data(self, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
        """Rows, targets and weights; what is in the rows is checked by the members."""
        require_target(y, type(self).__name__)
        X = self._rows(X, reset=True)
        with errors_of_ours():
            check_consistent_length(X, y)
        n = _num_samples(X)
        return X, self._target(y, n), as_weight(sample_weight, n)

    @fitting
    def fit(self, /, X: Any, y: Any = None, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the members to samples of rows X with targets y."""
        params = checked_metadata(fit_params, self, "fit")
        inner_tags(self, self._base())
        X, y, weight = self._fit_data(X, y, sample_weight)
        earlier = self._run.earlier if self.warm_start and "estimators_" in self._run.earlier else {}
        self._check_sampling(weight)
        self.estimator_ = self._base()
        known = list(earlier.get("estimators_", []))
        # Where a fit goes on, features and rows of the members so far are drawn from the seed of that fit.
        going_on = earlier or (self._run.earlier if self._resume_state() is not None else {})
        self._seed_ = int(going_on.get("_seed_", seed_of(self.random_state)))
        if len(known) > self.n_estimators:
            raise ParameterError(
                f"n_estimators={self.n_estimators} must be larger or equal to len(estimators_)={len(known)} when "
                "warm_start==True"
            )
        self._draw_weight_, self._n_features_drawn_ = weight, n_features_drawn(self.max_features, self.n_features_in_)
        self._n_drawn_ = n_drawn(self.max_samples, _num_samples(X), weight, bootstrap=self.bootstrap)
        self._ranks_ = row_ranks(X, y)
        samples = self._samples()
        routed = dict(process_routing(self, "fit", **params)["estimator"]["fit"]) if params else {}
        weighted = self._members_take_weights()

        def work(i: int) -> tuple[Any, int]:
            return self._fit_one(len(known) + i, X, y, samples, routed, weighted=weighted)

        if known and len(known) == self.n_estimators:
            warnings.warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees: no member is added",
                stacklevel=4,
            )
            self.__dict__.update({name: earlier[name] for name in earlier if name.endswith("_")})
            return self
        members, attempts, solution = self._fit_members(self.n_estimators - len(known), work, self._attributes)
        self.estimators_ = [*known, *members]
        self.estimators_features_ = [self._features(m) for m in range(len(self.estimators_))]
        self._attempts_ = [*earlier.get("_attempts_", []), *attempts]
        if self.oob_score:
            self._set_oob(X, y)
        if solution.certificate.kind == "none":
            solution.certificate = oob_certificate(vars(self).get("oob_decomposition_"))
        solution.n_iter = len(self.estimators_) if not known else solution.n_iter
        self._conclude(solution)
        return self

    def _attributes(self, members: list[Any]) -> dict[str, Any]:
        names = ("estimator_", "classes_", "n_features_in_", "feature_names_in_", "_seed_", "_n_features_drawn_")
        kept = {name: value for name, value in vars(self).items() if name in names}
        return {
            **kept,
            "estimators_": members,
            "estimators_features_": [self._features(m) for m in range(len(members))],
        }

    def _check_sampling(self, weight: np.ndarray | None) -> None:
        if weight is not None and not self.bootstrap:
            warnings.warn(
                f"When fitting {type(self).__name__} with sample_weight it is recommended to use bootstrap=True, got "
                f"{self.bootstrap}: without replacement weights are no repetitions",
                stacklevel=5,
            )
        if self.oob_score and not self.bootstrap:
            raise ParameterError("oob_score: Out of bag estimation only available if bootstrap=True")
        if self.oob_score and self.warm_start:
            raise ParameterError("oob_score: Out of bag estimate only available if warm_start=False")

    def _features(self, member: int) -> np.ndarray:
        """Features of a member."""
        random, p, size = stream(self._seed_, "features", member), self.n_features_in_, self._n_features_drawn_
        if self.bootstrap_features:
            return random.integers(p, size=size)
        return np.arange(p) if size == p else random.choice(p, size, replace=False)

    def _samples(self) -> RowSamples:
        """The samples of rows, of which every member draws its own."""
        keys = self._ranks_.view(np.uint32)
        return RowSamples(keys, self._draw_weight_, self._n_drawn_, bootstrap=self.bootstrap)

    def _counts(self, samples: RowSamples, member: int, attempt: int) -> np.ndarray:
        """Number of times that each row is in the sample of a member.

        Samples that it cannot learn from are drawn again, with the next attempt.
        """
        weight, number = self._draw_weight_, member + _NEXT_ATTEMPT * attempt
        if weight is not None and not self.bootstrap:
            random = stream(self._seed_, "rows", number)
            share = weight / weight.sum()  # those that underflow are never drawn
            size = min(int(samples.size), int(np.count_nonzero(share)))
            rows = random.choice(len(weight), size, replace=False, p=share)
            return np.bincount(rows, minlength=len(weight)).astype(np.float64)
        found = samples.counts(self._seed_, number)
        return np.ones(samples.n) if found is None else found

    def _is_usable(self, y: np.ndarray) -> bool:
        """Whether a member can learn from a sample with these targets."""
        return True

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """The rows that each member was fitted to, drawn anew on every access."""
        self._check_fitted()
        samples = self._samples()
        counts = (self._counts(samples, m, attempt) for m, attempt in enumerate(self._attempts_))
        return [np.repeat(np.arange(len(count)), count.astype(np.intp)) for count in counts]

    def _members_take_weights(self) -> bool:
        if routing_enabled():
            return bool(get_routing_for_object(self._base()).consumes("fit", ("sample_weight",)))
        return bool(has_fit_parameter(self._base(), "sample_weight"))

    def _fit_one(
        self, number: int, X: Any, y: np.ndarray, samples: RowSamples, params: dict[str, Any], *, weighted: bool
    ) -> tuple[Any, int]:
        """A member, and how often its sample was drawn again.

        Repeated rows are weights where the member takes some, which saves a copy of the rows.
        """
        member = clone(self._base())
        seeds = stream(self._seed_, "member", number)
        names = [name for name in sorted(member.get_params(deep=True)) if name.split("__")[-1] == "random_state"]
        member.set_params(**{name: int(seeds.integers(2**31 - 1)) for name in names})
        for attempt in range(_MAX_DRAWS):
            count = self._counts(samples, number, attempt)
            if self._is_usable(y[count > 0]):
                break
        X = self._columns(X, self._features(number))
        if weighted:
            return fit_member(member, X, y, {**params, "sample_weight": count}), attempt
        rows = np.repeat(np.arange(len(count)), count.astype(np.intp))
        params = {k: _safe_indexing(v, rows) if _is_one_per_row(v, len(y)) else v for k, v in params.items()}
        return fit_member(member, _safe_indexing(X, rows), y[rows], params), attempt

    def _columns(self, X: Any, features: np.ndarray) -> Any:
        whole = not self.bootstrap_features and len(features) == self.n_features_in_
        return X if whole else _safe_indexing(X, features, axis=1)

    # ------------------------------------------------------------------------------------------- out of bag

    @abstractmethod
    def _answer(self, member: Any, X: Any, **params: Any) -> np.ndarray:
        """Predictions of a member that are averaged, (n, K)."""

    @abstractmethod
    def _score_oob(self, average: np.ndarray, y: np.ndarray, known: np.ndarray) -> tuple[float, float, float, float]:
        """Set the attributes of the out-of-bag averages; returns score, error and its 95% interval.

        Only the `known` rows were left out by a member.
        """

    def _truth(self, y: np.ndarray) -> np.ndarray:
        """The ideal values of the averages (n, K)."""
        return y.reshape(len(y), -1).astype(np.float64)

    def _set_oob(self, X: Any, y: np.ndarray) -> None:
        samples, truth = self._samples(), self._truth(y)

        def work(m: int) -> tuple[np.ndarray, np.ndarray]:
            left_out = np.flatnonzero(self._counts(samples, m, self._attempts_[m]) == 0)
            if not len(left_out):
                return left_out, np.empty((0, truth.shape[1]))
            X_out = self._columns(_safe_indexing(X, left_out), self.estimators_features_[m])
            return left_out, self._answer(self.estimators_[m], X_out)

        sums = OutOfBagSums(truth)
        self._in_order(len(self.estimators_), work, sums.add)
        if not sums.known.all():
            warnings.warn(
                "Some inputs do not have OOB scores. This probably means too few estimators were used to compute any "
                "reliable oob estimates.",
                stacklevel=5,
            )
        if not sums.known.any():
            self.oob_score_, self.oob_decomposition_ = np.nan, dict.fromkeys(DECOMPOSITION, np.nan)
            return
        self.oob_score_, *error = self._score_oob(sums.average, y, sums.known)
        self.oob_decomposition_ = dict(zip(DECOMPOSITION, [*error, *sums.decomposition()], strict=True))

    # ------------------------------------------------------------------------------------------- prediction

    def _routed_params(self, method: str, params: dict[str, Any]) -> dict[str, dict[str, Any]]:
        if not checked_metadata(params, self, method) or not routing_enabled():
            return {}
        return {name: dict(value) for name, value in process_routing(self, method, **params)["estimator"].items()}

    def _sum(self, X: Any, work: Any) -> Any:
        """The sum over the members of ``work(member, X of its features)``, in their order."""
        self._check_fitted()
        X = self._rows(X, reset=False)
        parts: list[Any] = []

        def one(m: int) -> Any:
            return work(self.estimators_[m], self._columns(X, self.estimators_features_[m]))

        def add(part: Any) -> None:
            parts[:] = [part if not parts else parts[0] + part]

        self._in_order(len(self.estimators_), one, add)
        return parts[0]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the requests of metadata of the members."""
        base = self._base()
        mapping = MethodMapping().add(caller="fit", callee="fit")
        mapping.add(caller="decision_function", callee="decision_function")
        shares = "predict_proba" if hasattr(base, "predict_proba") else "predict"
        logs = "predict_log_proba" if hasattr(base, "predict_log_proba") else shares
        mapping.add(caller="predict", callee=shares).add(caller="predict_proba", callee=shares)
        mapping.add(caller="predict_log_proba", callee=logs)
        return MetadataRouter(owner=self).add(estimator=base, method_mapping=mapping)


def _has_other_columns(X: Any) -> bool:
    """Whether a frame has columns that are neither numbers nor booleans."""
    schema = nw.from_native(X).schema
    return any(not (dtype.is_numeric() or dtype == nw.Boolean) for dtype in schema.values())


def _is_one_per_row(value: Any, n: int) -> bool:
    return (sp.issparse(value) or hasattr(value, "__len__")) and not isinstance(value, str) and _num_samples(value) == n
