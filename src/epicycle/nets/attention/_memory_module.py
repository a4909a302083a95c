r"""The end-to-end memory network (Sukhbaatar et al., 2015).

With sentences x_i = (x_i1, x_i2, ...) of a story and a question q, and embeddings E_0, ..., E_K,

    u_1 = sum_j l_j * E_0 q_j,
    p_i = softmax_i(u_k' m_i),   m_i = sum_j l_j * E_{k-1} x_ij + T_{k-1}(i),
    u_{k+1} = u_k + sum_i p_i c_i,   c_i = sum_j l_j * E_k x_ij + T_k(i),   k = 1, ..., K,

and the answer is softmax(W u_{K+1}). Weights l of the j-th of J words in the k-th of d entries, (1 - j/J) - (k/d)(1 -
2j/J), keep the order of the words; T, a vector for each place from the end of the story, keeps that of the sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from epicycle.nets.sequences._tokens import N_SPECIAL, PADDING, UNKNOWN
from epicycle.nets.training._randomness import Dropout


class MemoryNet(nn.Module):  # type: ignore[misc]
    """(stories (n, n_sentences, n_words), their numbers of sentences, questions (n, n_words)) -> scores."""

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        a, d = architecture, architecture["embedding_size"]
        self.ordered: bool = a["position_encoding"]
        self.words = nn.ModuleList(
            nn.Embedding(N_SPECIAL + a["n_tokens"], d, padding_idx=PADDING) for _ in range(a["n_hops"] + 1)
        )
        self.places = nn.ParameterList(torch.randn(a["memory_size"], d) * 0.1 for _ in range(a["n_hops"] + 1))
        with torch.no_grad():
            for table in self.words:
                table.weight.normal_(std=0.1)
                table.weight[[PADDING, UNKNOWN]] = 0.0
        self.dropout = Dropout(a["dropout"])
        self.last = nn.Linear(d, a["n_outputs"])
        nn.init.normal_(self.last.weight, std=0.1)
        nn.init.zeros_(self.last.bias)

    def sentences(self, table: nn.Embedding, tokens: torch.Tensor) -> torch.Tensor:
        """Sentences (..., n_words) as vectors (..., d)."""
        vectors = table(tokens)
        if not self.ordered:
            return vectors.sum(-2)
        inside = tokens != PADDING
        J = inside.sum(-1, keepdim=True).clamp(min=1)[..., None].to(vectors)
        j = torch.arange(1, tokens.shape[-1] + 1, device=tokens.device)[:, None].to(vectors)
        k = torch.arange(1, vectors.shape[-1] + 1, device=tokens.device).to(vectors) / vectors.shape[-1]
        return (((1 - j / J) - k * (1 - 2 * j / J)) * vectors * inside[..., None]).sum(-2)

    def attend(
        self, stories: torch.Tensor, lengths: torch.Tensor, questions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(scores of the answers, the weights p of the sentences (n, n_hops, n_sentences))."""
        n_sentences = stories.shape[1]
        place = torch.arange(n_sentences, device=stories.device)
        inside = place < lengths[:, None]
        back = (lengths[:, None] - 1 - place).clamp(min=0)  # sentences from the end of the story
        u, weights = self.sentences(self.words[0], questions), []
        m = self.sentences(self.words[0], stories) + self.places[0][back]
        for k in range(1, len(self.words)):
            c = self.sentences(self.words[k], stories) + self.places[k][back]
            p = (m @ u[:, :, None]).squeeze(-1).masked_fill(~inside, -torch.inf).softmax(-1)
            u, m = u + (p[:, None] @ c).squeeze(1), c
            weights.append(p)
        return self.last(self.dropout(u)), torch.stack(weights, dim=1)

    def forward(self, stories: torch.Tensor, lengths: torch.Tensor, questions: torch.Tensor) -> torch.Tensor:
        """The scores."""
        return self.attend(stories, lengths, questions)[0]
