"""torch where it is installed: the error where it is not, its threads, its devices, its random numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from epicycle.core._exceptions import EpicycleError, MemoryBudgetError, MissingDependencyError, ParameterError


def require_torch(purpose: str) -> Any:
    """The module torch, or an error that names the extra which brings it."""
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingDependencyError(f"{purpose} needs torch: pip install 'epicycle[deep]'") from None
    return torch


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Within it torch uses one thread for what the calling thread asks of it.

    The result of a sum that torch divides among its threads depends on how many there are, and so do products of
    matrices and convolutions. With one thread for each call the bits depend on the numbers alone; several cores are
    used by computing parts of a batch side by side (`training._gradients`), in parts that do not depend on the cores.
    """
    import torch

    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draws of torch's global generator on the CPU follow from the seed; the generator of the caller is put back."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)
        yield


@contextmanager
def deterministic_kernels(wanted: bool) -> Iterator[None]:
    """On a GPU only kernels whose result is the same every time; an operation that has none raises."""
    import torch

    if not wanted:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it when its first handle is made
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.backends.cudnn.benchmark = before[1]


#: What torch says of memory that the processor does not have, and of sizes beyond all memory.
_OUT_OF_MEMORY = (
    "DefaultCPUAllocator",
    "not enough memory",
    "Storage size calculation overflowed",
    "Overflow when unpacking",
)


@contextmanager
def memory_errors_named(name: str) -> Iterator[None]:
    """An allocation that torch could not make becomes an error that says what to change."""
    import torch

    try:
        yield
    except (RuntimeError, MemoryError, TypeError, OverflowError) as error:
        if isinstance(error, EpicycleError):
            raise
        # torch.OutOfMemoryError on a GPU and MemoryError are plain; for others only the text tells
        told = any(words in str(error) for words in _OUT_OF_MEMORY)
        if not isinstance(error, torch.OutOfMemoryError | MemoryError) and not told:
            raise
        raise MemoryBudgetError(
            f"{name}: the memory of the device is not enough ({str(error).splitlines()[0]:.150}); take a smaller "
            "batch_size, a larger accumulate, or a smaller network"
        ) from None


def device_named(name: str) -> Any:
    """The torch device of an argument `device`: "cpu", "cuda", "cuda:1", or "auto" for a GPU where there is one."""
    import torch

    found = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if found else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and not found:
        raise ParameterError(f"device={name!r}; torch {torch.__version__} sees no CUDA device here: expected 'cpu'")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ParameterError(f"device={name!r}; this machine has {torch.cuda.device_count()} CUDA devices")
    return device


def device_of(module: Any) -> Any:
    """The device of a module's weights."""
    return next(module.parameters()).device


def device_or_cpu(name: str) -> str:
    """The name of a device that a file tells, or "cpu" on a machine that does not have it."""
    try:
        device_named(name)
    except ParameterError:
        return "cpu"
    return name
