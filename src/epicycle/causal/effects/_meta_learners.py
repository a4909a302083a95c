r"""Meta-learners: effects of rows from models of the outcome, the treatment and pseudo-outcomes.

    S:   one outcome model with the treatment among the features, tau(x) = Q(x, 1) - Q(x, 0)
    T:   one outcome model for each arm, tau(x) = Q_1(x) - Q_0(x)
    X:   models tau_1 of y - Q_0(x) on the treated and tau_0 of Q_1(x) - y on the controls,
         tau(x) = e(x) tau_0(x) + (1 - e(x)) tau_1(x)                                   (Kuenzel et al. 2019)
    R:   the minimiser of sum (y - m(x) - tau(x) (t - e(x)))^2, m = E[y | x]            (Nie and Wager 2021)
    DR:  a regression of the efficient scores of AIPW                                   (Kennedy 2023)

R and DR use cross-fitted nuisance models. The average effect that goes with them is always that of the cross-fitted
efficient scores, so that its interval does not depend on how well effects of rows are estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epicycle.causal.effects._doubly_robust import efficient_scores
from epicycle.causal.effects._nuisance import fitted, predicted
from epicycle.causal.effects._study import Study, with_treatment

LEARNERS: tuple[str, ...] = ("s", "t", "x", "r", "dr")


@dataclass
class RowEffects:
    """Fitted models of a meta-learner.

    learner : its letter.
    models : the models by role: "outcome", "outcome0", "outcome1", "effect", "effect0", "effect1", "propensity".
    clip : bound of the propensity.
    """

    learner: str
    models: dict[str, Any]
    clip: float

    def predict(self, X: Any) -> np.ndarray:
        """Effects of rows."""
        at = {role: predicted(model, X) for role, model in self.models.items() if role != "outcome"}
        if self.learner == "s":
            model = self.models["outcome"]
            return np.asarray(predicted(model, with_treatment(X, 1.0)) - predicted(model, with_treatment(X, 0.0)))
        if self.learner == "t":
            return np.asarray(at["outcome1"] - at["outcome0"])
        if self.learner == "x":
            e = np.clip(at["propensity"], self.clip, 1 - self.clip)
            return np.asarray(e * at["effect0"] + (1 - e) * at["effect1"])
        return at["effect"]


def row_effects(
    learner: str,
    study: Study,
    nuisances: tuple[np.ndarray, np.ndarray, np.ndarray],
    outcome: Callable[[], Any],
    effect: Callable[[], Any],
    propensity: Callable[[], Any],
    clip: float,
) -> RowEffects:
    """Fit a meta-learner; `nuisances` are cross-fitted (e, Q0, Q1), `outcome` and the others make models."""
    everyone = np.ones(study.n_rows, dtype=bool)
    treated, models = study.t == 1, {}

    def fit(make: Callable[[], Any], target: np.ndarray, rows: np.ndarray, name: str, of: Study = study) -> Any:
        return fitted(make(), of, target, rows, name)

    if learner == "s":
        models["outcome"] = fit(
            outcome, study.y, everyone, "outcome_model", replace(study, X=with_treatment(study.X, study.t))
        )
    if learner in "tx":
        models["outcome0"] = fit(outcome, study.y, ~treated, "outcome_model")
        models["outcome1"] = fit(outcome, study.y, treated, "outcome_model")
    if learner == "x":
        imputed = np.where(
            treated, study.y - predicted(models["outcome0"], study.X), predicted(models["outcome1"], study.X) - study.y
        )
        models = {
            "effect0": fit(effect, imputed, ~treated, "effect_model"),
            "effect1": fit(effect, imputed, treated, "effect_model"),
            "propensity": fit(propensity, study.t, everyone, "propensity_model"),
        }
    if learner in ("r", "dr"):
        e, Q0, Q1 = nuisances
        e = np.clip(e, clip, 1 - clip)
        if learner == "dr":
            models["effect"] = fit(effect, efficient_scores(study, e, Q0, Q1, "ate"), everyone, "effect_model")
        else:
            v = study.t - e
            weighted = replace(study, w=study.w * v**2, weighted=True)
            models["effect"] = fit(effect, (study.y - e * Q1 - (1 - e) * Q0) / v, everyone, "effect_model", weighted)
    return RowEffects(learner, models, clip)
