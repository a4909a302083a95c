"""`Estimator`, the contract of every learner from tables, and `fitting`, which wraps its `fit`.

An estimator derives from :class:`Estimator`, lists the domains of its arguments in `_parameters`, describes itself in
`_card`, and writes `fit` like this::

    @fitting
    def fit(self, X, y=None, sample_weight=None):
        data = self._fit_data(X, y, sample_weight, target="numeric")
        solution = solve(objective, x0, monitor=self._monitor(self.max_iter, unpack), state=self._resume_state())
        self.coef_ = ...
        self._conclude(solution)
        return self

What a fit learns ends in an underscore, also where the name is private (``_statistic_``): a new fit removes all of it
first, and a fit that fails puts back what was there before.
"""

from __future__ import annotations

import functools
import inspect
import math
import time
import warnings
from collections.abc import Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Literal, ParamSpec, TypeVar, overload

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from epicycle.core._certificate import Certificate
from epicycle.core._docs import complete_docstrings
from epicycle.core._exceptions import ConvergenceError, ConvergenceWarning, DataError, DataTypeError, NotFittedError
from epicycle.core._history import History
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import Domain, check_parameters, with_shared_parameters
from epicycle.core._settings import get_config
from epicycle.core._solution import Solution
from epicycle.core.estimator import _display
from epicycle.core.estimator._array_api import dispatch_answers, numpy_arguments
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._progress import FitMonitor, ProgressLine, Run
from epicycle.data import ArrayData, Data, as_data
from epicycle.engine import single_threaded_blas

if TYPE_CHECKING:
    import os

_LARGEST_SQUARED = 1e150  # whose square is a number, with room for sums

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound="Estimator")
B = TypeVar("B", bound=BaseEstimator)


