"""Inference from the likelihood of an unpenalised logistic fit: covariance, tests, and measures of fit.

At the maximum the covariance of the parameters is the inverse of the Hessian of the negative log-likelihood. Softmax
regression is described by its log-odds against the first class, (W_k - W_0, b_k - b_0), which no constant added to all
classes changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.stats

from epicycle.linear.logistic._objective import MAX_HESSIAN, LogisticObjective
from epicycle.linear.logistic._solve import polish
from epicycle.optim import Solution
from epicycle.stats._summary import Summary, wald_summary


@dataclass(frozen=True)
class Inference:
    """Log-odds against the first class, rows (w, b), with their covariance row after row; and the log-likelihoods."""

    covariance: np.ndarray
    log_likelihood: float


def inference(objective: LogisticObjective, solution: Solution) -> tuple[Solution, Inference | None]:
    """The fit, polished by Newton steps until its parameters have settled, and what follows from its Hessian."""
    if objective.size > MAX_HESSIAN or not solution.converged:
        return solution, None
    solution, half = polish(objective, solution)
    if half is None:
        return solution, None
    K, d = objective.rows, objective.columns
    half = half.reshape(K, d, -1)
    if objective.intercept:  # from b at the shift to b at the origin
        half = half.copy()
        half[:, -1] -= np.einsum("kjr,j->kr", half[:, :-1], objective.shift)
    if K > 1:
        half = half[1:] - half[0]
    flat = half.reshape(-1, half.shape[-1])
    return solution, Inference(flat @ flat.T, -solution.value)


def null_log_likelihood(totals: np.ndarray, intercept: bool) -> float:
    """Of the model with intercepts alone; without intercepts, of equal probabilities. `totals` are those of classes."""
    total = float(totals.sum())
    shares = totals / total if intercept else np.full(len(totals), 1 / len(totals))
    return float(totals @ np.log(shares))


def likelihood_facts(log_likelihood: float, totals: np.ndarray, n_features: int, intercept: bool) -> dict[str, float]:
    """Deviances, likelihood-ratio test against the null model, McFadden's R2, AIC and BIC."""
    null = null_log_likelihood(totals, intercept)
    tested = n_features * (len(totals) - 1)
    parameters = tested + intercept * (len(totals) - 1)
    ratio = 2 * (log_likelihood - null)
    return {
        "log-likelihood": log_likelihood,
        "null log-likelihood": null,
        "deviance": -2 * log_likelihood,
        "null deviance": -2 * null,
        "LR chi2": ratio,
        "LR df": float(tested),
        "P(LR)": float(scipy.stats.chi2.sf(ratio, tested)),
        "McFadden R2": 1 - log_likelihood / null,
        "AIC": -2 * log_likelihood + 2 * parameters,
        "BIC": -2 * log_likelihood + float(np.log(totals.sum())) * parameters,
    }


def class_tables(
    names: list[str],
    classes: np.ndarray,
    coef: np.ndarray,
    intercept: np.ndarray | None,
    covariance: np.ndarray,
    *,
    confidence: float,
    title: str,
    facts: Mapping[str, float],
    note: str,
) -> Summary:
    """The table of the log-odds: of the second class, or of every class against the first, one below the other."""
    coef = np.asarray(coef, dtype=np.float64)
    b = None if intercept is None else np.asarray(intercept, dtype=np.float64)
    if len(classes) > 2:
        coef, b = coef[1:] - coef[0], None if b is None else b[1:] - b[0]
    d = coef.shape[1] + (b is not None)
    parts = [
        wald_summary(
            names,
            row,
            None if b is None else float(b[k]),
            covariance[k * d : (k + 1) * d, k * d : (k + 1) * d],
            confidence=confidence,
            title=title,
            facts=facts,
        )
        for k, row in enumerate(coef)
    ]
    labels = [""] if len(parts) == 1 else [f"{label}: " for label in classes[1:]]
    rows = tuple(f"{label}{row}" for label, part in zip(labels, parts, strict=True) for row in part.rows)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns}
    if len(parts) > 1:
        note = "; ".join(filter(None, [f"log-odds against the class {classes[0]}", note]))
    return Summary(title, rows, columns, facts, note)
