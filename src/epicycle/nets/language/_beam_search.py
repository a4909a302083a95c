"""The most probable target of a source: greedily, or with several candidates side by side."""

from __future__ import annotations

from typing import Any

import torch

from epicycle.nets.language._attention import present


def beam_search(
    module: Any, source: torch.Tensor, lengths: torch.Tensor, *, begin: int, end: int, most: int, width: int
) -> tuple[list[list[int]], list[float]]:
    """(targets without begin and end, their log-probabilities): the best of `width` candidates for each source.

    A candidate that has reached its end stays as it is. The search ends when the best candidate of every source has
    ended: going on makes the others less probable only. With a width of 1 it takes the most probable token each time.

    Parameters
    ----------
    source : tensor of shape (n, S)
    lengths : tensor of shape (n,)
    most : int
        Tokens of a target, its end among them, at most.
    """
    n, device = len(source), source.device
    encoded = module.encode(source, lengths).repeat_interleave(width, dim=0)
    allowed = present(lengths, source.shape[1]).repeat_interleave(width, dim=0)
    total = torch.full((n, width), -torch.inf, dtype=torch.float64, device=device)
    total[:, 0] = 0.0  # all candidates are the same at first: one is enough
    targets = torch.full((n * width, 1), begin, device=device)
    ended = torch.zeros(n * width, dtype=torch.bool, device=device)
    past: list[dict[str, Any]] = []
    for _ in range(most):
        scores = module.decode(targets[:, -1:], encoded, allowed, past)[:, -1].double().log_softmax(-1)
        scores[:, begin] = -torch.inf
        n_tokens = scores.shape[1]
        stay = torch.full((n_tokens,), -torch.inf, dtype=scores.dtype, device=device)
        stay[end] = 0.0
        scores = torch.where(ended[:, None], stay, scores)
        every = (total[:, :, None] + scores.view(n, width, n_tokens)).flatten(1)
        total, best = every.topk(width, dim=1)
        parent = (best // n_tokens + width * torch.arange(n, device=device)[:, None]).flatten()
        token = (best % n_tokens).flatten()
        targets, ended = torch.cat([targets[parent], token[:, None]], dim=1), ended[parent] | (token == end)
        if bool(ended.view(n, width)[:, 0].all()):
            break
        if width > 1:
            for layer in past:
                layer["own"] = {name: value[parent] for name, value in layer["own"].items()}
    first = targets.view(n, width, -1)[:, 0, 1:].tolist()
    return [row[: row.index(end)] if end in row else row for row in first], total[:, 0].tolist()
