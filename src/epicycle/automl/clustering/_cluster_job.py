"""The steps of a clustering after the table is read: search, fit to all rows, describe."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl._budget import Budget
from epicycle.automl._messages import Messages
from epicycle.automl.checks._data_checks import ColumnProfile, DataIssue
from epicycle.automl.clustering._cluster_profiles import cluster_profiles
from epicycle.automl.clustering._clustering_run import ClusteringRun
from epicycle.automl.clustering._methods import Method
from epicycle.automl.clustering._search import Candidate, Found, search
from epicycle.automl.tables._columns import as_text
from epicycle.automl.tables._table_encoder import TableEncoder
from epicycle.automl.tables._table_model import TableModel
from epicycle.automl.tables._tables import source_name
from epicycle.core._history import History
from epicycle.core._random import stream
from epicycle.metrics import adjusted_rand_score, purity_score, silhouette_estimate, silhouette_samples
from epicycle.metrics._cluster_stability import verdict_of
from epicycle.neighbors import KNeighborsClassifier
from epicycle.stats._intervals import standard_error

#: Rows up to which all silhouettes are computed; a sample of them beyond.
_SILHOUETTE_ROWS, _SILHOUETTE_SAMPLE = 20_000, 2_000
#: Points of the embedding that are drawn.
_POINTS = 1_200
#: Skewness above which a few rows far out can make a cluster of their own.
_SKEWED = 3.0


class ClusterJob:
    """One clustering, step by step."""

    def __init__(
        self,
        table: pa.Table,
        encoder: TableEncoder,
        X: np.ndarray,
        profile: list[ColumnProfile],
        issues: list[DataIssue],
        methods: list[Method],
        k: int | None,
        labels: str | None,
        data: Any,
        seed: int,
        header: bool,
    ) -> None:
        self.table, self.encoder, self.X, self.profile, self.methods = table, encoder, X, profile, methods
        self.k, self.labels, self.data, self.seed, self.header = k, labels, data, seed, header
        self.issues = [*issues, *self._skewed()]

    def _skewed(self) -> list[DataIssue]:
        """Columns of numbers with a few rows far out."""
        names = []
        for j, (name, part) in enumerate(self.encoder._numbers_):
            values = self.X[:, j]
            spread = float(values.std())
            if not part and spread > 0 and abs(float((((values - values.mean()) / spread) ** 3).mean())) > _SKEWED:
                names.append(name)
        if not names:
            return []
        text = f"{', '.join(names[:6])}: skewed; a few rows far out can make a cluster of their own (take logarithms)"
        return [DataIssue("skewed", "low", text, tuple(names))]

    def run(self, budget: Budget, messages: Messages) -> ClusteringRun:
        found = search(self.X, self.encoder.sources_, self.methods, self.k, self.seed, budget, messages)
        messages.stage("fitting to all rows")
        for best in found.ranked():
            model, labels = self._fit(best)
            if len(np.unique(labels[labels >= 0])) > 1:
                break  # a method that finds the number of clusters may find none in all rows
        silhouettes, silhouette = self._silhouettes(labels)
        kinds = {p.name: p.kind for p in self.profile}
        mean, p_value = float(best.data.scores.mean()), found.p_value(best)
        run = ClusteringRun(
            model_=model,
            method=best.method.name,
            k=len(np.unique(labels[labels >= 0])),
            chosen=best.name,
            verdict=verdict_of(mean, p_value),
            reasons=[],
            labels=labels,
            silhouettes=silhouettes,
            silhouette=silhouette,
            clusters=cluster_profiles(self.table, kinds, labels, silhouettes),
            candidates=[_row(c) for c in found.candidates],
            p_value=p_value,
            stability={
                "adjusted_rand": mean,
                "standard_error": float(standard_error(best.data.scores)),
                "by_chance": float(np.mean([r.scores.mean() for r in best.references])),
            },
            agreement=self._agreement(labels),
            embedding=self._embedding(labels),
            profile=self.profile,
            warnings=self.issues,
            source=source_name(self.data),
            script=self._script(best),
            seed=self.seed,
            skipped=found.skipped,
        )
        run.reasons = _reasons(run, found, best, self.k)
        run.seconds = budget.spent()
        return run

    def _fit(self, best: Candidate) -> tuple[TableModel, np.ndarray]:
        """The model of all rows, and their clusters; a method that knows no other rows hands on to neighbours."""
        kinds = {p.name: p.kind for p in self.profile}
        estimator = best.method.make(best.k, self.seed)
        if best.method.predicts:
            model = TableModel(estimator, kinds, form="linear").fit_encoded(self.encoder, self.X, None)
            labels = np.asarray(model.model_.predict(self.X)).astype(np.int64)
        else:
            labels = np.asarray(estimator.fit_predict(self.X)).astype(np.int64)
            model = TableModel(KNeighborsClassifier(1), kinds, form="linear")
            model.fit_encoded(self.encoder, self.X, labels)
        _forget_the_clock(model.model_)
        return model, labels

    def _silhouettes(self, labels: np.ndarray) -> tuple[np.ndarray | None, dict[str, Any]]:
        inside = labels >= 0
        if len(np.unique(labels[inside])) < 2:
            return None, {"score": None, "lower": None, "upper": None}
        X, kept = self.X[inside], labels[inside]
        if len(labels) > _SILHOUETTE_ROWS:
            found = silhouette_estimate(X, kept, sample_size=_SILHOUETTE_SAMPLE, random_state=self.seed)
            return None, {"score": found.score, "lower": found.lower, "upper": found.upper}
        values = np.full(len(labels), np.nan)
        values[inside] = silhouette_samples(X, kept)
        score = float(values[inside].mean())
        return values, {"score": score, "lower": score, "upper": score}

    def _agreement(self, labels: np.ndarray) -> dict[str, Any] | None:
        if self.labels is None:
            return None
        classes = np.array(as_text(self.table[self.labels]).fill_null("").to_pylist())
        return {
            "column": self.labels,
            "adjusted_rand": adjusted_rand_score(classes, labels),
            "purity": purity_score(classes, labels),
        }

    def _embedding(self, labels: np.ndarray) -> dict[str, Any]:
        """Rows on their first two principal axes."""
        centred = self.X - self.X.mean(axis=0)
        values, axes = np.linalg.eigh(centred.T @ centred)
        axes = axes[:, ::-1][:, :2]
        # An axis has two directions: the one with the larger entries positive is taken.
        axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
        rows = np.arange(len(labels))
        if len(rows) > _POINTS:
            rows = np.sort(stream(self.seed, "embedding").choice(len(rows), _POINTS, replace=False))
        scores = centred[rows] @ axes
        if scores.shape[1] < 2:
            scores = np.column_stack([scores, np.zeros(len(rows))])
        shares = values[::-1][:2].clip(min=0) / max(float(values.sum()), 1e-300)
        return {
            "x": scores[:, 0].round(4).tolist(),
            "y": scores[:, 1].round(4).tolist(),
            "cluster": labels[rows].tolist(),
            "row": rows.tolist(),
            "explained": shares.tolist(),
        }

    def _script(self, best: Candidate) -> str:
        path: Any = None
        if isinstance(self.data, str | os.PathLike) and os.fspath(self.data) != "-":
            path = os.path.abspath(self.data) if os.path.exists(self.data) else os.fspath(self.data)
        columns = "".join(f"        {p.name!r}: {p.kind!r},\n" for p in self.profile)
        estimator = f"ep.{best.method.make(best.k, self.seed)!r}"
        fit = _FIT if best.method.predicts else _FIT_NEIGHBOURS.format(estimator=" ".join(estimator.split()))
        return _TEXT.format(
            what=best.name,
            data="None  # give the path of the table" if path is None else repr(path),
            estimator=" ".join(estimator.split()) if best.method.predicts else "ep.KNeighborsClassifier(1)",
            columns=columns,
            header="" if self.header else ", header=False",
            fit=fit,
        )


def _forget_the_clock(model: Any) -> None:
    """Take the times out of a fitted model: the same seed is to give the same file."""
    vars(model).pop("fit_seconds_", None)
    history = getattr(model, "history_", None)
    if isinstance(history, History):
        model.history_ = History(**{name: history[name] for name in history if name != "seconds"})


_TEXT = '''\
"""Reproduces the clustering of this folder ({what}): python cluster.py [DATA]"""

import sys

import epicycle as ep

DATA = {data}

model = ep.TableModel(
    {estimator},
    columns={{
{columns}    }},
    form="linear",
)

if __name__ == "__main__":
    table = ep.training.read_table(sys.argv[1] if len(sys.argv) > 1 else DATA{header})
{fit}    model.save("reproduced.epi")
'''
_FIT = "    model.fit(table)\n"
_FIT_NEIGHBOURS = """\
    encoder = model.new_encoder().fit(table)
    features = encoder.transform(table)
    model.fit_encoded(encoder, features, {estimator}.fit_predict(features))
