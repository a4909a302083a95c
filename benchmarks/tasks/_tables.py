"""Tables to compare held-out quality on: those that scikit-learn ships, and public ones where their files are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Table", "tables"]


class Table(NamedTuple):
    """Features as numbers, codes for levels and NaN for what is missing; targets; and which columns are categories."""

    X: np.ndarray
    y: np.ndarray
    categorical: np.ndarray
    classes: int  # 0 for numbers


def tables(quick: bool, *, every: bool = False) -> Iterator[tuple[str, Table]]:
    """Tables that are there, by name; public ones from the folder EPICYCLE_DATA, or shared/data at the checkout.

    With `every` the further ones too, many of which are small.
    """
    yield from _bundled(quick)
    if quick:
        return
    if every:
        from sklearn import datasets

        yield "iris", _plain(*datasets.load_iris(return_X_y=True), 3)
    checkout = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("EPICYCLE_DATA", checkout.parent / "shared" / "data"))
    for name, (file, read) in (_PUBLIC | (_FURTHER if every else {})).items():
        if (folder / file).exists():
            yield name, read(folder / file)


def _bundled(quick: bool) -> Iterator[tuple[str, Table]]:
    from sklearn import datasets

    for name, classes in (("breast_cancer", 2), ("digits", 10), ("wine", 3), ("diabetes", 0)):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield name, _plain(X, y, classes)
    n = 2_000 if quick else 20_000
    X, y = datasets.make_friedman1(n, n_features=10, noise=1.0, random_state=0)
    yield "friedman", _plain(X, y, 0)
    X, y = datasets.make_classification(
        n, n_features=20, n_informative=8, n_clusters_per_class=4, flip_y=0.1, random_state=0
    )
    yield "clusters", _plain(X, y, 2)


def _plain(X: Any, y: Any, classes: int) -> Table:
    X = np.asarray(X, np.float64)
    return Table(X, np.asarray(y, np.float64), np.zeros(X.shape[1], bool), classes)


def _csv(
    target: str,
    *,
    classes: int = 0,
    drop: tuple[str, ...] = (),
    levels: tuple[str, ...] = (),
    change: Callable[[Any], Any] = lambda y: y,
) -> Callable[[Path], Table]:
    def read(path: Path) -> Table:
        import pandas as pd

        frame = pd.read_csv(path, na_values=["?"], encoding="utf-8-sig").drop(columns=list(drop))
        y = change(frame.pop(target))
        y = pd.factorize(y, sort=True)[0] if classes else y
        text = np.array([not pd.api.types.is_numeric_dtype(frame[n].dtype) or n in levels for n in frame.columns])
        for name in frame.columns[text]:
            codes = pd.factorize(frame[name], sort=True)[0].astype(np.float64)
            frame[name] = np.where(codes < 0, np.nan, codes)
        return Table(frame.to_numpy(np.float64), np.asarray(y, np.float64), text, classes)

    return read


def _npz(*parts: tuple[str, str], classes: int) -> Callable[[Path], Table]:
    def read(path: Path) -> Table:
        with np.load(path) as stored:
            X = np.vstack([stored[x].reshape(len(stored[x]), -1) for x, _ in parts])
            y = np.concatenate([stored[y] for _, y in parts])
        return _plain(X, np.unique(y, return_inverse=True)[1], classes)

    return read


_PUBLIC: dict[str, tuple[str, Callable[[Path], Table]]] = {
    "adult": ("adult_train.csv.gz", _csv("income", classes=2)),
    "ames": ("ames_housing.csv.gz", _csv("SalePrice", drop=("Order", "PID"), change=np.log)),
    "bike_sharing": (
        "bike_sharing_hour.csv.gz",
        _csv("cnt", drop=("instant", "dteday", "casual", "registered"), change=np.log1p),
    ),
    "california": ("california_housing.csv.gz", _csv("median_house_value", change=lambda y: y / 1e5)),
    "covertype": ("covertype_15k.npz", _npz(("X", "y"), classes=7)),
    "higgs": ("higgs_7k.npz", _npz(("X_train", "y_train"), ("X_test", "y_test"), classes=2)),
    "spambase": ("spambase.csv.gz", _csv("spam", classes=2)),
    "titanic": ("titanic_train.csv.gz", _csv("Survived", classes=2, drop=("PassengerId", "Name", "Ticket", "Cabin"))),
    "wine_quality": ("wine_quality.csv.gz", _csv("quality")),
}
#: Tables for comparisons that take each as it is: few rows, many columns, rare classes, ids of many levels.
_FURTHER: dict[str, tuple[str, Callable[[Path], Table]]] = {
    "bike_day": ("bike_sharing_day.csv.gz", _csv("cnt", drop=("instant", "dteday", "casual", "registered"))),
    "bone": ("esl_bone.csv.gz", _csv("spnbmd")),
    "boston": ("boston_housing.csv.gz", _csv("MEDV")),
    "fraud": ("creditcard_fraud_sample.csv.gz", _csv("Class", classes=2)),
    "galaxy": ("esl_galaxy.csv.gz", _csv("velocity")),
    "mammography": ("mammography.csv.gz", _csv("class", classes=2)),
    "movielens": ("movielens_small_ratings.csv.gz", _csv("rating", drop=("timestamp",), levels=("userId", "movieId"))),
    "saheart": ("esl_saheart.csv.gz", _csv("chd", classes=2)),
    "shuttle": ("shuttle.csv.gz", _csv("anomaly", classes=2)),
    "usps": ("usps.npz", _npz(("x_train", "y_train"), ("x_test", "y_test"), classes=10)),
    "vowel": ("esl_vowel_train.csv.gz", _csv("y", classes=11)),
}
