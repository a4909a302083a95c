"""Conditions under which the conclusion would be wrong, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epicycle.automl.effects._effect_run import EffectRun


def doubts_of(run: EffectRun) -> list[str]:
    """One sentence for each way in which the conclusion could fail, those with evidence first."""
    return [*_failed_tests(run), *_disagreement(run), *_arms(run), *_unmeasured(run), *_beyond_data(run)]


def _failed_tests(run: EffectRun) -> list[str]:
    return [f"The refutation '{t['name']}' failed: {t['verdict']}." for t in run.refutations if not t["passed"]]


def _disagreement(run: EffectRun) -> list[str]:
    adjusted = [row for row in run.estimates if row["name"] != "difference"]
    if len(adjusted) < 2:
        return []
    low, high = (f(adjusted, key=lambda row: row["effect"]) for f in (min, max))
    rounding = 1e-6 * abs(run.effect)  # where an outcome has no noise, standard errors are nearly zero
    away = [
        row
        for row in adjusted
        if abs(row["effect"] - run.effect) > max(2 * run.standard_error, 2 * row["standard_error"], rounding)
    ]
    if away:
        named = ", ".join(f"{row['name']} {row['effect']:.3g}" for row in away)
        return [
            f"Methods are more than two standard errors away from {run.method} ({run.effect:.3g}): {named}. The "
            "conclusion depends on the form of the model."
        ]
    if (low["effect"] > 0) != (high["effect"] > 0):
        return [
            f"The sign depends on the method: {low['name']} gives {low['effect']:.3g}, "
            f"{high['name']} {high['effect']:.3g}."
        ]
    return []


def _arms(run: EffectRun) -> list[str]:
    out = []
    outside = run.overlap.get("outside", 0.0)
    if outside > 0.01:
        where = f" ({run.overlap['region']})" if run.overlap.get("region") else ""
        out.append(
            f"For {outside:.0%} of the rows one arm has hardly any like them{where}: there the effect is extrapolated, "
            "and would be wrong if the arms differ there in another way than on the other rows."
        )
    uneven = [row for row in run.balance if abs(row["after"]) > 0.1]
    if uneven:
        worst = max(uneven, key=lambda row: abs(row["after"]))
        out.append(
            f"After weighting, {len(uneven)} covariates still differ between the arms by more than 0.1 standard "
            f"deviations (most: {worst['name']}, {worst['after']:.2f})."
        )
    return out


def _unmeasured(run: EffectRun) -> list[str]:
    s = run.sensitivity
    out = []
    if run.instrument:
        out.append(
            "The instrument would have to move the outcome by another way than the treatment, or share a cause with "
            "it; nothing in the data can rule this out."
        )
        if run.instrument["effective_F"] < run.instrument["critical"]:
            out.append(f"The instrument is weak: effects in {run.instrument['set']} are all compatible with the data.")
    if "robustness_value" in s and run.is_clear:
        words = (
            f"Something unmeasured would have to explain more than {s['robustness_value']:.1%} of what the covariates "
            f"leave of both {run.treatment} and {run.outcome} to bring the effect to zero, or "
            f"{s['robustness_value_alpha']:.1%} to make it insignificant."
        )
        strongest = max(s.get("benchmarks", []), key=lambda b: min(b["treatment"], b["outcome"]), default=None)
        if strongest is not None:
            words += (
                f" For comparison, {strongest['name']} explains {strongest['treatment']:.1%} of the treatment and "
                f"{strongest['outcome']:.1%} of the outcome; something as strong would leave {strongest['left']:.3g}."
            )
        out.append(words)
    if s.get("e_value") and run.is_clear:
        out.append(
            f"As risk ratios: a hidden cause would need ratios of {s['e_value']:.2f} with both (E-value; "
            f"{s['e_value_limit']:.2f} for the end of the interval)."
        )
    return out


def _beyond_data(run: EffectRun) -> list[str]:
    out = []
    if run.identification["kind"] == "assumed":
        out.append(
            "A covariate could be a consequence of the treatment, or of a common cause of treatment and outcome (a "
            "collider): adjusting for it would then create bias. A graph (--graph) says which columns to use."
        )
    elif run.identification["kind"] == "adjustment":
        out.append("An arrow that the graph leaves out could exist, above all a common cause of treatment and outcome.")
    elif run.identification["kind"] == "formula":
        out.append(
            "An arrow that the graph leaves out could exist: the formula rests on what carries the effect having no "
            "hidden cause in common with treatment or outcome."
        )
    out.append("The treatment of one row could change the outcome of another, or the treatment could come in versions.")
    if not run.is_clear:
        out.append(
            "The effect could be any value of the interval: that it holds zero does not show that there is none."
        )
    return out
