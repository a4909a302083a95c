"""Adam and the other update rules of stochastic gradient methods, and schedules of their step eta.

sgd        move = -eta g
momentum   v <- gamma v + eta g;                          move = -v
adagrad    G <- G + g^2;                                  move = -eta g / (sqrt(G) + eps)
rmsprop    G <- beta G + (1 - beta) g^2;                  move = -eta g / (sqrt(G) + eps)
adadelta   G as in rmsprop;                               move = -eta g sqrt(D + eps) / sqrt(G + eps),
           D <- beta D + (1 - beta) move^2
adam       v <- gamma v + (1 - gamma) g;  G as in rmsprop;
           move = -eta v / (1 - gamma^t) / (sqrt(G / (1 - beta^t)) + eps)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
#: The arrays a rule keeps from step to step. They are updated in place.
Memory = dict[str, Array]


@dataclass(frozen=True)
class Rule:
    """An update rule: the arrays that it keeps, its move, and its usual step (None: fitted to F)."""

    memory: tuple[str, ...]
    move: Callable[[Memory, Array, float, int], Array]
    step: float | None
    description: str


#: Decay of the momentum v, and of the mean squares G: those of the papers (Hinton 2012, Zeiler 2012, Kingma and Ba
#: 2015), as are the offsets that keep divisions finite.
GAMMA, BETA, BETA_ADAM = 0.9, 0.9, 0.999
EPS, EPS_ADADELTA = 1e-8, 1e-6


def _sgd(_memory: Memory, g: Array, eta: float, _t: int) -> Array:
    return -eta * g


def _momentum(memory: Memory, g: Array, eta: float, _t: int) -> Array:
    v = memory["v"]
    v *= GAMMA
    v += eta * g
    return -v


def _adagrad(memory: Memory, g: Array, eta: float, _t: int) -> Array:
    G = memory["G"]
    G += g * g
    return -eta * g / (np.sqrt(G) + EPS)


def _rmsprop(memory: Memory, g: Array, eta: float, _t: int) -> Array:
    G = memory["G"]
    G *= BETA
    G += (1 - BETA) * g * g
    return -eta * g / (np.sqrt(G) + EPS)


def _adadelta(memory: Memory, g: Array, eta: float, _t: int) -> Array:
    G, D = memory["G"], memory["D"]
    G *= BETA
    G += (1 - BETA) * g * g
    move = -eta * g * np.sqrt(D + EPS_ADADELTA) / np.sqrt(G + EPS_ADADELTA)
    D *= BETA
    D += (1 - BETA) * move * move
    return move


def _adam(memory: Memory, g: Array, eta: float, t: int) -> Array:
    v, G = memory["v"], memory["G"]
    v *= GAMMA
    v += (1 - GAMMA) * g
    G *= BETA_ADAM
    G += (1 - BETA_ADAM) * g * g
    return -eta * (v / (1 - GAMMA**t)) / (np.sqrt(G / (1 - BETA_ADAM**t)) + EPS)


RULES: Mapping[str, Rule] = {
    "sgd": Rule((), _sgd, None, "stochastic gradient descent"),
    "momentum": Rule(("v",), _momentum, None, "stochastic gradient descent with momentum"),
    "adagrad": Rule(("G",), _adagrad, 0.1, "steps scaled by all past gradients of each coordinate"),
    "rmsprop": Rule(("G",), _rmsprop, 0.01, "steps scaled by recent gradients of each coordinate"),
    "adadelta": Rule(("G", "D"), _adadelta, 1.0, "rmsprop in the units of x, without a step to choose"),
    "adam": Rule(("v", "G"), _adam, 0.01, "momentum and rmsprop together, corrected for their start at zero"),
}

SCHEDULES = ("adaptive", "constant", "inverse", "inverse-scaling", "1/sqrt")


def scheduled(schedule: str, step: float, offset: float, t: int) -> float:
    """The step at time t = 1, 2, ...: c / t, a / (b + t), c / sqrt(t), or always the same."""
    if schedule == "inverse":
        return step / t
    if schedule == "inverse-scaling":
        return step / (offset + t)
    if schedule == "1/sqrt":
        return step / math.sqrt(t)
    return step
