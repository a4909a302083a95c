"""The mean loss of a module over all rows as an `optim.Objective` of its weights, laid out as one vector.

Solvers that look at all rows, such as L-BFGS, minimise it, and `optim.check_gradient` compares its gradient with
differences of its value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from epicycle.core._certificate import Certificate
from epicycle.nets.training._batches import MiniBatch, Rows
from epicycle.nets.training._gradients import RowLosses
from epicycle.nets.training._torch import one_thread_each
from epicycle.optim import Objective

#: Rows of a pass that go through the module at once.
_BATCH = 1024


class ModuleObjective(Objective):
    """F(w) = 1/V sum_i v_i l_i(w) + alpha / (2 V) |W|^2, where W are the weights without biases and V = sum_i v_i.

    Parameters
    ----------
    module : torch.nn.Module
        Its weights are set by every call.
    row_losses : callable
        (module, batch) -> the loss of every row.
    rows : Rows, or a list of batches
    alpha : float, default=0
    """

    def __init__(
        self, module: torch.nn.Module, row_losses: RowLosses, rows: Rows | Sequence[MiniBatch], alpha: float = 0.0
    ) -> None:
        self.module, self.row_losses, self.rows = module, row_losses, rows
        self.weights = [p for p in module.parameters() if p.requires_grad]
        self.size = sum(p.numel() for p in self.weights)
        batches = self._batches()
        total = sum(b.n_rows if b.weight is None else float(b.weight.double().sum()) for b in batches)
        self.total, self.alpha, self.calls = total, alpha / total, 0

    def _batches(self) -> Sequence[MiniBatch]:
        return self.rows.in_order(_BATCH) if isinstance(self.rows, Rows) else self.rows  # type: ignore[return-value]

    def start(self) -> np.ndarray:
        """The weights of the module as a vector."""
        return np.concatenate([p.detach().cpu().double().numpy().ravel() for p in self.weights])

    def set_weights(self, x: np.ndarray) -> None:
        """Put a vector into the module."""
        ends = np.cumsum([p.numel() for p in self.weights])[:-1]
        with torch.no_grad():
            for p, part in zip(self.weights, np.split(x, ends), strict=True):
                p.copy_(torch.from_numpy(np.array(part)).view_as(p))

    def value(self, x: np.ndarray) -> float:
        return self._evaluate(x, with_gradient=False)[0]

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        return self._evaluate(x, with_gradient=True)

    def _evaluate(self, x: np.ndarray, *, with_gradient: bool) -> tuple[float, np.ndarray]:
        self.set_weights(x)
        self.calls += 1
        value, gradient = 0.0, np.zeros(self.size)
        with one_thread_each():
            for batch in self._batches():
                losses = self.row_losses(self.module, batch)
                weighted = losses if batch.weight is None else losses * batch.weight.to(losses)
                loss = weighted.sum() / self.total
                value += float(loss.detach())
                if not with_gradient:
                    continue
                found = torch.autograd.grad(loss, self.weights, allow_unused=True)
                parts = [torch.zeros_like(p) if g is None else g for p, g in zip(self.weights, found, strict=True)]
                gradient += np.concatenate([g.double().numpy().ravel() for g in parts])
        if self.alpha:
            penalised = np.concatenate([np.full(p.numel(), p.ndim > 1) for p in self.weights])
            value += self.alpha / 2 * float(np.sum(x[penalised] ** 2))
            gradient[penalised] += self.alpha * x[penalised]
        return value, gradient

    def certify(
        self, x: np.ndarray, tol: float, value: float | None = None, gradient: np.ndarray | None = None
    ) -> Certificate:
        found = super().certify(x, tol, value, gradient)
        meaning = f"{found.meaning}: nearly a stationary point; no proof of optimality, since the loss is not convex"
        return Certificate(found.kind, found.value, found.tolerance, meaning)
