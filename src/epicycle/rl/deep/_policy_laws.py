"""The laws from which policies draw: softmax over numbers, and normal; with their logarithms and entropies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from epicycle.rl.deep._deep_agent import choose

Array = np.ndarray


class SoftmaxLaw:
    """Actions are numbers; a network gives their logits."""

    def log_density(self, module: Any, logits: Any, actions: Any) -> Any:
        """log pi(a | x) of each row."""
        return logits.log_softmax(dim=1).gather(1, actions[:, None])[:, 0]

    def entropy(self, module: Any, logits: Any) -> Any:
        """Entropy of each row."""
        log_p = logits.log_softmax(dim=1)
        return -(log_p.exp() * log_p).sum(dim=1)

    def draw(self, module: Any, logits: Array, rng: np.random.Generator) -> Array:
        """An action for each row."""
        return choose(logits, rng)

    def best(self, logits: Array) -> Array:
        """The most probable ones."""
        return np.asarray(logits.argmax(axis=1))

    def spread(self, module: Any, logits: Array) -> float:
        """Mean probability of another action than the best one."""
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return float((1 - 1 / p.sum(axis=1)).mean())


class NormalLaw:
    """Actions are arrays; a network gives the mean, and has the logarithms of the standard deviations."""

    def log_density(self, module: Any, mean: Any, actions: Any) -> Any:
        """log pi(a | x) of each row."""
        z = (actions - mean) * (-module.log_sd).exp()
        return (-0.5 * z**2 - module.log_sd - 0.5 * math.log(2 * math.pi)).sum(dim=1)

    def entropy(self, module: Any, mean: Any) -> Any:
        """Entropy of each row."""
        return (module.log_sd + 0.5 * math.log(2 * math.pi * math.e)).sum().expand(len(mean))

    def draw(self, module: Any, mean: Array, rng: np.random.Generator) -> Array:
        """An action for each row."""
        sd = np.exp(module.log_sd.detach().cpu().numpy())
        return np.asarray(mean + sd * rng.standard_normal(mean.shape, dtype=np.float32))

    def best(self, mean: Array) -> Array:
        """The most probable ones."""
        return mean

    def spread(self, module: Any, mean: Array) -> float:
        """Mean standard deviation, in the scale in which bounds are -1 and 1."""
        return float(module.log_sd.detach().exp().mean())
