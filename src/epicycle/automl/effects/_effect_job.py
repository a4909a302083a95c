"""The steps after the table is read: estimates side by side, overlap, balance, sensitivity, conclusions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl._messages import Messages
from epicycle.automl.checks._data_checks import ColumnProfile, DataIssue
from epicycle.automl.effects._doubts import doubts_of
from epicycle.automl.effects._effect_run import EffectRun
from epicycle.automl.effects._identification import Identification
from epicycle.causal import (
    InstrumentalVariables,
    TreatmentEffect,
    e_value,
    identify,
    omitted_variable_bias,
    refute,
)
from epicycle.core._exceptions import DataError, EpicycleError

Array = np.ndarray
#: Name, words, and arguments of each estimate; the first is the conclusion where it can be had.
_ESTIMATES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("aipw", "doubly robust, linear and logistic", {"method": "aipw"}),
    (
        "aipw, boosting",
        "doubly robust, boosted trees",
        {"method": "aipw", "outcome_model": "boosting", "propensity_model": "boosting"},
    ),
    ("tmle", "targeted maximum likelihood", {"method": "tmle"}),
    ("regression", "least squares with interactions", {"method": "regression"}),
    ("ipw", "inverse probability weights", {"method": "ipw"}),
    ("entropy", "weights that balance the covariates", {"method": "entropy"}),
    ("strata", "five strata of the propensity", {"method": "strata"}),
    ("difference", "difference of means, nothing adjusted", {"method": "difference"}),
)
_RESAMPLES = 200  # for the intervals of a formula by regressions
_BENCHMARKS = 3  # covariates that an unmeasured one is compared with


@dataclass(frozen=True)
class Question:
    """The columns of an analysis."""

    treatment: str
    outcome: str
    levels: tuple[str, str]
    scale: str
    y: Array
    t: Array
    X: Array
    names: list[str]
    sources: list[str]
    instrument: Array | None
    columns: dict[str, Array]  # of a formula


class EffectJob:
    """One analysis, step by step."""

    def __init__(self, question: Question, found: Identification, repeats: int, seed: int, messages: Messages) -> None:
        self.q, self.found, self.repeats, self.seed, self.messages = question, found, repeats, seed, messages
        self.failed: list[str] = []

    def run(self, *, source: str, profile: list[ColumnProfile], issues: list[DataIssue], script: str) -> EffectRun:
        if self.q.instrument is not None:
            estimates, facts = self._by_instrument(self.q.instrument)
        elif self.found.kind == "formula":
            estimates, facts = self._by_formula()
        else:
            estimates, facts = self._by_adjustment()
        main = estimates[0]
        run = EffectRun(
            treatment=self.q.treatment,
            outcome=self.q.outcome,
            levels=self.q.levels,
            scale=self.q.scale,
            effect=main["effect"],
            standard_error=main["standard_error"],
            interval=(main["lower"], main["upper"]),
            method=main["name"],
            estimates=estimates,
            identification={
                "kind": self.found.kind,
                "covariates": list(self.found.covariates),
                "instrument": self.found.instrument,
                "words": list(self.found.words),
                "graph": self.found.graph,
            },
            rows=len(self.q.y),
            treated=int(self.q.t.sum()),
            profile=profile,
            warnings=issues,
            failed=self.failed,
            source=source,
            script=self._script(script),
            seed=self.seed,
            **facts,
        )
        run.doubts = doubts_of(run)
        return run

    def _script(self, text: str) -> str:
        options = f", repeats={self.repeats}, seed={self.seed}"
        if self.found.graph is not None:
            options += f", graph={self.found.graph!r}"
        return text.replace("{options}", options)

    # ---------------------------------------------------------------- adjustment

    def _table(self) -> pa.Table:
        """The covariates with their names; a column of zeros where there is nothing to adjust for."""
        if not self.q.names:
            return pa.table({"nothing": np.zeros(len(self.q.y))})
        return pa.table({name: self.q.X[:, j] for j, name in enumerate(self.q.names)})

    def _by_adjustment(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        X, fitted, estimates = self._table(), {}, []
        for name, words, options in _ESTIMATES:
            if not self.q.names and name != "difference":
                continue
            self.messages.stage(f"estimating by {name}")
            try:
                model = TreatmentEffect(**options, random_state=self.seed).fit(X, self.q.y, treatment=self.q.t)
            except EpicycleError as error:
                self.failed.append(f"{name}: {error}".splitlines()[0])
                continue
            fitted[name] = model
            estimates.append(_row(name, words, model))
        if not estimates:
            raise EpicycleError(f"no method could be fitted: {'; '.join(self.failed)}")
        main = fitted[estimates[0]["name"]]
        self.messages.stage("testing the estimate")
        facts = {
            "overlap": _overlap(fitted),
            "balance": _balance(fitted) if self.q.names else [],
            "sensitivity": self._sensitivity(main),
            "refutations": self._refutations(main),
        }
        return estimates, facts

    def _sensitivity(self, main: Any) -> dict[str, Any]:
        spread = float(self.q.y.std())
        e = e_value(main.effect_ / spread, kind="difference", standard_error=main.standard_error_ / spread)
        out: dict[str, Any] = {"e_value": e.point, "e_value_limit": e.limit}
        if len(self.q.y) < self.q.X.shape[1] + 5:
            return out
        try:
            found = omitted_variable_bias(self.q.X if self.q.names else None, self.q.y, self.q.t)
        except DataError:  # nothing is left of the outcome, so that no variable was omitted
            return out
        out |= {
            "estimate": found.estimate,
            "standard_error": found.standard_error,
            "degrees_of_freedom": found.degrees_of_freedom,
            "robustness_value": found.robustness_value(),
            "robustness_value_alpha": found.robustness_value(alpha=0.05),
            "words": str(found),
        }
        strong = np.abs(np.corrcoef(np.column_stack([self.q.t, self.q.X]), rowvar=False)[0, 1:]) if self.q.names else []
        order = [int(j) for j in np.argsort(-np.asarray(strong), kind="stable")[:_BENCHMARKS]]
        compared = omitted_variable_bias(self.q.X, self.q.y, self.q.t, benchmarks=order) if order else found
        values = list(compared.benchmarks.values())
        limits = compared.bounds((1,))
        out["benchmarks"] = [
            {
                "name": self.q.names[j],
                "treatment": values[i][0],
                "outcome": values[i][1],
                "left": float(limits["effect"][i]),
            }
            for i, j in enumerate(order)
        ]
        return out

    def _refutations(self, main: Any) -> list[dict[str, Any]]:
        X = self.q.X if self.q.names else np.zeros((len(self.q.y), 1))
        tests = ("placebo", "random_cause", "subset", "dummy_outcome") if self.q.names else ("placebo", "subset")
        found = refute(main, X, self.q.y, self.q.t, tests=tests, repeats=self.repeats, random_state=self.seed)
        return [
            {"name": test.name, "passed": test.passed, "verdict": test.verdict, "mean": float(test.estimates.mean())}
            for test in found.tests
        ]

    # ---------------------------------------------------------------- formulas and instruments

    def _by_formula(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The formula at the relative frequencies of all combinations, or by regressions where there are too many."""
        formula = identify(self.found.diagram, self.q.treatment, self.q.outcome)
        self.messages.stage("evaluating the formula of the graph")
        found = formula.estimate(self.q.columns, n_resamples=_RESAMPLES, random_state=self.seed)
        effect = found.effect(1.0, 0.0)
        words = {"tables": "formula of the graph, by relative frequencies"}
        row = _side(found.method, words.get(found.method, f"formula of the graph, by {found.method}"), effect)
        plain = TreatmentEffect(method="difference").fit(self._table(), self.q.y, treatment=self.q.t)
        estimates = [row, _row("difference", "difference of means, nothing adjusted", plain)]
        return estimates, {"overlap": {}, "balance": [], "sensitivity": {}, "refutations": []}

    def _by_instrument(self, z: Array) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        X = self.q.X if self.q.names else None
        estimates = []
        words = {"2sls": "two-stage least squares", "liml": "limited information maximum likelihood"}
        for method in ("2sls", "liml"):
            model = InstrumentalVariables(method).fit(X, self.q.y, treatment=self.q.t, instruments=z)
            estimates.append(_row(method, words[method], model))
        plain = TreatmentEffect(method="difference").fit(self._table(), self.q.y, treatment=self.q.t)
        estimates.append(_row("difference", "difference of means, nothing adjusted", plain))
        strength = {
            "effective_F": model.effective_F_,
            "critical": model.effective_F_critical_,
            "set": str(model.anderson_rubin()),
            "endogeneity_p": model.endogeneity_.p_value,
        }
        return estimates, {"overlap": {}, "balance": [], "sensitivity": {}, "refutations": [], "instrument": strength}


