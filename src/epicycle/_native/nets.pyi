"""Kernels: gradients and steps of small networks."""

import numpy as np

Array = np.ndarray

class PerceptronFloat32:
    def __init__(
        self,
        weights: list[Array],
        biases: list[Array],
        weight_gradients: list[Array],
        bias_gradients: list[Array],
        activation: int,
        loss: int,
        smoothing: float,
    ) -> None: ...
    def gradient(self, X: Array, y: Array, weight: Array | None, scale: float) -> float: ...

class PerceptronFloat64:
    def __init__(
        self,
        weights: list[Array],
        biases: list[Array],
        weight_gradients: list[Array],
        bias_gradients: list[Array],
        activation: int,
        loss: int,
        smoothing: float,
    ) -> None: ...
    def gradient(self, X: Array, y: Array, weight: Array | None, scale: float) -> float: ...

class AdamFloat32:
    def __init__(
        self, weights: list[Array], gradients: list[Array], means: list[Array], squares: list[Array]
    ) -> None: ...
    def step(
        self,
        rate: float,
        decay: float,
        beta_1: float,
        beta_2: float,
        epsilon: float,
        step: float,
        decoupled: bool,
    ) -> None: ...

class AdamFloat64:
    def __init__(
        self, weights: list[Array], gradients: list[Array], means: list[Array], squares: list[Array]
    ) -> None: ...
    def step(
        self,
        rate: float,
        decay: float,
        beta_1: float,
        beta_2: float,
        epsilon: float,
        step: float,
        decoupled: bool,
    ) -> None: ...
