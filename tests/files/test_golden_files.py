"""What earlier releases wrote is loaded and gives the numbers that it gave then."""

import json
import warnings

import make_golden
import numpy as np
import pytest
from equality import same

from epicycle.exceptions import EpicycleWarning
from epicycle.io import _registry as classes, describe, load

FILES = sorted(make_golden.FOLDER.glob("*/*.epi"))


def load_quietly(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EpicycleWarning)  # written with another scikit-learn: that is the point
        return load(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_file(path):
    record = json.loads(path.with_suffix(".json").read_text())
    model = load_quietly(path)
    if record["method"] is None:
        assert same(model, make_golden.values())
        return
    found = make_golden.dense(getattr(model, record["method"])(make_golden.from_json(record["input"])))
    expected = make_golden.from_json(record["expected"])
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    else:
        np.testing.assert_array_equal(found, expected)


def test_there_is_one_for_every_allowed_class_of_scikit_learn():
    held = set()
    for path in FILES:
        found = describe(path)
        held |= {found.class_name, *found.parts.values()}
    later = {"sklearn.compose.TransformedTargetRegressor", "sklearn.frozen.FrozenEstimator"}
    assert held >= set(classes._table(classes._SKLEARN)) - later
