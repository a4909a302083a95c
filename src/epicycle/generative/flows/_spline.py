r"""Monotone splines of quotients of quadratics (Durkan et al. 2019), the identity outside of [-B, B].

Between knots (x_k, y_k) and (x_{k+1}, y_{k+1}) with slopes d_k and d_{k+1}, w = x_{k+1} - x_k, h = y_{k+1} - y_k,
s = h / w and t = (x - x_k) / w,

    y = y_k + h (s t^2 + d_k t (1 - t)) / (s + (d_k + d_{k+1} - 2 s) t (1 - t)),
    dy/dx = s^2 (d_{k+1} t^2 + 2 s t (1 - t) + d_k (1 - t)^2) / (s + (d_k + d_{k+1} - 2 s) t (1 - t))^2,

and t of y is a root of a quadratic. At both ends the slope is 1.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional

#: The smallest width and height of a bin, as a share of the interval, and the smallest slope at a knot.
_LEAST_BIN, _LEAST_SLOPE = 1e-3, 1e-3
#: What a parameter 0 is moved by so that its slope is 1.
_SLOPE_ONE = math.log(math.expm1(1 - _LEAST_SLOPE))


def n_parameters(n_bins: int) -> int:
    """Numbers behind one spline: widths, heights and the slopes at the inner knots."""
    return 3 * n_bins - 1


def spline(x: torch.Tensor, theta: torch.Tensor, bound: float, *, inverse: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """(y, log dy/dx) of every entry, by the parameters along the last axis of `theta`; the spline of zeros is y = x.

    With `inverse` x is looked for instead: what is given is y, and the logarithm is that of dx/dy.
    """
    n_bins = (theta.shape[-1] + 1) // 3
    widths, heights, slopes = theta.split([n_bins, n_bins, n_bins - 1], dim=-1)
    (x_knots, w_all), (y_knots, h_all) = _knots(widths, bound), _knots(heights, bound)
    inner = _LEAST_SLOPE + functional.softplus(slopes + _SLOPE_ONE)
    d_all = functional.pad(inner, (1, 1), value=1.0)

    inside = x.abs() <= bound
    at = x.clamp(-bound, bound)[..., None]
    k = (at >= (y_knots if inverse else x_knots)[..., 1:]).sum(-1, keepdim=True)
    x_k, w, y_k, h = (found.gather(-1, k)[..., 0] for found in (x_knots, w_all, y_knots, h_all))
    d_k, d_next = d_all.gather(-1, k)[..., 0], d_all.gather(-1, k + 1)[..., 0]
    at = at[..., 0]
    s = h / w
    bend = d_k + d_next - 2 * s
    if inverse:
        above = at - y_k
        a, b, c = h * (s - d_k) + above * bend, h * d_k - above * bend, -s * above
        # The root within the bin, by the form that subtracts nothing.
        t = 2 * c / (-b - (b.square() - 4 * a * c).clamp(min=0).sqrt())
        moved = x_k + t * w
    else:
        t = (at - x_k) / w
    both = t * (1 - t)
    below = s + bend * both
    slope = s.square() * (d_next * t.square() + 2 * s * both + d_k * (1 - t).square()) / below.square()
    log_slope = slope.log()
    if inverse:
        log_slope = -log_slope
    else:
        moved = y_k + h * (s * t.square() + d_k * both) / below
    return torch.where(inside, moved, x), torch.where(inside, log_slope, torch.zeros_like(x))


def _knots(logits: torch.Tensor, bound: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(left ends, lengths) of bins that divide [-bound, bound] in the proportions of a softmax."""
    n_bins = logits.shape[-1]
    share = _LEAST_BIN + (1 - _LEAST_BIN * n_bins) * logits.softmax(-1)
    lengths = 2 * bound * share
    return functional.pad(lengths[..., :-1].cumsum(-1), (1, 0)) - bound, lengths
