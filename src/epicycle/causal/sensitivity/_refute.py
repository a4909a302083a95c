"""`refute`: estimates that ought to come out as nothing, or unchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from epicycle.causal.designs._inputs import binary, column, columns
from epicycle.causal.sensitivity._refutation import Refutation, Refutations
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Integer, Real, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator import in_catalogue
from epicycle.ensemble import BaggingRegressor
from epicycle.tree import DecisionTreeRegressor

Array = np.ndarray
TESTS = ("placebo", "random_cause", "subset", "dummy_outcome")


@dataclass(frozen=True)
class _Trial:
    """A fitted estimator and its data, refitted to changed ones."""

    model: Any
    X: Array
    y: Array
    d: Array
    result: float
    error: float
    seed: int
    repeats: int
    fraction: float

    def effect(self, X: Array, y: Array, d: Array) -> float:
        return float(clone(self.model).fit(X, y, treatment=d).effect_)

    def repeated(self, change: Callable[[np.random.Generator], tuple[Array, Array, Array]], name: str) -> Array:
        return np.array([self.effect(*change(stream(self.seed, name, i))) for i in range(self.repeats)])


def _zero(trial: _Trial, name: str, found: Array, what: str, otherwise: str) -> Refutation:
    """Compare the mean of estimates with zero: the mean has to exceed its own noise and the standard error."""
    mean = float(found.mean())
    noise = float(found.std(ddof=1)) / np.sqrt(len(found)) if len(found) > 1 else trial.error
    passed = abs(mean) <= max(3 * noise, trial.error)
    verdict = f"mean {mean:.3g} with {what}; " + ("no more than noise" if passed else otherwise)
    return Refutation(name, found, 0.0, passed, verdict)


def _placebo(trial: _Trial) -> Refutation:
    found = trial.repeated(lambda rng: (trial.X, trial.y, rng.permutation(trial.d)), "placebo")
    return _zero(
        trial, "placebo", found, "a treatment drawn by lot", "the estimator finds effects where there are none"
    )


def _random_cause(trial: _Trial) -> Refutation:
    def change(rng: np.random.Generator) -> tuple[Array, Array, Array]:
        return np.column_stack([trial.X, rng.standard_normal(len(trial.y))]), trial.y, trial.d

    found = trial.repeated(change, "random_cause")
    moved = float(np.abs(found.mean() - trial.result))
    passed = moved <= trial.error
    verdict = f"a random control moves the effect by {moved:.3g}; " + (
        "less than its standard error" if passed else "more than its standard error: the estimate is unstable"
    )
    return Refutation("random_cause", found, trial.result, passed, verdict)


def _subset(trial: _Trial) -> Refutation:
    n = len(trial.y)

    def change(rng: np.random.Generator) -> tuple[Array, Array, Array]:
        rows = np.sort(rng.choice(n, size=max(int(trial.fraction * n), 2), replace=False))
        return trial.X[rows], trial.y[rows], trial.d[rows]

    found = trial.repeated(change, "subset")
    spread, shift = float(found.std(ddof=1)) if len(found) > 1 else 0.0, float(abs(found.mean() - trial.result))
    # A part of the rows differs from the whole by about se sqrt(1/fraction - 1).
    expected = trial.error * np.sqrt(1 / trial.fraction - 1)
    passed = shift <= trial.error and spread <= 3 * expected
    verdict = f"{100 * trial.fraction:.0f}% of the rows give {found.mean():.3g} +- {spread:.2g}; " + (
        "as the standard error says" if passed else f"expected {trial.result:.3g} +- {expected:.2g}: a few rows decide"
    )
    return Refutation("subset", found, trial.result, passed, verdict)


def _dummy_outcome(trial: _Trial) -> Refutation:
    """An outcome that depends on X as that of the untreated does, and not on the treatment."""
    untreated = trial.d == 0
    X0, y0 = trial.X[untreated], trial.y[untreated]
    # Leaves of many rows, and the mean of many trees: a smooth guess of how the outcome depends on X.
    tree = DecisionTreeRegressor(min_samples_leaf=max(10, len(y0) // 100))
    forest = BaggingRegressor(tree, n_estimators=30, random_state=trial.seed % 2**31).fit(X0, y0)
    mean, left = forest.predict(trial.X), y0 - forest.predict(X0)

    def change(rng: np.random.Generator) -> tuple[Array, Array, Array]:
        return trial.X, mean + rng.choice(left, size=len(mean)), trial.d

    found = trial.repeated(change, "dummy_outcome")
    return _zero(
        trial,
        "dummy_outcome",
        found,
        "an outcome that only X moves",
        "the estimator does not remove the confounding by X",
    )


def _negative_control(trial: _Trial, outcome: Array) -> Refutation:
    model = clone(trial.model).fit(trial.X, outcome, treatment=trial.d)
    found, its_error = float(model.effect_), float(model.standard_error_)
    passed = abs(found) <= 2.5 * its_error
    verdict = f"effect {found:.3g} (standard error {its_error:.2g}) on an outcome that the treatment cannot move; " + (
        "no sign of hidden confounding" if passed else "something hidden moves both treatment and outcomes"
    )
    return Refutation("negative_control", np.array([found]), 0.0, passed, verdict)


_RUN: dict[str, Callable[[_Trial], Refutation]] = {
    "placebo": _placebo,
    "random_cause": _random_cause,
    "subset": _subset,
    "dummy_outcome": _dummy_outcome,
}


@in_catalogue("causal", "H2", certificate="none")
def refute(
    model: Any,
    X: Any,
    y: Any,
    treatment: Any,
    *,
    tests: Sequence[str] = TESTS,
    negative_control: Any = None,
    repeats: int = 20,
    fraction: float = 0.8,
    random_state: Seed = 0,
) -> Refutations:
    """Test an estimator of effects on changed data, where the right answer is known.

    Parameters
    ----------
    model : estimator
        Anything with ``fit(X, y, treatment=...)`` that sets `effect_` and `standard_error_`; it is cloned.
    X : table (n, k)
        Covariates.
    y : array (n,)
        Outcome.
    treatment : array (n,)
        Treatment, 0 or 1.
    tests : sequence of str, default=("placebo", "random_cause", "subset", "dummy_outcome")
        "placebo": a treatment drawn by lot has no effect. "random_cause": a control of pure noise changes nothing.
        "subset": part of the rows gives the same. "dummy_outcome": on an outcome made from X as that of the untreated
        is, by a forest, the treatment has no effect; an estimator that leaves confounding by X finds one.
    negative_control : array (n,), optional
        An outcome that the treatment cannot move but that shares its hidden causes; an effect on it shows them.
    repeats : int, default=20
        Changed data sets for each test.
    fraction : float, default=0.8
        Part of the rows in "subset".
    random_state : int, Generator, RandomState or None, default=0
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import TreatmentEffect
    >>> from epicycle.causal import refute
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> t = (X[:, 0] + rng.normal(size=400) > 0).astype(float)
    >>> y = t + 2 * X[:, 0] + rng.normal(size=400)
    >>> naive = refute(TreatmentEffect(method="difference"), X, y, t, repeats=5)
    >>> naive["dummy_outcome"].passed  # a difference of means leaves the confounding
    False
    >>> refute(TreatmentEffect(method="regression"), X, y, t, repeats=5).passed
    True
    """
    check_parameter("refute", "repeats", repeats, Integer(1))
    check_parameter("refute", "fraction", fraction, Real(0, 1, inclusive=False))
    unknown = [name for name in tests if name not in _RUN]
    if unknown:
        raise ParameterError(f"tests: holds {unknown[0]!r}; expected some of {', '.join(TESTS)}")
    y = column("y", y)
    d = binary("treatment", treatment, len(y))
    X, _ = columns("X", X, len(y), "refute")
    fitted = clone(model).fit(X, y, treatment=d)
    effect, error = float(fitted.effect_), float(fitted.standard_error_)
    trial = _Trial(model, X, y, d, effect, error, seed_of(random_state), repeats, fraction)
    found = [_RUN[name](trial) for name in tests]
    if negative_control is not None:
        found.append(_negative_control(trial, column("negative_control", negative_control, len(y))))
    return Refutations(effect, error, tuple(found))
