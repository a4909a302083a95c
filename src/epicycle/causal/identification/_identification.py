"""`Identification`: the formula of an effect with its derivation, or the proof that there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.causal.graph._causal_graph import CausalGraph
from epicycle.causal.identification._causal_estimate import CausalEstimate
from epicycle.causal.identification._estimate import estimate
from epicycle.causal.identification._expression import BATCH, Expression, Named, Probability
from epicycle.causal.identification._hedge import Hedge
from epicycle.causal.identification._id_algorithm import Step
from epicycle.core._exceptions import DataError, ParameterError

Array = np.ndarray


@dataclass(frozen=True)
class Identification:
    """Answer to the question whether an effect can be computed from what is observed.

    Parameters
    ----------
    graph : CausalGraph
        The diagram, latent nodes projected out.
    treatment, outcome, given : tuples of str
        The question P(outcome | do(treatment), given).
    estimand : Expression or None
        The formula, None where none exists.
    steps : tuple of Step
        The derivation.
    hedge : Hedge or None
        The proof that no formula exists.
    """

    graph: CausalGraph
    treatment: tuple[str, ...]
    outcome: tuple[str, ...]
    given: tuple[str, ...]
    estimand: Expression | None
    steps: tuple[Step, ...]
    hedge: Hedge | None

    @property
    def identifiable(self) -> bool:
        """Whether a formula exists."""
        return self.estimand is not None

    @property
    def query(self) -> Probability:
        """The question."""
        return Probability(self.outcome, self.given, self.treatment)

    @property
    def any_value(self) -> tuple[str, ...]:
        """Variables that stand in the formula although its value is the same for each of their values."""
        asked = {*self.treatment, *self.outcome, *self.given}
        return tuple(v for v in self.graph.nodes if v in self.formula_of().free - asked)

    def formula_of(self) -> Expression:
        """The formula, or an error with the hedge where there is none."""
        if self.estimand is None:
            raise ParameterError(f"{self.query} is not identifiable: {self.hedge}")
        return self.estimand

    @property
    def formula(self) -> str:
        """The formula as text."""
        return str(self.formula_of())

    def latex(self) -> str:
        """Question and formula in LaTeX."""
        return f"{self.query.latex()} = {self.formula_of().latex()}"

    def derivation(self, *, latex: bool = False) -> str:
        """The steps of the proof.

        Parameters
        ----------
        latex : bool, default=False
            As an ``align*`` environment in place of plain text.

        Returns
        -------
        str
        """
        if not latex:
            lines = [f"{k}. {step}" for k, step in enumerate(self.steps, 1)]
            end = f"therefore {self}" if self.identifiable else f"no formula exists; {self.hedge}"
            return "\n".join([*lines, end])
        rows = [rf"{s.left.latex()} &= {s.right.latex()} && \text{{({s.rule})}} \\" for s in self.steps]
        last = self.latex().replace(" = ", " &= ", 1) if self.identifiable else _latex_text(str(self.hedge))
        return "\\begin{align*}\n" + "\n".join([*rows, last]) + "\n\\end{align*}"

    def __str__(self) -> str:
        if self.estimand is None:
            return f"{self.query} is not identifiable; {self.hedge}"
        free = f", for any value of {', '.join(self.any_value)}" if self.any_value else ""
        return f"{self.query} = {self.estimand}{free}"

    def __repr__(self) -> str:
        return f"Identification({self})"

    def evaluate(self, probabilities: Array, variables: Sequence[str]) -> Array:
        """The effect under a table of joint probabilities.

        Parameters
        ----------
        probabilities : array
            One axis for each variable.
        variables : sequence of str
            Names of the axes: all observed nodes that the formula has, in any order.

        Returns
        -------
        array
            P(outcome | do(treatment), given), with axes for `treatment`, `given`, `outcome` in this order. A value that
            depends on events of probability zero is nan.

        Examples
        --------
        >>> import numpy as np
        >>> from epicycle.causal import CausalGraph, identify
        >>> found = identify(CausalGraph("z -> x -> y; z -> y"), "x", "y")
        >>> p = np.zeros((2, 2, 2))  # z, x, y
        >>> p[0, 0] = 0.3, 0.1
        >>> p[0, 1] = 0.05, 0.05
        >>> p[1, 0] = 0.05, 0.05
        >>> p[1, 1] = 0.1, 0.3
        >>> found.evaluate(p, ["z", "x", "y"]).round(3)
        array([[0.625, 0.375],
               [0.375, 0.625]])
        """
        table = np.asarray(probabilities)
        if missing := self.formula_of().variables - set(variables):
            raise DataError(f"variables={list(variables)}: the formula also has {sorted(missing)}")
        if table.ndim != len(variables):
            raise DataError(f"probabilities: expected {len(variables)} axes, one for each variable, got {table.ndim}")
        return self.averaged(Named(tuple(variables), table))

    def averaged(self, joint: Named) -> Array:
        """The effect; over values of variables that do not matter its mean, weighted by their probabilities.

        With many joint distributions in one array, along the axis BATCH, that axis is the last of the result.
        """
        formula = self.formula_of()
        batch = (BATCH,) if BATCH in joint.axes else ()
        axes = (*self.any_value, *self.treatment, *self.given, *self.outcome, *batch)
        shape = tuple(joint.values.shape[joint.axes.index(v)] for v in axes)
        low, high = (np.broadcast_to(formula.value(joint, fill).moved(axes), shape) for fill in (0.0, 1.0))
        defined = np.isclose(low.real, high.real, rtol=1e-9, atol=1e-12)
        free = len(self.any_value)
        if free == 0:
            return np.where(defined, low, np.nan)
        weight = Probability(self.any_value).value(joint).moved(axes).real * defined
        over = tuple(range(free))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((weight * low).sum(axis=over) / weight.sum(axis=over))

    def estimate(
        self,
        data: Any,
        *,
        sample_weight: Any = None,
        method: str = "auto",
        interval: str = "influence",
        prior: float = 0.0,
        confidence: float = 0.95,
        n_resamples: int = 500,
        regressor: Any = None,
        classifier: Any = None,
        random_state: Any = None,
    ) -> CausalEstimate:
        """Estimate the effect: means of the outcome under each value of the treatment, with intervals.

        Parameters
        ----------
        data : data frame or mapping
            A column for each node that the formula has.
        sample_weight : array (n,), optional
            How often each row counts.
        method : {"auto", "tables", "regression", "weighting"}, default="auto"
            The formula at the relative frequencies of all combinations of values, for any formula; or, where an
            adjustment set or a front door exists and the treatment has few values, regressions of the outcome, or
            weights by the probability of the treatment. "auto" takes tables if no variable has more than 20 values.
        interval : {"influence", "bootstrap", "posterior"}, default="influence"
            Normal intervals by influence functions, quantiles of resamples, or (tables) of draws from the Dirichlet
            posterior. Front doors by regression have resamples in place of influence functions.
        prior : float, default=0
            Pseudo-counts in each cell of the table.
        confidence : float, default=0.95
            Of the intervals.
        n_resamples : int, default=500
            Resamples or draws.
        regressor, classifier : estimators, optional
            Models of the outcome and of the treatment; by default linear and (hardly
            penalised) logistic regression.
        random_state : int, Generator or None
            Seed of resamples and draws.

        Returns
        -------
        CausalEstimate

        Examples
        --------
        >>> import numpy as np
        >>> from epicycle.causal import CausalGraph, identify
        >>> rng = np.random.default_rng(0)
        >>> z = rng.random(4000) < 0.5
        >>> x = rng.random(4000) < 0.2 + 0.6 * z
        >>> y = rng.random(4000) < 0.1 + 0.3 * x + 0.4 * z
        >>> found = identify(CausalGraph("z -> x -> y; z -> y"), "x", "y").estimate({"x": x, "y": y, "z": z})
        >>> effect = found.effect(True, False)
        >>> effect.low < 0.3 < effect.high
        True
        """
        return estimate(
            self,
            data,
            sample_weight=sample_weight,
            method=method,
            interval=interval,
            prior=prior,
            confidence=confidence,
            n_resamples=n_resamples,
            regressor=regressor,
            classifier=classifier,
            random_state=random_state,
        )


def _latex_text(text: str) -> str:
    escaped = text.replace("{", r"\{").replace("}", r"\}").replace("_", r"\_")
    return rf"\text{{{escaped}}}"
