"""Common parts of bagging, voting and stacking: members on several threads, their evidence, and metadata.

Members are any estimators of scikit-learn's kind. They are fitted one by one or on threads, and taken in their order,
so that sums over them have the same bits for any number of threads.
"""

from __future__ import annotations

import inspect
import time
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.utils import Bunch, check_consistent_length, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import _num_samples

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, DataTypeError, EpicycleError, ParameterError, ParameterTypeError
from epicycle.core._parameters import Domain, InstanceOf, NoneOr
from epicycle.core._settings import config
from epicycle.core.estimator._estimator import Estimator
from epicycle.core.estimator._parts import (
    certificate_value,
    last_iteration,
    last_objective,
    misses_certificate,
    worst_certificate,
)
from epicycle.data._target import as_labels, as_numeric_target, require_target
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.linear.logistic._logistic_regression import LogisticRegression
from epicycle.linear.ridge._ridge import Ridge
from epicycle.optim import Solution
from epicycle.tree.boosting._classifier import GradientBoostingClassifier
from epicycle.tree.boosting._regressor import GradientBoostingRegressor

R = TypeVar("R")


@contextmanager
def errors_of_ours() -> Iterator[None]:
    """Errors of scikit-learn's checks of data, as errors of this package with the same words."""
    try:
        yield
    except EpicycleError:
        raise
    except TypeError as error:
        raise DataTypeError(str(error)) from None
    except ValueError as error:
        raise DataError(str(error)) from None


def routing_enabled() -> bool:
    """Whether metadata is routed by what the members request."""
    return bool(sklearn.get_config()["enable_metadata_routing"])


def checked_metadata(params: Mapping[str, Any], owner: Any, method: str) -> dict[str, Any]:
    """Metadata as given, without weights of None; all but weights are refused where nothing routes them."""
    others = [name for name in params if name != "sample_weight"]
    if others and not routing_enabled():
        raise ParameterError(
            f"{type(owner).__name__}.{method}: {', '.join(others)}: metadata is only supported if "
            "enable_metadata_routing=True; call sklearn.set_config(enable_metadata_routing=True)"
        )
    return {name: value for name, value in params.items() if name != "sample_weight" or value is not None}


def fit_member(member: Any, X: Any, y: Any, params: Mapping[str, Any]) -> Any:
    """Fit a member, or say that it takes no weights."""
    taken = inspect.signature(member.fit).parameters.values()
    if "sample_weight" in params and not any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in taken):
        raise ParameterTypeError(
            f"sample_weight: Underlying estimator {type(member).__name__} does not support sample weights."
        )
    member.fit(X, y, **params)
    return member


