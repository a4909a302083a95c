"""Terms of documents: words and n-grams counted, hashed and weighed; byte-pair encoding."""

from typing import Any

import numpy as np

class Characters:
    def __init__(self, page: np.ndarray, entries: np.ndarray) -> None: ...

class Rule:
    def __init__(self, *, analyzer: int, least: int, most: int, lower: bool, shortest: int) -> None: ...

class Terms:
    def __init__(self, names: list[str]) -> None: ...

def n_terms(terms: Terms) -> int: ...
def count_new(
    terms: Terms,
    documents: list[str],
    rule: Rule,
    stop: Terms | None,
    table: Characters | None,
    keep: bool,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def count_known(
    terms: Terms, documents: list[str], rule: Rule, stop: Terms | None, table: Characters | None, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def count_hashed(
    documents: list[str],
    rule: Rule,
    stop: Terms | None,
    table: Characters | None,
    n_features: int,
    signs: bool,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def order(terms: Terms) -> np.ndarray: ...
def counts(terms: Terms) -> tuple[np.ndarray, np.ndarray]: ...
def names(terms: Terms, ids: np.ndarray) -> list[str]: ...
def renumbered(
    values: np.ndarray, columns: np.ndarray, starts: np.ndarray, to: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def weigh(X: Any, out: np.ndarray, idf: np.ndarray | None, sublinear: bool, norm: int, threads: int) -> None: ...

class PairEncoder:
    def __init__(self, merges: np.ndarray) -> None: ...

def learn_pairs(
    pieces: list[str], counts: np.ndarray, n_merges: int, least: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def encode_pairs(encoder: PairEncoder, pieces: list[str]) -> tuple[np.ndarray, np.ndarray]: ...
