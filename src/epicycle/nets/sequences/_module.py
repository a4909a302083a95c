r"""Recurrent layers, and the network that reads sequences with them.

With gates by the logistic function s, and * entry by entry:

    rnn    h_t = tanh(W x_t + U h_{t-1} + b)
    gru    r, z = s(W x_t + U h_{t-1} + b),   n = tanh(V x_t + r * (Q h_{t-1} + c)),   h_t = (1 - z) * n + z * h_{t-1}
    lstm   i, f, o = s(W x_t + U h_{t-1} + b),   c_t = f * c_{t-1} + i * tanh(V x_t + Q h_{t-1} + d),
           h_t = o * tanh(c_t)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from epicycle.nets.sequences._tokens import N_SPECIAL, PADDING, UNKNOWN
from epicycle.nets.training._randomness import Dropout

_LAYERS: Mapping[str, type[nn.Module]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
_GATES = {"rnn": 1, "lstm": 4, "gru": 3}


def recurrent_layer(cell: str, n_inputs: int, n_units: int, *, bidirectional: bool = False) -> nn.Module:
    """One recurrent layer, batches first.

    Inputs start uniformly within sqrt(6 / (in + out)), maps of the state orthogonal, so that its length neither grows
    nor shrinks at first, and the gate of an LSTM that forgets starts open.
    """
    layer = _LAYERS[cell](n_inputs, n_units, batch_first=True, bidirectional=bidirectional)
    for name, weight in layer.named_parameters():
        for number, gate in enumerate(weight.chunk(_GATES[cell])):
            if name.startswith("bias"):
                forgets = cell == "lstm" and number == 1 and name.startswith("bias_ih")
                nn.init.constant_(gate, float(forgets))
            elif name.startswith("weight_ih"):
                nn.init.xavier_uniform_(gate)
            else:
                nn.init.orthogonal_(gate)
    return layer


def embedding_layer(n_tokens: int, size: int) -> nn.Embedding:
    """A vector for each token; padding and unknown tokens start, and unless they occur stay, at zero."""
    layer = nn.Embedding(N_SPECIAL + n_tokens, size, padding_idx=PADDING)
    with torch.no_grad():
        layer.weight.mul_(size**-0.5)
        layer.weight[[PADDING, UNKNOWN]] = 0.0
    return layer


class Standardise(nn.Module):  # type: ignore[misc]
    """Each feature with mean 0 and deviation 1."""

    def __init__(self, mean: list[float], deviation: list[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean), persistent=False)
        self.register_buffer("scale", 1 / torch.tensor(deviation), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The standardised features."""
        return (x.to(self.mean) - self.mean) * self.scale


class RecurrentLayers(nn.Module):  # type: ignore[misc]
    """Recurrent layers one above the other, with dropout between them."""

    def __init__(
        self, cell: str, n_inputs: int, n_units: int, n_layers: int, *, bidirectional: bool, dropout: float
    ) -> None:
        super().__init__()
        n_outputs = n_units * (1 + bidirectional)
        self.layers = nn.ModuleList(
            recurrent_layer(cell, n_outputs if i else n_inputs, n_units, bidirectional=bidirectional)
            for i in range(n_layers)
        )
        self.dropout = Dropout(dropout)
        self.n_outputs = n_outputs

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The states of the last layer, (n, n_steps, n_outputs); zeros after the end of a sequence."""
        n_steps = x.shape[1]
        if int(lengths.min()) == n_steps:
            for i, layer in enumerate(self.layers):
                x = layer(self.dropout(x) if i else x)[0]
            return x
        # A packed sequence has no padding, which the backward direction would read first.
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        for i, layer in enumerate(self.layers):
            packed = layer(self._dropped(packed) if i else packed)[0]
        return pad_packed_sequence(packed, batch_first=True, total_length=n_steps)[0]

    def _dropped(self, packed: PackedSequence) -> PackedSequence:
        return packed._replace(data=self.dropout(packed.data))


class StatefulLayers(nn.Module):  # type: ignore[misc]
    """Recurrent layers that go on from a state, and say the state in which they end.

    A state is one tensor (layers, n, units), of an LSTM (2 layers, n, units): h and c of the first layer, of the
    second, and so on.
    """

    def __init__(self, cell: str, n_inputs: int, n_units: int, n_layers: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(recurrent_layer(cell, n_units if i else n_inputs, n_units) for i in range(n_layers))
        self.dropout = Dropout(dropout)
        self.n_kept = 2 if cell == "lstm" else 1
        self.n_states, self.n_units = n_layers * self.n_kept, n_units

    def forward(self, z: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(states of the last layer at each step, (n, n_steps, units), and the state after the last step)."""
        ends = []
        for i, layer in enumerate(self.layers):
            if self.n_kept == 2:
                z, (h, c) = layer(z, (state[2 * i][None].contiguous(), state[2 * i + 1][None].contiguous()))
                ends += [h, c]
            else:
                z, h = layer(z, state[i][None].contiguous())
                ends.append(h)
            z = self.dropout(z)
        return z, torch.cat(ends)


class RecurrentNet(nn.Module):  # type: ignore[misc]
    """(sequences padded to one length, lengths) -> outputs of each sequence, or of each step."""

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        a = architecture
        if "n_tokens" in a:
            self.first: nn.Module = embedding_layer(a["n_tokens"], a["embedding_size"])
            n_inputs = int(a["embedding_size"])
        else:
            self.first, n_inputs = Standardise(a["mean"], a["deviation"]), len(a["mean"])
        self.recurrent = RecurrentLayers(
            a["cell"],
            n_inputs,
            a["hidden_size"],
            a["n_layers"],
            bidirectional=a["bidirectional"],
            dropout=a["dropout"],
        )
        self.pooling: str | None = a["pooling"]
        self.dropout = Dropout(a["dropout"])
        self.last = nn.Linear(self.recurrent.n_outputs, a["n_outputs"])
        nn.init.normal_(self.last.weight, std=0.01)  # nearly equal scores at first
        nn.init.zeros_(self.last.bias)
        centre = a.get("target_mean")
        self.target: nn.Module | None = None if centre is None else Scale(centre, a["target_deviation"])

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The outputs, (n, n_outputs), or (n, n_steps, n_outputs) where nothing is pooled."""
        z = self.recurrent(self.first(x), lengths)
        if self.pooling is not None:
            z = pooled(z, lengths, self.pooling, bidirectional=bool(self.recurrent.layers[0].bidirectional))
        z = self.last(self.dropout(z))
        return z if self.target is None else self.target(z)


class Scale(nn.Module):  # type: ignore[misc]
    """From standardised to the user's numbers."""

    def __init__(self, mean: list[float], deviation: list[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean), persistent=False)
        self.register_buffer("deviation", torch.tensor(deviation), persistent=False)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """The numbers."""
        return z * self.deviation + self.mean


def pooled(z: torch.Tensor, lengths: torch.Tensor, pooling: str, *, bidirectional: bool) -> torch.Tensor:
    """The states (n, n_steps, d) of each sequence as one vector: the last ones, their mean or their maximum."""
    n, n_steps, d = z.shape
    if pooling == "last":
        end = z[torch.arange(n, device=z.device), lengths - 1]
        # Backwards, the state that has read everything is the one at the first step.
        return torch.cat([end[:, : d // 2], z[:, 0, d // 2 :]], dim=1) if bidirectional else end
    inside = (torch.arange(n_steps, device=z.device) < lengths[:, None])[:, :, None]
    if pooling == "mean":
        return (z * inside).sum(1) / lengths[:, None].to(z)
    return z.masked_fill(~inside, -torch.inf).amax(1)
