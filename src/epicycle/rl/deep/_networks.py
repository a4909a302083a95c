"""Networks of agents: modules, their weights as one vector, Adam's step on it, and answers without torch.

The weights of a small network are one vector in memory, of which the layers hold views: a step of Adam, the norm of
the gradient and the copy for a frozen target are then a few operations on one array. For acting, layers on
the CPU are read as NumPy arrays, which share that memory: calls of torch would cost more than the arithmetic.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

Array = np.ndarray
_MEAN, _SQUARE, _TINY = 0.9, 0.999, 1e-8  # Adam's constants
ACTIVATIONS: Mapping[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh}


class Pixels(nn.Module):  # type: ignore[misc]
    """Numbers of bytes from 0 to 1, others as they are."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Divide bytes by 255."""
        return x.float() / 255 if x.dtype == torch.uint8 else x.float()


def convolutions(shape: tuple[int, ...]) -> tuple[list[nn.Module], int]:
    """Layers for an image (channels, height, width), and the number of what they give.

    From 36 pixels on those of Mnih et al. (2015), below a single layer as for MinAtar (Young and Tian 2019).
    """
    c, h, w = shape
    layers: list[nn.Module] = [Pixels()]
    plan = [(32, 8, 4), (64, 4, 2), (64, 3, 1)] if min(h, w) >= 36 else [(16, min(3, h, w), 1)]
    for channels, size, stride in plan:
        layers += [nn.Conv2d(c, channels, size, stride), nn.ReLU()]
        c, h, w = channels, (h - size) // stride + 1, (w - size) // stride + 1
    return [*layers, nn.Flatten()], c * h * w


def feed_forward(
    shape: tuple[int, ...],
    hidden: Sequence[int],
    outputs: int,
    activation: str,
    *,
    last_gain: float | None = None,
) -> nn.Sequential:
    """Layers from observations to so many outputs.

    With `last_gain` the weights are orthogonal and the biases zero, and the last layer has this gain, as policy
    gradients like it; otherwise they are those of torch.
    """
    layers, n = convolutions(shape) if len(shape) == 3 else ([], shape[0])
    for width in hidden:
        layers += [nn.Linear(n, width), ACTIVATIONS[activation]()]
        n = width
    layers.append(nn.Linear(n, outputs))
    if last_gain is not None:
        for layer in layers:
            if isinstance(layer, nn.Linear | nn.Conv2d):
                nn.init.orthogonal_(layer.weight, last_gain if layer is layers[-1] else math.sqrt(2))
                nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


class Dueling(nn.Module):  # type: ignore[misc]
    """Values of actions as the value of the state and what each action adds to it (Wang et al. 2016)."""

    def __init__(self, state: nn.Module, action: nn.Module) -> None:
        super().__init__()
        self.state, self.action = state, action

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """q = v + a - mean a."""
        a = self.action(x)
        return self.state(x) + a - a.mean(dim=1, keepdim=True)


