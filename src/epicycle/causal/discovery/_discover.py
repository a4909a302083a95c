"""`discover`: causal graphs from data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epicycle.causal.discovery._discovery import Discovery
from epicycle.causal.discovery._fci import fci
from epicycle.causal.discovery._ges import GaussianScore, ges
from epicycle.causal.discovery._independence import GivenTest, Independence, PartialCorrelation
from epicycle.causal.discovery._lingam import lingam
from epicycle.causal.discovery._marks import cpdag_marks, directed_part, topological_order
from epicycle.causal.discovery._notears import notears
from epicycle.causal.discovery._pc import pc
from epicycle.core._certificate import Certificate
from epicycle.core._checks import items
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import Choice, Integer, NoneOr, Real, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator import in_catalogue
from epicycle.data._matrix import as_matrix

Array = np.ndarray
_FAITHFUL = "faithfulness: no independence in the data is a coincidence of effects that cancel"
_SUFFICIENT = "no hidden common causes and no selection of rows"
_ACYCLIC = "no cycles of causes"
_GAUSSIAN = "linear effects with normal noise (partial correlations, BIC)"
ASSUMPTIONS = {
    "pc": (_FAITHFUL, _SUFFICIENT, _ACYCLIC, _GAUSSIAN),
    "fci": (_FAITHFUL, "hidden common causes and selection are allowed for", _ACYCLIC, _GAUSSIAN),
    "ges": (_FAITHFUL, _SUFFICIENT, _ACYCLIC, _GAUSSIAN, "as many rows as make the best score that of the true class"),
    "notears": (
        _SUFFICIENT,
        _ACYCLIC,
        "linear effects with noise of the same variance in every equation: the scales of the variables decide "
        "on directions, so that a change of units may turn edges around",
    ),
    "lingam": (_SUFFICIENT, _ACYCLIC, "linear effects with noise that is independent and not normal"),
}


@dataclass(frozen=True)
class _Options:
    method: str
    alpha: float
    penalty: float
    l1: float
    threshold: float
    max_size: int | None
    independence: Callable[[int, int, tuple[int, ...]], float] | None


def _tested(X: Array, names: tuple[str, ...], o: _Options) -> Discovery:
    n, p = X.shape
    test: Independence
    if o.independence is not None:
        test = GivenTest(o.independence, o.alpha)
    else:
        test = PartialCorrelation(np.corrcoef(X, rowvar=False).reshape(p, p), n, o.alpha)
    if o.method == "pc":
        marks, found, conflicts = pc(p, test, o.max_size)
        words = f"{test.count} tests; {conflicts} colliders contradict others and were left out"
    else:
        marks, found = fci(p, test, o.max_size)
        words = f"{test.count} tests; no optimum is claimed"
    kind = "CPDAG" if o.method == "pc" else "PAG"
    certificate = Certificate("none", 0.0, 0.0, words)
    history = History(edges=found.edges)
    return Discovery(names, marks, kind, o.method, ASSUMPTIONS[o.method], None, None, None, certificate, history)


def _scored(X: Array, names: tuple[str, ...], o: _Options) -> Discovery:
    n, p = X.shape
    score = GaussianScore(np.cov(X, rowvar=False, bias=True).reshape(p, p), n, o.penalty)
    marks, values, left = ges(p, score, p if o.max_size is None else o.max_size)
    meaning = "no single deletion raises the score further; forward insertions had ended likewise"
    certificate = Certificate("gain of a further step", left, 1e-9, meaning)
    history = History(score=values)
    return Discovery(names, marks, "CPDAG", "ges", ASSUMPTIONS["ges"], None, None, None, certificate, history)


def _weighted(X: Array, names: tuple[str, ...], o: _Options) -> Discovery:
    p = X.shape[1]
    if o.method == "notears":
        S = np.cov(X, rowvar=False, bias=True).reshape(p, p)
        W, history, used = notears(S, o.l1, o.threshold)
        words = f"weights below {used:.3g} were set to zero; h was {history[-1]:.1e} before"
        trace = History(acyclicity=history)
    else:
        W, order = lingam(X, o.alpha)
        words = "the order of the variables: " + ", ".join(names[j] for j in order)
        trace = History(place=np.argsort(order).astype(float))
    cyclic = topological_order(W != 0) is None
    certificate = Certificate("acyclicity", float(cyclic), 0.0, f"the graph has no cycle; {words}")
    marks = cpdag_marks(W != 0, np.zeros((p, p), dtype=bool))
    return Discovery(names, marks, "DAG", o.method, ASSUMPTIONS[o.method], W, None, None, certificate, trace)


_SEARCH = {"pc": _tested, "fci": _tested, "ges": _scored, "notears": _weighted, "lingam": _weighted}


@in_catalogue("causal", "H4", certificate="none, a further step, or acyclicity")
def discover(
    data: Any,
    method: str = "pc",
    *,
    alpha: float = 0.01,
    penalty: float = 1.0,
    l1: float = 0.05,
    threshold: float = 0.3,
    max_size: int | None = None,
    independence: Callable[[int, int, tuple[int, ...]], float] | None = None,
    names: Sequence[str] | None = None,
    bootstrap: int = 0,
    random_state: Seed = 0,
) -> Discovery:
    r"""Causal graph of the columns of a table.

    "pc" and "fci" remove the edge of every pair that some set of variables makes independent,

    .. math:: \sqrt{n - |S| - 3}\; |\operatorname{artanh} \hat\rho_{ij \cdot S}| \le z_{1 - \alpha/2},

    and direct what the sets imply, "fci" also with hidden causes. "ges" climbs BIC over classes of equivalent graphs.
    "notears" and "lingam" fit linear equations without a cycle. The result prints what each of them assumes.

    Parameters
    ----------
    data : table (n, p)
        Numeric columns.
    method : {"pc", "fci", "ges", "notears", "lingam"}, default="pc"
        The search.
    alpha : float, default=0.01
        Level of tests: of independence ("pc", "fci"), of coefficients ("lingam").
    penalty : float, default=1
        Factor of BIC's penalty, for "ges".
    l1 : float, default=0.05
        Penalty of weights, for "notears".
    threshold : float, default=0.3
        Weights of "notears" below it are set to zero.
    max_size : int, optional
        Largest separating set ("pc", "fci"), or largest set of neighbours of a step ("ges").
    independence : callable (i, j, given) -> p-value, optional
        Another test, for "pc" and "fci"; variables are numbers.
    names : sequence of str, optional
        Names of the variables; by default those of the table.
    bootstrap : int, default=0
        Samples drawn with replacement, in each of which the search is repeated for the confidence in edges.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.causal import discover
    >>> rng = np.random.default_rng(0)
    >>> rain, sprinkler = rng.normal(size=(2, 1000))
    >>> wet = rain + sprinkler + rng.normal(size=1000)
    >>> slippery = wet + rng.normal(size=1000)
    >>> table = np.column_stack([rain, sprinkler, wet, slippery])
    >>> discover(table, names=["rain", "sprinkler", "wet", "slippery"]).edges
    ['rain -> wet', 'sprinkler -> wet', 'wet -> slippery']
    """
    check_parameter("discover", "method", method, Choice(*_SEARCH))
    check_parameter("discover", "alpha", alpha, Real(0, 1, inclusive=False))
    for name, value in (("penalty", penalty), ("l1", l1), ("threshold", threshold)):
        check_parameter("discover", name, value, Real(0, 1e100))
    check_parameter("discover", "max_size", max_size, NoneOr(Integer(0)))
    check_parameter("discover", "bootstrap", bootstrap, Integer(0))
    if independence is not None and method not in ("pc", "fci"):
        raise ParameterError(f"independence: given with method={method!r}; expected 'pc' or 'fci'")
    if independence is not None and bootstrap:
        raise ParameterError("bootstrap: needs tests that follow the samples; expected 0 with independence")
    X, labels = _table(data, names)
    options = _Options(method, alpha, penalty, l1, threshold, max_size, independence)
    found = _SEARCH[method](X, labels, options)
    if not bootstrap:
        return found
    seed, n = seed_of(random_state), len(X)
    joined, directed = np.zeros((2, len(labels), len(labels)))
    for b in range(bootstrap):
        rows = stream(seed, "bootstrap", b).integers(n, size=n)
        again = _SEARCH[method](X[rows], labels, options).marks
        joined += again != 0
        directed += directed_part(again)
    return replace(found, confidence=joined / bootstrap, direction_confidence=directed / bootstrap)


def _table(data: Any, names: Sequence[str] | None) -> tuple[Array, tuple[str, ...]]:
    X, found = as_matrix(data, estimator_name="discover")
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    n, p = X.shape
    labels = tuple(map(str, items("names", names) if names is not None else found or [f"x{j}" for j in range(p)]))
    if len(labels) != p or len(set(labels)) != p:
        raise ParameterError(
            f"names: got {len(labels)}, of which {len(set(labels))} differ; expected {p} different ones"
        )
    if p < 2 or n < p + 4:
        raise DataError(f"data: has {n} rows and {p} columns; expected 2 columns, and 4 rows more than columns")
    constant = np.ptp(X, axis=0) == 0
    if constant.any():
        raise DataError(f"data: column {labels[int(constant.argmax())]!r} is constant; leave it out")
    # Not even after the shift to their mean may squares of numbers leave the range of floating point.
    size = np.abs(X - X.mean(axis=0)).max(axis=0)
    if (wrong := ~((size > 1e-100) & (size < 1e100))).any():
        j = int(wrong.argmax())
        raise DataError(f"data: column {labels[j]!r} varies by {size[j]:.1e}; divide it by a constant")
    return X, labels
