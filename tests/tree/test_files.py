"""Trees from files: text columns as categories, what is missing, and the memory that it takes."""

import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

import epicycle as ep
from epicycle import (
    ExtraTreesClassifier,
    GeneralizedLinearModel,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from epicycle.exceptions import DataError, DataTypeError, EpicycleWarning

N = 700
WORDS = np.array(["north", "south", "east", "west", "10", None], object)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    words = WORDS[rng.integers(0, 6, N)]
    whole = rng.integers(0, 6, N).astype(object)
    whole[rng.random(N) < 0.2] = None
    x = rng.normal(size=N)
    x[rng.random(N) < 0.1] = np.nan
    effect = np.array([{"east": 2.0, "10": -1.0}.get(word, 0.0) for word in words])
    y = np.nan_to_num(x) + effect + rng.normal(size=N) / 5
    return pd.DataFrame(
        {"x": x, "where": words, "n": pd.array(whole, dtype="Int64"), "nothing": np.full(N, np.nan), "y": y}
    )


def in_memory(frame):
    return frame.assign(where=frame["where"].astype("category"), n=frame["n"].astype(float)).drop(columns="y")


def write(frame, path, kind):
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "category":
        frame.assign(where=frame["where"].astype("category")).to_parquet(path)
    else:
        getattr(frame, f"to_{kind}")(path)


def scan_of(frame, folder, kind, **options):
    """Two files, the second of which has levels that the first has not."""
    order = np.argsort(frame["where"].fillna("").to_numpy(str), kind="stable")
    frame = frame.iloc[order].reset_index(drop=True)
    ending = {"category": "parquet"}.get(kind, kind)
    for i, part in enumerate((frame.iloc[:300], frame.iloc[300:])):
        write(part.reset_index(drop=True), folder / f"part-{i}.{ending}", kind)
    return ep.scan(folder / f"part-*.{ending}", target="y", batch_rows=97, **options), frame


def same_trees(model, other):
    for name, array in other.trees_.items():
        assert_array_equal(model.trees_[name], array)


@pytest.mark.parametrize("kind", ["csv", "parquet", "category", "feather"])
def test_text_and_missing_values_in_files(frame, tmp_path, kind):
    scan, frame = scan_of(frame, tmp_path, kind)
    table, y = in_memory(frame), frame["y"]
    options = {"n_estimators": 8, "subsample": 0.8, "n_iter_no_change": 20, "random_state": 0, "min_samples_leaf": 5}
    for cls in (GradientBoostingRegressor, RandomForestRegressor):
        given = {name: value for name, value in options.items() if name in cls().get_params()}
        expected, model = cls(**given).fit(table, y), cls(**given).fit(scan)
        same_trees(model, expected)
        assert model.categories_[1].tolist() == ["10", "east", "north", "south", "west"]
        assert_array_equal(model.predict(scan), expected.predict(table))
        assert_array_equal(model.predict(table), expected.predict(table))
        with pytest.raises(DataTypeError, match="learnt categories from a frame"):
            model.predict(np.zeros((3, 4)))
    validated = GradientBoostingRegressor(n_estimators=5).fit(table, y, X_val=scan)
    assert_array_equal(validated.history_.validation[0] > validated.history_.validation[-1], True)


def test_labels_and_weights_beside_text(frame, tmp_path):
    frame = frame.assign(label=np.where(frame["y"] > 0, "up", "NA"), w=np.arange(N) % 3).drop(columns="y")
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    scan = ep.scan(path, target="label", weight="w")
    table = frame.drop(columns=["label", "w"])
    table = table.assign(where=table["where"].astype("category"), n=table["n"].astype(float))
    for cls in (GradientBoostingClassifier, ExtraTreesClassifier):
        expected = cls(n_estimators=5, random_state=0).fit(table, frame["label"], sample_weight=frame["w"])
        model = cls(n_estimators=5, random_state=0).fit(scan)
        same_trees(model, expected)
        assert model.classes_.tolist() == ["NA", "up"]


def test_levels_that_files_bring_later(frame, tmp_path):
    scan, frame = scan_of(frame, tmp_path, "csv")
    strict = GradientBoostingRegressor(n_estimators=3, handle_unknown="error").fit(scan)
    (tmp_path / "new").mkdir()
    changed = frame.assign(where="up")
    changed.to_csv(tmp_path / "new" / "rows.csv", index=False)
    later = ep.scan(tmp_path / "new" / "rows.csv", target="y")
    with pytest.raises(DataError, match="'where' has levels that the fit did not see: 'up'"):
        strict.predict(later)
    lenient = strict.set_params(handle_unknown="missing")
    assert_array_equal(lenient.predict(later), lenient.predict(in_memory(frame.assign(where=np.nan))))
    changed.assign(where=np.arange(N)).to_csv(tmp_path / "new" / "rows.csv", index=False)
    with pytest.raises(DataTypeError, match=r"'where' holds .*; its levels at fit were str"):
        lenient.predict(ep.scan(tmp_path / "new" / "rows.csv", target="y"))
    changed.assign(where=[f"level {i}" for i in range(N)]).to_csv(tmp_path / "new" / "rows.csv", index=False)
    with pytest.warns(EpicycleWarning, match="has 700 levels; the 255 most frequent"):
        GradientBoostingRegressor(n_estimators=1).fit(ep.scan(tmp_path / "new" / "rows.csv", target="y"))


def test_numbers_of_files_can_be_levels(frame, tmp_path):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=N), rng.integers(0, 9, N) * 3.0])
    X[rng.random(N) < 0.1, 1] = np.nan
    y = X[:, 0] + np.isin(X[:, 1], (3, 9, 24))
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    model = GradientBoostingRegressor(n_estimators=5, categorical_features=[1])
    expected = GradientBoostingRegressor(n_estimators=5, categorical_features=[1]).fit(X, y)
    same_trees(model.fit(ep.scan(tmp_path / "rows.npy", target=2, batch_rows=64)), expected)
    assert_array_equal(model.predict(X), expected.predict(X))
    named = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    named.to_csv(tmp_path / "rows.csv", index=False)
    same_trees(model.set_params(categorical_features=["b"]).fit(ep.scan(tmp_path / "rows.csv", target="y")), expected)


