"""`check_implications`: the independences that a diagram implies, tested in data.

Categories: the likelihood ratio G = 2 sum n log(n / expected) within the cells of what is given, chi-square.
Otherwise:  Wilks' lambda of the residuals of both nodes after least squares on what is given, with Bartlett's
factor; for
            two numbers this is a function of their partial correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, xlogy

from epicycle.causal.graph._causal_graph import CausalGraph
from epicycle.causal.identification._columns import columns_of, encoded
from epicycle.causal.identification._independence import Independence, implied_independences
from epicycle.causal.identification._tables import count_table
from epicycle.core._checks import open_unit
from epicycle.core._parameters import Choice, check_parameter
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
#: A variable with more values is taken as a number.
MOST_VALUES = 10


@dataclass(frozen=True)
class ImplicationCheck:
    """Tests of the independences of a diagram.

    Parameters
    ----------
    independences : tuple of Independence
        What was tested.
    statistic, degrees_of_freedom : arrays
        Chi-square statistics and their degrees of freedom; without degrees of freedom data cannot speak.
    p_values, adjusted : arrays
        Before and after the correction for many tests.
    level : float
        Corrected p-values below it contradict the diagram.
    """

    independences: tuple[Independence, ...]
    statistic: Array
    degrees_of_freedom: Array
    p_values: Array
    adjusted: Array
    level: float

    @property
    def contradicted(self) -> list[Independence]:
        """Independences that the data contradict."""
        return [fact for fact, p in zip(self.independences, self.adjusted, strict=True) if p < self.level]

    @property
    def holds(self) -> bool:
        """Whether nothing contradicts the diagram."""
        return not self.contradicted

    def __str__(self) -> str:
        rows = [
            f"  {fact}: p = {p:.3g}, corrected {q:.3g}{'  contradicted' if q < self.level else ''}"
            for fact, p, q in zip(self.independences, self.p_values, self.adjusted, strict=True)
        ]
        head = f"{len(rows)} implied independences, {len(self.contradicted)} contradicted at level {self.level:g}"
        return "\n".join([head, *rows])


@in_catalogue("causal", "H4", certificate="corrected p-values")
def check_implications(
    graph: CausalGraph, data: Any, *, level: float = 0.05, correction: str = "holm"
) -> ImplicationCheck:
    """Test the independences that a diagram implies.

    Parameters
    ----------
    graph : CausalGraph
        The diagram.
    data : data frame or mapping
        A column for each observed node; columns with at most 10 values, and texts, count as categories.
    level : float, default=0.05
        Corrected p-values below it contradict the diagram.
    correction : {"holm", "fdr", "none"}, default="holm"
        Holm's for the chance of any false alarm, Benjamini and Yekutieli's for the share of false alarms, both valid
        however the tests depend on each other; or none.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.causal import CausalGraph, check_implications
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=500)
    >>> b = a + rng.normal(size=500)
    >>> data = {"a": a, "b": b, "c": b + rng.normal(size=500)}
    >>> check_implications(CausalGraph("a -> b -> c"), data).holds
    True
    >>> [str(fact) for fact in check_implications(CausalGraph("a -> b <- c"), data).contradicted]
    ['a _||_ c']
    """
    open_unit("level", level)
    check_parameter("check_implications", "correction", correction, Choice("holm", "fdr", "none"))
    facts = tuple(implied_independences(graph))
    columns = columns_of(data, dict.fromkeys(v for f in facts for v in (f.x, f.y, *f.given)))
    found = np.array([independence_test(columns, f) for f in facts]).reshape(-1, 2)
    statistic, freedom = found[:, 0], found[:, 1]
    p = np.where(freedom > 0, chdtrc(np.maximum(freedom, 1), statistic), 1.0)
    return ImplicationCheck(facts, statistic, freedom, p, adjusted(p, correction), level)


def adjusted(p: Array, correction: str) -> Array:
    """P-values corrected for their number."""
    m = len(p)
    if correction == "none" or m == 0:
        return p.copy()
    order = np.argsort(p)
    out = np.empty(m)
    if correction == "holm":
        out[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(m, 0, -1)))
    else:
        scale = m * np.sum(1 / np.arange(1, m + 1)) / np.arange(1, m + 1)
        out[order] = np.minimum(1.0, np.minimum.accumulate((p[order] * scale)[::-1])[::-1])
    return out


def independence_test(columns: dict[str, Array], fact: Independence) -> tuple[float, float]:
    """Statistic and degrees of freedom."""
    used = [columns[v] for v in (fact.x, fact.y, *fact.given)]
    if all(c.dtype.kind not in "f" or len(np.unique(c)) <= MOST_VALUES for c in used) and all(
        len(np.unique(c)) <= MOST_VALUES for c in used
    ):
        return g_test(columns, fact)
    return wilks_test(columns, fact)


def g_test(columns: dict[str, Array], fact: Independence) -> tuple[float, float]:
    """Likelihood ratio within each combination of what is given."""
    counts = count_table(columns, (fact.x, fact.y, *fact.given)).table
    n = counts.reshape(*counts.shape[:2], -1).astype(np.float64)
    row, column, whole = n.sum(axis=1), n.sum(axis=0), n.sum(axis=(0, 1))
    g = xlogy(n, n).sum() - xlogy(row, row).sum() - xlogy(column, column).sum() + xlogy(whole, whole).sum()
    freedom = np.maximum((row > 0).sum(axis=0) - 1, 0) * np.maximum((column > 0).sum(axis=0) - 1, 0)
    return max(2.0 * float(g), 0.0), float(freedom.sum())


def wilks_test(columns: dict[str, Array], fact: Independence) -> tuple[float, float]:
    """Canonical correlations of the residuals."""
    X, Y, Z = (_block(columns, names) for names in ((fact.x,), (fact.y,), fact.given))
    n = len(X)
    base = np.column_stack([np.ones(n), Z])
    Q = np.linalg.qr(base)[0]
    bases = []
    for block in (X, Y):
        rest = block - Q @ (Q.T @ block)
        U, s, _ = np.linalg.svd(rest, full_matrices=False)
        scale = np.linalg.norm(block - block.mean(axis=0)) or 1.0
        bases.append(U[:, s > 1e-10 * scale])
    p, q = bases[0].shape[1], bases[1].shape[1]
    if p == 0 or q == 0:
        return 0.0, 0.0
    rho = np.clip(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False), 0.0, 1 - 1e-15)
    factor = max(n - base.shape[1] - (p + q + 1) / 2, 0.0)
    return -factor * float(np.log1p(-(rho**2)).sum()), float(p * q)


def _block(columns: dict[str, Array], names: tuple[str, ...]) -> Array:
    """Numbers with many values as they are, all else as indicators."""
    views = {v: columns[v] for v in names}
    views = {v: c.astype(str) if len(np.unique(c)) <= MOST_VALUES else c for v, c in views.items()}
    return encoded(views, names) if names else np.empty((len(next(iter(columns.values()))), 0))