class Ensemble(MetaEstimatorMixin, Estimator, ABC):  # type: ignore[misc]  # the mixin is untyped
    """A model that is made of fitted estimators."""

    _docs: ClassVar[dict[str, str]] = {
        "n_jobs": "n_jobs : int, optional\n"
        "    Threads, each with a member of its own; None goes through the members one by one, each with the threads\n"
        "    that it takes itself. The result does not depend on it.",
        "verbose": "verbose : int or bool, default={default}\n"
        "    1 shows progress when the fit takes more than about two seconds, 2 logs every member.",
        "fit_params": "**fit_params\n    Metadata for the members, where scikit-learn's metadata routing is enabled.",
    }

    n_jobs: int | None
    estimators_: list[Any]

    def _in_order(self, n: int, work: Callable[[int], R], consume: Callable[[R], None]) -> None:
        """``consume(work(i))`` for every member in order, on `n_jobs` threads, with the settings of the caller."""
        settings = sklearn.get_config()

        def on_thread(i: int) -> R:
            with sklearn.config_context(**settings), config(on_nonconvergence="ignore"):
                return work(i)

        threads = 1 if self.n_jobs is None else n_threads(float("inf"), self.n_jobs)
        in_order(range(n), on_thread, consume, min(threads, n))

    def _fit_members(
        self, n: int, work: Callable[[int], tuple[Any, Any]], attributes: Callable[[list[Any]], dict[str, Any]]
    ) -> tuple[list[Any], list[Any], Solution]:
        """Members 0..n-1, what `work` gives beside each, and the evidence; from a checkpoint those that are missing.

        `attributes` maps the first members to what prediction needs.
        """
        known = self._resume_state() or {}
        members, extras = list(known.get("members", [])), list(known.get("extras", []))
        first, stopped = len(members), False
        monitor = self._monitor(n, lambda x: attributes(members[: int(x[0])]))

        def timed(i: int) -> tuple[Any, Any, float]:
            began = time.perf_counter()
            return (None, None, 0.0) if stopped else (*work(first + i), time.perf_counter() - began)

        def consume(result: tuple[Any, Any, float]) -> None:
            nonlocal stopped
            member, extra, seconds = result
            if stopped:
                return
            members.append(member)
            extras.append(extra)
            stopped = monitor(
                len(members),
                np.array([float(len(members))]),
                objective=last_objective(member),
                iterations=last_iteration(member),
                certificate=certificate_value(member),
                fit_seconds=seconds,
                state=lambda: {"members": list(members), "extras": list(extras)},
            )

        self._in_order(n - first, timed, consume)
        stopped = stopped and len(members) < n
        missed = sum(misses_certificate(member) for member in members)
        reason = "stopped" if stopped else "max_iter" if missed else "converged"
        state = {"members": members, "extras": extras} if stopped else {}
        return members, extras, Solution(
            np.zeros(0),
            float(np.nansum([last_objective(member) for member in members])),
            monitor.history(),
            worst_certificate(members, "members"),
            len(members),
            reason,
            f"{missed} of {len(members)} members" if missed else "",
            state,
        )  # fmt: skip