class GaussianPolicy(nn.Module):  # type: ignore[misc]
    """The mean of a normal law, and the logarithms of its standard deviations, which are the same in all states."""

    def __init__(self, mean: nn.Module, size: int, log_sd: float) -> None:
        super().__init__()
        self.mean = mean
        self.log_sd = nn.Parameter(torch.full((size,), log_sd))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The mean."""
        return self.mean(x)


class TwinCritics(nn.Module):  # type: ignore[misc]
    """Two networks of values q(x, a) of the same shape, computed together; images are looked at by both once."""

    def __init__(self, shape: tuple[int, ...], controls: int, hidden: Sequence[int], activation: str) -> None:
        super().__init__()
        layers, n = convolutions(shape) if len(shape) == 3 else ([], shape[0])
        self.seen = nn.Sequential(*layers)
        self.tanh = activation == "tanh"
        widths = [n + controls, *hidden, 1]
        self.weight, self.bias = nn.ParameterList(), nn.ParameterList()
        for before, after in itertools.pairwise(widths):
            pair = [nn.Linear(before, after) for _ in range(2)]
            self.weight.append(torch.stack([layer.weight.detach().T for layer in pair]))
            self.bias.append(torch.stack([layer.bias.detach()[None] for layer in pair]))

    def forward(self, x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        """Values (2, rows)."""
        h = torch.cat([self.seen(x), a], dim=1).expand(2, -1, -1)
        last = len(self.weight) - 1
        for i, (W, b) in enumerate(zip(self.weight, self.bias, strict=True)):
            h = torch.baddbmm(b, h, W)
            if i < last:
                h = h.tanh() if self.tanh else h.relu()
        return h[:, :, 0]


class Number(nn.Module):  # type: ignore[misc]
    """A number that is learnt."""

    def __init__(self, first: float) -> None:
        super().__init__()
        self.number = nn.Parameter(torch.full((1,), first))


class Net:
    """A module whose weights are one vector, with Adam's memory.

    Parameters
    ----------
    module : nn.Module
    device : torch.device
    """

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self.module, self.device = module.to(device), device
        self.weights = list(self.module.parameters())
        self.flat = torch.cat([p.detach().reshape(-1) for p in self.weights])
        self.gradient = torch.zeros_like(self.flat)
        at = 0
        for p in self.weights:
            p.data = self.flat[at : at + p.numel()].view(p.shape)
            p.grad = self.gradient[at : at + p.numel()].view(p.shape)
            at += p.numel()
        self.mean, self.square, self.steps = torch.zeros_like(self.flat), torch.zeros_like(self.flat), 0

    def __call__(self, *x: torch.Tensor) -> torch.Tensor:
        return self.module(*x)

    def descend(self, loss: torch.Tensor, rate: float, clip: float | None = None) -> None:
        """One step of Adam down the gradient of a loss, whose norm is cut at `clip`."""
        self.gradient.zero_()
        loss.backward()
        self.step(rate, clip)

    def step(self, rate: float, clip: float | None = None) -> None:
        """One step of Adam down the gradient as it stands."""
        g = self.gradient
        if clip is not None:
            norm = float(g.norm())
            if norm > clip:
                g.mul_(clip / norm)
        self.steps += 1
        self.mean.lerp_(g, 1 - _MEAN)
        self.square.mul_(_SQUARE).addcmul_(g, g, value=1 - _SQUARE)
        spread = self.square.sqrt().mul_(1 / math.sqrt(1 - _SQUARE**self.steps)).add_(_TINY)
        self.flat.addcdiv_(self.mean, spread, value=-rate / (1 - _MEAN**self.steps))

    def frozen(self) -> Net:
        """A copy that is not learnt."""
        twin = Net(copy.deepcopy(self.module), self.device)
        for p in twin.weights:
            p.requires_grad_(False)
        return twin

    @contextmanager
    def held(self) -> Iterator[None]:
        """A time in which no gradient by the weights is asked for, only by what goes in."""
        for p in self.weights:
            p.requires_grad_(False)
        try:
            yield
        finally:
            for p in self.weights:
                p.requires_grad_(True)

    def follow(self, other: Net, share: float = 1.0) -> None:
        """Go this share of the way to the weights of another."""
        if share == 1.0:
            self.flat.copy_(other.flat)
        else:
            self.flat.lerp_(other.flat, share)

    def state(self) -> dict[str, Any]:
        """The content of a file."""
        arrays = {"flat": self.flat, "mean": self.mean, "square": self.square}
        return {name: x.detach().cpu().numpy().copy() for name, x in arrays.items()} | {"steps": self.steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take the content of a file."""
        for name in ("flat", "mean", "square"):
            getattr(self, name).copy_(torch.from_numpy(np.array(state[name])))
        self.steps = int(state["steps"])


def forward_of(module: nn.Module, device: torch.device) -> Callable[[Array], Array]:
    """The outputs of a module for arrays: in NumPy on its own weights where it is simple enough, else by torch."""
    plain = _numpy_forward(module) if device.type == "cpu" else None
    if plain is not None:
        return plain

    def by_torch(x: Array) -> Array:
        with torch.inference_mode():
            out = module(torch.from_numpy(np.ascontiguousarray(x)).to(device))
        return np.asarray(out.cpu().numpy())

    return by_torch


def _numpy_forward(module: nn.Module) -> Callable[[Array], Array] | None:
    if isinstance(module, GaussianPolicy):
        return _numpy_forward(module.mean)
    if isinstance(module, Dueling):
        state, action = _numpy_forward(module.state), _numpy_forward(module.action)
        if state is None or action is None:
            return None

        def together(x: Array) -> Array:
            a = action(x)
            return np.asarray(state(x) + a - a.mean(axis=1, keepdims=True))

        return together
    layers = list(module) if isinstance(module, nn.Sequential) else []
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    if not linear or not all(isinstance(layer, nn.Linear | nn.ReLU | nn.Tanh) for layer in layers):
        return None
    arrays = [(layer.weight.detach().numpy().T, layer.bias.detach().numpy()) for layer in linear]
    tanh = any(isinstance(layer, nn.Tanh) for layer in layers)

    def forward(x: Array) -> Array:
        h = x
        for W, b in arrays[:-1]:
            h = h @ W
            h += b
            if tanh:
                np.tanh(h, out=h)
            else:
                np.maximum(h, 0.0, out=h)
        W, b = arrays[-1]
        return np.asarray(h @ W + b)

    return forward
