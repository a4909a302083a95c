"""Gradients of players who take turns: a step moves one of them, and leaves the gradients of all others at None.

A player is a part of the module, and has a function (module, batch) -> (losses of the rows, losses of as many draws),
either of which may be None. The mean of the former is weighted by the weights of the rows; that of the latter is where
the draws have the labels of the rows. The module keeps the last loss of the first player in its buffer `last_loss`, so
that a resumed fit has the objective of one that was not cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from epicycle.core._exceptions import ParameterError
from epicycle.nets.training._batches import MiniBatch
from epicycle.nets.training._gradients import mixed_precision
from epicycle.nets.training._options import TrainingOptions
from epicycle.nets.training._processes import n_processes

Losses = Callable[[Any, MiniBatch], tuple[torch.Tensor | None, torch.Tensor | None]]


class Turns:
    """Gradients of one player after the other.

    Parameters
    ----------
    module : torch.nn.Module
    players : mapping
        Their losses by the names of their parts of the module.
    order : sequence of str
        Whose turn it is in each step, from the beginning again after the last; the loss of the first is the objective.
    mean_weight : float
        Of all rows.
    labelled : bool, default=False
        Whether the draws have the labels of the rows.
    columns : callable, optional
        () -> further numbers of the history after each iteration.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        players: Mapping[str, Losses],
        order: Sequence[str],
        options: TrainingOptions,
        *,
        mean_weight: float,
        labelled: bool = False,
        columns: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        if options.precision == "float16" or options.compile or n_processes() > 1:
            what = "precision='float16'" if options.precision == "float16" else "compile=True"
            what = "several processes" if n_processes() > 1 else what
            raise ParameterError(
                f"{what} is for networks of one player; expected precision 'full' or 'bfloat16', "
                "compile=False and one process"
            )
        self.module, self.players, self.order, self.options = module, players, order, options
        self.mean_weight, self.draws_weight = mean_weight, mean_weight if labelled else None
        self.further = columns
        self.weights = {
            name: [p for key, p in module.named_parameters() if key.split(".")[0] == name] for name in players
        }
        # The module moves to its device after this: numbers of no axis mix with those of any device.
        self.totals = {name: torch.zeros(()) for name in players}
        self.counts = dict.fromkeys(players, 0)

    def __call__(self, batch: MiniBatch, step: int) -> torch.Tensor:
        """Set the gradients of the player whose turn it is; gives the last loss of the first player."""
        player = self.order[step % len(self.order)]
        weights = self.weights[player]
        for p in self.module.parameters():
            p.grad = None
        parts, total = batch.parts(self.options.accumulate), None
        gradient: list[torch.Tensor] | None = None
        for part in parts:
            moved = part.to(weights[0].device)
            with mixed_precision(self.options, weights[0].device):
                of_rows, of_draws = self.players[player](self.module, moved)
            weighted = (_weighted(of_rows, moved, self.mean_weight), _weighted(of_draws, moved, self.draws_weight))
            loss = torch.stack([losses.sum() for losses in weighted if losses is not None]).sum() / batch.n_rows
            found = torch.autograd.grad(loss, weights)
            gradient = list(found) if gradient is None else [a.add_(b) for a, b in zip(gradient, found, strict=True)]
            total = loss.detach() if total is None else total + loss.detach()
        assert gradient is not None  # a batch has a part
        assert total is not None
        for p, g in zip(weights, gradient, strict=True):
            p.grad = g
        if player == self.order[0]:
            self.module.last_loss.copy_(total)
        self.totals[player] = self.totals[player] + total
        self.counts[player] += 1
        # What is no number in one player's loss has to be seen, although the objective is the other's.
        return self.module.last_loss + 0 * total

    def columns(self) -> dict[str, float]:
        """The mean losses of the players since the last call, and what else there is to say."""
        found = {f"{name}_loss": float(total) / max(self.counts[name], 1) for name, total in self.totals.items()}
        self.totals = {name: torch.zeros(()) for name in self.totals}
        self.counts = dict.fromkeys(self.counts, 0)
        return {**found, **self.further()}


def _weighted(losses: torch.Tensor | None, batch: MiniBatch, mean_weight: float | None) -> torch.Tensor | None:
    """Losses times the weights of the rows over their mean."""
    if losses is None or batch.weight is None or mean_weight is None:
        return losses
    return losses * (batch.weight / mean_weight).to(losses)