"""


def _row(candidate: Candidate) -> dict[str, Any]:
    data, references = candidate.data, candidate.references
    return {
        "name": candidate.name,
        "method": candidate.method.name,
        "k": candidate.k or data.n_clusters,
        "stability": float(data.scores.mean()),
        "silhouette": float(data.silhouettes.mean()),
        "evidence": data.evidence,
        "evidence_error": float(standard_error(data.scores * data.silhouettes)),
        "by_chance": candidate.by_chance,
        "by_chance_range": [float(f(r.evidence for r in references)) for f in (min, max)],
        "beyond_chance": candidate.beyond_chance,
    }


def _found(candidate: Candidate) -> str:
    return candidate.name if candidate.k else f"{candidate.name} ({candidate.data.n_clusters} clusters)"


def _reasons(run: ClusteringRun, found: Found, best: Candidate, asked: int | None) -> list[str]:
    """Why this clustering, and what it is worth, in sentences."""
    reasons = []
    others = [c for c in found.ranked() if c is not best]
    evidence = (
        f"its stability times silhouette is {best.data.evidence:.2f}, against {best.by_chance:.2f} in tables without "
        "clusters"
    )
    same = [c for c in others if c.method is best.method]
    rest = [c for c in others if c.method is not best.method]
    first = f"{run.k} clusters as requested" if asked is not None else best.name
    beyond = "; no other number of clusters is as far above chance" if same else ""
    reasons.append(f"{first}: {evidence}{beyond}.")
    if same:
        reasons.append(f"Next is {same[0].name}, with {same[0].data.evidence:.2f} against {same[0].by_chance:.2f}.")
    if rest:
        words = f"{rest[0].data.evidence:.2f} against {rest[0].by_chance:.2f}"
        reasons.append(f"The best of other methods is {_found(rest[0])}, with {words}.")
    n = len(best.references)
    as_much = round(run.p_value * (n + 1)) - 1
    if run.verdict == "no better than chance":
        reasons.append(
            f"The same search finds as much in {as_much} of {n} tables without clusters: these clusters are no better "
            "than chance. They cut the rows into parts, and are no evidence of groups."
        )
    else:
        reasons.append(
            f"Two subsamples of the rows agree on the clusters with an adjusted Rand index of "
            f"{best.data.scores.mean():.2f} on average, which is {run.verdict}; none of {n} tables without clusters "
            f"gives as much (p = {run.p_value:.2g})."
        )
    if run.agreement is not None:
        reasons.append(
            f"Compared with {run.agreement['column']}, which was left out: adjusted Rand index "
            f"{run.agreement['adjusted_rand']:.2f}, purity {run.agreement['purity']:.2f}."
        )
    return reasons
