"""Constraints on trees, from what users write to arrays by feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import ParameterError

__all__ = ["feature_groups", "monotone_signs"]


def monotone_signs(asked: Any, p: int, names: np.ndarray | None, categorical: np.ndarray) -> np.ndarray | None:
    """1 where the prediction must not fall with a feature, -1 where it must not rise, else 0; None without any."""
    if asked is None:
        return None
    if isinstance(asked, dict):
        signs = np.zeros(p)
        for name, sign in asked.items():
            signs[_number(name, p, names, "monotonic_cst")] = sign
    else:
        signs = np.asarray(asked, dtype=np.float64)
    if signs.shape != (p,):
        raise ParameterError(f"monotonic_cst has shape {signs.shape}; X has {p} features")
    if not np.isin(signs, (-1, 0, 1)).all():
        raise ParameterError(f"monotonic_cst: {signs[~np.isin(signs, (-1, 0, 1))][0]:g}; expected -1, 0 or 1")
    if (signs[categorical > 0] != 0).any():
        raise ParameterError("monotonic_cst: categories have no order to be monotone in; expected 0 for such columns")
    return signs.astype(np.int8) if signs.any() else None


def feature_groups(asked: Any, p: int, names: np.ndarray | None) -> np.ndarray | None:
    """Groups of features that may meet on one path, (n_groups, p); features that none names form one more group."""
    if asked is None:
        return None
    groups = np.zeros((len(asked), p), np.uint8)
    for row, group in zip(groups, asked, strict=True):
        row[[_number(feature, p, names, "interaction_cst") for feature in group]] = 1
    rest = (groups.sum(axis=0) == 0).astype(np.uint8)
    return np.vstack([groups, rest]) if rest.any() else groups


def _number(feature: Any, p: int, names: np.ndarray | None, argument: str) -> int:
    """The number of a feature that is given by name or number."""
    if isinstance(feature, str):
        found = np.flatnonzero(names == feature) if names is not None else np.empty(0)
        if len(found) == 0:
            raise ParameterError(f"{argument} names {feature!r}, which X does not have")
        return int(found[0])
    if isinstance(feature, bool) or not isinstance(feature, int | np.integer) or not 0 <= feature < p:
        raise ParameterError(f"{argument}: {feature!r}; expected a name or a number from 0 to {p - 1}")
    return int(feature)
