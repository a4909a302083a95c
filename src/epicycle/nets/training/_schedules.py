"""Learning rates as a function of the step: warm-up, then one of the shapes below."""

from __future__ import annotations

import math

from epicycle.nets.training._options import TrainingOptions

LARGEST_SHRINKAGE = 1e-6  # the adaptive rate ends below this


def learning_rate(options: TrainingOptions, step: int, total_steps: int, epoch: int, shrinkage: float) -> float:
    """The rate of step 0, 1, ... of `total_steps`; `shrinkage` is what the adaptive schedule has come to.

    With warm-up over m steps the rate of step t < m is (t + 1) / m of the full one, and the shapes begin after it:

        cosine      (1 + cos(pi u)) / 2       u = the share of the steps after the warm-up that are done
        linear      1 - u
        step        gamma^floor(epoch / step_size)
        invscaling  1 / (t + 1)^power_t
    """
    warm = options.warmup * total_steps if options.warmup < 1 else options.warmup
    rate = options.learning_rate_init
    if step < warm:
        return rate * (step + 1) / math.ceil(warm)
    done = min((step - warm) / max(total_steps - warm, 1), 1.0)
    if options.learning_rate == "cosine":
        return rate * 0.5 * (1.0 + math.cos(math.pi * done))
    if options.learning_rate == "linear":
        return rate * (1.0 - done)
    if options.learning_rate == "step":
        return float(rate * options.gamma ** (epoch // options.step_size))
    if options.learning_rate == "invscaling":
        return float(rate * float(step + 1) ** -options.power_t)  # a huge power gives zero, and no overflow
    return rate * shrinkage
