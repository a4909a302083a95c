r"""The noise of a diffusion:  x_t = sqrt(a_t) x_0 + sqrt(1 - a_t) e,  e ~ N(0, I),  t = 1 .. T,  a_0 = 1.

    linear     a_t = prod_{s <= t} (1 - b_s),  b_s from 1e-4 to 0.02 (times 1000 / T)        (Ho et al. 2020)
    cosine     a_t = h(t) / h(0),  h(t) = cos^2(pi/2 (t/T + 0.008) / 1.008)                  (Nichol and Dhariwal 2021)

with b_s = 1 - a_s / a_{s-1} at most 0.999. A step back, from t to any s < t, given an estimate of x_0 and e:

    x_s = sqrt(a_s) x_0 + sqrt(1 - a_s - d^2) e + d z,   d^2 = eta^2 (1 - a_s) / (1 - a_t) (1 - a_t / a_s),

where eta = 1 draws from the posterior q(x_s | x_t, x_0) (DDPM), and eta = 0 draws nothing (DDIM; Song et al. 2021).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from epicycle.nets.training._randomness import generator

#: Largest share of the signal's variance that one step takes away.
_MOST_NOISE = 0.999

#: (x_t, t) -> (x_0, e), what the model thinks of the row without noise and of the noise.
Estimate = Callable[[torch.Tensor, int], tuple[torch.Tensor, torch.Tensor]]


def signal(schedule: str, n_steps: int) -> np.ndarray:
    """a_0, ..., a_T."""
    t = np.arange(n_steps + 1) / n_steps
    if schedule == "linear":
        b = np.linspace(1e-4, 0.02, n_steps) * 1000 / n_steps
    else:
        h = np.cos(np.pi / 2 * (t + 0.008) / 1.008) ** 2
        b = 1 - h[1:] / h[:-1]
    return np.concatenate([[1.0], np.cumprod(1 - np.minimum(b, _MOST_NOISE))])


def levels(n_steps: int, n_used: int) -> np.ndarray:
    """n_used levels from T down to 0, evenly apart."""
    return np.unique(np.rint(np.linspace(0, n_steps, n_used + 1)).astype(int))[::-1]


def step_back(
    x: torch.Tensor, estimate: tuple[torch.Tensor, torch.Tensor], a_t: float, a_s: float, eta: float
) -> torch.Tensor:
    """x_s from x_t."""
    x_0, e = estimate
    d2 = eta**2 * (1 - a_s) / (1 - a_t) * (1 - a_t / a_s)
    x_s = a_s**0.5 * x_0 + max(1 - a_s - d2, 0.0) ** 0.5 * e
    if d2 > 0:
        x_s = x_s + d2**0.5 * torch.randn(x.shape, generator=generator(), device=x.device, dtype=x.dtype)
    return x_s


def denoised(x: torch.Tensor, estimate: Estimate, a: np.ndarray, used: np.ndarray, eta: float) -> torch.Tensor:
    """x_0 from noise x_T by steps back along the levels `used`."""
    for t, s in zip(used[:-1].tolist(), used[1:].tolist(), strict=True):
        x = step_back(x, estimate(x, t), float(a[t]), float(a[s]), eta)
    return x
