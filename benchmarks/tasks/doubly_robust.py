"""Cross-fitted doubly robust average effect with boosting as nuisance models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task


def make(directory: Path, quick: bool) -> Data:
    n = 4_000 if quick else 500_000
    rng = np.random.default_rng(16)
    X = rng.standard_normal((n, 30))
    e = 1 / (1 + np.exp(-(0.6 * X[:, 0] - 0.4 * np.abs(X[:, 1]))))
    t = (rng.random(n) < e).astype(np.float64)
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + t * (2 + X[:, 2]) + rng.standard_normal(n)
    return {"X": X, "y": y, "t": t}


def epicycle(data: Data) -> Solution:
    from epicycle import TreatmentEffect

    model = TreatmentEffect("ate", "aipw", outcome_model="boosting", propensity_model="boosting", n_folds=2)
    model.fit(data["X"], data["y"], treatment=data["t"])
    return {"effect": np.array([model.effect_, model.standard_error_])}


def econml(data: Data, propensity: Any, regression: Any) -> Solution:
    from econml.dr import LinearDRLearner

    model = LinearDRLearner(
        model_propensity=propensity, model_regression=regression, cv=2, min_propensity=0.01, random_state=0
    )
    model.fit(data["y"], data["t"], X=None, W=data["X"])
    found = model.intercept__inference(T=1)
    return {"effect": np.array([float(found.point_estimate), float(found.stderr)])}


def econml_scikit_learn(data: Data) -> Solution:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    propensity = HistGradientBoostingClassifier(early_stopping=False)
    return econml(data, propensity, HistGradientBoostingRegressor(early_stopping=False))


def econml_lightgbm(data: Data) -> Solution:
    from lightgbm import LGBMClassifier, LGBMRegressor

    return econml(data, LGBMClassifier(verbose=-1), LGBMRegressor(verbose=-1))


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """How far the standard error is above the least; infinite for an effect four standard errors from the truth, 2."""
    least = min(float(s["effect"][1]) for s in solutions.values())
    found: dict[str, Quality] = {}
    for name, s in solutions.items():
        distance = abs(float(s["effect"][0]) - 2) / least
        above = float(s["effect"][1]) / least - 1 if distance < 4 else float("inf")
        found[name] = {"standard error above the least": above, "distance of the effect": distance}
    return found


TASK = Task(
    name="doubly_robust",
    title="Doubly robust average effect, 500,000 x 30, boosting in two folds",
    description="""\
Normal covariates, a propensity and outcomes that are not linear in them. AIPW with 100 rounds of boosting for the
outcome and the propensity, 31 leaves a tree, cross-fitted in two folds. At equal quality the standard error is within
2% of the least and the effect within four standard errors of the truth, a distance that the second column gives.""",
    make=make,
    implementations=(
        Implementation("EconML, scikit-learn", "peer", econml_scikit_learn),
        Implementation("EconML, LightGBM", "peer", econml_lightgbm),
        Implementation("epicycle", "epicycle", epicycle),
    ),
    quality=quality,
    tolerance=0.02,
    cap=1200.0,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=2.0),),
)
