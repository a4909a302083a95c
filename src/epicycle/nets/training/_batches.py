"""Mini-batches of rows: from arrays, images, CSR matrices, sequences of different lengths, files and clusters.

The order of the rows of an epoch follows from the seed and the number of the epoch alone, so that a fit can go on at
any batch of any epoch without having kept more than these two numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch

from epicycle import engine
from epicycle.core._random import stream
from epicycle.data import ArrayData, Data
from epicycle.engine._row_order import batches_in_order, count_rows

_CHUNK_BYTES = 4 << 20  # rows of several batches are gathered at once, up to this size: it stays in the cache
_DEVICE_CHUNK_BYTES = 64 << 20  # on their way to a GPU: a transfer costs as much as tens of kernels
_RESIDENT_BYTES = 1 << 30  # rows up to this size are kept on a GPU, if they leave seven eighths of its memory free
_BUFFER_BYTES = 64 << 20  # of the rows of a stream that are shuffled among each other


@dataclass
class MiniBatch:
    """Rows on their way through a module; the first axis of every tensor is the rows.

    inputs : what `module(*inputs)` is called with.
    target : None where there is none.
    weight : of the rows; None for ones.
    """

    inputs: tuple[torch.Tensor, ...]
    target: torch.Tensor | None = None
    weight: torch.Tensor | None = None

    @property
    def n_rows(self) -> int:
        return len(self.inputs[0])

    def rows(self, start: int, stop: int) -> MiniBatch:
        """A range of the rows, as views."""
        cut = slice(start, stop)
        target = None if self.target is None else self.target[cut]
        weight = None if self.weight is None else self.weight[cut]
        return MiniBatch(tuple(x[cut] for x in self.inputs), target, weight)

    def at(self, rows: np.ndarray | slice) -> MiniBatch:
        """Some of the rows by number, gathered where they are."""
        chosen = rows if isinstance(rows, slice) else torch.from_numpy(rows).to(self.inputs[0].device)
        target, weight = (None if x is None else x[chosen] for x in (self.target, self.weight))
        return MiniBatch(tuple(x[chosen] for x in self.inputs), target, weight)

    def parts(self, n: int) -> list[MiniBatch]:
        """The batch in n parts of nearly equal size; fewer where it has fewer rows."""
        n = min(n, self.n_rows)
        ends = [self.n_rows * i // n for i in range(n + 1)]
        return [self.rows(a, b) for a, b in pairwise(ends)]

    def to(self, device: torch.device) -> MiniBatch:
        """The same on a device."""
        if self.inputs[0].device == device:
            return self

        def sent(x: torch.Tensor) -> torch.Tensor:
            # From pinned memory a GPU copies while it computes; otherwise the copy waits for all that came before.
            return (x.pin_memory() if device.type == "cuda" and not x.is_cuda else x).to(device, non_blocking=True)

        target, weight = (None if x is None else sent(x) for x in (self.target, self.weight))
        return MiniBatch(tuple(map(sent, self.inputs)), target, weight)


#: Changes the inputs of a training batch at random, such as shifts and flips of images.
Augmentation = Callable[[tuple[torch.Tensor, ...], np.random.Generator], tuple[torch.Tensor, ...]]


class Rows(ABC):
    """Rows that are learnt from, or predicted.

    n_rows : how many there are.
    mean_weight : of the rows; 1 without weights.
    dtype : of floating inputs.
    """

    n_rows: int
    mean_weight: float = 1.0
    dtype: Any = None
    #: Where the batches of training are wanted, when that is not the memory of the processor.
    _device: torch.device | None = None

    def send_to(self, device: torch.device) -> None:
        """Batches go to this device, many at once where they are gathered at once."""
        self._device = None if device.type == "cpu" else device

    @abstractmethod
    def epoch(self, batch_size: int, epoch: int, seed: int, *, shuffle: bool) -> Iterator[MiniBatch]:
        """The batches of one pass."""

    def in_order(self, batch_size: int) -> Iterator[MiniBatch]:
        """The rows as they come, without anything random."""
        return self.epoch(batch_size, 0, 0, shuffle=False)

    def n_batches(self, batch_size: int) -> int:
        """Batches of one pass."""
        return -(-self.n_rows // batch_size)


class IndexedRows(Rows):
    """Rows that can be gathered by their numbers.

    Parameters
    ----------
    target : ndarray with a row for each row, optional
    weight : ndarray of shape (n_rows,), optional
        Rows of weight zero are left out.
    augment : Augmentation, optional
        Used where rows are shuffled, that is in training.
    """

    #: Numbers of the rows that are there; None for all.
    chosen: np.ndarray | None = None

    def __init__(
        self,
        n_rows: int,
        target: np.ndarray | None,
        weight: np.ndarray | None,
        augment: Augmentation | None = None,
    ) -> None:
        self.n_rows, self.target, self.weight, self.augment = n_rows, target, weight, augment
        if weight is not None:
            self.mean_weight = float(np.mean(weight))
            if not weight.all():
                self._choose(np.flatnonzero(weight))

    @abstractmethod
    def take(self, rows: np.ndarray | slice) -> tuple[torch.Tensor, ...]:
        """The inputs of these rows, as tensors that are not shared with the data of the caller."""

    def subset(self, rows: np.ndarray) -> Self:
        """Some of the rows, by number."""
        part = copy(self)
        part._choose(rows if self.chosen is None else self.chosen[rows])
        return part

    def _choose(self, rows: np.ndarray) -> None:
        self.chosen, self.n_rows = rows, len(rows)
        if self.weight is not None:
            self.mean_weight = float(np.mean(self.weight[rows]))

    def rows_at_once(self, batch_size: int) -> int:
        """Number of rows that are gathered at once, a multiple of the size of a batch."""
        return batch_size

    def targets(self) -> np.ndarray:
        """The targets of the rows, in order."""
        assert self.target is not None
        return self.target if self.chosen is None else self.target[self.chosen]

    def weights(self) -> np.ndarray | None:
        """The weights of the rows, in order."""
        return self.weight if self.weight is None or self.chosen is None else self.weight[self.chosen]

    def epoch(self, batch_size: int, epoch: int, seed: int, *, shuffle: bool) -> Iterator[MiniBatch]:
        order = stream(seed, "epoch", epoch).permutation(self.n_rows) if shuffle else None
        if self.chosen is not None:
            order = self.chosen if order is None else self.chosen[order]
        step = self.rows_at_once(batch_size)
        for start in range(0, self.n_rows, step):
            stop = min(start + step, self.n_rows)
            rows = slice(start, stop) if order is None else order[start:stop]
            gathered = self._gathered(rows)
            for i, first in enumerate(range(0, stop - start, batch_size)):
                batch = gathered if step == batch_size else gathered.rows(first, min(first + batch_size, stop - start))
                if self.augment is not None and shuffle:
                    rng = stream(seed, "augment", epoch, start // batch_size + i)
                    batch = MiniBatch(self.augment(batch.inputs, rng), batch.target, batch.weight)
                yield batch

    def _gathered(self, rows: np.ndarray | slice) -> MiniBatch:
        """Rows by number, where the batches are wanted."""
        target = None if self.target is None else torch.from_numpy(_copied(self.target[rows]))
        weight = None if self.weight is None else torch.from_numpy(_copied(self.weight[rows]))
        gathered = MiniBatch(self.take(rows), target, weight)
        return gathered if self._device is None or self.augment is not None else gathered.to(self._device)


def _copied(array: np.ndarray) -> np.ndarray:
    """An array that torch may call its own: writeable, in C order."""
    return np.ascontiguousarray(array) if array.flags.writeable else np.array(array, order="C")


class ArrayRows(IndexedRows):
    """Rows of arrays: tables, images, sequences of one length. A CSR matrix becomes dense batch by batch.

    Parameters
    ----------
    arrays : sequence of ndarray or CSR matrix
        The inputs of the module, each with a row for each row.
    target, weight, augment
        As for :class:`IndexedRows`.
    dtype : numpy.dtype, optional
        The type of floating inputs.
    """

    #: All rows on the GPU, where they fit: batches are gathered there.
    _resident: MiniBatch | None = None

    def __init__(
        self,
        arrays: Sequence[Any],
        target: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        *,
        dtype: Any = None,
        augment: Augmentation | None = None,
    ) -> None:
        self.arrays, self.dtype = tuple(arrays), dtype
        super().__init__(int(self.arrays[0].shape[0]), target, weight, augment)

    def rows_at_once(self, batch_size: int) -> int:
        width = sum(int(np.prod(a.shape[1:])) * 8 for a in self.arrays)
        limit = _CHUNK_BYTES if self._device is None else _DEVICE_CHUNK_BYTES
        return batch_size * max(1, limit // max(width * batch_size, 1))

    def send_to(self, device: torch.device) -> None:
        super().send_to(device)
        self._resident = None
        if device.type != "cuda" or self.augment is not None or any(sp.issparse(array) for array in self.arrays):
            return
        n_bytes = sum(array.nbytes for array in (*self.arrays, self.target, self.weight) if array is not None)
        if n_bytes <= min(_RESIDENT_BYTES, torch.cuda.mem_get_info(device)[0] // 8):
            self._resident = super()._gathered(slice(None))

    def _gathered(self, rows: np.ndarray | slice) -> MiniBatch:
        return super()._gathered(rows) if self._resident is None else self._resident.at(rows)

    def take(self, rows: np.ndarray | slice) -> tuple[torch.Tensor, ...]:
        return tuple(self._tensor(array[rows]) for array in self.arrays)

    def _tensor(self, part: Any) -> torch.Tensor:
        dense = part.toarray() if sp.issparse(part) else part
        if self.dtype is not None and dense.dtype.kind == "f":
            dense = dense.astype(self.dtype, copy=False)
        return torch.from_numpy(_copied(dense))


class SequenceRows(IndexedRows):
    """Sequences of different lengths: each batch is padded to its longest one.

    Parameters
    ----------
    sequences : sequence of ndarray of shape (length,) or (length, n_channels)
        None is empty. The module is called with the padded batch and the lengths.
    target : ndarray of shape (n_rows, ...), or sequence of ndarray of shape (length,)
        One for each sequence, or one for each of its elements; the latter are padded by -1.
    padding : number, default=0
        What sequences are padded by.
    dtype : numpy.dtype, optional
        The type of floating elements.
    """

    def __init__(
        self,
        sequences: Sequence[np.ndarray],
        target: Any = None,
        weight: np.ndarray | None = None,
        *,
        padding: float = 0,
        dtype: Any = None,
    ) -> None:
        self.sequences, self.padding, self.dtype = sequences, padding, dtype
        self.lengths = np.array([len(s) for s in sequences], dtype=np.int64)
        if target is not None and not isinstance(target, np.ndarray):
            ragged = np.empty(len(target), dtype=object)
            ragged[:] = list(target)
            target = ragged
        super().__init__(len(sequences), target, weight)

    def epoch(self, batch_size: int, epoch: int, seed: int, *, shuffle: bool) -> Iterator[MiniBatch]:
        if self.target is None or self.target.dtype != object:
            yield from super().epoch(batch_size, epoch, seed, shuffle=shuffle)
            return
        labels = self.target  # a target for each element: padded like the sequences
        numbered = np.arange(len(self.sequences))
        plain = SequenceRows(self.sequences, numbered, self.weight, padding=self.padding, dtype=self.dtype)
        plain.chosen, plain.n_rows = self.chosen, self.n_rows
        for batch in plain.epoch(batch_size, epoch, seed, shuffle=shuffle):
            assert batch.target is not None
            target = padded([labels[i] for i in batch.target.tolist()], -1)
            yield MiniBatch(batch.inputs, torch.from_numpy(target), batch.weight)

    def take(self, rows: np.ndarray | slice) -> tuple[torch.Tensor, ...]:
        numbers = np.arange(len(self.sequences))[rows]
        table = padded([self.sequences[i] for i in numbers.tolist()], self.padding)
        if self.dtype is not None and table.dtype.kind == "f":
            table = table.astype(self.dtype, copy=False)
        return torch.from_numpy(table), torch.from_numpy(self.lengths[numbers])


def padded(sequences: Sequence[np.ndarray], padding: float) -> np.ndarray:
    """Sequences as one array of shape (n, longest, ...), short ones filled up."""
    longest = max(len(s) for s in sequences)
    table = np.full((len(sequences), longest, *sequences[0].shape[1:]), padding, dtype=sequences[0].dtype)
    for row, sequence in zip(table, sequences, strict=True):
        row[: len(sequence)] = sequence
    return table


class StreamedRows(Rows):
    """Rows of files or of a Dask cluster, read anew in every epoch and never held at once.

    They come in their order and are shuffled within a buffer. Batches do not follow the pieces in which the rows were
    read: without shuffling they are the batches of the same rows in memory.
    """

    def __init__(self, data: Data, dtype: Any = None) -> None:
        self.data, self.dtype = data, dtype or data.dtype
        self.n_rows = count_rows(data)
        if data.has_weight:
            self.mean_weight = engine.sum(_weight_statistic, data)[0] / self.n_rows

    def epoch(self, batch_size: int, epoch: int, seed: int, *, shuffle: bool) -> Iterator[MiniBatch]:
        rng = stream(seed, "epoch", epoch)
        row_bytes = self.data.n_features * np.dtype(self.dtype).itemsize
        buffered = max(batch_size, _BUFFER_BYTES // max(row_bytes, 1) // batch_size * batch_size) if shuffle else 0
        for rows in _regrouped(self._pieces(), buffered or batch_size):
            gathered = rows
            if shuffle:
                order = torch.from_numpy(rng.permutation(rows.n_rows))
                target, weight = (None if t is None else t[order] for t in (rows.target, rows.weight))
                gathered = MiniBatch(tuple(x[order] for x in rows.inputs), target, weight)
            for start in range(0, gathered.n_rows, batch_size):
                yield gathered.rows(start, min(start + batch_size, gathered.n_rows))

    def _pieces(self) -> Iterator[MiniBatch]:
        for batch in batches_in_order(self.data):
            X = batch.X.toarray() if sp.issparse(batch.X) else batch.X
            inputs = (torch.from_numpy(_copied(X.astype(self.dtype, copy=False))),)
            target = None if batch.y is None else torch.from_numpy(_copied(batch.y))
            yield MiniBatch(inputs, target, None if batch.weight is None else torch.from_numpy(_copied(batch.weight)))


def _weight_statistic(batch: Any) -> tuple[float]:
    return (float(batch.weight.sum()),)


def _regrouped(pieces: Iterator[MiniBatch], size: int) -> Iterator[MiniBatch]:
    """The same rows in groups of `size`, and what is left at the end."""
    waiting: list[MiniBatch] = []
    have = 0
    for piece in pieces:
        offset = 0
        while offset < piece.n_rows:
            taken = min(size - have, piece.n_rows - offset)
            waiting.append(piece.rows(offset, offset + taken))
            offset, have = offset + taken, have + taken
            if have == size:
                yield _joined(waiting)
                waiting, have = [], 0
    if have:
        yield _joined(waiting)


def _joined(pieces: list[MiniBatch]) -> MiniBatch:
    if len(pieces) == 1:
        return pieces[0]
    inputs = tuple(torch.cat(parts) for parts in zip(*(p.inputs for p in pieces), strict=True))
    target = None if pieces[0].target is None else torch.cat([p.target for p in pieces if p.target is not None])
    weight = None if pieces[0].weight is None else torch.cat([p.weight for p in pieces if p.weight is not None])
    return MiniBatch(inputs, target, weight)


def table_rows(data: Data, target: Any = None, dtype: Any = None) -> Rows:
    """The rows of a table, wherever it is; `target` replaces that of the data where these are in memory."""
    if isinstance(data, ArrayData):
        return ArrayRows((data.X,), data.y if target is None else target, data.weight, dtype=dtype or data.dtype)
    return StreamedRows(data, dtype)
