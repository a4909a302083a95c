"""``epicycle demo``: three models on the real data sets that come with scikit-learn, each with the proof of its fit."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import epicycle as ep

__all__ = ["run_demo"]

console = Console(highlight=False, soft_wrap=True)


def run_demo(output: Path | None) -> None:
    """Fit, print, save, reload and compare; `output` keeps the model file, otherwise it is temporary."""
    console.print(Text(f"epicycle {ep.__version__}: three models, each with the proof of its fit", style="bold"))
    regression()
    classifier, rows = classification()
    if output is not None:
        same = round_trip(classifier, rows, output)
    else:
        with tempfile.TemporaryDirectory() as folder:
            same = round_trip(classifier, rows, Path(folder) / "demo.epi")
    if not same:
        raise typer.Exit(1)


def regression() -> None:
    """Least squares and ridge side by side: what the penalty does to correlated columns."""
    X_train, X_test, y_train, y_test = halves(load_diabetes(scaled=False))
    heading(1, "LinearRegression and Ridge", f"diabetes, {X_train.shape[0]} patients, progression after one year")
    linear = ep.LinearRegression().fit(X_train, y_train)
    ridge = ep.Ridge(alpha=100.0).fit(X_train, y_train)

    summary = linear.summary()
    shrunk = dict(zip(X_train.column_names, ridge.coef_, strict=True)) | {"intercept": ridge.intercept_}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for column in ("least squares", "std err", "t", "P>|t|", "ridge"):
        table.add_column(column, justify="right")
    numbers = zip(*(summary[name] for name in ("coef", "std err", "t", "P>|t|")), strict=True)
    for name, (coef, error, t, p) in zip(summary.rows, numbers, strict=True):
        table.add_row(name, f"{coef:.3f}", f"{error:.3f}", f"{t:.2f}", f"{p:.4f}", f"{shrunk[name]:.3f}")
    console.print(table)
    for model in (linear, ridge):
        report(model, f"{model!r:.40}: R2 {model.score(X_test, y_test):.3f} on {len(y_test)} others")


def classification() -> tuple[Any, Any]:
    """Two classes in a pipeline, then ten classes of images. Returns the pipeline and rows to try it on."""
    X_train, X_test, y_train, y_test = halves(load_breast_cancer())
    heading(2, "LogisticRegression, two classes", f"breast cancer, {X_train.shape[0]} tumours x {X_train.shape[1]}")
    pipeline = make_pipeline(StandardScaler(), ep.LogisticRegression())
    pipeline.fit(X_train, y_train)
    report(pipeline[-1], f"in a pipeline: {pipeline.score(X_test, y_test):.1%} of {len(y_test)} others are right")

    D_train, D_test, d_train, d_test = halves(load_digits())
    heading(3, "LogisticRegression, ten classes", f"digits, {D_train.shape[0]} images of 8 x 8 pixels")
    digits = ep.LogisticRegression(C=0.01).fit(D_train, d_train)
    report(digits, f"{digits.score(D_test, d_test):.1%} of {len(d_test)} others are right")
    return pipeline, X_test


def round_trip(model: Any, rows: Any, path: Path) -> bool:
    """Save, load and predict again: the same bits, or the demo fails."""
    heading(4, "Model file", "JSON and arrays in a zip, nothing in it is ever executed")
    ep.save(model, path)
    same = np.array_equal(ep.load(path).predict_proba(rows), model.predict_proba(rows))
    verdict = "identical" if same else "DIFFERENT"
    console.print(f"   {path.name}, {path.stat().st_size} bytes, reloaded: {len(rows)} predictions {verdict}")
    return same


def halves(bunch: Any) -> tuple[pa.Table, pa.Table, np.ndarray, np.ndarray]:
    """Three quarters to fit, a quarter to test, as tables with the names of the columns."""
    X_train, X_test, y_train, y_test = train_test_split(bunch.data, bunch.target, random_state=0)
    names = [str(name) for name in bunch.feature_names]
    return pa.table(list(X_train.T), names), pa.table(list(X_test.T), names), y_train, y_test


def heading(number: int, title: str, subject: str) -> None:
    console.print(Text.assemble(f"\n{number}. ", (title, "bold"), f": {subject}"))


def report(model: Any, result: str) -> None:
    """The score, the certificate in words, and what the iterations did."""
    certificate, history = model.certificate_, model.history_
    console.print(f"   {result}", markup=False)
    console.print(f"     certificate  {certificate}", markup=False)
    if certificate.meaning:
        console.print(f"                  {certificate.meaning}", markup=False)
    count = "1 iteration" if history.n_iter == 1 else f"{history.n_iter} iterations"
    path = f"objective {history.objective[-1]:.6g}"
    if history.n_iter > 1:
        path = f"objective {history.objective[0]:.6g} -> {history.objective[-1]:.6g}"
    console.print(f"     history      {count}, {path}, {1e3 * model.fit_seconds_:.1f} ms", markup=False)
