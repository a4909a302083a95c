"""The network of `AlphaZero`: a residual tower over the board with two heads, for the policy and for the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from epicycle.nets.training._loop import as_arrays, as_tensors
from epicycle.nets.training._torch import device_named, one_thread_each, seeded
from epicycle.nets.training._weights import load_weights

Array = np.ndarray
_NEVER = -1e9  # logit of a move that is not legal


class _Block(nn.Module):  # type: ignore[misc]
    """Two convolutions beside an identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(x + self.norms[1](self.second(inner)))


class PolicyValueNet(nn.Module):  # type: ignore[misc]
    """Planes (n, C, H, W) to logits of the moves (n, n_actions) and values (n,) for the player who moves."""

    def __init__(self, planes: tuple[int, int, int], n_actions: int, channels: int, blocks: int) -> None:
        super().__init__()
        c, h, w = planes
        self.stem = nn.Sequential(nn.Conv2d(c, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())
        self.tower = nn.Sequential(*(_Block(channels) for _ in range(blocks)))
        self.policy = nn.Sequential(nn.Conv2d(channels, 4, 1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * h * w, n_actions))
        self.value = nn.Sequential(
            nn.Conv2d(channels, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(2 * h * w, 64), nn.ReLU(), nn.Linear(64, 1)
        )

    def forward(self, planes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.tower(self.stem(planes))
        return self.policy(x), torch.tanh(self.value(x)[:, 0])


class Network:
    """A network with its optimiser, as arrays go in and come out, on a device."""

    def __init__(
        self, shape: Mapping[str, Any], seed: int, learning_rate: float, weight_decay: float, device: str = "cpu"
    ) -> None:
        self.device = device_named(device)
        with seeded(seed):
            self.module = PolicyValueNet(**shape)
        self.module.to(self.device).eval()
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=learning_rate, weight_decay=weight_decay)

    def evaluate(self, planes: Array, legal: Array) -> tuple[Array, Array]:
        """Probabilities of the legal moves and values: an evaluator of `MCTS`."""
        with torch.no_grad(), one_thread_each():
            logits, values = self.module(self._tensor(np.ascontiguousarray(planes, dtype=np.float32)))
            logits = logits.masked_fill(~self._tensor(np.ascontiguousarray(legal)), -torch.inf)
            return torch.softmax(logits, dim=1).cpu().numpy(), values.cpu().numpy()

    def _tensor(self, array: Array) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)

    def step(
        self, planes: Array, policy: Array | None, result: Array | None, legal: Array | None = None
    ) -> tuple[float, float]:
        """One update of  -sum_a pi_a log p_a + (z - v)^2 , or of the part that is given; returns both parts.

        With `legal` the probabilities p are those of the legal moves.
        """
        self.module.train()
        with one_thread_each():
            logits, values = self.module(self._tensor(planes))
            of_policy = of_value = logits.new_zeros(())
            if policy is not None:
                if legal is not None:  # a finite number, so that 0 * log p is 0
                    logits = logits.masked_fill(~self._tensor(legal), _NEVER)
                of_policy = -(self._tensor(policy) * functional.log_softmax(logits, dim=1)).sum(dim=1).mean()
            if result is not None:
                of_value = (self._tensor(result) - values).square().mean()
            self.optimizer.zero_grad()
            (of_policy + of_value).backward()
            self.optimizer.step()
        self.module.eval()
        return float(of_policy.detach()), float(of_value.detach())

    # ------------------------------------------------------------------------------------------- arrays and back

    def weights(self) -> dict[str, Array]:
        """Weights and buffers by name."""
        return as_arrays(self.module.state_dict())

    def load(self, weights: Mapping[str, Array]) -> None:
        """Take weights over."""
        load_weights(self.module, as_tensors(weights, self.device))

    def memory(self) -> dict[str, Array]:
        """Moments of the optimiser by number of the parameter and name."""
        state = self.optimizer.state_dict()["state"]
        return {
            f"{i}.{name}": np.array(value.cpu().numpy()) for i, part in state.items() for name, value in part.items()
        }

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take the moments of an optimiser over."""
        state: dict[int, dict[str, Any]] = {}
        for key, value in memory.items():
            number, _, name = key.partition(".")
            state.setdefault(int(number), {})[name] = torch.from_numpy(np.array(value))
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