class Estimator(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of all learners from tables.

    It is a scikit-learn estimator (`get_params`, `clone`, pipelines, `set_callbacks`) with evidence: after `fit` it has
    `history_`, `certificate_`, `n_iter_`, `converged_` and `fit_seconds_`, and `n_features_in_` and (where X had names)
    `feature_names_in_`.
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {}
    _card: ClassVar[MethodCard]
    #: Whether `fit` and `predict` take sparse matrices.
    _takes_sparse: ClassVar[bool] = False
    #: Tags of scikit-learn with one value for all objects of the class, by their paths: {"input_tags.allow_nan": True}.
    _fixed_tags: ClassVar[Mapping[str, Any]]
    #: Whether weights and targets of any size are taken, because none is squared or put into the type of X.
    _takes_any_size: ClassVar[bool] = False
    #: Attributes that every docstring lists, with the shared entries where it has none of its own.
    _documented_attributes: ClassVar[tuple[str, ...]] = ("certificate_", "history_", "n_iter_", "converged_")

    _run: Run
    n_features_in_: int
    history_: History
    certificate_: Certificate
    n_iter_: int
    converged_: bool
    fit_seconds_: float

    def __init_subclass__(cls, **kwargs: Any) -> None:
        complete_docstrings(cls)
        cls._parameters = with_shared_parameters(cls, cls._parameters)
        dispatch_answers(cls)
        for base in cls.__mro__:  # mix-ins that are no estimators among them
            if "_fixed_tags" in vars(base) and "__sklearn_tags__" not in vars(base):
                base.__sklearn_tags__ = _tags_of(base)  # type: ignore[attr-defined]
        super().__init_subclass__(**kwargs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

    # ---------------------------------------------------------------- data

    def _fit_data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        target: Literal["none", "numeric", "labels"],
        multi_output: bool = False,
        reset: bool = True,
        check_finite: bool = True,
        missing: bool = False,
    ) -> Data:
        """The training data as :class:`~epicycle.data.Data`; sets `n_features_in_` and `feature_names_in_`.

        Sparse input is taken where the class sets ``_takes_sparse``, which is in its scikit-learn tags.
        With ``reset=False`` (a later `partial_fit`) the features are compared with those of the first call instead.
        With ``check_finite=False`` the caller answers for what happens to NaN and infinity in an array X.
        With ``missing=True`` features that are missing in files become NaN; they are refused otherwise.
        """
        data = as_data(
            X,
            y,
            sample_weight,
            target=target,
            multi_output=multi_output,
            estimator_name=type(self).__name__,
            accept_sparse=get_tags(self).input_tags.sparse,
            check_finite=check_finite,
            missing=missing,
        )
        if isinstance(data, ArrayData) and not self._takes_any_size:
            require_sizes(data, target)
        expected = self._run.resume_features
        if self._run.resume_state is not None and expected not in (None, data.n_features):
            raise DataError(
                f"{type(self).__name__}: X has {data.n_features} features, but the checkpoint to resume from was "
                f"written for {expected}; fit a clone to start afresh."
            )
        self._check_features(X, data, reset=reset)
        if self._has_callbacks():
            metadata = None if sample_weight is None else {"sample_weight": sample_weight}
            self._run.inputs = {"X": X, "y": y, "metadata": metadata}
        return data

    def _predict_data(self, X: Any, *, missing: bool = False) -> Data:
        """New data as :class:`~epicycle.data.Data`, with the features that the fit saw.

        With ``missing=True`` NaN is let through, and the caller answers for what happens to infinity in an array X.
        """
        self._check_fitted()
        sparse = get_tags(self).input_tags.sparse
        name = type(self).__name__
        data = as_data(X, estimator_name=name, accept_sparse=sparse, check_finite=not missing, missing=missing)
        self._check_features(X, data, reset=False)
        return data

    def _names(self) -> list[str]:
        """The features by name, or as x0, x1, ... where the data had no names."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if names is None else [str(n) for n in names]

    def _check_fitted(self) -> None:
        try:
            check_is_fitted(self)
        except SklearnNotFittedError as error:
            raise NotFittedError(str(error)) from None

    def _check_features(self, X: Any, data: Data, *, reset: bool) -> None:
        """Compare or set names and number of features, in scikit-learn's own words."""
        if isinstance(X, np.ndarray) and not hasattr(self, "feature_names_in_"):  # no names on either side
            if reset:
                self.n_features_in_ = data.n_features
            if getattr(self, "n_features_in_", None) == data.n_features:  # a subclass may have deleted it
                return
        self._check_header(_header(X, data), reset=reset)

    def _check_header(self, header: Any, *, reset: bool) -> None:
        """The same for a frame, of which the rows do not matter."""
        try:
            validate_data(self, X=header, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise DataError(str(error)) from None
        except TypeError as error:
            raise DataTypeError(str(error)) from None

    # ---------------------------------------------------------------- the running fit

    def _has_callbacks(self) -> bool:
        """Whether callbacks are set, on the estimator or by the search or pipeline that runs this fit."""
        return bool(getattr(self, "_skl_callbacks", None))

    def _monitor(self, max_iter: int | None, reconstruct: Callable[[np.ndarray], Mapping[str, Any]]) -> Monitor:
        """The monitor for a solver: it records the history, runs callbacks and shows progress.

        `reconstruct` maps the solver's vector to the fitted attributes that prediction needs.
        """
        run = self._run
        if not self._has_callbacks() and run.progress is None and run.resume_state is None:
            return Monitor()
        if run.monitor is not None:
            run.monitor.close()
        run.monitor = FitMonitor(self, run, self._begin_tasks(max_iter), max_iter, reconstruct)
        if run.resume_history is not None:
            run.monitor.resume(run.resume_history)
        return run.monitor

    def _resume_state(self) -> Mapping[str, Any] | None:
        """The solver's state to go on from, when `fit` was called on an estimator that a checkpoint gave back."""
        return self._run.resume_state

    def _begin_tasks(self, max_subtasks: int | None) -> Any:
        """The root of scikit-learn's tree of tasks; None without callbacks."""
        if not self._has_callbacks():
            return None
        if hasattr(self, "_callback_fit_ctx"):
            root = self._callback_fit_ctx
            if root.max_subtasks is not None:
                root.max_subtasks = None if max_subtasks is None else root.max_subtasks + max_subtasks
            return root
        root = self._init_callback_context(max_subtasks=max_subtasks)
        return root.call_on_fit_task_begin(estimator=self, **self._run.inputs)

    def _end_tasks(self) -> None:
        if self._run.monitor is not None:
            self._run.monitor.close()
        if not self._has_callbacks():
            return
        root = self._begin_tasks(0)
        state = self._run.final_state
        last = {} if state is None else {"_solver_state": lambda: state}
        root.call_on_fit_task_end(estimator=self, **self._run.inputs, reconstruction_attributes=last)

    def _conclude(self, solution: Solution) -> None:
        """Set the evidence of a finished fit, and warn or raise if it did not reach its tolerance."""
        self.history_ = solution.history
        self.certificate_ = solution.certificate
        self.n_iter_ = solution.n_iter
        self.converged_ = bool(solution.converged)
        if solution.converged:
            return
        self._run.final_state = dict(solution.state) or None
        message = _display.why_not_converged(self, solution, self._run.stop_message)
        # Numbers that are no numbers are never handed out as a model, whatever the settings say.
        if not np.all(np.isfinite(solution.x)):
            raise ConvergenceError(message)
        stopped_on_request = solution.reason == "stopped" and not self._run.ended_early
        mode = get_config().on_nonconvergence
        if stopped_on_request or mode == "ignore":
            return
        if mode == "raise":
            raise ConvergenceError(message)
        self._run.warning = message

    def _conclude_directly(
        self,
        certificate: Certificate,
        *,
        x: np.ndarray | None = None,
        objective: float = 0.0,
        n_iter: int = 1,
        **facts: Any,
    ) -> None:
        """Set the evidence of a fit in one step, without iterations, or of the last step of `n_iter`."""
        x = np.zeros(0) if x is None else x
        monitor = self._monitor(1, lambda _x: {})
        monitor(1, x, objective=objective, **facts)
        reason = "converged" if certificate.holds else "stalled"
        self._conclude(Solution(x, objective, monitor.history(), certificate, n_iter, reason))

    # ---------------------------------------------------------------- the fitted object

    @property
    def fitted_nbytes(self) -> int:
        """Bytes in memory of all that the fit learnt; training data is never among it."""
        return _display.nbytes({name: value for name, value in vars(self).items() if _is_fitted_name(name)})

    def describe(self) -> str:
        """Describe the fit as text: parameters, certificate, iterations, size in memory."""
        return _display.text(self)

    def _penalty_line(self) -> str:
        """The objective's penalty in one line, for the representation; empty where there is none."""
        return ""

    def _html_repr(self) -> str:
        return _display.html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to an ``.epi`` file; :func:`epicycle.load` reads it back."""
        from epicycle.io import save

        save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        # Copies and pickles made by callbacks during a fit must not carry the fit itself, and with it the data, along.
        state: dict[str, Any] = dict(super().__getstate__())
        for name in ("_run", "_callback_fit_ctx", "_skl_callbacks_to_teardown", "_solver_state"):
            state.pop(name, None)
        return state


def require_sizes(data: ArrayData, target: str) -> None:
    """Refuse weights and targets whose squares, or whose predictions in the type of X, are beyond floating point."""
    largest = float(np.abs(data.y).max()) if target == "numeric" and data.y is not None else 0.0
    if data.weight is not None:
        heaviest = float(data.weight.max())
        if heaviest > _LARGEST_SQUARED:
            raise DataError(
                f"sample_weight: {heaviest:g} in row {int(data.weight.argmax())}; expected none above "
                f"{_LARGEST_SQUARED:g}, because squares of weights would overflow: divide all by a common factor"
            )
        if heaviest < 1 / _LARGEST_SQUARED:
            raise DataError(
                f"sample_weight: none is above {heaviest:g}; expected one of at least {1 / _LARGEST_SQUARED:g}, "
                "because quotients by weights would overflow: multiply all by a common factor"
            )
        if largest * math.sqrt(float(data.weight.sum())) > _LARGEST_SQUARED:
            raise DataError(f"y: {largest:g} is so large that weighted squares overflow; scale y or sample_weight")
    if data.X.dtype == np.float32 and largest > float(np.finfo(np.float32).max):
        raise DataError(f"y: {largest:g} is too large for float32, the type of X; expected X in float64, or scale y")


def _header(X: Any, data: Data) -> Any:
    """Something of no rows from which scikit-learn reads the names and number of features, whatever X is."""
    if nw.dependencies.is_into_dataframe(X):
        return X
    if data.feature_names is None:
        return np.empty((0, data.n_features))
    import pyarrow as pa

    return pa.table({name: pa.array([], pa.float64()) for name in data.feature_names})


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("__")


def _tags_of(cls: type) -> Callable[[Any], Any]:
    """The method that adds the fixed tags of a class to those of the classes above it."""

    def __sklearn_tags__(self: Any) -> Any:  # noqa: N807 - the name of the method
        tags = super(cls, self).__sklearn_tags__()  # type: ignore[arg-type]  # a class above it has the method
        for path, value in vars(cls)["_fixed_tags"].items():
            *parts, name = path.split(".")
            setattr(functools.reduce(getattr, parts, tags), name, copy(value))
        return tags

    return __sklearn_tags__


@overload
def stores_arguments(init: Callable[Concatenate[B, P], None], /) -> Callable[Concatenate[B, P], None]: ...
@overload
def stores_arguments(
    **shared: Any,
) -> Callable[[Callable[Concatenate[B, P], None]], Callable[Concatenate[B, P], None]]: ...
def stores_arguments(init: Any = None, /, **shared: Any) -> Any:
    """Decorate an ``__init__`` without a body: every argument becomes an attribute of its name, unchanged.

    scikit-learn asks for exactly this of a constructor (`get_params`, `clone`); so written it cannot do anything else.
    Arguments that many classes have are given to the decorator, with their defaults, and follow the others::

        @stores_arguments(tol=1e-8, max_iter=100, n_jobs=None)
        def __init__(self, alpha: float = 1.0, **shared: Unpack[SharedArguments]) -> None: ...
    """
    if init is None:
        return functools.partial(stores_arguments, **shared)
    signature = inspect.signature(init)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in shared.items()]
    parameters = [*own, *added][1:]
    names = [p.name for p in parameters]
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}

    @functools.wraps(init)
    def store(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)  # Python's own check of the arguments
        if unknown := [name for name in kwargs if name not in names]:
            raise TypeError(f"{init.__qualname__}() got an unexpected keyword argument {unknown[0]!r}")
        self.__dict__.update(defaults | dict(zip(names, args, strict=False)) | kwargs)

    store.__dict__["__signature__"] = signature.replace(parameters=[*own, *added])
    return store


@overload
def fitting(method: Callable[Concatenate[E, P], R]) -> Callable[Concatenate[E, P], R]: ...
@overload
def fitting(*, incremental: bool) -> Callable[[Callable[Concatenate[E, P], R]], Callable[Concatenate[E, P], R]]: ...
def fitting(method: Any = None, *, incremental: bool = False) -> Any:
    """Decorate `fit`, or with ``incremental=True`` `partial_fit`.

    Around the method it checks the parameters, removes what an earlier fit learnt (not for `partial_fit`), keeps BLAS
    to one thread per task of the engine, runs scikit-learn's callbacks and takes the time. If anything goes wrong,
    Ctrl-C included, the estimator is as it was before; for this a `partial_fit` replaces its state, and never writes
    into the old arrays.
    """
    if method is None:
        return functools.partial(fitting, incremental=incremental)
    managed = with_callbacks(_timed(method))

    @functools.wraps(method)
    def fit(self: Estimator, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        run = Run(type(self).__name__, time.perf_counter(), earlier=before)
        try:
            check_parameters(self, self._parameters)
            args, kwargs = numpy_arguments(args, kwargs)
            if not incremental:
                run.resume_state = before.get("solver_state_")
                run.resume_history = before.get("history_") if run.resume_state is not None else None
                run.resume_features = before.get("n_features_in_")
                for name in before:
                    if _is_fitted_name(name):
                        delattr(self, name)
            if getattr(self, "verbose", 0):
                run.progress = ProgressLine(run.name)
            self._run = run
            # The engine has a thread for each block; BLAS threads under each would compete for the same processors.
            with single_threaded_blas():
                result = managed(self, *args, **kwargs)
            if run.warning:
                warnings.warn(run.warning, ConvergenceWarning, stacklevel=2)
            for notice in run.notices:
                warnings.warn(notice, stacklevel=2)
            return result
        except BaseException:  # Ctrl-C too: a half-fitted estimator must not look like a fitted one
            self.__dict__.clear()
            self.__dict__.update(before)
            self.__dict__.update(run.after_failure)
            raise
        finally:
            self.__dict__.pop("_run", None)
            run.monitor = None  # it refers to the run: in a circle both would keep the data until a collection
            if run.progress is not None:
                run.progress.close()

    return fit


def _timed(method: Callable[..., R]) -> Callable[..., R]:
    """The method, its time, and the end of its task before scikit-learn tears the callbacks down."""

    @functools.wraps(method)
    def fit(self: Estimator, *args: Any, **kwargs: Any) -> R:
        result = method(self, *args, **kwargs)
        self.fit_seconds_ = time.perf_counter() - self._run.began
        self._end_tasks()
        return result

    return fit
