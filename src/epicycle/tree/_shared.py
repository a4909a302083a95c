"""What classifier and regressor share beside the rounds: domains of arguments, and the form of their evidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.core._parameters import (
    AnyOf,
    ArrayLike,
    Boolean,
    Choice,
    Domain,
    InstanceOf,
    Integer,
    NoneOr,
    RandomState,
    Real,
)

__all__ = ["greedy_certificate", "joined", "known_codes", "per_block", "shared_parameters"]


def shared_parameters() -> dict[str, Domain]:
    """Domains of the arguments that classifier and regressor share."""
    return {
        "learning_rate": Real(0, inclusive=False),
        "n_estimators": Integer(1),
        "max_leaf_nodes": NoneOr(Integer(2)),
        "max_depth": NoneOr(Integer(1)),
        "min_samples_leaf": Integer(1),
        "min_child_weight": Real(0),
        "l2_regularization": Real(0),
        "min_split_gain": Real(0),
        "max_bins": Integer(2, 255),
        "subsample": Real(0, 1, inclusive=(False, True)),
        "sampling": Choice("uniform", "gradient"),
        "max_features": Real(0, 1, inclusive=(False, True)),
        "order": Integer(1, 2),
        "categorical_features": NoneOr(AnyOf(Choice("from_dtype"), ArrayLike())),
        "categorical_smoothing": Real(0),
        "handle_unknown": Choice("missing", "error"),
        "monotonic_cst": NoneOr(AnyOf(ArrayLike(), InstanceOf(dict))),
        "interaction_cst": NoneOr(InstanceOf(list, tuple)),
        "n_iter_no_change": NoneOr(Integer(1)),
        "validation_fraction": Real(0, 1, inclusive=False),
        "tol": Real(0),
        "warm_start": Boolean(),
        "random_state": RandomState(),
        "n_jobs": NoneOr(Integer()),
        "verbose": AnyOf(Boolean(), Integer(0)),
    }


def greedy_certificate(rise: float, *, sampled: bool) -> Certificate:
    """Greedy, so none; its value is the largest rise of the training loss in any round."""
    if sampled:
        return Certificate(
            "none",
            rise,
            max(rise, 0.0),
            "boosting is greedy: no distance from an optimum is known; rounds on samples of rows or features may raise "
            f"the training loss (here by {max(rise, 0.0):.1e} at most)",
        )
    return Certificate(
        "none",
        rise,
        0.0,
        "boosting is greedy: no distance from an optimum is known; the training loss fell in every round",
    )


def joined(first: History, second: History) -> History:
    names = list(dict.fromkeys([*first, *second]))
    empty = {True: np.full(first.n_iter, np.nan), False: np.full(second.n_iter, np.nan)}
    return History(
        **{
            name: np.concatenate(
                [first[name] if name in first else empty[True], second[name] if name in second else empty[False]]
            )
            for name in names
        }
    )


def known_codes(y: np.ndarray, classes: np.ndarray, argument: str = "y") -> np.ndarray:
    """Labels as positions among the classes that the fit learnt; others are refused."""
    texts = y.dtype.kind in "OUS", classes.dtype.kind in "OUS"
    if texts[0] == texts[1]:
        position = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        strange = y[classes[position] != y]
    else:
        strange = y
    if len(strange):
        raise DataError(
            f"{argument}: the class {strange.tolist()[0]!r} is not among those that were learnt, "
            f"{classes.tolist()!r:.80}"
        )
    return position.astype(np.float64)


def per_block(scores: Any, function: Any, *parameters: Any) -> Any:
    """``function(scores, *parameters)``, block by block where the scores are a lazy Dask array."""
    if isinstance(scores, np.ndarray):
        return function(scores, *parameters)
    example = function(np.zeros((1, scores.shape[1])), *parameters)
    changed = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (scores.chunks[0], (example.shape[1],))}
    return scores.map_blocks(function, *parameters, dtype=example.dtype, **changed)
