"""Users' own classes in model files."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from equality import same
from mean_regressor import MeanRegressor

from epicycle.exceptions import ModelFormatError, ParameterError, ParameterTypeError
from epicycle.io import _registry as classes, load, register, save


@pytest.fixture(autouse=True)
def _forget(monkeypatch):
    monkeypatch.setattr(classes, "_registered", dict(classes._registered))


@dataclass
class Point:
    x: float
    tags: list = field(default_factory=list)


class Counter:
    def __init__(self, start):
        self.counts = np.full(3, start)
        self.cache = object()

    def __epi_state__(self):
        return {"counts": self.counts}

    def __epi_restore__(self, state):
        self.counts = state["counts"]
        self.cache = None


def test_dataclass(tmp_path):
    assert register(Point, "mine.Point") is Point
    save(Point(1.5, ["a"]), tmp_path / "m.epi")
    assert load(tmp_path / "m.epi") == Point(1.5, ["a"])


def test_own_state(tmp_path):
    register(Counter, "mine.Counter")
    save(Counter(4), tmp_path / "m.epi")
    back = load(tmp_path / "m.epi")
    assert same(back.counts, np.full(3, 4))
    assert back.cache is None


def test_functions_for_a_class_of_others(tmp_path):
    register(
        slice_of_words := type("Words", (list,), {}),
        "mine.Words",
        state=lambda words: {"joined": " ".join(words)},
        restore=lambda cls, state: cls(state["joined"].split()),
    )
    save(slice_of_words(["a", "b"]), tmp_path / "m.epi")
    assert load(tmp_path / "m.epi") == ["a", "b"]


def test_own_estimator(tmp_path):
    save(MeanRegressor(shift=1.0).fit([[0.0]], [2.0]), tmp_path / "m.epi")
    assert load(tmp_path / "m.epi").predict([[5.0]]) == [3.0]


def test_unregistered_in_the_reader(tmp_path):
    register(Point, "mine.Point")
    save(Point(1.5), tmp_path / "m.epi")
    del classes._registered["mine.Point"]
    with pytest.raises(ModelFormatError, match=r"names 'mine\.Point'"):
        load(tmp_path / "m.epi")


def test_state_of_another_version_is_named(tmp_path):
    register(Point, "mine.Point", state=lambda p: {"x": p.x, "colour": 3}, restore=lambda cls, state: cls(**state))
    save(Point(1.5), tmp_path / "m.epi")
    with pytest.raises(ModelFormatError, match=r"mine\.Point does not fit its class: .*colour"):
        load(tmp_path / "m.epi")


@pytest.mark.parametrize(
    ("cls", "name", "error"),
    [
        (Point(1.0), "mine.Point", ParameterTypeError),
        (Point, "not a name", ParameterError),
        (Point, "epicycle.Certificate", ParameterError),
        (Point, "sklearn.pipeline.Pipeline", ParameterError),
        (Point, "tests.MeanRegressor", ParameterError),
        (Exception, "mine.Exception", ParameterTypeError),
    ],
)
def test_bad_registrations(cls, name, error):
    with pytest.raises(error, match=r"cls|name"):
        register(cls, name)


def test_half_a_form():
    with pytest.raises(ParameterError, match="together"):
        register(Exception, "mine.Exception", state=lambda e: {})


class Shadowing(MeanRegressor):
    """Keeps an instance attribute over a class attribute, which no file may set."""

    _kind = "class"

    def kind(self):
        return self._kind


def test_attributes_that_would_shadow_the_class(tmp_path):
    register(Shadowing, "mine.Shadowing")
    model = Shadowing().fit([[0.0]], [2.0])
    model._kind = "instance"
    with pytest.raises(ParameterError, match="_kind"):
        save(model, tmp_path / "m.epi")


def test_attributes_that_the_class_does_not_know(tmp_path):
    model = MeanRegressor().fit([[0.0]], [2.0])
    model.note_ = "mine"
    with pytest.raises(ParameterError, match="unknown attribute 'note_' of MeanRegressor"):
        save(model, tmp_path / "m.epi")
