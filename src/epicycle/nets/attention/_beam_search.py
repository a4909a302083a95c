"""Beam search: the most probable sequences of tokens, as far as a few candidates at a time can find them.

Each step prolongs every candidate by every token and keeps the best ones. Those that end are set aside with

    log P(y) / |y|^a,

|y| the number of tokens with the end, since each further token makes any sequence less probable; a = 0 compares plain
probabilities. A search ends when as many sequences have ended as there are candidates; with one candidate it takes the
most probable token each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from epicycle.nets.sequences._tokens import END, PADDING, UNKNOWN

#: (the last tokens (m,), the state) -> (scores of the next tokens (m, n_tokens), the state after them).
Step = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def beam_search(
    step: Step, state: torch.Tensor, n_beams: int, max_length: int, length_penalty: float
) -> tuple[list[list[int]], list[float]]:
    """(the best sequence of each row without its end, log P / length^a of it).

    Parameters
    ----------
    step : callable
        Candidates of one row stand beside each other: row i has those from i * n_beams on.
    state : tensor of shape (layers, n, units)
        The state of each row before the first token.
    n_beams, max_length : int
        Candidates of a row, and tokens of a sequence without its end.
    length_penalty : float
        The exponent a.
    """
    n, device = state.shape[1], state.device
    state = state.repeat_interleave(n_beams, dim=1)
    tokens = torch.empty(n * n_beams, 0, dtype=torch.long, device=device)
    last = torch.full((n * n_beams,), END, device=device)
    total = torch.full((n, n_beams), -torch.inf, dtype=torch.float64, device=device)
    total[:, 0] = 0.0  # at the start all candidates are the same one
    ended: list[list[tuple[float, list[int]]]] = [[] for _ in range(n)]
    first = torch.arange(n, device=device)[:, None] * n_beams
    for length in range(1, max_length + 2):
        scores, state = step(last, state)
        logs = scores.double().log_softmax(-1)
        logs[:, [PADDING, UNKNOWN]] = -torch.inf
        n_tokens = logs.shape[1]
        if length > max_length:  # only the end is left to choose
            _set_aside(ended, total + logs[:, END].view(n, n_beams), tokens, length, length_penalty, n_beams)
            break
        candidates = (total[:, :, None] + logs.view(n, n_beams, n_tokens)).view(n, -1)
        best, where = candidates.topk(min(2 * n_beams, candidates.shape[1]), dim=1)
        beam, token = where // n_tokens, where % n_tokens
        ends = token == END
        for i, k in (ends[:, :n_beams] & (best[:, :n_beams] > -torch.inf)).nonzero().tolist():
            if len(ended[i]) < n_beams:
                row = tokens[i * n_beams + int(beam[i, k])].tolist()
                ended[i].append((float(best[i, k]) / length**length_penalty, row))
        if all(len(found) >= n_beams for found in ended):
            break
        # Of twice as many candidates at least half do not end.
        kept = ends.to(torch.int8).sort(dim=1, stable=True).indices[:, :n_beams]
        total, token = best.gather(1, kept), token.gather(1, kept)
        total = total.masked_fill(token == END, -torch.inf)
        source = (first + beam.gather(1, kept)).view(-1)
        last = token.reshape(-1)
        tokens = torch.cat([tokens[source], last[:, None]], dim=1)
        state = state[:, source]
    best_of = [max(found, key=lambda pair: pair[0]) for found in ended]
    return [row for _, row in best_of], [value for value, _ in best_of]


def _set_aside(ended: Any, total: torch.Tensor, tokens: torch.Tensor, length: int, a: float, n_beams: int) -> None:
    """Candidates that have reached the greatest length end there."""
    values = total.tolist()
    for i, found in enumerate(ended):
        if len(found) >= n_beams:
            continue
        for b in range(n_beams):
            if values[i][b] > -float("inf"):
                found.append((values[i][b] / length**a, tokens[i * n_beams + b].tolist()))
