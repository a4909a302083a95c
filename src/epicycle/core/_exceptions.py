"""Every error that epicycle raises: one root, and each also the built-in a caller would expect."""

from sklearn.exceptions import (
    ConvergenceWarning as _SklearnConvergenceWarning,
    NotFittedError as _SklearnNotFittedError,
)


class EpicycleError(Exception):
    """Root of all errors raised on purpose."""


class ParameterError(EpicycleError, ValueError):
    """A constructor or method argument has a value outside its domain."""


class ParameterTypeError(ParameterError, TypeError):
    """A constructor or method argument has the wrong type."""


class DataError(EpicycleError, ValueError):
    """The data cannot be fitted or predicted as it is."""


class DataTypeError(DataError, TypeError):
    """The data is of a type that cannot be read as a table of numbers."""


class DataFileError(DataError, FileNotFoundError):
    """A data file is missing or cannot be read."""


class NotFittedError(EpicycleError, _SklearnNotFittedError):  # type: ignore[misc]
    """The estimator has to be fitted first."""


class ConvergenceError(EpicycleError, RuntimeError):
    """A fit ended without reaching its tolerance (`config(on_nonconvergence="raise")`), or diverged."""


class SeparationError(ConvergenceError, ValueError):
    """An unpenalised likelihood has no maximum because the classes are separable."""


class ModelFormatError(EpicycleError, ValueError):
    """A model file is damaged, hostile, foreign, or from a later release."""


class MemoryBudgetError(EpicycleError, MemoryError):
    """The work would need more memory than is available; nothing was started."""


class MissingDependencyError(EpicycleError, ImportError):
    """An optional dependency is not installed."""


class EngineError(EpicycleError, RuntimeError):
    """A pass over the data failed where it ran (a worker died for good, a file changed in between)."""


class EpicycleWarning(UserWarning):
    """Root of all warnings."""


class ConvergenceWarning(EpicycleWarning, _SklearnConvergenceWarning):  # type: ignore[misc]
    """A fit stopped before its certificate held."""


class CollinearityWarning(EpicycleWarning):
    """Features depend on each other: the coefficients are one choice of many."""


class OverlapWarning(EpicycleWarning):
    """Rows of one arm of a study have no counterparts in the other: the effect there is extrapolated."""


class CollapseWarning(EpicycleWarning):
    """A generative model ignores its codes, or leaves out parts of the data that it was fitted to."""


class SeparationWarning(ConvergenceWarning):
    """An unpenalised likelihood has no maximum because the classes are separable but for ties."""


# Tracebacks, pickles and the reference name the public module, not the file that the classes stand in.
for _class in list(globals().values()):
    if isinstance(_class, type) and issubclass(_class, EpicycleError | EpicycleWarning):
        _class.__module__ = "epicycle.exceptions"
