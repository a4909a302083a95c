"""Random numbers inside a module: drawn from a generator that is named by seed, step and part, never from a shared one.

So the draws of a step do not depend on what ran before it or beside it: a resumed fit draws what the undisturbed one
would have drawn, and parts of a batch that run on several threads draw the same in any order. Modules use `dropout`
and :class:`Dropout` in place of torch's own, which draw from the one generator of the process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.nn import functional

_current = threading.local()


@contextmanager
def drawing_from(seed: int, step: int, part: int, device: torch.device, *, compiled: bool = False) -> Iterator[None]:
    """Within it, `dropout` and `generator` on this thread draw from the stream of this seed, step and part.

    On a GPU that stream is torch's own generator of the device, seeded anew: fused kernels and compiled modules draw
    from no other. It is put back as it was. A compiled module draws without asking `generator` first.
    """
    outer = [getattr(_current, name, None) for name in ("name", "device", "generator", "before")]
    _current.name, _current.device, _current.generator, _current.before = (seed, step, part), device, None, None
    if compiled and device.type == "cuda":
        generator()
    try:
        yield
    finally:
        if _current.before is not None:
            _current.generator.set_state(_current.before)
        _current.name, _current.device, _current.generator, _current.before = outer


def _seed(name: tuple[int, int, int]) -> int:
    words = np.random.SeedSequence(name[0], spawn_key=name[1:]).generate_state(2, np.uint32)
    return int(words[0]) << 31 ^ int(words[1])


def generator() -> torch.Generator | None:
    """The generator of the running step; None outside of one, which is torch's own."""
    if getattr(_current, "name", None) is None:
        return None
    if _current.generator is None:  # made when first asked for: a module without dropout pays nothing
        if _current.device.type == "cuda":
            made = torch.cuda.default_generators[_current.device.index or 0]
            _current.before = made.get_state()
        else:
            made = torch.Generator(_current.device)
        made.manual_seed(_seed(_current.name))
        _current.generator = made
    found: torch.Generator = _current.generator
    return found


def seed_device() -> None:
    """Has to come before a fused kernel that draws on a GPU; compiled modules have it done by `drawing_from`."""
    if not torch.compiler.is_compiling():
        generator()


def dropout(x: torch.Tensor, p: float, training: bool) -> torch.Tensor:
    """x with every entry set to zero with probability p and divided by 1 - p otherwise, while training."""
    if not training or p == 0.0:
        return x
    if x.is_cuda:
        seed_device()
        return functional.dropout(x, p)
    kept = torch.empty_like(x).bernoulli_(1.0 - p, generator=generator())
    return x * kept.div_(1.0 - p)


class Dropout(nn.Module):  # type: ignore[misc]
    """`dropout` as a layer."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Drop entries of x while training."""
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p:g}"
