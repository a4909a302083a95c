"""Programs of scikit-learn's user guide run with our classes in the place of its own, to the same scores."""

import importlib
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from user_guide import SNIPPETS

import epicycle

for chapter in ("linear_models", "trees_kernels_neighbours", "combinations"):
    importlib.import_module(chapter)  # enters its programs into SNIPPETS

MODULES = (
    *("linear_model", "svm", "neighbors", "tree", "ensemble", "gaussian_process", "kernel_ridge"),
    *("kernel_approximation", "decomposition"),
)


def _namespace(ours: bool) -> SimpleNamespace:
    """The classes of scikit-learn that epicycle has too, of the one or the other."""
    names = {}
    for module in MODULES:
        theirs = importlib.import_module(f"sklearn.{module}")
        for name in dir(theirs):
            if name in epicycle.__all__ and not name.startswith("_"):
                names[name] = getattr(epicycle if ours else theirs, name)
    return SimpleNamespace(**names)


def _numbers(scores: Any) -> np.ndarray:
    if isinstance(scores, tuple | list):
        return np.concatenate([_numbers(score) for score in scores])
    return np.asarray(scores, dtype=np.float64).ravel()


def test_there_are_forty() -> None:
    assert len(SNIPPETS) >= 40


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SNIPPETS)
def test_same_scores(name: str) -> None:
    program, tolerance = SNIPPETS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = _numbers(program(_namespace(ours=False)))
        ours = _numbers(program(_namespace(ours=True)))
    assert np.isfinite(ours).all()
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