def contrasts(X: Array, y: Array, values: Array, control: Any, levels: list[Any], seed: int) -> list[dict[str, Any]]:
    """Each level against the control on the rows of both, with 95% intervals that hold for all of them at once."""
    out = []
    for level in levels:
        rows = np.array([v in (control, level) for v in values.tolist()])
        t = (values[rows] == level).astype(np.float64)
        used, name = (X[rows], "aipw") if X.shape[1] else (np.zeros((int(rows.sum()), 1)), "difference")
        try:
            model = TreatmentEffect(method=name, random_state=seed).fit(used, y[rows], treatment=t)
        except EpicycleError as error:
            out.append({"level": str(level), "rows": int(t.sum()), "failed": f"{name}: {error}".splitlines()[0]})
            continue
        low, high = model.confidence_interval(1 - 0.05 / len(levels))
        row = {"level": str(level), "rows": int(t.sum()), "method": name, "effect": float(model.effect_)}
        out.append({**row, "standard_error": float(model.standard_error_), "lower": float(low), "upper": float(high)})
    return out


def _side(name: str, words: str, effect: Any) -> dict[str, Any]:
    numbers = {"effect": effect.value, "standard_error": effect.error, "lower": effect.low}
    return {"name": name, "words": words, **{k: float(v) for k, v in numbers.items()}, "upper": float(effect.high)}


def _row(name: str, words: str, model: Any) -> dict[str, Any]:
    low, high = (float(v) for v in model.interval_)
    return {
        "name": name,
        "words": words,
        "effect": float(model.effect_),
        "standard_error": float(model.standard_error_),
        "lower": low,
        "upper": high,
    }


def _overlap(fitted: dict[str, Any]) -> dict[str, Any]:
    model = next((fitted[name] for name in ("ipw", "aipw", "strata") if name in fitted), None)
    if model is None:
        return {}
    found = model.overlap_
    return {
        key: found[key].tolist() if isinstance(found[key], np.ndarray) else found[key]
        for key in ("threshold", "outside", "lowest", "highest", "region", "edges", "control", "treated")
    }


def _balance(fitted: dict[str, Any]) -> list[dict[str, Any]]:
    model = next((fitted[name] for name in ("ipw", "entropy", "aipw") if name in fitted), None)
    if model is None:
        return []
    table = model.balance_
    after = table.columns.get("smd after", table["smd"])
    return [
        {"name": name, "before": float(before), "after": float(then)}
        for name, before, then in zip(table.rows, table["smd"], after, strict=True)
    ]
