"""The hyper-parameters of a Gaussian process as one vector: those of the kernel, then the variance of the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle.kernels._kernel import Kernel

__all__ = ["Model", "hyperparameter_names"]


@dataclass(frozen=True)
class Model:
    """A kernel and a noise variance, of which theta = (kernel.theta, log noise) may be searched.

    noise_bounds : None where the noise variance stays as it is.
    """

    kernel: Kernel
    noise: float
    noise_bounds: tuple[float, float] | None

    @property
    def theta(self) -> np.ndarray:
        own = [] if self.noise_bounds is None else [np.log(self.noise)]
        return np.concatenate([self.kernel.theta, own])

    @property
    def bounds(self) -> np.ndarray:
        own = np.empty((0, 2)) if self.noise_bounds is None else np.log([self.noise_bounds])
        return np.concatenate([self.kernel.theta_bounds, own])

    @property
    def names(self) -> list[str]:
        return [*hyperparameter_names(self.kernel), *([] if self.noise_bounds is None else ["noise"])]

    def at(self, theta: np.ndarray) -> Model:
        """The same model with other hyper-parameters."""
        if self.noise_bounds is None:
            return Model(self.kernel.with_theta(theta), self.noise, None)
        return Model(self.kernel.with_theta(theta[:-1]), float(np.exp(theta[-1])), self.noise_bounds)


def hyperparameter_names(kernel: Kernel) -> list[str]:
    """A name for every entry of ``kernel.theta``."""
    return [
        h.name if h.size == 1 else f"{h.name}[{i}]" for h in kernel.hyperparameters for i in range(h.size)
    ]  # fmt: skip
