"""A fit reads downwards: few functions stand between the call of `fit` and the answer."""

import sys
from pathlib import Path

import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import scale

import epicycle as ep

PACKAGE = Path(ep.__file__).parent
#: What every fit has in common: the contract, checks of the data, passes over it, files.
SHARED = {"core", "data", "engine", "io"}


def own_functions(model, X, y) -> set[tuple[str, str]]:
    """The functions of methods and mathematics that a fit calls, without comprehensions."""
    clone(model).fit(X, y)  # imports
    model, seen = clone(model), set()

    def note(frame, event, _):
        code = frame.f_code
        path = Path(code.co_filename)
        if event == "call" and PACKAGE in path.parents and (code.co_name == "<lambda>" or code.co_name[0] != "<"):
            seen.add((str(path.relative_to(PACKAGE)), code.co_qualname))

    sys.setprofile(note)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(None)
    return {(file, name) for file, name in seen if file.split("/")[0] not in SHARED and "sklearn_tags" not in name}


@pytest.mark.parametrize(
    ("model", "load", "most"),
    [
        (ep.LogisticRegression(n_jobs=1), load_breast_cancer, 48),
        (ep.Lasso(alpha=0.1, n_jobs=1), load_diabetes, 44),
        (ep.SVC(n_jobs=1), load_breast_cancer, 68),
    ],
    ids=["LogisticRegression", "Lasso", "SVC"],
)
def test_few_functions_stand_on_the_way_of_a_fit(model, load, most):
    X, y = load(return_X_y=True)
    names = own_functions(model, scale(X), y)
    assert 10 < len(names) <= most, sorted(names)
