"""The rows that an energy is compared with: chains that persist, chains from the data, or a generator's."""

from __future__ import annotations

from typing import Any

import torch

from epicycle.generative.energy._chains import move
from epicycle.nets.training._batches import MiniBatch
from epicycle.nets.training._randomness import generator


class Draws:
    """The losses of an energy, and of the generator that learns from it.

    Parameters
    ----------
    method : {'persistent', 'contrastive', 'adversarial'}
    n_moves, n_leapfrog : int
        Of chains in each step.
    renewal : float
        Share of persistent chains that start anew in each step.
    penalty : float
        Of f^2.
    noise : float
        Of the rows.
    """

    def __init__(
        self, method: str, n_moves: int, n_leapfrog: int, renewal: float, penalty: float, noise: float
    ) -> None:
        self.method, self.n_moves, self.n_leapfrog = method, n_moves, n_leapfrog
        self.renewal, self.penalty, self.noise = renewal, penalty, noise
        self.accepted: list[float] = []

    def energy(self, module: Any, batch: MiniBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """-f of the rows and f of the draws, with the penalty."""
        u = module.scale(batch.inputs[0])
        if self.noise:
            u = u + self.noise * module.noise(len(u))
        drawn, labels = self._drawn(module, u, batch.target)
        f = module(u, batch.target)
        g = module(drawn, labels)
        of_draws = g + self.penalty * g.square()
        if self.method == "persistent":
            of_draws = (of_draws * module.chain_weights()).mean().expand(len(u))
        return -f + self.penalty * f.square(), of_draws

    def actor(self, module: Any, batch: MiniBatch) -> tuple[None, torch.Tensor]:
        """KL(pi | p) of draws of the generator, up to a constant."""
        u, z = module.actor.draw(batch.n_rows, batch.target)
        return None, -module(u, batch.target) - module.log_normal(u) - module.actor.entropy(u, z)

    def _drawn(
        self, module: Any, u: torch.Tensor, labels: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        if self.method == "adversarial":
            with torch.no_grad():
                return module.actor.draw(len(u), labels)[0], labels
        start = u
        if self.method == "persistent":
            start, labels = module.chains, (module.chain_labels if module.n_classes else None)
            renewed = torch.rand(len(start), generator=generator(), device=start.device) < self.renewal
            wide = renewed.view(-1, *[1] * (start.ndim - 1))
            start = torch.where(wide, module.noise(len(start)), start)

        def log_density(x: torch.Tensor) -> torch.Tensor:
            return module(x, labels) + module.log_normal(x)

        moved = move(log_density, start, module.step, self.n_moves, self.n_leapfrog)
        self.accepted.append(moved.accepted)
        with torch.no_grad():
            module.step.copy_(moved.step)
            if self.method == "persistent":
                module.chains.copy_(moved.u)
            else:  # what a sample starts from: the last ones
                n = len(module.chains)
                module.chains.copy_(torch.cat([moved.u, module.chains])[:n])
                if labels is not None:
                    module.chain_labels.copy_(torch.cat([labels, module.chain_labels])[:n])
        return moved.u.detach(), labels

    def columns(self) -> dict[str, float]:
        """The share of proposals that were accepted since the last call."""
        found = {"accepted": sum(self.accepted) / len(self.accepted)} if self.accepted else {}
        self.accepted = []
        return found


def mean_of_draws(module: Any, n: int) -> torch.Tensor:
    """The mean of f over draws of the model: its chains as they are now, or n rows of the generator."""
    if hasattr(module, "actor"):
        labels = torch.multinomial(module.shares, n, True, generator=generator()) if module.n_classes else None
        with torch.no_grad():
            u = module.actor.draw(n, labels)[0]
        return module(u, labels).mean()
    labels = module.chain_labels if module.n_classes else None
    found: torch.Tensor = (module(module.chains, labels) * module.chain_weights()).mean()
    return found


def starts(module: Any, n: int, labels: torch.Tensor | None) -> torch.Tensor:
    """n rows to start chains from: chains of the fit with these labels, drawn at random, or rows of the generator."""
    if hasattr(module, "actor"):
        with torch.no_grad():
            found: torch.Tensor = module.actor.draw(n, labels)[0]
        return found
    chances = torch.rand((n, len(module.chains)), generator=generator(), device=module.chains.device)
    if labels is not None:
        chances = chances - 2 * (labels.long()[:, None] != module.chain_labels[None]).to(chances)
    best = chances.max(1)
    u = module.chains[best.indices]
    if labels is not None:  # a class that no chain has
        wide = (best.values < 0).view(-1, *[1] * (u.ndim - 1))
        u = torch.where(wide, module.noise(n), u)
    return u