def test_text_is_refused_where_only_numbers_will_do(frame, tmp_path):
    scan, _ = scan_of(frame.drop(columns="nothing"), tmp_path, "parquet")
    with pytest.raises(DataTypeError, match=r"'where' of .* is of type"):
        GeneralizedLinearModel().fit(scan)
    with pytest.raises(DataTypeError, match=r"'where' of .* is of type"):
        GradientBoostingRegressor(categorical_features=None).fit(scan)


def test_texts_in_arrays():
    rng = np.random.default_rng(2)
    words = np.array(["u", "v", "w", None], object)[rng.integers(0, 4, N)]
    X = np.column_stack([rng.normal(size=N).astype(object), words])
    y = X[:, 0].astype(float) + (words == "v")
    model = GradientBoostingRegressor(n_estimators=5, categorical_features=[1]).fit(X, y)
    assert model.categories_[1].tolist() == ["u", "v", "w"]
    frame = pd.DataFrame({"a": X[:, 0].astype(float), "b": pd.Categorical(words)})
    same_trees(model, GradientBoostingRegressor(n_estimators=5).fit(frame, y))
    X[0, 1] = 3.5
    with pytest.raises(DataTypeError, match="mixes levels"):
        model.fit(X, y)


@pytest.mark.serial
def test_one_byte_a_cell_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("epicycle.tree._binning.SAMPLE_ROWS", 5_000)
    n, p = 120_000, 60
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = X[:, 0] + rng.normal(size=n)
    pq.write_table(pa.table({**{f"x{j}": X[:, j] for j in range(p)}, "y": y}), tmp_path / "rows.parquet")
    options = {"n_estimators": 2, "max_leaf_nodes": 4, "n_iter_no_change": 5, "random_state": 0}
    scan = ep.scan(tmp_path / "rows.parquet", target="y", batch_rows=4096)

    def peak(*data):
        tracemalloc.start()
        model = GradientBoostingRegressor(**options).fit(*data)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return model, most

    from_files, of_files = peak(scan)
    in_memory, of_memory = peak(X, y)
    same_trees(from_files, in_memory)
    a_row = 100  # bytes for targets, scores, gradients and places, whatever the number of features
    assert of_files < n * (1.15 * p + a_row) + 12e6
    assert of_memory < n * (2.15 * p + a_row) + 4e6


def test_numerals_are_texts_where_another_file_has_words(tmp_path):
    (tmp_path / "1.csv").write_text("a,y\n" + "10,1\n20,2\n" * 30)
    (tmp_path / "2.csv").write_text("a,y\n" + "ten,5\n,2\n" * 30)
    scan = ep.scan(tmp_path, target="y")
    model = GradientBoostingRegressor(n_estimators=30, learning_rate=0.5, categorical_smoothing=0.0).fit(scan)
    assert model.categories_[0].tolist() == ["10", "20", "ten"]
    frame = pd.DataFrame({"a": pd.Categorical(["10", "20", "ten"])})
    np.testing.assert_allclose(model.predict(frame), [1, 2, 5], atol=0.01)
