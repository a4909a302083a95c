"""A small GPT on characters of Shakespeare, in the small CPU setting of nanoGPT."""

from __future__ import annotations

import gzip
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks._svm import shared

LAYERS, HEADS, WIDTH, CONTEXT, BATCH, RATE, WARM = 4, 4, 128, 64, 12, 1e-3, 100
MEASURE = "nats per character of the held-out tenth"
#: nanoGPT's own figure is 1.88 nats.
GOOD = 1.9


def make(directory: Path, quick: bool) -> Data:
    """Tiny Shakespeare, or text of a Markov chain of letters where it is not at hand."""
    file = shared("tinyshakespeare.txt.gz")
    if file is not None:
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            text = stream.read()
    else:
        rng = np.random.default_rng(0)
        table = np.cumsum(rng.dirichlet(np.full(26, 0.1), size=26), axis=1)
        state, letters = 0, []
        for u in rng.random(300_000):
            state = min(int(np.searchsorted(table[state], u)), 25)
            letters.append(chr(97 + state))
        text = "".join(letters)
    ids = np.array(sorted(set(text)))
    return {"text": np.array(text), "characters": ids, "steps": np.array(50 if quick else 2000)}


def parts(data: Data) -> tuple[str, str, int]:
    text = str(data["text"])
    cut = int(0.9 * len(text))
    return text[:cut], text[cut:], int(data["steps"])


def epicycle_gpt(data: Data) -> Solution:
    from epicycle import GPT

    train, held, steps = parts(data)
    every = min(steps, 100)
    model = GPT(
        context_length=CONTEXT,
        n_layers=LAYERS,
        n_heads=HEADS,
        d_model=WIDTH,
        batch_size=BATCH,
        learning_rate_init=RATE,
        warmup=min(WARM, steps // 10),
        max_iter=steps // every,
        steps_per_iteration=every,
        random_state=0,
    ).fit([train])
    return {"loss": np.array(-model.score([held]))}


def torch_gpt(data: Data) -> Solution:
    """A loop as one writes it by hand, after nanoGPT: torch's threads work on each product."""
    import torch
    from torch import nn
    from torch.nn import functional

    train, held, steps = parts(data)
    number = {c: i for i, c in enumerate(data["characters"].tolist())}
    ids, new = (torch.tensor([number[c] for c in part]) for part in (train, held))

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(WIDTH, bias=False) for _ in range(2))
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

        def forward(self, x: Any) -> Any:
            n, T, _ = x.shape
            q, k, v = (
                part.view(n, T, HEADS, WIDTH // HEADS).transpose(1, 2)
                for part in self.qkv(self.norms[0](x)).split(WIDTH, dim=2)
            )
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(n, T, WIDTH))
            return x + self.down(functional.gelu(self.up(self.norms[1](x))))

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(len(number), WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.layers, self.norm = nn.ModuleList(Layer() for _ in range(LAYERS)), nn.LayerNorm(WIDTH, bias=False)
            for name, p in self.named_parameters():
                if p.ndim > 1:
                    ends = name.endswith(("out.weight", "down.weight"))
                    nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS) if ends else 0.02)

        def forward(self, x: Any) -> Any:
            z = self.tokens(x) + self.places(torch.arange(x.shape[1]))
            for layer in self.layers:
                z = layer(z)
            return functional.linear(self.norm(z), self.tokens.weight)

    torch.manual_seed(0)
    net = Net()
    groups = [
        {"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in net.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.99))
    warm = min(WARM, steps // 10)

    def loss_of(x: Any, y: Any) -> Any:
        return functional.cross_entropy(net(x).view(-1, len(number)), y.reshape(-1))

    for step in range(steps):
        rate = RATE * min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * max(step - warm, 0) / (steps - warm))))
        for group in optimizer.param_groups:
            group["lr"] = rate
        starts = torch.randint(len(ids) - CONTEXT, (BATCH,))
        x = torch.stack([ids[i : i + CONTEXT] for i in starts])
        y = torch.stack([ids[i + 1 : i + 1 + CONTEXT] for i in starts])
        optimizer.zero_grad(set_to_none=True)
        loss_of(x, y).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        n = (len(new) - 1) // CONTEXT
        x, y = new[: n * CONTEXT].view(n, CONTEXT), new[1 : n * CONTEXT + 1].view(n, CONTEXT)
        losses = [float(loss_of(a, b)) * len(a) for a, b in zip(x.split(256), y.split(256), strict=True)]
    return {"loss": np.array(sum(losses) / n)}


def held_out(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    return {name: {MEASURE: float(s["loss"])} for name, s in solutions.items()}


def seconds_ratio(outcomes: Mapping[str, Any]) -> float:
    """Seconds of ours over those of the loop by hand."""
    return 1.0 / speedup_over_best_peer()(outcomes)


TASK = Task(
    name="gpt",
    title="GPT of 4 layers, 4 heads and 128 units, windows of 64 characters, 2,000 steps of 12 windows",
    description="""\
Tiny Shakespeare without its last tenth (quick: 50 steps); both end by scoring that tenth. The same sizes, start, AdamW,
warm-up, cosine and clipping; nanoGPT gives 1.88 nats for this setting.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_gpt),
        Implementation("torch, a loop by hand", "peer", torch_gpt),
    ),
    quality=held_out,
    tolerance=GOOD,
    targets=(Target("seconds against a loop by hand", seconds_ratio, at_most=1.1),),
    cap=1200.0,
)
