"""What the estimators refuse: the right error, in words that name the argument, and the estimator as it was before."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import epicycle as ep
from epicycle import LinearRegression, LogisticRegression, Ridge
from epicycle.exceptions import (
    ConvergenceError,
    DataError,
    DataFileError,
    DataTypeError,
    EpicycleError,
    NotFittedError,
    ParameterError,
    ParameterTypeError,
    SeparationError,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = RNG.normal(size=30)
LABELS = (Y > 0).astype(int)
ALL = (LinearRegression, Ridge, LogisticRegression)
REGRESSORS = (LinearRegression, Ridge)
CLASSIFIER = (LogisticRegression,)


def target(cls):
    return LABELS if cls is LogisticRegression else Y


def changed(value, dtype=float):
    table = X.astype(dtype)
    table[4, 1] = value
    return table


def frame(**columns):
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(**columns)


def with_target(index, value, dtype=float):
    y = Y.astype(dtype)
    y[index] = value
    return y


def weights(value):
    w = np.ones(30)
    w[7] = value
    return w


def dask_frame(npartitions=3):
    return dd.from_pandas(frame(y=Y), npartitions=npartitions)


def parquet(folder):
    frame(y=Y).to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def damaged(folder):
    (folder / "t.parquet").write_bytes(b"PAR1 but nothing else")
    return ep.scan(folder / "t.parquet", target="y")


def csv(folder, text):
    (folder / "t.csv").write_text(text)
    return ep.scan(folder / "t.csv", target="y")


# ------------------------------------------------------------------------------------------------ data for fit
# kind: (classes, make(cls) -> arguments of fit, error, words of the message)

FIT = {
    "NaN": (ALL, lambda c: (changed(np.nan), target(c)), DataError, ["Input X contains NaN", "row 4", "column 1"]),
    "infinity": (ALL, lambda c: (changed(-np.inf), target(c)), DataError, ["Input X contains infinity", "row 4"]),
    "NaN in float32": (ALL, lambda c: (changed(np.nan, np.float32), target(c)), DataError, ["X", "NaN"]),
    "strings": (ALL, lambda c: (X.astype(str), target(c)), DataTypeError, ["X", "strings"]),
    "a string among objects": (ALL, lambda c: (changed("5", object), target(c)), DataTypeError, ["X", "'5'"]),
    "ragged": (ALL, lambda c: ([[1.0, 2.0], [3.0]], [0, 1]), DataError, ["X", "inhomogeneous"]),
    "empty": (ALL, lambda c: (X[:0], target(c)[:0]), DataError, ["X", "0 sample(s)"]),
    "empty list": (ALL, lambda c: ([], []), DataError, ["X"]),
    "no features": (ALL, lambda c: (X[:, :0], target(c)), DataError, ["X", "0 feature(s)"]),
    "complex": (ALL, lambda c: (X + 1j, target(c)), DataTypeError, ["X", "Complex data not supported"]),
    "objects": (ALL, lambda c: (changed({}, object), target(c)), DataTypeError, ["X", "dict"]),
    "dates": (ALL, lambda c: (X.astype("datetime64[s]"), target(c)), DataTypeError, ["X", "dates"]),
    "huge integers": (ALL, lambda c: (changed(2**60, np.int64), target(c)), DataError, ["X", "2**53"]),
    "one-dimensional": (ALL, lambda c: (X[:, 0], target(c)), DataError, ["X", "Reshape your data"]),
    "three-dimensional": (ALL, lambda c: (X[None], target(c)), DataError, ["X", "dim 3"]),
    "a number": (ALL, lambda c: (3.0, target(c)), DataError, ["X", "Expected 2D array"]),
    "None": (ALL, lambda c: (None, target(c)), DataTypeError, ["X", "NoneType"]),
    "a path": (ALL, lambda c: ("t.csv", target(c)), DataTypeError, ["X", "ep.scan"]),
    "a dict": (ALL, lambda c: ({"a": [1]}, target(c)), DataTypeError, ["X", "dict"]),
    "np.matrix": (ALL, lambda c: (np.ones((30, 2)).view(np.matrix), target(c)), DataTypeError, ["X", "np.matrix"]),
    "sparse NaN": (ALL, lambda c: (sp.csr_array(changed(np.nan)), target(c)), DataError, ["X", "NaN"]),
    "sparse complex": (ALL, lambda c: (sp.csr_array(X + 1j), target(c)), DataTypeError, ["X", "Complex"]),
    "column of words": (ALL, lambda c: (frame(b=["w"] * 30), target(c)), DataTypeError, ["X", "column 'b'"]),
    "missing in a frame": (ALL, lambda c: (frame(b=[np.nan] + [1.0] * 29), target(c)), DataError, ["NaN", "'b'"]),
    "lazy frame": (ALL, lambda c: (pl.LazyFrame({"a": Y}), target(c)), DataTypeError, ["X", "collect()"]),
    "names of mixed type": (
        ALL,
        lambda c: (pd.DataFrame(X, columns=["a", 1, 2]), target(c)),
        DataTypeError,
        ["string names"],
    ),
    # ------------------------------------------------------------------ y
    "no y": (ALL, lambda c: (X,), DataError, ["requires y to be passed, but the target y is None"]),
    "y too short": (ALL, lambda c: (X, target(c)[:-1]), DataError, ["y", "inconsistent numbers of samples", "29"]),
    "y a number": (ALL, lambda c: (X, 3), DataTypeError, ["y should be a 1d array"]),
    "y NaN": (REGRESSORS, lambda c: (X, with_target(3, np.nan)), DataError, ["Input y contains NaN", "row 3"]),
    "y infinite": (REGRESSORS, lambda c: (X, with_target(3, np.inf)), DataError, ["Input y contains infinity"]),
    "y strings": (REGRESSORS, lambda c: (X, ["a"] * 30), DataTypeError, ["y", "strings"]),
    "y complex": (ALL, lambda c: (X, Y + 1j), DataTypeError, ["y", "Complex data not supported"]),
    "y of no columns": (REGRESSORS, lambda c: (X, np.empty((30, 0))), DataError, ["y", "no columns"]),
    "y in three dimensions": (ALL, lambda c: (X, np.ones((30, 1, 2))), DataError, ["y"]),
    "y sparse": (ALL, lambda c: (X, sp.csr_array(Y[:, None])), DataTypeError, ["y", "parse"]),
    "y of huge integers": (REGRESSORS, lambda c: (X, [2**60] * 30), DataError, ["y", "2**53"]),
    "labels that are continuous": (CLASSIFIER, lambda c: (X, Y), DataError, ["y", "Unknown label type", "continuous"]),
    "labels in two columns": (CLASSIFIER, lambda c: (X, np.ones((30, 2), int)), DataError, ["y should be a 1d array"]),
    "a missing label": (
        CLASSIFIER,
        lambda c: (X, np.array(["a", None] * 15, object)),
        DataError,
        ["y contains NaN", "row 1"],
    ),
    "labels of two kinds": (
        CLASSIFIER,
        lambda c: (X, np.array(["a", 1] * 15, object)),
        DataTypeError,
        ["y", "Unknown label type"],
    ),
    "one class": (CLASSIFIER, lambda c: (X, np.ones(30)), DataError, ["y", "only one class"]),
    "one class of weight": (
        CLASSIFIER,
        lambda c: (X, LABELS, LABELS.astype(float)),
        DataError,
        ["y", "positive weight"],
    ),
    # ------------------------------------------------------------------ sample_weight
    "negative weight": (ALL, lambda c: (X, target(c), weights(-1.0)), DataError, ["sample_weight", "-1", "row 7"]),
    "NaN weight": (ALL, lambda c: (X, target(c), weights(np.nan)), DataError, ["sample_weight", "NaN"]),
    "infinite weight": (ALL, lambda c: (X, target(c), weights(np.inf)), DataError, ["sample_weight", "infinity"]),
    "weights all zero": (ALL, lambda c: (X, target(c), np.zeros(30)), DataError, ["sample_weight", "zero"]),
    "weights too few": (ALL, lambda c: (X, target(c), np.ones(3)), DataError, ["sample_weight", "inconsistent"]),
    "weights as words": (ALL, lambda c: (X, target(c), "balanced"), DataTypeError, ["sample_weight", "str"]),
    "weights in columns": (ALL, lambda c: (X, target(c), np.ones((30, 2))), DataError, ["sample_weight", "(30, 2)"]),
    "complex weights": (ALL, lambda c: (X, target(c), np.ones(30) * 1j), DataTypeError, ["sample_weight", "Complex"]),
    # ------------------------------------------------------------------ Dask
    "Dask X, other y": (ALL, lambda c: (da.ones((30, 2), chunks=10), target(c)), DataTypeError, ["y", "Dask"]),
    "Dask y, other X": (ALL, lambda c: (X, da.ones(30)), DataTypeError, ["y", "Dask"]),
    "Dask without y": (ALL, lambda c: (da.ones((30, 2), chunks=10),), DataError, ["target y is None"]),
    "unknown divisions, other partitions": (
        ALL,
        lambda c: (dask_frame().clear_divisions()[["a", "b"]], dask_frame(2).clear_divisions()["y"]),
        DataError,
        ["y", "2 partitions", "X has 3"],
    ),
    "unknown divisions, other rows": (
        REGRESSORS,
        lambda c: (dask_frame().clear_divisions()[["a"]], dask_frame().clear_divisions().query("a > 0")["y"]),
        DataError,
        ["y", "inconsistent numbers of samples", "in partition"],
    ),
    "NaN in a partition": (
        REGRESSORS,
        lambda c: (da.from_array(changed(np.nan), chunks=(10, 3)), da.from_array(Y, chunks=10)),
        DataError,
        ["X contains NaN", "in partition 0"],
    ),
    "Dask of no columns": (ALL, lambda c: (da.ones((30, 0)), da.ones(30)), DataError, ["X", "0 feature(s)"]),
    # ------------------------------------------------------------------ overflow on the way
    "squares that overflow": (REGRESSORS, lambda c: (changed(1e200), Y), DataError, ["X", "overflow"]),
}


@pytest.mark.parametrize(("kind", "cls"), [(k, c) for k, row in FIT.items() for c in row[0]])
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_fit_refuses(kind, cls):
    _, make, error, words = FIT[kind]
    refused(cls(), make(cls), error, words)


def refused(model, arguments, error, words):
    """By an unfitted estimator, which stays so, and by a fitted one, which keeps its fit."""
    with pytest.raises(error) as caught:
        model.fit(*arguments)
    check_message(caught.value, words)
    assert set(vars(model)) == set(model.get_params())
    parameters = model.get_params()
    fitted = type(model)().fit(X, target(type(model)))
    before = dict(vars(fitted))
    usual = fitted.get_params()
    fitted.set_params(**parameters)
    with pytest.raises(error):
        fitted.fit(*arguments)
    assert {k: v for k, v in vars(fitted).items() if k not in parameters} == {
        k: v for k, v in before.items() if k not in parameters
    }
    fitted.set_params(**usual)  # predictions refuse n_jobs=0, too
    assert fitted.predict(X).shape == (30,)


def check_message(error, words):
    assert isinstance(error, EpicycleError)
    assert isinstance(error, ValueError | TypeError)
    for word in words:
        assert word in str(error), (word, str(error))


# ------------------------------------------------------------------------------------------------ files

SCANS = {
    "a missing file": (
        lambda d: ep.scan(d / "none.parquet"),
        DataFileError,
        ["paths", "none.parquet", "does not exist"],
    ),
    "no target column": (lambda d: ep.scan(parquet(d), target="z"), DataError, ["target='z'", "no such column"]),
    "no weight column": (lambda d: ep.scan(parquet(d), target="y", weight="w"), DataError, ["weight='w'"]),
    "no such features": (lambda d: ep.scan(parquet(d), columns=["a", "q"]), DataError, ["columns='q'"]),
    "a damaged file": (damaged, DataError, ["t.parquet"]),
    "words in a column": (lambda d: csv(d, "a,y\n1,2\nx,3\n"), DataError, ["a"]),
    "no rows": (lambda d: csv(d, "a,y\n"), DataError, ["t.csv"]),
    "only the target": (lambda d: csv(d, "y\n1\n2\n"), DataError, ["columns", "0 feature(s)"]),
}


@pytest.mark.parametrize("kind", SCANS)
@pytest.mark.parametrize("cls", ALL)
def test_scans(kind, cls, tmp_path):
    make, error, words = SCANS[kind]
    model = cls()
    with pytest.raises(error) as caught:
        model.fit(make(tmp_path))
    check_message(caught.value, words)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("cls", ALL)
def test_a_scan_brings_its_own_target(cls, tmp_path):
    path = parquet(tmp_path)
    for arguments, words in (
        ((ep.scan(path, target="y"), target(cls)), ["y"]),
        ((ep.scan(path, target="y"), None, np.ones(30)), ["sample_weight"]),
        ((ep.scan(path),), ["target"]),
    ):
        model = cls()
        with pytest.raises(DataError) as caught:
            model.fit(*arguments)
        check_message(caught.value, words)


@pytest.mark.parametrize("cls", ALL)
def test_nan_in_a_file(cls, tmp_path):
    table = frame(y=LABELS)
    table.loc[17, "b"] = np.nan
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"NaN[\s\S]*'b'"):
        cls().fit(ep.scan(tmp_path / "t.parquet", target="y"))
    np.save(tmp_path / "t.npy", table.to_numpy())
    with pytest.raises(DataError, match=r"NaN[\s\S]*row 17"):
        cls().fit(ep.scan(tmp_path / "t.npy", target=3))


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", ["tall", "wide", "several blocks"])
def test_nan_and_infinity_anywhere(cls, bad, shape):
    """Whatever the size, the layout, the solver, and even in a row without weight."""
    n, p = {"tall": (40, 3), "wide": (4, 9), "several blocks": (9000, 60)}[shape]
    table = np.random.default_rng(0).normal(size=(n, p))
    y = np.arange(n) % 2
    weight = np.ones(n)
    table[n - 2, p - 1], weight[n - 2] = bad, 0.0
    word = "NaN" if np.isnan(bad) else "infinity"
    at = rf"Input X contains {word}[\s\S]*row {n - 2}, column {p - 1}"
    solvers = ["auto", "newton"] if cls is LogisticRegression else ["auto", "qr", "cg"]
    for solver in solvers:
        for layout in (np.asarray, np.asfortranarray):
            for given in (None, weight):
                with pytest.raises(DataError, match=at):
                    cls(solver=solver).fit(layout(table), y, given)


# ------------------------------------------------------------------------------------------------ parameters

PARAMETERS = {
    "unknown solver": (ALL, {"solver": "simplex"}, ParameterError, ["solver='simplex'", "'newton'"]),
    "solver with a typo": (ALL, {"solver": "neuton"}, ParameterError, ["did you mean 'newton'"]),
    "solver of wrong type": (ALL, {"solver": 3}, ParameterTypeError, ["solver=3"]),
    "unknown option": (ALL, {"solver": "gd", "solver_options": {"pace": 1}}, ParameterError, ["'pace'", "step"]),
    "option of wrong type": (
        ALL,
        {"solver": "gd", "solver_options": {"step": "big"}},
        ParameterError,
        ["step", "'big'"],
    ),
    "option not finite": (ALL, {"solver": "gd", "solver_options": {"step": np.nan}}, ParameterError, ["step"]),
    "negative option": (ALL, {"solver": "sgd", "solver_options": {"batch_size": 0}}, ParameterError, ["batch_size"]),
    "options that are no dict": (ALL, {"solver": "gd", "solver_options": [1]}, ParameterTypeError, ["solver_options"]),
    "options without a solver": (ALL, {"solver_options": {"step": 1.0}}, ParameterError, ["solver_options"]),
    "tol zero": (CLASSIFIER, {"tol": 0.0}, ParameterError, ["tol=0.0", "> 0"]),  # regressions take it, as scikit-learn
    "tol negative": (ALL, {"tol": -1e-8}, ParameterError, ["tol"]),
    "tol NaN": (ALL, {"tol": np.nan}, ParameterError, ["tol=nan"]),
    "tol infinite": (ALL, {"tol": np.inf}, ParameterError, ["tol=inf"]),
    "tol a string": (ALL, {"tol": "1e-8"}, ParameterTypeError, ["tol='1e-8'"]),
    "max_iter negative": (ALL, {"max_iter": -1}, ParameterError, ["max_iter=-1", ">= "]),
    "max_iter a float": (ALL, {"max_iter": 10.0}, ParameterTypeError, ["max_iter=10.0", "integer"]),
    "max_iter None": (CLASSIFIER, {"max_iter": None}, ParameterTypeError, ["max_iter=None"]),
    "fit_intercept a string": (ALL, {"fit_intercept": "yes"}, ParameterTypeError, ["fit_intercept='yes'"]),
    "fit_intercept an integer": (ALL, {"fit_intercept": 1}, ParameterTypeError, ["fit_intercept=1"]),
    "random_state negative": (ALL, {"random_state": -1}, ParameterError, ["random_state=-1"]),
    "random_state a string": (ALL, {"random_state": "x"}, ParameterTypeError, ["random_state='x'"]),
    "n_jobs zero": (ALL, {"n_jobs": 0}, ParameterError, ["n_jobs=0"]),
    "n_jobs a float": (ALL, {"n_jobs": 1.5}, ParameterTypeError, ["n_jobs=1.5"]),
    "n_jobs a boolean": (ALL, {"n_jobs": True}, ParameterTypeError, ["n_jobs=True"]),
    "verbose negative": (ALL, {"verbose": -1}, ParameterError, ["verbose=-1"]),
    "verbose a string": (ALL, {"verbose": "loud"}, ParameterTypeError, ["verbose='loud'"]),
    "alpha negative": ((Ridge,), {"alpha": -1.0}, ParameterError, ["alpha=-1.0"]),
    "alpha NaN": ((Ridge,), {"alpha": np.nan}, ParameterError, ["alpha=nan"]),
    "alpha infinite": ((Ridge,), {"alpha": np.inf}, ParameterError, ["alpha=inf"]),
    "alpha a string": ((Ridge,), {"alpha": "1"}, ParameterTypeError, ["alpha='1'"]),
    "alpha of wrong length": ((Ridge,), {"alpha": [1.0, 2.0]}, ParameterError, ["alpha", "(2,)", "1 target"]),
    "alpha of two dimensions": ((Ridge,), {"alpha": [[1.0]]}, ParameterError, ["alpha", "(1, 1)"]),
    "alpha with NaN": ((Ridge,), {"alpha": [np.nan]}, ParameterError, ["alpha"]),
    "alpha with a negative": ((Ridge,), {"alpha": [-1.0]}, ParameterError, ["alpha"]),
    "alpha of words": ((Ridge,), {"alpha": ["a"]}, ParameterError, ["alpha"]),
    "alpha empty": ((Ridge,), {"alpha": []}, ParameterError, ["alpha"]),
    "C zero": (CLASSIFIER, {"C": 0.0}, ParameterError, ["C=0.0", "> 0"]),
    "C negative": (CLASSIFIER, {"C": -np.inf}, ParameterError, ["C=-inf"]),
    "C NaN": (CLASSIFIER, {"C": np.nan}, ParameterError, ["C=nan"]),
    "C a string": (CLASSIFIER, {"C": "1"}, ParameterTypeError, ["C='1'"]),
    "C complex": (CLASSIFIER, {"C": 1j}, ParameterTypeError, ["C=1j"]),
    "class_weight of an unknown class": (CLASSIFIER, {"class_weight": {7: 1.0}}, ParameterError, ["class_weight", "7"]),
    "class_weight zero": (CLASSIFIER, {"class_weight": {0: 0}}, ParameterError, ["class_weight"]),
    "class_weight negative": (CLASSIFIER, {"class_weight": {0: -2}}, ParameterError, ["class_weight[0]=-2"]),
    "class_weight a word": (CLASSIFIER, {"class_weight": "even"}, ParameterError, ["class_weight='even'", "balanced"]),
    "class_weight a list": (CLASSIFIER, {"class_weight": [1, 2]}, ParameterTypeError, ["class_weight=[1, 2]"]),
}


@pytest.mark.parametrize(("kind", "cls"), [(k, c) for k, row in PARAMETERS.items() for c in row[0]])
def test_parameters(kind, cls):
    _, parameters, error, words = PARAMETERS[kind]
    refused(cls(**parameters), (X, target(cls)), error, words)


@pytest.mark.parametrize("kind", [k for k, row in PARAMETERS.items() if row[0] == ALL])
def test_parameters_of_partial_fit(kind):
    _, parameters, error, words = PARAMETERS[kind]
    if "solver_options" in parameters:
        return  # partial_fit has one solver, which takes none
    with pytest.raises(error) as caught:
        LinearRegression(**parameters).partial_fit(X, Y)
    check_message(caught.value, words)


# ------------------------------------------------------------------------------------------------ predict

PREDICT = {
    "NaN": (lambda: changed(np.nan), DataError, ["Input X contains NaN"]),
    "infinity": (lambda: changed(np.inf), DataError, ["Input X contains infinity"]),
    "strings": (lambda: X.astype(str), DataTypeError, ["X", "strings"]),
    "complex": (lambda: X + 1j, DataTypeError, ["X", "Complex"]),
    "too few features": (lambda: X[:, :2], DataError, ["X has 2 features", "expecting 3 features as input"]),
    "too many features": (lambda: np.ones((4, 5)), DataError, ["X has 5 features", "expecting 3 features as input"]),
    "too few features, sparse": (lambda: sp.csr_array(X[:, :2]), DataError, ["X has 2 features"]),
    "too few features, Dask": (lambda: da.ones((30, 2), chunks=10), DataError, ["X has 2 features"]),
    "one-dimensional": (lambda: X[0], DataError, ["X", "Reshape your data"]),
    "empty": (lambda: X[:0], DataError, ["X", "0 sample(s)"]),
    "None": (lambda: None, DataTypeError, ["X", "NoneType"]),
    "a path": (lambda: "t.csv", DataTypeError, ["X", "ep.scan"]),
}


@pytest.mark.parametrize("kind", PREDICT)
@pytest.mark.parametrize("cls", ALL)
def test_predict_refuses(kind, cls):
    make, error, words = PREDICT[kind]
    model = cls().fit(X, target(cls))
    methods = ["predict"]
    if cls is LogisticRegression:
        methods += ["predict_proba", "predict_log_proba", "decision_function"]
    for method in methods:
        with pytest.raises(error) as caught:
            getattr(model, method)(make())
        check_message(caught.value, words)


@pytest.mark.parametrize("cls", ALL)
def test_feature_names_that_do_not_match(cls):
    model = cls().fit(frame(), target(cls))
    for wrong in (frame()[["b", "a", "c"]], frame().rename(columns={"c": "d"}), pl.DataFrame({"a": Y, "b": Y, "z": Y})):
        with pytest.raises(DataError, match="feature names should match those that were passed during fit"):
            model.predict(wrong)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


@pytest.mark.parametrize("cls", ALL)
def test_unfitted(cls):
    methods = ["predict", "score", *(["predict_proba", "decision_function"] if cls is LogisticRegression else [])]
    for method in methods:
        with pytest.raises(NotFittedError, match=cls.__name__):
            getattr(cls(), method)(*([X, target(cls)] if method == "score" else [X]))
    if hasattr(cls, "summary"):
        with pytest.raises(NotFittedError, match=cls.__name__):
            cls().summary()


# ------------------------------------------------------------------------------------------------ the rest


def test_partial_fit_keeps_what_it_had():
    model = LinearRegression().partial_fit(X, Y)
    before = model.coef_.copy()
    for arguments, words in (
        ((X[:, :2], Y), ["X has 2 features"]),
        ((changed(np.nan), Y), ["X contains NaN"]),
        ((X, Y[:-1]), ["y"]),
        ((X, np.column_stack([Y, Y])), ["y: has 2 target"]),
        ((X, Y, -np.ones(30)), ["sample_weight"]),
    ):
        with pytest.raises(DataError) as caught:
            model.partial_fit(*arguments)
        check_message(caught.value, words)
        assert np.array_equal(model.coef_, before)
    assert np.array_equal(model.partial_fit(X, Y).coef_.shape, before.shape)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1, 1.5, np.nan])
def test_summary_arguments(confidence):
    for model in (LinearRegression().fit(X, Y), LogisticRegression(C=np.inf).fit(X, LABELS)):
        with pytest.raises(ParameterError, match="confidence="):
            model.summary(confidence=confidence)
    for wrong in (1, -1, True):
        with pytest.raises(ParameterError, match="target="):
            LinearRegression().fit(X, Y).summary(target=wrong)


def test_separation_and_convergence_are_errors_of_ours():
    with ep.config(on_nonconvergence="raise"), pytest.raises(SeparationError, match="y: "):
        LogisticRegression(C=np.inf).fit(X, (X[:, 1] > 0).astype(int))
    with ep.config(on_nonconvergence="raise"), pytest.raises(ConvergenceError, match="LogisticRegression"):
        LogisticRegression(solver="gd", max_iter=1).fit(X, LABELS)


def test_there_are_at_least_forty_kinds():
    assert len({*FIT, *SCANS, *PARAMETERS, *(f"predict {kind}" for kind in PREDICT)}) >= 100
