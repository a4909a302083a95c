"""Interface of a model with latent variables for expectation maximisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import ParameterError
from epicycle.data import Batch, Data

#: Relative size of a fall of the log-likelihood that sums in double precision may show.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Expectation:
    """The result of an E-step: the log-likelihood, the expected statistics, and the weight of all rows."""

    log_likelihood: float
    statistics: tuple[Any, ...]
    weight: float


class LatentModel(ABC):
    """A model p(x, z; theta) of which only x is seen, in the form that :func:`run_em` fits.

    Parameters theta are an array, a number, or a tuple or mapping of them. Only `e_step` and `m_step` have to be
    written; `start` is needed for fits without a given start. Models are sent to the workers of a cluster: keep
    them small, and define their classes in a module.
    """

    @abstractmethod
    def e_step(self, batch: Batch, parameters: Any) -> tuple[Any, ...]:
        """Log-likelihood of the rows of a batch, then expected statistics: a tuple of things that add up over batches.

        Rows count by ``batch.weight`` where it is not None.
        """

    @abstractmethod
    def m_step(self, statistics: tuple[Any, ...], parameters: Any) -> Any:
        """The parameters that maximise the expected log-likelihood of x and z, or at least do not lower it."""

    def start(self, data: Data, rng: np.random.Generator, n_jobs: int | None = None) -> Any:
        """Parameters to start from, drawn with the generator."""
        raise ParameterError(f"{type(self).__name__} has no method start; give the parameters to start from")

    def expectation(self, data: Data, parameters: Any, n_jobs: int | None = None) -> Expectation:
        """The E-step over all rows; a model whose rows depend on each other (a chain) overrides it."""
        value, *rest, weight = engine.sum(partial(_weighed_e_step, self), data, parameters, n_jobs=n_jobs)
        return Expectation(float(value), tuple(rest), float(weight))

    def log_prior(self, parameters: Any) -> float:
        """Logarithm of the prior density, up to a constant; EM then climbs to the largest posterior density."""
        return 0.0

    def feasible(self, parameters: Any) -> bool:
        """Whether an extrapolated theta is in the set of parameters; what is outside is never tried."""
        return True

    def rounding(self, parameters: Any) -> float:
        """Fall of the log-likelihood that rounding explains, relative to its size and to the weight of the rows."""
        return ROUNDING

    def to_vector(self, parameters: Any) -> np.ndarray:
        """The parameters as one vector: coordinates in which acceleration extrapolates, free of bounds if possible."""
        return np.concatenate([np.zeros(0), *(leaf.ravel() for leaf in leaves(parameters))])

    def normalised(self, parameters: Any) -> Any:
        """Extrapolated parameters where they have to be: long steps enlarge what rounding left of sums of one."""
        return parameters

    def from_vector(self, vector: np.ndarray, like: Any) -> Any:
        """The parameters of a vector; `like` are others of the same shapes."""
        return _shaped_like(like, iter(np.split(vector, np.cumsum([leaf.size for leaf in leaves(like)])[:-1])))


def _weighed_e_step(model: LatentModel, batch: Batch, parameters: Any) -> tuple[Any, ...]:
    return (*model.e_step(batch, parameters), batch.total_weight)


def leaves(parameters: Any) -> list[np.ndarray]:
    """The arrays in a nest of tuples, lists and mappings, in order."""
    if isinstance(parameters, Mapping):
        parameters = list(parameters.values())
    if isinstance(parameters, list | tuple):
        return [leaf for part in parameters for leaf in leaves(part)]
    return [np.asarray(parameters, dtype=np.float64)]


def _shaped_like(like: Any, pieces: Any) -> Any:
    if isinstance(like, Mapping):
        return {name: _shaped_like(part, pieces) for name, part in like.items()}
    if isinstance(like, list | tuple):
        return type(like)([_shaped_like(part, pieces) for part in like])
    piece = next(pieces).reshape(np.shape(like))
    return piece if np.ndim(like) else float(piece)
