"""Methods of clustering that are tried on a table; a new one is added by a new row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from epicycle.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from epicycle.core._exceptions import ParameterError
from epicycle.mixture import GaussianMixture


@dataclass(frozen=True)
class Method:
    """A method of clustering.

    make : the estimator for a number of clusters and a seed.
    takes_k : whether the number of clusters is an argument; otherwise the method finds it.
    most_rows : rows up to which it is tried.
    predicts : whether the fitted estimator tells the cluster of other rows.
    of_categories : whether it is tried on tables with categories without being asked for.
    """

    name: str
    make: Callable[[int, int], Any]
    takes_k: bool = True
    most_rows: int | None = None
    predicts: bool = True
    of_categories: bool = True


METHODS = (
    Method("KMeans", lambda k, seed: KMeans(k, n_init=5, random_state=seed)),
    Method("AgglomerativeClustering", lambda k, _: AgglomerativeClustering(k), most_rows=10_000, predicts=False),
    Method("HDBSCAN", lambda _k, _seed: HDBSCAN(), takes_k=False, most_rows=20_000, predicts=False),
    # Zeros and ones are not normal: levels of a category would become components. Columns are standardised, and no
    # component is narrower than a tenth of one.
    Method(
        "GaussianMixture", lambda k, seed: GaussianMixture(k, reg_covar=0.01, random_state=seed), of_categories=False
    ),
)


def methods_for(n_rows: int, asked: str | Sequence[str] | None, *, fixed_k: bool, categories: bool) -> list[Method]:
    """The methods that suit the table, or those asked for by name or prefix."""
    names = [asked] if isinstance(asked, str) else None if asked is None else list(asked)
    found = []
    for name in [""] if names is None else names:
        key = name.lower().replace("-", "").replace("_", "")
        matching = [m for m in METHODS if m.name.lower().startswith(key)]
        if not matching:
            raise ParameterError(f"models={name!r}: no such method; there are {', '.join(m.name for m in METHODS)}")
        found += [m for m in matching if m not in found]
    if asked is None and categories:
        found = [m for m in found if m.of_categories]
    kept = [m for m in found if (m.most_rows is None or n_rows <= m.most_rows) and (m.takes_k or not fixed_k)]
    if not kept:
        limits = ", ".join(f"{m.name} takes {m.most_rows:,} rows at most" for m in found if m.most_rows is not None)
        raise ParameterError(
            f"models: none of {', '.join(m.name for m in found)} suits{'; ' + limits if limits else ''}"
        )
    return kept
