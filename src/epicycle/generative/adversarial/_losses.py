r"""The games of a generator g and a critic f, as losses of real rows x and of drawn rows g(z).

    loss             critic, x           critic, g(z)      generator, g(z)
    minimax          log(1 + e^-f)       log(1 + e^f)      -log(1 + e^f)        (Goodfellow et al. 2014)
    non_saturating   log(1 + e^-f)       log(1 + e^f)      log(1 + e^-f)        (its second game)
    wasserstein      -f                  f                 -f                   (Arjovsky et al. 2017)
    hinge            max(0, 1 - f)       max(0, 1 + f)     -f                   (Lim and Ye 2017)

The critic's penalty is  c (|f'(x_t)| - 1)^2  at a random point x_t = t x + (1 - t) g(z) of the Wasserstein game
(Gulrajani et al. 2017), and  c / 2 |f'(x)|^2  of all others (R1; Mescheder et al. 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch.nn.functional import softplus

from epicycle.nets.training._batches import MiniBatch
from epicycle.nets.training._randomness import generator as random_numbers

Loss = Callable[[torch.Tensor], torch.Tensor]


class Game(NamedTuple):
    """The losses of values of the critic."""

    real: Loss
    drawn: Loss
    generator: Loss


def _saturating(f: torch.Tensor) -> torch.Tensor:
    return -softplus(f)


def _against(f: torch.Tensor) -> torch.Tensor:
    return softplus(-f)


GAMES: Mapping[str, Game] = {
    "minimax": Game(_against, softplus, _saturating),
    "non_saturating": Game(_against, softplus, _against),
    "wasserstein": Game(torch.neg, torch.clone, torch.neg),
    "hinge": Game(lambda f: torch.relu(1 - f), lambda f: torch.relu(1 + f), torch.neg),
}


class Players:
    """The losses of both players.

    Parameters
    ----------
    loss : str
        A name in `GAMES`.
    penalty : float
        c, of the critic.
    """

    def __init__(self, loss: str, penalty: float) -> None:
        self.game, self.penalty, self.wasserstein = GAMES[loss], penalty, loss == "wasserstein"

    def critic(self, module: Any, batch: MiniBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses of real rows, with the penalty, and of as many drawn ones."""
        x = module.scale(batch.inputs[0])
        with torch.no_grad():
            drawn = module.generator.drawn(len(x), batch.target)[0]
        if not self.penalty:
            f = module.critic(x, batch.target)
            return self.game.real(f), self.game.drawn(module.critic(drawn, batch.target))
        if self.wasserstein:
            t = torch.rand((len(x), *[1] * (x.ndim - 1)), generator=random_numbers(), device=x.device, dtype=x.dtype)
            at = (t * x + (1 - t) * drawn).requires_grad_()
            f = module.critic(x, batch.target)
            size = _slope(module.critic(at, batch.target), at).flatten(1).norm(dim=1)
            penalty = (size - 1).square()
        else:
            x = x.requires_grad_()
            f = module.critic(x, batch.target)
            penalty = _slope(f, x).flatten(1).square().sum(1) / 2
        return self.game.real(f) + self.penalty * penalty, self.game.drawn(module.critic(drawn, batch.target))

    def generator(self, module: Any, batch: MiniBatch) -> tuple[None, torch.Tensor]:
        """Losses of drawn rows; of the real ones only the number and the labels are used."""
        drawn = module.generator.drawn(batch.n_rows, batch.target)[0]
        return None, self.game.generator(module.critic(drawn, batch.target))


def _slope(f: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """f'(x), through which gradients flow."""
    return torch.autograd.grad(f.sum(), x, create_graph=True)[0]
