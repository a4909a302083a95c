"""Full records made by the library's own functions, as training makes them; also an example of how to fill one."""

from __future__ import annotations

import platform
import time
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

import epicycle as ep
from epicycle import diagnose, select, theory
from epicycle.report import curves


def profile(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A line for every column, with its histogram."""
    found = []
    for name, column in table.items():
        counts, edges = np.histogram(column, bins=20)
        found.append(
            {
                "name": name,
                "kind": "number",
                "missing": float(column.isna().mean()),
                "distinct": int(column.nunique()),
                "treatment": "standardised",
                "warnings": [],
                "sketch": {"edges": edges, "counts": counts},
            }
        )
    return found


def search_of(models: dict[str, Any], X: Any, y: Any, scoring: str) -> tuple[select.Selection, list[dict[str, Any]]]:
    """Cross-validation that notes when each model was done."""
    began, seen, points = time.perf_counter(), {}, []

    def note(name: str, fold: int, score: float) -> None:
        seen.setdefault(name, []).append(score)
        if len(seen[name]) == 5:
            points.append({"seconds": time.perf_counter() - began, "name": name, "score": float(np.mean(seen[name]))})

    return select.k_fold(models, X, y, cv=5, scoring=scoring, n_jobs=1, on_score=note), points


def leaderboard(found: select.Selection) -> list[dict[str, Any]]:
    """The models from best to worst."""
    names, scores, errors, seconds = (found.columns[key] for key in ("model", "score", "std_error", "seconds"))
    return [
        {"name": name, "score_mean": score, "score_se": error, "seconds": taken, "n_folds": 5, "status": "done"}
        for name, score, error, taken in zip(names, scores, errors, seconds, strict=True)
    ]


def common(
    X: pd.DataFrame, train: Any, test: Any, found: select.Selection, points: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "created": "2026-11-15 12:00",
        "columns": profile(X),
        "leaderboard": leaderboard(found),
        "best": found.best,
        "plan": [
            f"{len(test)} rows were set aside first, and looked at once.",
            "Columns of numbers were standardised.",
            "Every model was scored by cross-validation in 5 folds; the best one was fitted to all training rows.",
        ],
        "environment": {
            "python": platform.python_version(),
            "epicycle": ep.__version__,
            "numpy": np.__version__,
            "seed": 0,
        },
        "reproduce": "import epicycle as ep\n\nX, y = ...\nmodel = ep.LogisticRegression(C=1.0).fit(X, y)\n",
    }


@cache
def classification() -> dict[str, Any]:
    """Breast cancer: two classes, every section of the page."""
    table, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = table.iloc[:, 20:]
    malignant = (y == 0).to_numpy()
    X_train, X_test, y_train, y_test = train_test_split(X, malignant, test_size=0.3, random_state=0, stratify=malignant)
    centre, spread = X_train.mean(), X_train.std()
    A, B = (X_train - centre) / spread, (X_test - centre) / spread
    models = {
        "logistic regression": (ep.LogisticRegression(), {"C": [0.1, 1.0, 10.0]}),
        "decision tree": ep.DecisionTreeClassifier(max_depth=4),
        "random forest": ep.RandomForestClassifier(n_estimators=30, n_jobs=1),
        "nearest neighbours": ep.KNeighborsClassifier(n_neighbors=15),
    }
    found, points = search_of(models, A, y_train, "accuracy")
    model = found.model_
    forest = ep.RandomForestClassifier(n_estimators=30, random_state=0, n_jobs=1).fit(A, y_train)
    probability, predicted = model.predict_proba(B)[:, 1], model.predict(B)
    bound = theory.test_bound(predicted != y_test, sides=2)
    groups = {"size": [0, 2, 3], "shape": [4, 5, 6, 7, 8, 9], "texture": [1]}
    cut = diagnose.threshold(model, A, y_train, costs=(1, 5), n_jobs=1)
    slices = diagnose.slices(model, A, y_train, features=X_train, loss="log_loss", max_slices=5, n_jobs=1)
    findings = {
        "bias_variance": diagnose.bias_variance(model, A, y_train, desired=forest, n_jobs=1).to_dict(),
        "optimizer_or_objective": diagnose.optimizer_or_objective(
            model,
            ep.LogisticRegression(C=100.0).fit(A, y_train),
            B,
            y_test,
            X_train=A,
            y_train=y_train,
            names=("the best", "C=100"),
        ).to_dict(),
        "ablation": diagnose.ablation(model, A, y_train, groups, n_jobs=1).to_dict(),
        "slices": {**slices.to_dict(), "examples": slices.worst_rows},
        "threshold": cut.to_dict(),
    }
    shuffled = permutation_importance(model, B, y_test, n_repeats=5, random_state=0)
    columns = profile(X)
    columns[2]["warnings"] = ["correlation of 0.99 with worst radius"]
    return {
        **common(X, X_train, X_test, found, points),
        "title": "Breast cancer: malignant or not",
        "data": {
            "rows": len(X),
            "columns": X.shape[1],
            "source": "breast_cancer",
            "target": "malignant",
            "task": "classification",
            "split": {"train": len(A), "test": len(B)},
        },
        "columns": columns,
        "warnings": [
            {
                "kind": "near_duplicates",
                "severity": "medium",
                "columns": ["worst radius", "worst perimeter", "worst area"],
                "text": "These columns say nearly the same. Predictions do not suffer; coefficients are hard to read.",
            },
            {"kind": "classes", "severity": "low", "text": "37% of the rows are positive.", "columns": ["malignant"]},
        ],
        "baseline": {"name": "most frequent class", "score_mean": float(1 - y_train.mean()), "score_se": None},
        "metric": {"name": "accuracy", "greater_is_better": True, "label": "accuracy"},
        "test": {
            "score": 1 - bound.estimate,
            "lower": 1 - bound.upper,
            "upper": 1 - bound.lower,
            "level": bound.level,
            "method": bound.method,
            "n": bound.n,
            "baseline_score": float(1 - y_test.mean()),
        },
        "certificate": model.certificate_,
        "findings": [{"slot": slot, **finding} for slot, finding in findings.items()],
        "curves": {
            "calibration": curves.calibration(y_test, probability),
            "roc": curves.roc(y_test, probability),
            "precision_recall": curves.precision_recall(y_test, probability),
            "confusion": curves.confusion(
                np.where(y_test, "malignant", "benign"), np.where(predicted, "malignant", "benign")
            ),
            "threshold": curves.operating_points(y_test, probability, chosen=cut.threshold, default=0.5),
            "importances": curves.importances(list(X), shuffled.importances),
            "search": points,
        },
        "explanations": explanations(),
        "groups": rates_by_group(),
        "worst_rows": {"row of the file": [41, 297], "loss": [3.2, 2.9], "target": ["benign", "malignant"]},
        "skipped": {"ablation": "skipped: out of time", "optimizer_or_objective": "not needed: no linear model"},
    }


def explanations() -> dict[str, Any]:
    """Partial dependence, a surrogate tree with long conditions, and a waterfall with steps that are not listed."""

    def node(condition: str, mean: float, share: float, *children: dict[str, Any]) -> dict[str, Any]:
        return {"condition": condition, "mean": mean, "share": share, "children": list(children)}

    levels = "worst concave points in {" + ", ".join(f"level {k} of many" for k in range(8)) + "}"
    large = node("worst area > 880", 0.93, 0.3, node(levels, 0.8, 0.1), node(f"not {levels}", 0.99, 0.2))
    parts = [{"name": f"column {k}", "value": f"{k}.5", "mean": 0.1 / (k - 2.5), "se": 0.01} for k in range(10)]
    row = {"title": "Worst row, number 41 of the file", "of": "p(malignant)", "target": "benign", "start": 0.37}
    return {
        "partial_dependence": [
            {
                "name": "worst area",
                "of": "p(malignant)",
                "x": [1.0, 2.0, 3.0],
                "mean": [0.2, 0.4, 0.7],
                "lines": [[0.1] * 3],
            }
        ],
        "surrogate": {"of": "p(malignant)", "fidelity": 0.83, "root": node("", 0.37, 1.0, node("b", 0.1, 0.7), large)},
        "contributions": {"rows": [{**row, "end": 0.81, "contributions": parts}]},
    }


def rates_by_group() -> dict[str, Any]:
    """Shares of two groups."""
    rate = {"value": 0.0175, "lower": 0.00482, "upper": 0.0617, "rows": 114}
    rows = [{"group": name, "rows": 114, "rates": {"recall of malignant": rate}} for name in ("left", "right")]
    verdict = "No two groups of side lie clearly apart on the test rows."
    return {"column": "side", "kind": "share", "rates": ["recall of malignant"], "groups": rows, "verdict": verdict}


@cache
def regression() -> dict[str, Any]:
    """Diabetes: a number to predict, a score that is better when smaller."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    A, B, y_train, y_test = train_test_split(X, y.to_numpy(), test_size=0.3, random_state=0)
    models = {
        "ridge": (ep.Ridge(), {"alpha": [0.01, 0.1, 1.0]}),
        "lasso": ep.Lasso(alpha=0.5),
        "decision tree": ep.DecisionTreeRegressor(max_depth=3),
    }
    found, points = search_of(models, A, y_train, "neg_mean_absolute_error")
    rows = [{**row, "score_mean": -row["score_mean"]} for row in leaderboard(found)]
    predicted = found.model_.predict(B)
    losses = np.abs(predicted - y_test)
    bound = theory.test_bound(losses, sides=2, bounds=(0, float(np.ptp(y_train))))
    finding = diagnose.bias_variance(found.model_, A, y_train, desired=0.5, n_jobs=1).to_dict()
    return {
        **common(X, A, B, found, points),
        "data": {
            "rows": len(X),
            "columns": X.shape[1],
            "source": "diabetes",
            "target": "disease progression",
            "task": "regression",
            "split": {"train": len(A), "test": len(B)},
        },
        "leaderboard": rows,
        "baseline": {"name": "mean of the target", "score_mean": float(np.abs(y_train - y_train.mean()).mean())},
        "metric": {"name": "mean_absolute_error", "greater_is_better": False, "label": "mean absolute error"},
        "test": {
            "score": bound.estimate,
            "lower": bound.lower,
            "upper": bound.upper,
            "level": bound.level,
            "method": bound.method,
            "n": bound.n,
            "baseline_score": float(np.abs(y_test - y_train.mean()).mean()),
        },
        "certificate": found.model_.certificate_,
        "findings": [{"slot": "bias_variance", **finding}],
        "curves": {
            "residuals": curves.residuals(y_test, predicted),
            "search": [{**point, "score": -point["score"]} for point in points],
        },
    }


@cache
def clustering() -> dict[str, Any]:
    """Three clusters of the rows of a small table, and rows that belong to none."""
    rng = np.random.default_rng(0)
    labels = np.repeat([2, 0, 1, -1], [40, 30, 20, 3])
    values = np.sort(rng.uniform(-0.1, 0.8, size=(3, 20)))[:, ::-1]
    evidence = [0.3, 0.55, 0.4, 0.2]
    return {
        "title": "Clusters of a table",
        "data": {"rows": 93, "columns": 2, "source": "table.csv", "task": "clustering"},
        "clustering": {
            "method": "KMeans",
            "k": 3,
            "chosen": "KMeans, 3 clusters",
            "rows": 93,
            "verdict": "stable",
            "reasons": ["KMeans, 3 clusters: its stability times silhouette is 0.55, against 0.2."],
            "p_value": 0.05,
            "stability": {"adjusted_rand": 0.97, "by_chance": 0.6},
            "silhouette": {"score": 0.5},
            "agreement": {"column": "kind", "adjusted_rand": 0.9},
            "clusters": [
                {
                    "cluster": c,
                    "rows": n,
                    "share": n / 93,
                    "silhouette": 0.5,
                    "summary": "very high age, low fare",
                    "details": "age 54.1 against 38.2 overall; fare 12.0 against 32.0 overall",
                }
                for c, n in ((2, 40), (0, 30), (1, 20), (-1, 3))
            ],
            "candidates": [
                {
                    "name": f"KMeans, {k} clusters",
                    "method": "KMeans",
                    "k": k,
                    "stability": 0.9,
                    "silhouette": e / 0.9,
                    "evidence": e,
                    "by_chance": 0.2,
                    "by_chance_range": [0.1, 0.3],
                    "beyond_chance": e - 0.2,
                }
                for k, e in zip(range(2, 6), evidence, strict=True)
            ],
            "skipped": ["KMeans, 6 clusters: the time was up"],
            "embedding": {
                "x": rng.normal(size=93),
                "y": rng.normal(size=93),
                "cluster": labels,
                "row": np.arange(93),
                "explained": [0.5, 0.25],
            },
            "outlines": [
                {"cluster": c, "rows": 20, "at": list(range(20)), "values": v}
                for c, v in zip((2, 0, 1), values, strict=True)
            ],
            "certificate": {"kind": "stationarity", "value": 0.0, "tolerance": 1e-4, "meaning": "movement of centers"},
        },
    }


@cache
def topics() -> dict[str, Any]:
    """Planted topics of texts, one of which grows over the years."""
    rng = np.random.default_rng(0)
    themes = [
        "goal team match league coach player",
        "vote law party senate court judge",
        "stock market bank trade profit",
    ]
    rows = []
    for i in range(240):
        mix = rng.dirichlet([0.03 + 0.1 * (i // 40), 0.1, 0.1])
        body = [rng.choice(themes[rng.choice(3, p=mix)].split()) for _ in range(30)]
        rows.append({"year": 1990 + i // 40, "body": " ".join(body)})
    return ep.topic_table(pd.DataFrame(rows), "body", time="year", topics=3, progress=False).record()
