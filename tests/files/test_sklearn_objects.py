"""scikit-learn's pipelines, transformers, encoders, imputers and selectors do the same after a round trip."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
import zoo
from equality import same
from mean_regressor import MeanRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from epicycle.exceptions import EpicycleWarning
from epicycle.io import load, save
from epicycle.io._registry import _SKLEARN, _table

CASES = zoo.cases()


def outcome(model, method, X):
    result = getattr(model, method)(X)
    return result.toarray() if scipy.sparse.issparse(result) else result


def test_the_zoo_has_every_allowed_class_of_scikit_learn():
    shown = {type(case.model).__name__ for case in CASES}
    assert shown == {name.rpartition(".")[2] for name in _table(_SKLEARN)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_round_trip(tmp_path, case):
    save(case.model, tmp_path / "m.epi")
    back = load(tmp_path / "m.epi")
    assert same(back, case.model)
    expected, found = (outcome(model, case.method, case.X) for model in (case.model, back))
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
    else:
        assert same(np.asarray(found), np.asarray(expected))


CHILD = """
import sys, numpy as np, scipy.sparse
sys.path.insert(0, sys.argv[2])
from mean_regressor import MeanRegressor
from epicycle.io import load, register, save
register(MeanRegressor, "tests.MeanRegressor")
folder = sys.argv[1]
inputs = load(f"{folder}/inputs.epi")
results = {}
for name, (method, columns, X) in inputs.items():
    if columns is not None:
        import pandas
        X = pandas.DataFrame(dict(zip(columns, X)))
    result = getattr(load(f"{folder}/{name}.epi"), method)(X)
    result = result.toarray() if scipy.sparse.issparse(result) else np.asarray(result)
    results[name] = result
save(results, f"{folder}/results.epi")
"""


def test_predictions_in_a_new_process(tmp_path):
    inputs = {}
    for case in CASES:
        save(case.model, tmp_path / f"{case.name}.epi")
        frame = isinstance(case.X, pd.DataFrame)
        columns = list(case.X.columns) if frame else None
        inputs[case.name] = (case.method, columns, [case.X[c].to_numpy() for c in columns] if frame else case.X)
    save(inputs, tmp_path / "inputs.epi")
    here = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-W", "ignore", "-c", CHILD, str(tmp_path), here], check=True, timeout=120)
    results = load(tmp_path / "results.epi")
    for case in CASES:
        expected = np.asarray(outcome(case.model, case.method, case.X))
        if expected.dtype.kind in "fc":
            np.testing.assert_array_equal(results[case.name].astype(expected.dtype), expected, err_msg=case.name)
        else:
            assert results[case.name].tolist() == expected.tolist(), case.name


def test_set_output_and_names_are_kept(tmp_path):
    table, _ = zoo.iris()
    scaler = StandardScaler().set_output(transform="pandas").fit(table[zoo.NUMBERS])
    save(scaler, tmp_path / "m.epi")
    assert list(load(tmp_path / "m.epi").transform(table[zoo.NUMBERS]).columns) == zoo.NUMBERS


def test_metadata_requests_are_kept(tmp_path):
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight="w")
        save(make_pipeline(scaler, MeanRegressor()), tmp_path / "m.epi")
        back = load(tmp_path / "m.epi")[0]
        assert repr(back.get_metadata_routing()) == repr(scaler.get_metadata_routing())
        assert back.get_metadata_routing().fit.requests == {"sample_weight": "w"}


def test_a_cache_directory_is_not_stored(tmp_path):
    pipeline = Pipeline([("scale", StandardScaler())], memory=str(tmp_path / "cache"))
    with pytest.warns(EpicycleWarning, match=r"model\.memory"):
        save(pipeline, tmp_path / "m.epi")
    assert load(tmp_path / "m.epi").memory is None


def test_callbacks_are_not_stored(tmp_path):
    scaler = StandardScaler()
    scaler._skl_callbacks = [object()]
    save(scaler, tmp_path / "m.epi")
    assert not hasattr(load(tmp_path / "m.epi"), "_skl_callbacks")


def test_another_sklearn_version_is_named(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sklearn, "__version__", "1.8.0")
        save(StandardScaler(), tmp_path / "scaler.epi")
        save([1.0], tmp_path / "numbers.epi")
    with pytest.warns(EpicycleWarning, match=rf"scikit-learn 1\.8\.0 and is read with {sklearn.__version__}"):
        load(tmp_path / "scaler.epi")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(tmp_path / "numbers.epi")  # holds nothing of scikit-learn
