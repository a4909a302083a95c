"""torch's update rules by name, with the weights that decay apart from those that do not, and their state as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from epicycle._native import nets as native
from epicycle.nets.training._options import TrainingOptions


def make_optimizer(
    module: torch.nn.Module, options: TrainingOptions, *, in_place: bool = False
) -> torch.optim.Optimizer:
    """The optimiser of a module, in groups: weights that decay, apart from biases, scales and norms; by their rates.

    `in_place` says that gradients are in the same arrays in every step, on a CPU.
    """
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    groups: list[dict[str, Any]] = []
    for start, factor in (*options.rates, ("", 1.0)):
        chosen = [trained.pop(name) for name in list(trained) if name.startswith(start)]
        wide, narrow = [p for p in chosen if p.ndim > 1], [p for p in chosen if p.ndim <= 1]
        common = {"weight_decay": 0.0, "factor": factor}
        if not options.weight_decay and not options.alpha:  # one group: the update is one call
            groups.append({"params": wide + narrow, "decays": 0.0, **common})
            continue
        groups += [{"params": wide, "decays": 1.0, **common}, {"params": narrow, "decays": 0.0, **common}]
    lr, o = options.learning_rate_init, options
    if o.solver == "sgd":
        nesterov = o.nesterov and o.momentum > 0
        return torch.optim.SGD(groups, lr=lr, momentum=o.momentum, nesterov=nesterov, fused=True)
    if o.solver == "momentum":
        return torch.optim.SGD(groups, lr=lr, momentum=o.momentum or 0.9, fused=True)
    if o.solver == "adagrad":
        return torch.optim.Adagrad(groups, lr=lr, foreach=True)
    if o.solver == "adadelta":
        return torch.optim.Adadelta(groups, lr=lr, foreach=True)
    if o.solver == "rmsprop":
        return torch.optim.RMSprop(groups, lr=lr, foreach=True)
    if in_place:
        return CompiledAdam(groups, lr=lr, betas=o.betas, eps=o.eps, decoupled_weight_decay=o.solver == "adamw")
    rule = torch.optim.Adam if o.solver == "adam" else torch.optim.AdamW
    return rule(groups, lr=lr, betas=o.betas, eps=o.eps, fused=True)


class CompiledAdam(torch.optim.Adam):  # type: ignore[misc]
    """Adam for few weights on a CPU, whose gradients stay in place: a step of torch's takes longer than its arithmetic.

    The memory has torch's names and shapes.
    """

    _kernels: list[Any] | None = None
    _steps = 0

    def step(self, closure: Any = None) -> None:
        """One step of all groups."""
        if self._kernels is None:
            self._kernels = [self._kernel(group["params"]) for group in self.param_groups]
        self._steps += 1
        for group, kernel in zip(self.param_groups, self._kernels, strict=True):
            rates = (group["lr"], group["weight_decay"], *group["betas"], group["eps"])
            kernel.step(*rates, self._steps, group["decoupled_weight_decay"])

    def _kernel(self, weights: list[torch.Tensor]) -> Any:
        for w in weights:
            if not self.state[w]:
                self.state[w] = {"exp_avg": torch.zeros_like(w), "exp_avg_sq": torch.zeros_like(w)}
        arrays = [[flat(w.detach()) for w in weights], [flat(w.grad) for w in weights]]
        arrays += [[flat(self.state[w][name]) for w in weights] for name in ("exp_avg", "exp_avg_sq")]
        single = not weights or weights[0].dtype == torch.float32
        return (native.AdamFloat32 if single else native.AdamFloat64)(*arrays)

    def state_dict(self) -> dict[str, Any]:
        """The memory, with the number of steps beside every weight as in torch."""
        for entries in self.state.values():
            entries["step"] = torch.tensor(float(self._steps))
        return dict(super().state_dict())

    def load_state_dict(self, state_dict: Any) -> None:
        """Put the memory back."""
        super().load_state_dict(state_dict)
        self._kernels = None
        self._steps = max((int(entries["step"]) for entries in self.state.values()), default=0)


def flat(tensor: torch.Tensor) -> np.ndarray:
    """The memory of a tensor as a vector."""
    return np.asarray(tensor.view(-1).numpy())


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, np.ndarray]:
    """Everything that an optimiser remembers, copied, as arrays named "number of the weight.name"."""
    found = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": np.array(torch.as_tensor(value).detach().cpu().numpy())
        for index, entries in found.items()
        for name, value in entries.items()
        if value is not None
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Put the memory of an optimiser back."""
    entries: dict[int, dict[str, Any]] = {}
    for key, value in state.items():
        index, _, name = key.partition(".")
        entries.setdefault(int(index), {})[name] = torch.from_numpy(np.array(value))
    optimizer.load_state_dict({"state": entries, "param_groups": optimizer.state_dict()["param_groups"]})


def set_rates(optimizer: torch.optim.Optimizer, rate: float, decay: float) -> None:
    """The learning rate and the decay of the weights of the next step."""
    for group in optimizer.param_groups:
        group["lr"], group["weight_decay"] = rate * group["factor"], decay * group["decays"]
