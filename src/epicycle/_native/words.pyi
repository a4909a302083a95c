"""Vectors of words: word2vec and GloVe."""

import numpy as np

Array = np.ndarray

class Word2VecModel:
    def __init__(
        self,
        *,
        window: int,
        cbow: bool,
        negative: int,
        keep: Array,
        alias_keep: Array,
        alias_other: Array,
        way_first: Array,
        way_node: Array,
        way_right: Array,
        input: Array,
        output: Array,
    ) -> None: ...

def word2vec_epoch(
    model: Word2VecModel, ids: Array, first: Array, rates: Array, seed: int, threads: int
) -> tuple[float, int, int, int]: ...
def word2vec_step(v: Array, targets: Array, yes: Array, rate: float, change: Array) -> float: ...
def cooccurrences(ids: Array, first: Array, weight: Array, window: int) -> tuple[Array, Array, Array]: ...
def glove_epoch(
    row: Array,
    column: Array,
    log_x: Array,
    f: Array,
    order: Array,
    word: Array,
    context: Array,
    word_square: Array,
    context_square: Array,
    biases: Array,
    rate: float,
    threads: int,
) -> float: ...
