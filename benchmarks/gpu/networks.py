"""Networks on a GPU: the training loop beside hand-written ones, MNIST, and the GPT of nanoGPT's first example.

The peers are the loops that one writes by hand: of the perceptron and the residual network with the rows on the GPU
from the start; of the GPT after nanoGPT's configuration for the characters of Shakespeare (6 layers, 384 units,
256 characters, batches of 64, dropout 0.2, bfloat16, compiled), whose published loss is 1.47 nats.

    python -m benchmarks.gpu.networks --data FOLDER --out FOLDER [--only gpt,overhead,mnist] [--quick]
"""

from __future__ import annotations

import gzip
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu._report import Figures, arguments, device
from benchmarks.tasks.net_loop import BATCH, make_images, make_table, mlp, plain_mlp, plain_resnet, resnet

#: Dense bfloat16 products of an H100 or H200 by its data sheet, in operations a second.
PEAK = 989e12
RATE, LAST_RATE, DROPOUT = 1e-3, 1e-4, 0.2


@dataclass(frozen=True)
class Sizes:
    """Of the GPT, its batches, its warm-up, and the steps between two looks at the held-out text."""

    layers: int = 6
    heads: int = 6
    width: int = 384
    context: int = 256
    windows: int = 64
    warm: int = 100
    every: int = 250


QUICK = Sizes(layers=2, heads=2, width=32, context=32, windows=8, warm=5, every=10)


def steps_a_second(model: Any, steps: int) -> float:
    """Median over the iterations but the first, which compiles and warms up."""
    seconds = np.diff(np.concatenate([[0.0], model.history_["seconds"]]))
    return steps / statistics.median(seconds[1:])


# ------------------------------------------------------------------------------------------------------ overhead


def timed_epochs(module: Any, X: np.ndarray, y: np.ndarray, *, epochs: int, rate: float) -> list[float]:
    """Seconds of each epoch of the loop by hand, with all rows on the device."""
    import torch

    where = torch.device(device())
    module, inputs, targets = module.to(where), torch.from_numpy(X).to(where), torch.from_numpy(y).to(where)
    optimizer = torch.optim.AdamW(module.parameters(), lr=rate, weight_decay=0.0, fused=True)
    loss_function = torch.nn.CrossEntropyLoss()
    module.train()
    seconds = []
    for _ in range(epochs):
        began = time.perf_counter()
        order = torch.randperm(len(inputs), device=where)
        for start in range(0, len(inputs), BATCH):
            rows = order[start : start + BATCH]
            optimizer.zero_grad(set_to_none=True)
            loss_function(module(inputs[rows]), targets[rows]).backward()
            optimizer.step()
        if where.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return seconds


def overhead(name: str, data: Any, ours: Callable[[], Any], plain: Callable[..., Any], epochs: int) -> dict[str, Any]:
    """Medians of the seconds of an epoch, of both loops in turns."""
    mine: list[float] = []
    theirs: list[float] = []
    for _ in range(3):
        model = ours().set_params(max_iter=epochs, device=device())
        model.fit(data["X"], data["y"])
        mine += np.diff(np.concatenate([[0.0], model.history_["seconds"]]))[1:].tolist()
        theirs += timed_epochs(plain(), data["X"], data["y"], epochs=epochs, rate=1e-3)[1:]
    a, b = statistics.median(mine), statistics.median(theirs)
    return {f"{name}_epoch_seconds": round(a, 4), f"{name}_by_hand": round(b, 4), f"{name}_ratio": round(a / b, 3)}


def module_of(plain: Callable[[Any], Any], data: Any) -> Callable[[], Any]:
    """The module of a plain loop, untrained: fitted to one batch of its rows."""
    few = {"X": data["X"][:BATCH], "y": data["y"][:BATCH]}
    return lambda: plain(few)


# ---------------------------------------------------------------------------------------------------------- MNIST


