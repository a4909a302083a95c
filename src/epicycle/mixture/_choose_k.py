"""The number of components, chosen by a criterion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from epicycle.core._checks import count
from epicycle.core._exceptions import ConvergenceError, DataError, ParameterError
from epicycle.core._plot_style import Axes, axes_of, styled


@dataclass
class ChosenK:
    """Mixtures with several numbers of components, and the one that a criterion prefers.

    Attributes
    ----------
    k : int
        The number of components with the lowest criterion.
    model : fitted mixture
    criterion : str
    scores : dict of int to float
        The criterion of every number that could be fitted.
    failed : dict of int to str
        Why others could not.
    """

    k: int
    model: Any
    criterion: str
    scores: dict[int, float]
    failed: dict[int, str]

    @property
    def reason(self) -> str:
        """The choice in words: how far the others are behind."""
        others = {k: s - self.scores[self.k] for k, s in self.scores.items() if k != self.k}
        if not others:
            return f"{self.k} components: no other number could be fitted"
        near = min(others, key=lambda k: others[k])
        strength = (
            "hardly better than" if others[near] < 2 else "better than" if others[near] < 10 else "far better than"
        )
        return f"{self.k} components: {self.criterion.upper()} {strength} with {near}, by {others[near]:.1f}"

    @styled
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the criterion against the number of components."""
        ax = axes_of(ax)
        sizes = sorted(self.scores)
        ax.plot(sizes, [self.scores[k] for k in sizes], marker="o", ms=4)
        ax.plot(self.k, self.scores[self.k], marker="o", ms=10, mfc="none", ls="none")
        ax.set_xlabel("number of components")
        ax.set_ylabel(self.criterion.upper())
        ax.locator_params(axis="x", integer=True)
        return ax


def choose(mixture: Any, X: Any, sizes: Iterable[int], criterion: str, sample_weight: Any) -> ChosenK:
    """Fit clones of a mixture with these numbers of components."""
    scores: dict[int, float] = {}
    failed: dict[int, str] = {}
    best: Any = None
    for size in sizes:
        k = count("n_components", size, low=1)
        model = clone(mixture).set_params(n_components=k)
        try:
            model.fit(X, sample_weight=sample_weight)
        except (DataError, ConvergenceError) as error:
            failed[k] = str(error)
            continue
        scores[k] = float(getattr(model, criterion)(X, sample_weight))
        if best is None or scores[k] < scores[best.n_components]:
            best = model
    if best is None:
        why = "; ".join(f"{k}: {text}" for k, text in failed.items()) or "no number was given"
        raise ParameterError(f"n_components: none of the numbers could be fitted ({why})")
    assert np.isfinite(scores[best.n_components])
    return ChosenK(int(best.n_components), best, criterion, scores, failed)
