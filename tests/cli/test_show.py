"""``epicycle show`` tells what is in a file, and refuses what is no model."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import epicycle as ep
from epicycle.cli import main


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    X, y = load_breast_cancer(return_X_y=True)
    path = tmp_path_factory.mktemp("models") / "cancer.epi"
    ep.save(make_pipeline(StandardScaler(), ep.LogisticRegression(C=0.25)).fit(X, y), path)
    return path


def test_shows_classes_certificate_and_arrays(model_file, capsys):
    assert main(["show", str(model_file)]) == 0
    out = capsys.readouterr().out
    certificate = ep.load(model_file)[-1].certificate_
    assert "Pipeline" in out
    assert "LogisticRegression" in out
    assert str(certificate) in out
    assert "1x30" in out
    assert ep.__version__ in out


def test_json_agrees_with_the_model(model_file, capsys):
    assert main(["show", str(model_file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    model = ep.load(model_file)[-1]
    (certificate,) = told["certificates"].values()
    assert certificate["holds"] is True
    assert certificate["value"] == model.certificate_.value
    shapes = {array["name"]: tuple(array["shape"]) for array in told["arrays"]}
    (name,) = [name for name in shapes if name.endswith("coef_")]
    assert shapes[name] == np.shape(model.coef_)
    assert told["file_bytes"] == model_file.stat().st_size


@pytest.fixture(params=["missing", "folder", "empty", "text", "truncated", "flipped"])
def bad_file(request, tmp_path, model_file):
    path = tmp_path / "bad.epi"
    content = bytearray(model_file.read_bytes())
    if request.param == "folder":
        path.mkdir()
    elif request.param == "flipped":
        content[len(content) // 2] ^= 0x10
        path.write_bytes(content)
    elif request.param != "missing":
        path.write_bytes({"empty": b"", "text": b"not a model\n", "truncated": content[:-40]}[request.param])
    return path


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_bad_files_get_one_line_and_exit_code_2(bad_file, as_json, capsys):
    assert main(["show", str(bad_file), *as_json]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("epicycle: ")
    assert captured.err.count("\n") == 1
    assert "bad.epi" in captured.err
