"""What `describe` tells, without building anything."""

import numpy as np
import pytest
import zoo
from mean_regressor import MeanRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import epicycle
from epicycle import Certificate
from epicycle.exceptions import DataFileError, ModelFormatError
from epicycle.io import ArrayDescription, _registry as classes, describe, save


@pytest.fixture
def pipeline():
    X = np.arange(12.0).reshape(6, 2)
    return make_pipeline(MinMaxScaler((0, 2)), StandardScaler(), MeanRegressor()).fit(X, X[:, 0])


def test_pipeline(tmp_path, pipeline):
    save(pipeline, tmp_path / "m.epi")
    found = describe(tmp_path / "m.epi")
    assert found.path == str(tmp_path / "m.epi")
    assert found.class_name == "sklearn.pipeline.Pipeline"
    assert found.parameters["steps"] == (
        "[('minmaxscaler', MinMaxScaler), ('standardscaler', StandardScaler), ('meanregressor', MeanRegressor)]"
    )
    assert found.parameters["memory"] is None
    assert found.parts == {
        "model.steps[0][1]": "sklearn.preprocessing.MinMaxScaler",
        "model.steps[1][1]": "sklearn.preprocessing.StandardScaler",
        "model.steps[2][1]": "tests.MeanRegressor",
    }
    assert found.certificate == Certificate("gradient norm", 0.0, 1e-8, "the mean is exact")
    assert list(found.certificates) == ["model.steps[2][1]"]
    assert ArrayDescription("model.steps[1][1].mean_", "<f8", (2,), 16) in found.arrays
    assert found.versions["numpy"] == np.__version__
    assert found.versions["epicycle"] == epicycle.__version__
    assert found.format_version == 1
    assert found.file_bytes == (tmp_path / "m.epi").stat().st_size


def test_estimator(tmp_path, pipeline):
    save(pipeline[0], tmp_path / "m.epi")
    found = describe(tmp_path / "m.epi")
    assert found.parameters == {"clip": False, "copy": True, "feature_range": (0, 2)}
    assert "data_max_" in found.fitted
    assert found.certificate is None
    assert found.parts == {}


def test_everything_in_the_zoo(tmp_path):
    for case in zoo.cases():
        save(case.model, tmp_path / "m.epi")
        found = describe(tmp_path / "m.epi")
        assert found.class_name.endswith(f".{type(case.model).__name__}")
        assert set(found.parameters) == set(case.model.get_params(deep=False))


def test_a_foreign_class_is_shown_and_not_looked_up(tmp_path, pipeline, monkeypatch):
    monkeypatch.setitem(classes._registered, "os.system", (StandardScaler, None))
    save(pipeline[1], tmp_path / "m.epi")
    monkeypatch.delitem(classes._registered, "os.system")
    assert describe(tmp_path / "m.epi").class_name == "os.system"


def test_plain_values(tmp_path):
    save([1, 2], tmp_path / "m.epi")
    assert describe(tmp_path / "m.epi").class_name == "list"


def test_errors_name_the_file(tmp_path):
    with pytest.raises(DataFileError, match=r"gone\.epi"):
        describe(tmp_path / "gone.epi")
    (tmp_path / "m.epi").write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelFormatError, match=r"m\.epi"):
        describe(tmp_path / "m.epi")