def digits(data: Path, *, quick: bool) -> dict[str, Any]:
    """The test error of the residual network after 30 epochs with moved, turned and scaled images."""
    from epicycle import ConvNetClassifier

    file = data / "mnist.npz"
    if quick or not file.is_file():
        from benchmarks.tasks.net_digits import small_digits

        found: Any = small_digits()
    else:
        with np.load(file) as images:
            found = {"X": images["x_train"], "y": images["y_train"].astype(np.int64)}
            found |= {"X_test": images["x_test"], "y_test": images["y_test"].astype(np.int64)}
    began = time.perf_counter()
    layers = [["conv", 48, 3], "batch_norm", "relu", ["residual", 48, 1], ["residual", 96, 2], ["residual", 96, 1]]
    layers += [["residual", 192, 2], ["residual", 192, 1], "global_pool", ["dropout", 0.2]]
    model = ConvNetClassifier(
        layers,
        shift=2.0,
        rotation=10.0,
        zoom=0.1,
        max_iter=2 if quick else 25,
        batch_size=256,
        learning_rate_init=3e-3,
        warmup=0.1,
        weight_decay=0.05,
        average=0.999,
        precision="bfloat16",
        device=device(),
        random_state=0,
    ).fit(found["X"], found["y"])
    seconds = time.perf_counter() - began
    error = 1 - model.score(found["X_test"], found["y_test"])
    return {"mnist_test_error": round(float(error), 5), "mnist_seconds": round(seconds, 1)}


# ---------------------------------------------------------------------------------------------------------- GPT


def shakespeare(data: Path) -> str:
    with gzip.open(data / "tinyshakespeare.txt.gz", "rt", encoding="utf-8") as stream:
        return stream.read()


def our_gpt(text: str, steps: int, size: Sizes) -> tuple[dict[str, Any], Any]:
    from epicycle import GPT

    cut = int(0.9 * len(text))
    began = time.perf_counter()
    model = GPT(
        context_length=size.context,
        n_layers=size.layers,
        n_heads=size.heads,
        d_model=size.width,
        dropout=DROPOUT,
        batch_size=size.windows,
        learning_rate_init=RATE,
        warmup=size.warm,
        max_iter=steps // size.every,
        steps_per_iteration=size.every,
        early_stopping=True,
        n_iter_no_change=steps,
        precision="bfloat16",
        compile=device() == "cuda",
        device=device(),
        random_state=0,
    ).fit(text)
    seconds = time.perf_counter() - began
    rate = steps_a_second(model, size.every) * size.windows * size.context
    curve = model.history_["validation_loss"]
    return {
        "gpt_nats_of_the_held_out_tenth": round(-float(model.score([text[cut:]])), 4),
        "gpt_validation_curve": [round(float(v), 4) for v in curve],
        "gpt_tokens_a_second": round(rate),
        "gpt_seconds": round(seconds, 1),
    }, model


def net_by_hand(n_characters: int, size: Sizes) -> Any:
    """The module of nanoGPT with these sizes; it gives the mean loss of a batch."""
    import torch
    from torch import nn
    from torch.nn import functional

    width = size.width

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(width, bias=False) for _ in range(2))
            self.qkv, self.out = (
                nn.Linear(width, 3 * width, bias=False),
                nn.Linear(width, width, bias=False),
            )
            self.up, self.down = (
                nn.Linear(width, 4 * width, bias=False),
                nn.Linear(4 * width, width, bias=False),
            )
            self.drops = nn.ModuleList(nn.Dropout(DROPOUT) for _ in range(2))

        def forward(self, x: Any) -> Any:
            n, T, _ = x.shape
            q, k, v = (
                part.view(n, T, size.heads, width // size.heads).transpose(1, 2)
                for part in self.qkv(self.norms[0](x)).split(width, dim=2)
            )
            p = DROPOUT if self.training else 0.0
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)
            x = x + self.drops[0](self.out(y.transpose(1, 2).reshape(n, T, width)))
            return x + self.drops[1](self.down(functional.gelu(self.up(self.norms[1](x)))))

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(n_characters, width), nn.Embedding(size.context, width)
            self.drop = nn.Dropout(DROPOUT)
            self.layers, self.norm = (
                nn.ModuleList(Layer() for _ in range(size.layers)),
                nn.LayerNorm(width, bias=False),
            )
            for name, p in self.named_parameters():
                if p.ndim > 1:
                    ends = name.endswith(("out.weight", "down.weight"))
                    nn.init.normal_(p, std=0.02 / math.sqrt(2 * size.layers) if ends else 0.02)

        def forward(self, x: Any, y: Any) -> Any:
            z = self.drop(self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device)))
            for layer in self.layers:
                z = layer(z)
            z = functional.linear(self.norm(z), self.tokens.weight)
            return functional.cross_entropy(z.view(-1, n_characters), y.reshape(-1))

    return Net()


def rate_of(step: int, steps: int, warm: int) -> float:
    """Warm-up, then half a cosine down to a tenth."""
    if step < warm:
        return RATE * (step + 1) / warm
    return LAST_RATE + 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm))) * (RATE - LAST_RATE)


