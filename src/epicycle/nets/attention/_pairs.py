"""Rows of two things, such as a story and a question, checked."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.nets.sequences._recurrent import as_list
from epicycle.nets.sequences._tokens import as_token_lists

_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")


def as_pairs(X: Any, estimator_name: str, what: str) -> tuple[list[Any], list[Any]]:
    """The first and the second things of rows that are pairs.

    Parameters
    ----------
    X : list of pairs
    estimator_name : str
    what : str
        Such as "a story and a question", for errors.
    """
    found = as_list(X, estimator_name)
    for i, row in enumerate(found):
        if isinstance(row, str | bytes | dict | set) or not hasattr(row, "__len__") or len(row) != 2:
            kind = f"{len(row)} entries" if isinstance(row, list | tuple | np.ndarray) else type(row).__name__
            raise DataTypeError(f"X: row {i} has {kind}; {estimator_name} expects pairs of {what}")
    return [row[0] for row in found], [row[1] for row in found]


def as_stories(stories: list[Any], estimator_name: str) -> list[list[list[str]]]:
    """Stories as lists of sentences, these as lists of words; a text is cut at the ends of its sentences."""
    found = []
    for i, story in enumerate(stories):
        parts = [s for s in _SENTENCES.split(story) if s.strip()] if isinstance(story, str) else story
        if isinstance(parts, bytes) or not hasattr(parts, "__len__"):
            raise DataTypeError(
                f"X: the story of row {i} is {type(story).__name__}; {estimator_name} expects a text or a list of "
                "sentences"
            )
        if len(parts) == 0:
            raise DataError(f"X: the story of row {i} is empty; expected at least one sentence")
        found.append(as_token_lists(parts, f"X: story of row {i}", estimator_name, analyzer="word", lowercase=True))
    return found
