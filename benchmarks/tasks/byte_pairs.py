"""Byte-pair encoding: merges learnt from a text, and a text encoded."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks._svm import shared
from benchmarks.tasks.vectorizers import documents_like_newsgroups

SIZE = 2000


def make(directory: Path, quick: bool) -> Data:
    """Books, or documents of made-up words where these are not at hand."""
    file = shared("gutenberg_books.txt.xz")
    if quick or file is None:
        return {"text": np.array("\n".join(documents_like_newsgroups(100 if quick else 4000)))}
    from epicycle.text import read_lines

    lines = []
    for line in read_lines(file):
        lines.append(line)
        if len(lines) == 100_000:
            break
    return {"text": np.array("\n".join(lines))}


def epicycle_pairs(data: Data) -> Solution:
    from epicycle import BytePairEncoder

    text = str(data["text"])
    model = BytePairEncoder(SIZE).fit([text])
    return {"merges": model.merges_, "ids": model.encode(text)}


def python_pairs(data: Data) -> Solution:
    """Sennrich's way: counts of pairs and the pieces that have them, both kept up to date."""
    from epicycle.text._byte_pair_encoder import PIECES

    text = str(data["text"])
    split = re.findall(PIECES, text)
    times = Counter(split)
    pieces = {piece: list(piece.encode()) for piece in times}
    counts: Counter[tuple[int, int]] = Counter()
    where: dict[tuple[int, int], set[str]] = defaultdict(set)
    for piece, symbols in pieces.items():
        for pair in pairwise(symbols):
            counts[pair] += times[piece]
            where[pair].add(piece)
    merges: list[tuple[int, int]] = []
    while len(merges) < SIZE - 256:
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        if counts[best] < 2:
            break
        made = 256 + len(merges)
        merges.append(best)
        for piece in where.pop(best):
            symbols = pieces[piece]
            for pair in pairwise(symbols):
                counts[pair] -= times[piece]
            merged, i = [], 0
            while i < len(symbols):
                step = 2 if tuple(symbols[i : i + 2]) == best else 1
                merged.append(made if step == 2 else symbols[i])
                i += step
            pieces[piece] = merged
            for pair in pairwise(merged):
                counts[pair] += times[piece]
                where[pair].add(piece)
        del counts[best]
    return {"merges": np.array(merges), "ids": np.array([i for piece in split for i in pieces[piece]])}


def differences(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    first = solutions["Python"]
    return {
        name: {"tokens that differ": float(not all(np.array_equal(s[part], first[part]) for part in ("merges", "ids")))}
        for name, s in solutions.items()
    }


TASK = Task(
    name="byte_pairs",
    title="Byte-pair encoding: 2,000 tokens learnt from 100,000 lines of books, which are then encoded",
    description="The same pieces for both; merges and tokens have to be equal.",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_pairs),
        Implementation("Python", "peer", python_pairs),
    ),
    quality=differences,
    tolerance=0.0,
    targets=(Target("speed against Python", speedup_over_best_peer(), at_least=10.0),),
    cap=900.0,
)