class NamedEnsemble(_BaseComposition, Estimator, ABC):  # type: ignore[misc]  # the composition is untyped
    """A model of different estimators, each with a name; ``"drop"`` leaves one out."""

    _docs: ClassVar[dict[str, str]] = {
        "estimators": "estimators : list of (str, estimator), optional\n"
        '    Names and members, which are cloned; "drop" in place of an estimator leaves it out. None takes a linear\n'
        "    model and gradient boosting.",
        "named_estimators_": "estimators_ : list\n    The fitted members, without those that were dropped.\n"
        'named_estimators_ : Bunch\n    The same by name, with "drop" for those that were dropped.',
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("named_estimators_",)
    _parameters: ClassVar[dict[str, Domain]] = {"estimators": NoneOr(InstanceOf(list))}

    estimators: Any
    classes_: Any
    #: Members of these kinds are taken; None takes any.
    _members_are: ClassVar[str | None] = None

    def _named(self) -> list[tuple[str, Any]]:
        """Names and members, as given or by default."""
        if self.estimators is not None:
            return list(self.estimators)
        if isinstance(self, ClassifierMixin):  # without tags, which are those of the members
            return [("linear", LogisticRegression()), ("boosting", GradientBoostingClassifier())]
        return [("linear", Ridge()), ("boosting", GradientBoostingRegressor())]

    def _fit_data(self, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
        """The target as the members see it; the rows are checked by the members."""
        require_target(y, type(self).__name__)
        with errors_of_ours():
            check_consistent_length(X, y)
        return self._encoded(y, _num_samples(X))

    def _encoded(self, y: Any, n: int) -> np.ndarray:
        """Numbers as they are, labels as their positions among the classes."""
        name = type(self).__name__
        if not isinstance(self, ClassifierMixin):
            return as_numeric_target(y, n, multi_output=False, estimator_name=name)
        self.classes_, codes = np.unique(as_labels(y, n, estimator_name=name), return_inverse=True)
        return np.asarray(codes)

    @property
    def named_estimators(self) -> Bunch:
        """The members as given, by name."""
        return Bunch(**dict(self._named()))

    @property
    def named_estimators_(self) -> Bunch:
        """The fitted members by name."""
        self._check_fitted()
        fitted = iter(self.estimators_)
        return Bunch(**{name: "drop" if _dropped(given) else next(fitted) for name, given in self._named()})

    @property
    def n_features_in_(self) -> int:  # type: ignore[override]  # the members know it
        """Number of features, as the first member saw them."""
        if "estimators_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} object has no attribute n_features_in_")
        return int(self.estimators_[0].n_features_in_)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` those of the members too."""
        params: dict[str, Any] = self._get_params("estimators", deep=deep)
        return params

    def set_params(self, **params: Any) -> NamedEnsemble:
        """Set parameters, members by name, and their parameters as ``name__parameter``."""
        self._set_params("estimators", **params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = [member for _, member in _pairs(self._named()) if not _dropped(member)]
        inner = [get_tags(member) for member in members if _has_tags(member)]
        tags.input_tags.allow_nan = all(t.input_tags.allow_nan for t in inner)
        tags.input_tags.sparse = all(t.input_tags.sparse for t in inner)
        return tags

    def _checked_members(self) -> list[tuple[str, Any]]:
        """Names and members that are not dropped, or an error that says what is wrong with them."""
        given = self._named()
        if not given or len(_pairs(given)) < len(given):
            raise ParameterError(
                f"{type(self).__name__}: Invalid 'estimators' attribute, 'estimators' should be a non-empty list of "
                f"(string, estimator) tuples; got {given!r:.80}"
            )
        try:
            self._validate_names([name for name, _ in given])
        except ValueError as error:
            raise ParameterError(f"{type(self).__name__}: {error}") from None
        members = [(name, member) for name, member in given if not _dropped(member)]
        if not members:
            raise ParameterError(
                f"{type(self).__name__}: All estimators are dropped. At least one is required to be an estimator."
            )
        for name, member in members:
            if not _has_tags(member) or not hasattr(member, "fit"):
                raise ParameterTypeError(f"{type(self).__name__}: {name}={member!r:.60}; expected an estimator")
            kinds = {"classifier": is_classifier, "regressor": is_regressor}
            if self._members_are is not None and not kinds[self._members_are](member):
                raise ParameterError(
                    f"{type(self).__name__}: {name}: The estimator {type(member).__name__} should be a "
                    f"{self._members_are}."
                )
        return members

    def _routed(self, params: dict[str, Any], names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The metadata of each member's fit."""
        if not routing_enabled():
            return dict.fromkeys(names, params)
        routed = process_routing(self, "fit", **params)
        return {name: dict(routed[name]["fit"]) for name in names}

    def _router(self) -> MetadataRouter:
        """The members' requests of metadata for `fit`."""
        router = MetadataRouter(owner=self)
        for name, member in _pairs(self._named()):
            router.add(**{name: member}, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        return router

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the requests of metadata of the members."""
        return self._router()

    def _take_names(self) -> None:
        """The names of the features, where a member learnt them."""
        for member in self.estimators_:
            if hasattr(member, "feature_names_in_"):
                self.feature_names_in_ = member.feature_names_in_


def clones(members: Sequence[tuple[str, Any]]) -> list[Any]:
    """Fresh copies of the members."""
    return [clone(member) for _, member in members]


def greedy(claim: str) -> Certificate:
    """No certificate, with what can be said instead."""
    return Certificate("none", 0.0, 0.0, claim)


def label_table(y: Any) -> np.ndarray | None:
    """Several labels for each row as an array (n, n_labels); None where there is one."""
    table = y.toarray() if sp.issparse(y) else y
    if not (hasattr(table, "shape") or isinstance(table, list | tuple)):
        return None
    found = np.asarray(table)
    return found if found.ndim == 2 and found.shape[1] > 1 else None


def _has_tags(member: Any) -> bool:
    """Whether scikit-learn can be asked what this is: an object, no class, of scikit-learn's kind."""
    return not isinstance(member, type) and hasattr(member, "__sklearn_tags__")


def _dropped(member: Any) -> bool:
    return isinstance(member, str) and member == "drop"


def _pairs(given: Any) -> list[tuple[str, Any]]:
    """The (name, member) pairs of what was given as a list of them."""
    pairs = [tuple(pair) for pair in given if isinstance(pair, tuple | list) and len(pair) == 2]
    return [(name, member) for name, member in pairs if isinstance(name, str)]
