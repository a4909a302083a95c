"""Tests between nested models: likelihood ratio (or F) and score.

Under the smaller model, q parameters fewer, (D_small - D_big) / phi is chi-square with q degrees of freedom; where phi
is estimated, divided by q it is nearly F with q and n - p degrees. The score test needs the smaller fit alone: with U
the gradient and I the information of the larger model there, U'I^-1 U / phi is chi-square with q degrees too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.stats

from epicycle.core._exceptions import DataError

__all__ = ["TestResult", "likelihood_ratio", "score"]

Array = np.ndarray


@dataclass(frozen=True)
class TestResult:
    """A test statistic, its degrees of freedom and its p-value.

    kind : "likelihood ratio", "F" or "score".
    statistic : float
    degrees : number of parameters that the smaller model lacks.
    residual_degrees : of the larger model, for F; nan otherwise.
    p_value : float
    """

    __test__ = False  # not a test of ours, whatever its name says

    kind: str
    statistic: float
    degrees: float
    residual_degrees: float
    p_value: float

    def __str__(self) -> str:
        law = "chi2" if np.isnan(self.residual_degrees) else "F"
        inside = f"{self.degrees:g}" if law == "chi2" else f"{self.degrees:g}, {self.residual_degrees:g}"
        return f"{self.kind} test: {law}({inside}) = {self.statistic:.4g}, p = {self.p_value:.4g}"


def likelihood_ratio(small: float, big: float, q: float, phi: float | None, by: float, degrees: float) -> TestResult:
    """From two deviances; with phi known chi-square, else F with the dispersion `by` of the larger model."""
    if not q > 0:
        raise DataError(f"small: the models differ by {q:g} parameters; expected a smaller model first")
    if small < big - 1e-6 * abs(big):
        raise DataError(
            f"small: its deviance {small:g} is below that of the larger model, {big:g}: it is not nested in it"
        )
    fall = max(small - big, 0.0)
    if phi is not None:
        return TestResult("likelihood ratio", fall / phi, q, np.nan, float(scipy.stats.chi2.sf(fall / phi, q)))
    F = fall / q / by
    return TestResult("F", F, q, degrees, float(scipy.stats.f.sf(F, q, degrees)))


def score(U: Array, information: Array, tested: Array, phi: float) -> TestResult:
    """From gradient and information of the larger model at the smaller one's optimum."""
    unit = 1 / np.sqrt(np.where(np.diagonal(information) > 0, np.diagonal(information), 1.0))
    S, v = information * unit * unit[:, None], U * unit
    values, Q = scipy.linalg.eigh(S)
    kept = values > 8 * len(values) * np.finfo(float).eps * values[-1]
    rest = np.setdiff1d(np.arange(len(U)), tested)
    base = scipy.linalg.eigvalsh(S[np.ix_(rest, rest)]) if len(rest) else np.empty(0)
    rank = int((base > 8 * max(len(base), 1) * np.finfo(float).eps * base.max(initial=0.0)).sum())
    statistic = float(np.sum(np.square(Q.T @ v)[kept] / values[kept])) / phi
    q = float(kept.sum() - rank)
    if not q > 0:
        raise DataError("X: the added columns say nothing new: they depend on those of the model")
    return TestResult("score", statistic, q, np.nan, float(scipy.stats.chi2.sf(statistic, q)))
