"""``epicycle demo`` is true: its numbers are those of an independent fit, its file is a model."""

import re

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import train_test_split

import epicycle as ep
from epicycle.cli import main


def test_demo_prints_true_numbers_and_writes_a_model(tmp_path, capsys):
    path = tmp_path / "demo.epi"
    assert main(["demo", "--output", str(path)]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) < 60
    assert out.count(": holds") == 4
    assert "does not hold" not in out
    assert "predictions identical" in out

    X, y = load_diabetes(return_X_y=True, scaled=False)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    for peer in (LinearRegression(), Ridge(alpha=100.0)):
        assert f"R2 {peer.fit(X_train, y_train).score(X_test, y_test):.3f}" in out
    bmi = float(re.search(r"^ *bmi +(-?[\d.]+)", out, flags=re.MULTILINE).group(1))
    assert bmi == pytest.approx(LinearRegression().fit(X_train, y_train).coef_[2], abs=5e-4)

    cancer = load_breast_cancer()
    rows = pa.table(list(cancer.data.T), list(cancer.feature_names))
    assert np.mean(ep.load(path).predict(rows) == cancer.target) > 0.95


def test_demo_without_output_leaves_nothing_behind(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    assert list(tmp_path.iterdir()) == []
    assert "predictions identical" in capsys.readouterr().out


def test_demo_fails_when_the_reloaded_model_differs(tmp_path, monkeypatch, capsys):
    class Other:
        def predict_proba(self, rows):
            return np.zeros((len(rows), 2))

    monkeypatch.setattr(ep, "load", lambda path: Other())
    assert main(["demo"]) == 1
    assert "DIFFERENT" in capsys.readouterr().out
