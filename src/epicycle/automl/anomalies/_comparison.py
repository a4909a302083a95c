"""Detectors side by side: on labelled rows that they were not fitted to, or by how far they agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.metrics import average_precision_score, roc_auc_score

from epicycle.anomaly import (
    GaussianAnomalyDetector,
    IsolationForest,
    KernelDensityAnomalyDetector,
    MixtureAnomalyDetector,
    PCAAnomalyDetector,
)
from epicycle.core._exceptions import EpicycleError
from epicycle.core._random import stream

#: Rows beyond which a mixture takes longer than all others together.
_MIXTURE_ROWS = 50_000
#: The same for a kernel density, whose work grows with the square of the rows.
_KERNEL_ROWS = 10_000


def detectors(n_rows: int, share: float, seed: int) -> dict[str, Any]:
    """Candidates by name."""
    found: dict[str, Any] = {
        "isolation forest": IsolationForest(contamination=share, random_state=seed),
        "normal, independent columns": GaussianAnomalyDetector(transforms="auto", contamination=share),
        "normal, all columns together": GaussianAnomalyDetector(
            covariance="multivariate", transforms="auto", shrinkage=1e-3, contamination=share
        ),
        "principal components": PCAAnomalyDetector(contamination=share),
    }
    if n_rows <= _MIXTURE_ROWS:
        found["mixture of normals"] = MixtureAnomalyDetector(
            max_components=5, reg_covar=1e-3, contamination=share, random_state=seed
        )
    if n_rows <= _KERNEL_ROWS:
        found["kernel density"] = KernelDensityAnomalyDetector(rtol=1e-2, contamination=share)
    return found


def by_labels(
    candidates: dict[str, Any], X: np.ndarray, odd: np.ndarray, seed: int, say: Callable[[str], None]
) -> tuple[list[dict[str, Any]], list[str]]:
    """(figures of the candidates, the best first; those that could not be fitted).

    Each is fitted to the normal rows of one half, its threshold is chosen by the labels of that half, and the other
    half is scored; then the halves change places.
    """
    order = stream(seed, "halves").permutation(len(odd))
    half = np.zeros(len(odd), dtype=bool)
    for value in (False, True):  # as many anomalies in one half as in the other
        half[order[odd[order] == value][::2]] = True
    rows, failed = [], []
    for name, model in candidates.items():
        say(f"testing {name}")
        scores, flagged = np.empty(len(odd)), np.zeros(len(odd), dtype=bool)
        try:
            for part in (half, ~half):
                fitted = clone(model).fit(X[part & ~odd]).calibrate(X[part], odd[part])
                scores[~part] = rankdata(fitted.score_samples(X[~part])) / (~part).sum()  # of two fits: ranks
                flagged[~part] = fitted.predict(X[~part]) == -1
        except EpicycleError as error:
            failed.append(f"{name}: {str(error).splitlines()[0]}")
            continue
        hits = int((flagged & odd).sum())
        rows.append(
            {
                "name": name,
                "area": float(roc_auc_score(odd, -scores)),
                "average_precision": float(average_precision_score(odd, -scores)),
                "precision": hits / max(int(flagged.sum()), 1),
                "recall": hits / int(odd.sum()),
                "f1": 2 * hits / (int(flagged.sum()) + int(odd.sum())),
            }
        )
    return sorted(rows, key=lambda row: -row["average_precision"]), failed


def by_agreement(
    candidates: dict[str, Any], X: np.ndarray, say: Callable[[str], None]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The same without labels: the mean rank correlation of a candidate's scores with those of the others."""
    ranks, failed = {}, []
    for name, model in candidates.items():
        say(f"fitting {name}")
        try:
            ranks[name] = rankdata(clone(model).fit(X).score_samples(X))
        except EpicycleError as error:
            failed.append(f"{name}: {str(error).splitlines()[0]}")
    if not ranks:
        return [], failed
    names = list(ranks)
    with np.errstate(invalid="ignore"):  # constant ranks have no correlation
        C = np.nan_to_num(np.atleast_2d(np.corrcoef(np.array([ranks[name] for name in names]))))
    mean = (C.sum(axis=1) - np.diagonal(C)) / max(len(names) - 1, 1)
    rows = [{"name": name, "agreement": float(value)} for name, value in zip(names, mean, strict=True)]
    return sorted(rows, key=lambda row: -row["agreement"]), failed
