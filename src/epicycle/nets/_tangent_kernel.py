r"""The empirical neural tangent kernel:  K(x, z) = J(x) J(z)',  J(x) = df(x) / dw  at the weights w of a network.

Near w the network is linear in its weights, f(x) + J(x) (v - w), and its training by gradient descent is kernel
regression with K. As the layers grow wide K at random weights becomes the kernel `epicycle.kernel.NeuralTangent`, and
stays what it is while the network learns (Jacot, Gabriel and Hongler 2018).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.nets._base import NetEstimator
from epicycle.nets.training._torch import one_thread_each, require_torch

#: Of the Jacobians of one block of rows.
_BLOCK_BYTES = 128 << 20


@in_catalogue("nets", "F7", certificate="none")
def tangent_kernel(model: Any, X: Any, Z: Any = None, *, outputs: str = "mean") -> np.ndarray:
    r"""The empirical tangent kernel of a network, between rows of X and of Z.

    .. math:: K_{kl}(x, z) = \sum_j \frac{\partial f_k(x)}{\partial w_j} \, \frac{\partial f_l(z)}{\partial w_j}

    over all weights :math:`w_j` that are trained, in double precision and with dropout switched off.

    Parameters
    ----------
    model : torch.nn.Module or fitted network
        A module is called with blocks of rows, and gives one number for each, or several.
    X : array-like of shape (n, ...)
        Rows as the estimator takes them, or as the module does.
    Z : array-like of shape (m, ...), optional
        X itself unless given.
    outputs : {'mean', 'all'}, default='mean'
        The mean of :math:`K_{kk}` over the outputs, which is what one output of many has in the limit of width; or
        all of them.

    Returns
    -------
    kernel : ndarray of shape (n, m), or (n, m, K, K) with outputs='all'

    Examples
    --------
    >>> import numpy as np, torch
    >>> from epicycle.nets import tangent_kernel
    >>> module = torch.nn.Linear(3, 1)
    >>> X = np.eye(3)
    >>> tangent_kernel(module, X)  # the inner product, and 1 of the bias
    array([[2., 1., 1.],
           [1., 2., 1.],
           [1., 1., 2.]])
    """
    torch = require_torch("tangent_kernel")
    if outputs not in ("mean", "all"):
        raise ParameterError(f"outputs={outputs!r}; expected 'mean' or 'all'")
    if isinstance(model, NetEstimator):
        module, inputs = model.module_, [model._module_inputs(rows) for rows in (X, Z) if rows is not None]
    elif isinstance(model, torch.nn.Module):
        module, inputs = model, [(_tensor(rows, name),) for rows, name in ((X, "X"), (Z, "Z")) if rows is not None]
    else:
        raise ParameterError(f"model: expected a torch.nn.Module or a fitted network; got {type(model).__name__}")
    module = copy.deepcopy(module).cpu().double().eval()
    for weight in module.parameters():
        weight.grad = None
    n, m = len(inputs[0][0]), len(inputs[-1][0])
    with one_thread_each(), torch.no_grad():
        found = module(*_rows(inputs[0], slice(0, 1)))
    if found.ndim > 2 or len(found) != 1:
        raise DataError(
            f"model: gives an output of shape {tuple(found.shape)} for one row; expected one number or several in a row"
        )
    K = found.numel()
    require_memory(8.0 * n * m * (K * K if outputs == "all" else 1), f"a kernel of {n} x {m} rows", "take fewer rows")
    weights = {name: w.detach() for name, w in module.named_parameters() if w.requires_grad}
    if not weights:
        raise DataError("model: has no weights that are trained (requires_grad)")
    size = max(1, _BLOCK_BYTES // (8 * K * sum(w.numel() for w in weights.values())))
    kernel = np.empty((n, m, K, K) if outputs == "all" else (n, m))
    with one_thread_each():
        for i in range(0, n, size):
            left = _jacobians(module, weights, _rows(inputs[0], slice(i, i + size)))
            for j in range(i if Z is None else 0, m, size):
                same = Z is None and i == j
                right = left if same else _jacobians(module, weights, _rows(inputs[-1], slice(j, j + size)))
                block = _product(left, right, outputs)
                kernel[i : i + size, j : j + size] = block
                if Z is None and not same:
                    axes = (1, 0, 3, 2) if outputs == "all" else (1, 0)
                    kernel[j : j + size, i : i + size] = block.transpose(axes)
    return kernel


def _tensor(rows: Any, name: str) -> Any:
    import torch

    found = rows.detach().cpu() if isinstance(rows, torch.Tensor) else torch.from_numpy(np.array(rows))
    if found.ndim == 0 or len(found) == 0:
        raise DataError(f"{name}: expected rows; got shape {tuple(found.shape)}")
    return found.double() if found.is_floating_point() else found


def _rows(inputs: tuple[Any, ...], rows: slice) -> tuple[Any, ...]:
    return tuple(x[rows].double() if x.is_floating_point() else x[rows] for x in inputs)


def _jacobians(module: Any, weights: dict[str, Any], inputs: tuple[Any, ...]) -> dict[str, Any]:
    """Derivatives of the outputs of each row, by the name of the weight: of shape (rows, K, entries)."""
    from torch.func import functional_call, jacrev, vmap

    buffers = dict(module.named_buffers())

    def of_one(trained: dict[str, Any], *row: Any) -> Any:
        return functional_call(module, (trained, buffers), tuple(x[None] for x in row)).reshape(-1)

    found = vmap(jacrev(of_one), in_dims=(None, *[0] * len(inputs)))(weights, *inputs)
    return {name: J.detach().flatten(2) for name, J in found.items()}


def _product(left: dict[str, Any], right: dict[str, Any], outputs: str) -> np.ndarray:
    import torch

    total: Any = 0.0
    for name, A in left.items():
        if outputs == "all":
            total = total + torch.einsum("akp,blp->abkl", A, right[name])
        else:
            total = total + A.flatten(1) @ right[name].flatten(1).T / A.shape[1]
    return np.asarray(total.numpy())
