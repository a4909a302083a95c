"""Scores of a path of logistic models on rows that were held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.data import ArrayData

__all__ = ["path_scores"]


def path_scores(
    scorer: Any,
    model_at: Callable[[np.ndarray], Any],
    labelled: ArrayData,
    data: ArrayData,
    test: np.ndarray,
    params: np.ndarray,
    classes: np.ndarray,
) -> np.ndarray:
    """One score for each model of `params` (n, rows, p + 1), by a scorer of scikit-learn.

    Log loss and accuracy of all models come from one product. Rows of no weight do not count, and neither do rows of a
    class that has none.
    """
    assert labelled.y is not None
    assert data.y is not None
    known = np.isin(labelled.y[test], classes)
    weight = None if data.weight is None else data.weight[test]
    if weight is not None and (weight * known).any():
        known &= weight > 0
    else:
        weight = None
    test = test[known]
    X = labelled.X[test] if not sp.issparse(labelled.X) else labelled.X.tocsr()[test]
    weight = None if weight is None else weight[known]
    kind = getattr(scorer, "_score_func", None)
    name = getattr(kind, "__name__", "")
    if name in ("log_loss", "accuracy_score") and not getattr(scorer, "_kwargs", {"": 1}):
        return _direct(name, X, data.y[test].astype(np.intp), weight, params)
    given = {} if weight is None else {"sample_weight": weight}
    return np.array([scorer(model_at(of_model), X, labelled.y[test], **given) for of_model in params])


def _direct(name: str, X: Any, codes: np.ndarray, weight: np.ndarray | None, params: np.ndarray) -> np.ndarray:
    n, rows, d = params.shape
    flat = params.reshape(n * rows, d)
    Z = (np.asarray(X @ flat[:, :-1].T) + flat[:, -1]).reshape(len(codes), n, rows)
    if rows == 1:
        Z = np.concatenate([np.zeros_like(Z), Z], axis=2)
    own = Z[np.arange(len(codes)), :, codes]
    if name == "accuracy_score":
        hit = Z.argmax(axis=2) == codes[:, None]
        return np.asarray(np.average(hit, axis=0, weights=weight))
    most = Z.max(axis=2, keepdims=True)
    loss = most[:, :, 0] + np.log(np.exp(Z - most).sum(axis=2)) - own
    return -np.asarray(np.average(loss, axis=0, weights=weight))