def gpt_by_hand(text: str, steps: int, size: Sizes) -> dict[str, Any]:
    """The same sizes and settings after nanoGPT, written by hand; the best loss on all held-out windows."""
    import torch
    from torch import nn

    where = torch.device(device())
    torch.manual_seed(1337)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    number = {c: i for i, c in enumerate(sorted(set(text)))}
    ids = torch.tensor([number[c] for c in text])
    cut = int(0.9 * len(text))
    train, new = ids[:cut], ids[cut:]
    net = net_by_hand(len(number), size).to(where)
    groups = [
        {"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in net.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.99), fused=True)
    called = torch.compile(net) if where.type == "cuda" else net
    shorter = torch.autocast(where.type, dtype=torch.bfloat16)
    n = (len(new) - 1) // size.context
    held_x, held_y = new[: n * size.context].view(n, size.context), new[1 : n * size.context + 1].view(n, size.context)

    def batch() -> tuple[Any, Any]:
        starts = torch.randint(len(train) - size.context, (size.windows,))
        pair = (torch.stack([train[i + k : i + k + size.context] for i in starts]) for k in (0, 1))
        if where.type == "cuda":
            return tuple(t.pin_memory().to(where, non_blocking=True) for t in pair)
        return tuple(pair)

    began, seconds, curve = time.perf_counter(), [], []
    x, y = batch()
    for first in range(0, steps, size.every):
        start = time.perf_counter()
        net.train()
        for step in range(first, first + size.every):
            for group in optimizer.param_groups:
                group["lr"] = rate_of(step, steps, size.warm)
            with shorter:
                loss = called(x, y)
            x, y = batch()  # while the GPU works
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        loss.item()
        seconds.append(time.perf_counter() - start)
        net.eval()
        with torch.no_grad(), shorter:
            pieces = zip(held_x.split(256), held_y.split(256), strict=True)
            found = [float(net(a.to(where), b.to(where))) * len(a) for a, b in pieces]
        curve.append(sum(found) / n)
    return {
        "by_hand_nats_of_the_held_out_tenth": round(min(curve), 4),
        "by_hand_curve": [round(v, 4) for v in curve],
        "by_hand_tokens_a_second": round(size.every * size.windows * size.context / statistics.median(seconds[1:])),
        "by_hand_seconds": round(time.perf_counter() - began, 1),
    }


def utilisation(model: Any, tokens_a_second: float, size: Sizes) -> float:
    """Share of the peak that the products of the model take: 6 N + 12 L d T operations for each token."""
    n = sum(p.numel() for p in model.module_.parameters()) - size.context * size.width
    return tokens_a_second * (6 * n + 12 * size.layers * size.width * size.context) / PEAK


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--steps", type=int, default=5000, help="of the GPTs")
    parser.add_argument("--steps-by-hand", type=int, help="of the one by hand, where others (its speed needs few)")
    parser.add_argument("--only", default="gpt,overhead,mnist", help="which parts, in their order")
    given = parser.parse_args()
    figures = Figures(given.out, "networks")
    for part in given.only.split(","):
        if part == "gpt":
            text, size, steps = shakespeare(given.data), Sizes(), given.steps
            if given.quick:
                text, size, steps = text[:20_000], QUICK, 2 * QUICK.every
            figures.add(**gpt_by_hand(text, given.steps_by_hand or steps, size))
            mine, model = our_gpt(text, steps, size)
            ratio = mine["gpt_tokens_a_second"] / figures.found["by_hand_tokens_a_second"]
            share = utilisation(model, mine["gpt_tokens_a_second"], size)
            figures.add(**mine, gpt_speed_over_by_hand=round(ratio, 3), gpt_flops_utilisation=round(share, 3))
            if steps == (given.steps_by_hand or steps):
                whole = mine["gpt_seconds"] / figures.found["by_hand_seconds"]
                figures.add(gpt_time_over_by_hand=round(whole, 3))
            figures.add(sample="".join(model.generate("ROMEO:", 300, random_state=0)))
        elif part == "overhead":
            table, images = make_table(given.out, given.quick), make_images(given.out, given.quick)
            epochs = 2 if given.quick else 6
            figures.add(**overhead("mlp", table, mlp, module_of(plain_mlp, table), epochs))
            figures.add(**overhead("resnet", images, resnet, module_of(plain_resnet, images), epochs))
        elif part == "mnist":
            figures.add(**digits(given.data, quick=given.quick))
        else:
            parser.error(f"--only: {part!r}; expected gpt, overhead or mnist")


if __name__ == "__main__":
    main()
