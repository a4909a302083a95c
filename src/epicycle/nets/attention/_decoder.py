r"""The decoder that writes a text while it looks at a memory, and the encoder of texts.

With the tokens y before t, and memory vectors m_1, ..., m_S:

    s_t = cell(e(y_{t-1}), s_{t-1}),   a_t = softmax(score(s_t, m_1), ..., score(s_t, m_S)),   c_t = sum_j a_tj m_j,
    o_t = tanh(W [s_t; c_t]),   P(y_t | y_{<t}, m) = softmax(V o_t),

where  score(s, m) = v' tanh(A s + B m)  is additive and  score(s, m) = s' B m  is the dot product.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from epicycle.nets.attention._beam_search import beam_search
from epicycle.nets.sequences._module import RecurrentLayers, StatefulLayers, embedding_layer, pooled
from epicycle.nets.sequences._tokens import N_SPECIAL
from epicycle.nets.training._randomness import Dropout


class Attention(nn.Module):  # type: ignore[misc]
    """Weights of memory vectors for states, by an additive score or a dot product."""

    def __init__(self, kind: str, n_units: int, n_memory: int) -> None:
        super().__init__()
        self.keys = nn.Linear(n_memory, n_units, bias=False)
        self.additive = kind == "additive"
        if self.additive:
            self.queries = nn.Linear(n_units, n_units)
            self.scorer = nn.Linear(n_units, 1, bias=False)

    def forward(self, s: torch.Tensor, keys: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
        """(n, n_steps, n_units) states and (n, S, n_units) keys -> (n, n_steps, S) weights that add up to one.

        `inside`, (n, S), says which vectors of the memory are there.
        """
        if self.additive:
            scores = self.scorer(torch.tanh(self.queries(s)[:, :, None] + keys[:, None])).squeeze(-1)
        else:
            scores = s @ keys.transpose(1, 2)
        return scores.masked_fill(~inside[:, None], -torch.inf).softmax(-1)


class Decoder(nn.Module):  # type: ignore[misc]
    """A text, token by token, from a summary that it starts with and a memory that it looks at."""

    def __init__(self, architecture: Mapping[str, Any], n_summary: int, n_memory: int) -> None:
        super().__init__()
        a, h = architecture, architecture["hidden_size"]
        self.embedding = embedding_layer(a["n_targets"], a["embedding_size"])
        self.layers = StatefulLayers(a["cell"], a["embedding_size"], h, a["n_layers"], a["dropout"])
        self.start = nn.Linear(n_summary, self.layers.n_states * h)
        self.attention = None if a["attention"] is None else Attention(a["attention"], h, n_memory)
        self.mix = nn.Linear(h + (0 if self.attention is None else n_memory), h)
        self.dropout = Dropout(a["dropout"])
        self.last = nn.Linear(h, N_SPECIAL + a["n_targets"])
        nn.init.normal_(self.last.weight, std=0.01)  # nearly equal probabilities at first
        nn.init.zeros_(self.last.bias)

    def first_state(self, summary: torch.Tensor) -> torch.Tensor:
        """The state before the first token."""
        state = torch.tanh(self.start(summary)).view(len(summary), self.layers.n_states, self.layers.n_units)
        return state.transpose(0, 1)

    def keys(self, memory: torch.Tensor) -> torch.Tensor | None:
        """The part of the scores that depends on the memory alone, computed once."""
        return None if self.attention is None else self.attention.keys(memory)

    def forward(
        self,
        tokens: torch.Tensor,
        state: torch.Tensor,
        memory: torch.Tensor,
        keys: torch.Tensor | None,
        inside: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """(scores of the token after each one, the state at the end, weights of the memory at each step)."""
        s, state = self.layers(self.embedding(tokens), state)
        weights = None
        if self.attention is not None:
            weights = self.attention(s, keys, inside)
            s = torch.cat([s, weights @ memory], dim=-1)
        return self.last(self.dropout(torch.tanh(self.mix(s)))), state, weights


class Writer(nn.Module):  # type: ignore[misc]
    """An encoder and a decoder. A subclass has `encode(*inputs) -> (summary, memory, inside)` and `decoder`."""

    decoder: Decoder

    @abstractmethod
    def encode(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(summary (n, d), memory (n, S, m), which vectors of the memory are there (n, S))."""

    def attend(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(scores of the token after each one of the targets, which come last; weights of the memory)."""
        *source, targets = inputs
        summary, memory, inside = self.encode(*source)
        state = self.decoder.first_state(summary)
        scores, _, weights = self.decoder(targets, state, memory, self.decoder.keys(memory), inside)
        return scores, weights

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Scores of the token after each one of the targets (teacher forcing)."""
        return self.attend(*inputs)[0]

    def write(
        self, inputs: tuple[torch.Tensor, ...], n_beams: int, max_length: int, length_penalty: float
    ) -> list[list[int]]:
        """The best text for each row that a beam search finds."""
        summary, memory, inside = self.encode(*inputs)
        keys = self.decoder.keys(memory)
        memory, inside = (x.repeat_interleave(n_beams, dim=0) for x in (memory, inside))
        keys = None if keys is None else keys.repeat_interleave(n_beams, dim=0)

        def step(last: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            scores, state, _ = self.decoder(last[:, None], state, memory, keys, inside)
            return scores[:, 0], state

        state = self.decoder.first_state(summary)
        return beam_search(step, state, n_beams, max_length, length_penalty)[0]


class Seq2SeqNet(Writer):
    """(sources, their lengths, targets) -> scores; the encoder reads the source in both directions."""

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        a = architecture
        self.embedding = embedding_layer(a["n_sources"], a["embedding_size"])
        sizes = (a["cell"], a["embedding_size"], a["hidden_size"], a["n_layers"])
        self.encoder = RecurrentLayers(*sizes, bidirectional=True, dropout=a["dropout"])
        self.decoder = Decoder(a, self.encoder.n_outputs, self.encoder.n_outputs)

    def encode(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        tokens, lengths = inputs
        memory = self.encoder(self.embedding(tokens), lengths)
        inside = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        return pooled(memory, lengths, "last", bidirectional=True), memory, inside
