"""Back-propagation written out in NumPy, and the compiled kernel of the same formulas.

Forward   z_0 = x,  u_l = W_l z_{l-1} + b_l,  z_l = a(u_l) for l < L,  f = u_L.
Backward  d_L = dl/df,  d_{l-1} = a'(u_{l-1}) * (W_l' d_l),  dl/dW_l = sum_i d_l z_{l-1}',  dl/db_l = sum_i d_l.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from scipy.special import erf, expit

from epicycle._native import nets as native
from epicycle.nets.training._batches import MiniBatch
from epicycle.optim import Loss, Multinomial
from epicycle.optim._likelihoods import Logistic, Poisson
from epicycle.optim._losses import Squared

Array = np.ndarray


def _gelu_slope(u: Array) -> Array:
    return np.asarray(0.5 * (1 + erf(u / math.sqrt(2))) + u * np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi))


#: Activation: (a(u), a'(u) from u and z = a(u)).
ACTIVATIONS: Mapping[str, tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]] = {
    "identity": (lambda u: u, lambda u, _z: np.ones_like(u)),
    "logistic": (expit, lambda _u, z: z * (1 - z)),
    "tanh": (np.tanh, lambda _u, z: 1 - z * z),
    "relu": (lambda u: np.maximum(u, 0), lambda u, _z: (u > 0).astype(u.dtype)),
    "gelu": (lambda u: 0.5 * u * (1 + erf(u / math.sqrt(2))), lambda u, _z: _gelu_slope(u)),
}


def backpropagate(
    weights: list[Array], biases: list[Array], activation: str, loss_gradient: Callable[[Array], Array], X: Array
) -> tuple[Array, list[Array], list[Array]]:
    """(f, gradients of the W_l, gradients of the b_l) of a sum over rows.

    Parameters
    ----------
    weights, biases : list of ndarray
        W_l of shape (outputs, inputs), and b_l.
    activation : str
    loss_gradient : callable
        f of shape (n, k) -> dl/df of the same shape.
    X : ndarray of shape (n, p)
    """
    a, slope = ACTIVATIONS[activation]
    u, z = [], [X]
    for layer, (W, b) in enumerate(zip(weights, biases, strict=True)):
        u.append(z[-1] @ W.T + b)
        z.append(a(u[-1]) if layer < len(weights) - 1 else u[-1])
    d = loss_gradient(z[-1])
    dW, db = [], []
    for layer in reversed(range(len(weights))):
        dW.append(d.T @ z[layer])
        db.append(d.sum(axis=0))
        if layer:
            d = slope(u[layer - 1], z[layer]) * (d @ weights[layer])
    return z[-1], dW[::-1], db[::-1]


class HandWrittenGradients:
    """Gradients of a perceptron for the training loop, by `backpropagate`: as `training.Gradients`, without torch."""

    def __init__(
        self, module: Any, architecture: Mapping[str, Any], loss: Loss, mean_weight: float, label_smoothing: float
    ) -> None:
        self.layers = [layer for layer in module if isinstance(layer, torch.nn.Linear)]
        self.activation, self.loss, self.mean_weight = architecture["activation"], loss, mean_weight
        self.label_smoothing = label_smoothing

    def __call__(self, batch: MiniBatch, step: int) -> torch.Tensor:
        """Set the gradient of the weighted mean loss of the batch; gives that loss."""
        (X,), y = (x.numpy() for x in batch.inputs), batch.target
        assert y is not None
        weight = np.ones(len(X)) if batch.weight is None else batch.weight.numpy()
        scaled = weight / (len(X) * self.mean_weight)
        losses: list[Array] = []

        def loss_gradient(f: Array) -> Array:
            value, slope = self._loss(f, y.numpy())
            losses.append(value)
            return np.asarray((scaled[:, None] * slope).astype(f.dtype))

        W = [layer.weight.detach().numpy() for layer in self.layers]
        b = [layer.bias.detach().numpy() for layer in self.layers]
        _, dW, db = backpropagate(W, b, self.activation, loss_gradient, X)
        for layer, gW, gb in zip(self.layers, dW, db, strict=True):
            layer.weight.grad, layer.bias.grad = torch.from_numpy(gW), torch.from_numpy(gb)
        return torch.tensor(float(scaled @ losses[0]), dtype=torch.float64)

    def _loss(self, f: Array, y: Array) -> tuple[Array, Array]:
        """(the loss of every row, its derivative in f of shape (n, k)) of the objects of `optim`."""
        s, loss = self.label_smoothing, self.loss
        f = f.astype(np.float64)
        if isinstance(loss, Multinomial):
            K = f.shape[1]
            value, slope = loss.value(f, y), loss.gradient(f, y)
            if s:
                others = [loss.value(f, np.full(len(f), k)) for k in range(K)]
                value = (1 - s) * value + s * np.mean(others, axis=0)
                slope = slope + s * ((np.arange(K) == y[:, None]) - 1 / K)
            return value, slope
        y = (y if y.ndim == f.ndim else y[:, None]) * (1 - s) + s / 2
        return loss.value(f, y).sum(axis=1), loss.gradient(f, y)


#: Activations and losses that the compiled kernel knows.
_COMPILED_ACTIVATIONS = {"identity": 0, "logistic": 1, "tanh": 2, "relu": 3}
_COMPILED_LOSSES = (Squared, Poisson, Logistic, Multinomial)


class CompiledGradients:
    """Gradients of a small perceptron for the training loop, in one call of a compiled kernel.

    Where a step takes less than a millisecond, most of it is the start of some forty kernels of torch. The gradients
    stay where they are from step to step.
    """

    in_place = True

    def __init__(
        self, module: Any, architecture: Mapping[str, Any], loss: Loss, mean_weight: float, label_smoothing: float
    ) -> None:
        layers = [layer for layer in module if isinstance(layer, torch.nn.Linear)]
        for p in module.parameters():
            p.grad = torch.zeros_like(p)
        # The arrays share their memory with the module: its weights are changed in place.
        weights, biases = [w.weight.detach().numpy() for w in layers], [w.bias.detach().numpy() for w in layers]
        gradients = [w.weight.grad.numpy() for w in layers], [w.bias.grad.numpy() for w in layers]
        single = architecture["dtype"] == "float32"
        kernel = native.PerceptronFloat32 if single else native.PerceptronFloat64
        activation = _COMPILED_ACTIVATIONS[architecture["activation"]]
        assert loss.native is not None
        self.kernel = kernel(weights, biases, *gradients, activation, loss.native, label_smoothing)
        self.mean_weight, self.of_classes = mean_weight, isinstance(loss, Multinomial)

    @staticmethod
    def know(activation: str, loss: Loss) -> bool:
        """Whether the kernel has this activation and this loss."""
        return activation in _COMPILED_ACTIVATIONS and type(loss) in _COMPILED_LOSSES

    def __call__(self, batch: MiniBatch, step: int) -> torch.Tensor:
        """Set the gradient of the weighted mean loss of the batch; gives that loss."""
        assert batch.target is not None
        X, y = batch.inputs[0].numpy(), batch.target.numpy()
        y = y.astype(np.int64, copy=False) if self.of_classes else y.reshape(len(y), -1).astype(X.dtype, copy=False)
        weight = None if batch.weight is None else batch.weight.double().numpy()
        loss = self.kernel.gradient(X, y, weight, 1.0 / (len(X) * self.mean_weight))
        return torch.tensor(loss, dtype=torch.float64)
