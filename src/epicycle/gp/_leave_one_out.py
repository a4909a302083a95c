"""Leave one out: what all other observations say about one, from the factor of all of them.

With P = S^-1 (less the part of a basis), the mean of group i given all other groups is  y_i - a_i / P_ii  and its
variance 1 / P_ii, noise of the group included. Where a group of equal rows has lost only one of them, the others are
added to that again: precisions add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["LeaveOneOut", "leave_one_out"]


@dataclass(frozen=True)
class LeaveOneOut:
    """Predictions of every observation by all others.

    mean, std, log_density : of shape (n_samples,) or (n_samples, n_targets)
    """

    mean: np.ndarray
    std: np.ndarray
    log_density: np.ndarray

    @property
    def log_predictive(self) -> float:
        """The sum of all log densities: a likelihood of the model that every observation had to earn."""
        return float(self.log_density.sum())


def leave_one_out(model: Any, means: np.ndarray, variances: np.ndarray, noise: np.ndarray) -> LeaveOneOut:
    """From means and variances (noise of the group included) of the groups, and the noise of single observations."""
    group, Y, weight = model._group_, model._given_, model._given_weight_
    W, d = model._weight_[group], noise[group]
    mean, latent = means[group], np.maximum(variances - noise / model._weight_, 0.0)[group]
    rest = W - weight
    rest = np.where(rest > 1e-12 * W, rest, 0.0)
    others = np.divide(
        W[:, None] * model.y_train_[group] - weight[:, None] * Y,
        rest[:, None],
        out=np.zeros_like(Y),
        where=rest[:, None] > 0,
    )
    gain = np.divide(latent * rest, d + latent * rest, out=np.zeros_like(latent), where=rest > 0)[:, None]
    mean = mean + gain * (others - mean)
    variance = (latent * (1 - gain[:, 0]) + d / weight)[:, None]
    log_density = -0.5 * (np.log(2 * np.pi * variance) + (Y - mean) ** 2 / variance) - np.log(model._y_scale_)
    std = np.sqrt(variance) * model._y_scale_
    mean = mean * model._y_scale_ + model._y_centre_ + model._given_offset_
    if model._vector_:
        return LeaveOneOut(mean[:, 0], std[:, 0], log_density[:, 0])
    return LeaveOneOut(mean, np.broadcast_to(std, mean.shape).copy(), log_density)
