"""Images as vectors of their parts: what the networks look at that write or answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from epicycle.nets.attention._decoder import Decoder, Writer
from epicycle.nets.sequences._module import RecurrentLayers, embedding_layer, pooled
from epicycle.nets.training._randomness import Dropout
from epicycle.nets.vision._module import Standardise


class ImageMemory(nn.Module):  # type: ignore[misc]
    """(n, height, width, channels) images -> (n, S, d) vectors of S cells, row by row.

    Convolutions of 3 x 3, each followed by a pooling that halves the sides; the place of a cell, between -1 and 1, is
    appended, since words such as "left" depend on it.
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        a = architecture
        layers: list[nn.Module] = [Standardise(a["mean"], a["deviation"])]
        n_in = len(a["mean"])
        for channels in a["channels"]:
            conv = nn.Conv2d(n_in, channels, 3, padding=1)
            nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
            nn.init.zeros_(conv.bias)
            layers += [conv, nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)]
            n_in = channels
        self.layers = nn.Sequential(*layers)
        self.n_outputs = n_in + 2

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The vectors of the cells."""
        z = self.layers(images)
        n, _, height, width = z.shape
        up, across = (torch.linspace(-1, 1, k, dtype=z.dtype, device=z.device) for k in (height, width))
        grid = torch.stack([up[:, None].expand(height, width), across[None].expand(height, width)])
        z = torch.cat([z, grid[None].expand(n, -1, -1, -1)], dim=1)
        return z.flatten(2).transpose(1, 2)


class CaptionNet(Writer):
    """(images, targets) -> scores."""

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        self.images = ImageMemory(architecture)
        self.decoder = Decoder(architecture, self.images.n_outputs, self.images.n_outputs)

    def encode(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        (images,) = inputs
        memory = self.images(images)
        inside = torch.ones(memory.shape[:2], dtype=torch.bool, device=memory.device)
        return memory.mean(1), memory, inside


class VisualQANet(nn.Module):  # type: ignore[misc]
    """(images, questions, their lengths) -> scores of the answers.

    With the vectors m_s of the cells and q of the question,

        g_s = logistic(v' tanh(A m_s + B q)) for each of some glimpses,   c = sum_s g_s m_s,   f = MLP(c, sum_s g_s, q).

    Gates do not add up to one as weights of attention do, so that what is seen twice counts twice.
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        a, h = architecture, architecture["hidden_size"]
        self.images = ImageMemory(a)
        self.embedding = embedding_layer(a["n_tokens"], a["embedding_size"])
        self.question = RecurrentLayers(a["cell"], a["embedding_size"], h, 1, bidirectional=True, dropout=0.0)
        d, n_question = self.images.n_outputs, self.question.n_outputs
        self.keys, self.queries = nn.Linear(d, h), nn.Linear(n_question, h)
        self.gate = nn.Linear(h, a["n_glimpses"])
        nn.init.constant_(self.gate.bias, -2.0)  # most cells are closed at first
        self.mix = nn.Sequential(
            nn.Linear(a["n_glimpses"] * (d + 1) + n_question, 2 * h), nn.ReLU(), Dropout(a["dropout"])
        )
        self.last = nn.Linear(2 * h, a["n_outputs"])
        nn.init.normal_(self.last.weight, std=0.01)
        nn.init.zeros_(self.last.bias)

    def attend(
        self, images: torch.Tensor, questions: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(scores of the answers, gates (n, n_glimpses, height, width) of the cells)."""
        memory = self.images(images)
        q = pooled(self.question(self.embedding(questions), lengths), lengths, "last", bidirectional=True)
        gates = torch.sigmoid(self.gate(torch.tanh(self.keys(memory) + self.queries(q)[:, None]))).transpose(1, 2)
        seen = torch.cat([(gates @ memory).flatten(1), gates.sum(2), q], dim=1)
        return self.last(self.mix(seen)), gates

    def forward(self, images: torch.Tensor, questions: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The scores."""
        return self.attend(images, questions, lengths)[0]
