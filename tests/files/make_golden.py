"""Write the golden files of this release: ``python tests/files/make_golden.py``.

A golden file is a model as this release writes it, with an input and the numbers that came out. Every later release
has to load it and give the same numbers, so files are only ever added: one that exists is left alone.
Run it once before a release, and when a class joins the allow-list.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse

import epicycle
from epicycle import Certificate, History
from epicycle.io import save

HERE = Path(__file__).parent
FOLDER = HERE / "golden"
N_ROWS = 6
NUMERIC = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def main() -> None:
    """Write what is missing of this release."""
    sys.path.insert(0, str(HERE))
    import zoo

    folder = FOLDER / epicycle.__version__
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "values", values(), None, None)
    for case in zoo.cases():
        if case.name != "target_transformer":  # holds a class of the tests
            write(folder / case.name, case.model, case.method, case.X)
    for name, model, method, X in estimators(zoo):
        write(folder / name, model, method, X)


def values() -> dict:
    """One of every kind of value. Never change it: it is compared with what old releases wrote."""
    objects = np.array(["a", None, 3, 2.5], dtype=object).reshape(2, 2)
    matrix = scipy.sparse.csr_array(np.diag([1.0, 2.0, 3.0]))
    wide = scipy.sparse.csc_matrix(np.diag([1.0, 2.0]))
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return {
        "plain": [None, True, -7, 2**100, 0.1, -0.0, float("nan"), float("-inf"), 1 - 2j, "Grüße", b"\x00\xff"],
        "containers": [(1, (2,)), {"a": 1}, {1: "a", (2, None): "b"}, {1, 2}, frozenset({"x"})],
        "bounds": [slice(1, None), range(3)],
        "numbers": [np.arange(6).reshape(2, 3).astype(kind) for kind in NUMERIC],
        "layouts": [np.array(2.5), np.zeros((0, 3)), np.asfortranarray(np.arange(6.0).reshape(2, 3))],
        "text": [np.array(["ab", "c"]), np.array([b"x", b"yz"]), objects],
        "times": [np.array(["2020-02-29", "NaT"], dtype="M8[D]"), np.array([5], dtype="m8[25s]")],
        "scalars": [np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("s"), np.datetime64(3, "ns")],
        "sparse": [matrix, wide],
        "names": [float, np.float64, np.dtype("f4"), np.dtype(object), np.log1p],
        "certificate": Certificate("duality gap", 1e-9, 1e-8, "close"),
        "history": History(objective=[3.0, 2.0], seconds=[0.0, 0.5]),
    }


def estimators(zoo) -> list[tuple]:
    """The estimators of this release, alone and at the end of a pipeline."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    table, y = zoo.iris()
    X, labels = table[zoo.NUMBERS[:3]], table["species"].to_numpy(dtype=object)
    linear, ridge = epicycle.LinearRegression().fit(X, y), epicycle.Ridge(alpha=0.5).fit(X, y)
    logistic = epicycle.LogisticRegression().fit(X, labels)
    binary = epicycle.LogisticRegression().fit(X, labels == "setosa")
    pipeline = make_pipeline(StandardScaler(), epicycle.Ridge(alpha=0.5)).fit(X, y)
    return [
        ("linear_regression", linear, "predict", X),
        ("linear_regression_two_targets", epicycle.LinearRegression().fit(X, np.c_[y, 2 * y]), "predict", X),
        ("ridge", ridge, "predict", X),
        ("logistic_regression", logistic, "predict_proba", X),
        ("logistic_regression_labels", logistic, "predict", X),
        ("logistic_regression_binary", binary, "predict_proba", X),
        ("ridge_pipeline", pipeline, "predict", X),
    ]


def write(path: Path, model: object, method: str | None, X: object) -> None:
    """The pair ``path.epi``, ``path.json``, unless it exists."""
    if path.with_suffix(".epi").exists():
        return
    record = {"method": method}
    if method is not None:
        X = X[:: max(1, len(X) // N_ROWS)]
        record |= {"input": as_json(X), "expected": as_json(dense(getattr(model, method)(X)))}
    save(model, path.with_suffix(".epi"))
    path.with_suffix(".json").write_text(json.dumps(record) + "\n")
    print(path)


def dense(result: object) -> np.ndarray:
    """A result as an array."""
    return result.toarray() if scipy.sparse.issparse(result) else np.asarray(result)


def as_json(X: object) -> dict:
    """A table, array or list of tuples as JSON, with NaN as null."""
    if isinstance(X, pd.DataFrame):
        return {"frame": {name: as_json(X[name].to_numpy()) for name in X}}
    if isinstance(X, list):
        return {"rows": X}
    X = np.asarray(X)
    flat = [None if value != value else value for value in X.ravel().tolist()]
    return {"dtype": X.dtype.str, "shape": X.shape, "values": flat}


def from_json(record: dict) -> object:
    """What `as_json` was given."""
    if "frame" in record:
        return pd.DataFrame({name: from_json(column) for name, column in record["frame"].items()})
    if "rows" in record:
        return [tuple(row) for row in record["rows"]]
    flat = [np.nan if value is None else value for value in record["values"]]
    return np.array(flat, dtype=record["dtype"]).reshape(record["shape"])


if __name__ == "__main__":
    main()
