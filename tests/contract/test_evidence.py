"""Certificate and History."""

import copy
import math
import pickle

import matplotlib as mpl
import numpy as np
import pytest

from epicycle import Certificate, History

mpl.use("Agg")


@pytest.mark.parametrize(
    ("value", "holds"), [(0.0, True), (1e-8, True), (1.1e-8, False), (math.nan, False), (math.inf, False)]
)
def test_certificate_holds_at_or_below_its_tolerance(value, holds):
    certificate = Certificate("duality gap", value, 1e-8, "close to the minimum")
    assert certificate.holds is holds
    assert ("does not hold" in str(certificate)) is not holds
    assert "duality gap" in str(certificate)
    assert "close to the minimum" in certificate._repr_html_()


def test_certificate_of_a_greedy_method():
    assert str(Certificate("none", math.nan, 0.0, "a greedy search")) == "none: a greedy search"


def test_certificate_cannot_be_edited():
    with pytest.raises(AttributeError):
        Certificate("duality gap", 1.0, 1e-8).value = 0.0


@pytest.fixture
def history():
    return History(objective=[4.0, 2.0, 1.0, 0.5], step=[1.0, 1.0, 0.5, np.nan])


def test_history_reads_by_attribute_and_by_item(history):
    assert history.columns == ("objective", "step")
    assert history.n_iter == 4
    assert np.array_equal(history.objective, history["objective"])
    with pytest.raises(AttributeError, match=r"no column 'gradient'.*objective"):
        history.gradient  # noqa: B018
    with pytest.raises(KeyError):
        history["gradient"]
    assert "4 iterations" in repr(history)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda h: pickle.loads(pickle.dumps(h))])
def test_history_survives_copies(history, duplicate):
    assert duplicate(history) == history


def test_history_refuses_ragged_columns():
    with pytest.raises(ValueError, match="length"):
        History(objective=[1.0, 2.0], step=[1.0])


def test_history_to_frame(history):
    frame = history.to_frame()
    assert list(frame.columns) == ["objective", "step"]
    assert frame.index.name == "iteration"
    assert frame["objective"].tolist() == [4.0, 2.0, 1.0, 0.5]


def test_history_plot(history):
    import matplotlib.pyplot as plt

    axes = history.plot()
    assert axes.get_yscale() == "log"
    shown = axes.lines[0].get_ydata()
    assert shown[:3].tolist() == [3.5, 1.5, 0.5]  # above the best value, 0.5
    other = history.plot("step", ax=plt.figure().add_subplot(), color="black")
    assert other.lines[0].get_ydata()[:3].tolist() == [1.0, 1.0, 0.5]
    assert other.get_ylabel() == "step"
    plt.close("all")


def test_empty_history():
    assert History().n_iter == 0
    assert repr(History()) == "History(empty)"
    assert History().to_frame().empty
