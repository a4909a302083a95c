"""Studies whose design stands in for measured confounders: instruments, cutoffs, panels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.coverage.case import Case
from epicycle.causal import DifferenceInDifferences, InstrumentalVariables, RegressionDiscontinuity, SyntheticControl


def _holds(model: Any, effect: float) -> bool:
    return bool(model.interval_[0] <= effect <= model.interval_[1])


def _instruments(seed: int, strength: float) -> dict[str, np.ndarray]:
    """Noise of two variances; the effect is 1.5."""
    rng = np.random.default_rng(seed)
    n = 1000
    X, Z = rng.normal(size=(n, 1)), rng.normal(size=(n, 3))
    u = rng.normal(size=n)
    d = strength * Z.sum(axis=1) + X[:, 0] + u + rng.normal(size=n)
    y = 1.5 * d + 2 * u + X[:, 0] + rng.normal(size=n) * (1 + (Z[:, 0] > 0))
    return {"X": X, "y": y, "treatment": d, "instruments": Z}


def _two_stages(method: str, seed: int) -> bool:
    return _holds(InstrumentalVariables(method).fit(**_instruments(seed, 1.0)), 1.5)


def _anderson_rubin(strength: float, seed: int) -> bool:
    return 1.5 in InstrumentalVariables().fit(**_instruments(seed, strength)).anderson_rubin()


def _cutoff(fuzzy: bool, seed: int) -> bool:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, 600)
    mean = 0.5 + np.where(x < 0, 0.8 * x + 2 * x**2, 0.8 * x - 1.5 * x**2)
    t = (rng.random(600) < 0.1 + 0.8 * (x >= 0)).astype(float)
    noise = 0.3 * rng.normal(size=600)
    if fuzzy:
        return _holds(RegressionDiscontinuity().fit(x, mean + t + noise, treatment=t), 1.0)
    return _holds(RegressionDiscontinuity().fit(x, mean + (x >= 0) + noise), 1.0)


def _staggered(growth: float, seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """120 units over 6 times; a third is treated from 2 on, a third from 4 on."""
    rng = np.random.default_rng(seed)
    units, T = 120, 6
    unit, time = np.repeat(np.arange(units), T), np.tile(np.arange(T), units)
    begins = np.resize((2, 4, 99), units)[unit]
    treated = (time >= begins).astype(float)
    y = rng.normal(size=units)[unit] + 0.5 * time + rng.normal(size=len(unit))
    return y + treated * (1 + growth * (time - begins)), {"unit": unit, "time": time, "treatment": treated}


def _groups(seed: int) -> bool:
    y, panel = _staggered(1.0, seed)
    effects = [1 + (t - g) for g in (2, 4) for t in range(g, 6)]
    return _holds(DifferenceInDifferences().fit(None, y, **panel), float(np.mean(effects)))


def _second_year(seed: int) -> bool:
    y, panel = _staggered(1.0, seed)
    events = DifferenceInDifferences().fit(None, y, **panel).event_study_
    return bool(events["lower"][-3] <= 2.0 <= events["upper"][-3])  # one time after the first


def _two_way(seed: int) -> bool:
    y, panel = _staggered(0.0, seed)
    return _holds(DifferenceInDifferences("two_way").fit(None, y, **panel), 1.0)


def _given_covariates(adjustment: str, seed: int) -> bool:
    """Trends and chances of treatment depend on x; 200 units over 3 times."""
    rng = np.random.default_rng(seed)
    units, T = 200, 3
    x = rng.normal(size=units)
    treated = rng.random(units) < expit(x)
    Y = rng.normal(size=(units, 1)) + np.arange(T) * (0.5 + x[:, None]) + rng.normal(size=(units, T))
    Y[:, 2:] += treated[:, None] * 1.0
    unit, time = np.repeat(np.arange(units), T), np.tile(np.arange(T), units)
    columns = {"unit": unit, "time": time, "treatment": (treated[unit] & (time >= 2)).astype(float)}
    return _holds(DifferenceInDifferences(adjustment=adjustment).fit(x[unit][:, None], Y.ravel(), **columns), 1.0)


def _placebos(seed: int) -> bool:
    """20 units that could have been treated, each alike; two factors."""
    rng = np.random.default_rng(seed)
    units, T, start = 20, 9, 6
    Y = rng.normal(size=(units, 2)) @ rng.normal(size=(2, T)) + rng.normal(size=(units, T))
    unit, time = np.repeat(np.arange(units), T), np.tile(np.arange(T), units)
    treated = ((unit == 0) & (time >= start)).astype(float)
    columns = {"unit": unit, "time": time, "treatment": treated}
    return _holds(SyntheticControl(max_pre_ratio=np.inf).fit(y=Y.ravel() + 2 * treated, **columns), 2.0)


DESIGNS = [
    Case('InstrumentalVariables("2sls")', "strong instruments", 1000, partial(_two_stages, "2sls")),
    Case('InstrumentalVariables("liml")', "strong instruments", 1000, partial(_two_stages, "liml")),
    Case("InstrumentalVariables().anderson_rubin", "strong instruments", 1000, partial(_anderson_rubin, 1.0)),
    Case("InstrumentalVariables().anderson_rubin", "useless instruments", 1000, partial(_anderson_rubin, 0.0)),
    Case("RegressionDiscontinuity()", "sharp, curved", 600, partial(_cutoff, False)),
    Case("RegressionDiscontinuity()", "fuzzy, curved", 600, partial(_cutoff, True)),
    Case("DifferenceInDifferences()", "staggered, growing effects", 720, _groups),
    Case("DifferenceInDifferences().event_study_", "staggered, growing effects", 720, _second_year),
    Case('DifferenceInDifferences("two_way")', "staggered, one effect", 720, _two_way),
    Case(
        'DifferenceInDifferences(adjustment="doubly_robust")',
        "parallel given a covariate",
        600,
        partial(_given_covariates, "doubly_robust"),
    ),
    Case(
        'DifferenceInDifferences(adjustment="regression")',
        "parallel given a covariate",
        600,
        partial(_given_covariates, "regression"),
    ),
    Case("SyntheticControl(max_pre_ratio=inf)", "19 controls like the treated unit", 180, _placebos),
]
