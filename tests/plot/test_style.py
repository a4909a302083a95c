"""One look for every figure: light, dark, and on axes of the user's own."""

import ast
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import epicycle as ep
from epicycle import plot
from epicycle.core._plot_style import luminance, paper

SOURCES = sorted(Path(ep.__file__).parent.rglob("*.py"))


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_what_is_drawn_can_be_seen(dark):
    """Text needs a contrast of 4.5, shapes one of 3 (WCAG 2); the paler colours are for fills and second lines."""
    with plot.in_style(dark=dark):
        ax = plot.axes_of(None)
    assert contrast(plot.ink(ax), paper(ax)) > 12
    assert contrast(plot.ink(ax, 0.7), paper(ax)) > 4.5
    for name in ("blue", "vermilion", "green", "grey"):
        assert contrast(plot.COLOURS[name], paper(ax)) > 3
    assert contrast(ax.title.get_color(), paper(ax)) > 12
    assert luminance(paper(ax)) < 0.02 if dark else luminance(paper(ax)) == 1


def test_settings_of_the_user_come_back():
    before = dict(plt.rcParams)
    with plot.in_style(dark=True):
        plot.axes_of(None)
        with plot.in_style():
            assert plt.rcParams["figure.facecolor"] == "#16181D"  # as around it
        with plot.in_style(dark=False):
            assert plt.rcParams["figure.facecolor"] == "#FFFFFF"
    assert dict(plt.rcParams) == before
    with plot.in_style():
        assert plt.rcParams["figure.facecolor"] == "#FFFFFF"


def test_texts_on_an_axis_of_the_user_have_its_colour():
    with plt.style.context("dark_background"):
        _, ax = plt.subplots()
    drawn = plot.calibration([0, 1, 0, 1], [0.1, 0.8, 0.3, 0.9], ax)
    assert drawn.ax_ is ax
    assert drawn.figure_ is ax.figure
    assert all(luminance(text.get_color()) == 1 for text in ax.get_legend().get_texts())
    assert paper(ax) == "#000000"
    clear = plt.figure(facecolor="none").subplots()
    clear.set_facecolor("none")
    assert paper(clear) == "#FFFFFF"
    clear.xaxis.label.set_color("white")
    assert luminance(paper(clear)) < 0.02


def test_figures_of_fits_follow_the_ground():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    tree = ep.DecisionTreeRegressor(max_depth=2).fit(X, y)
    with plot.in_style(dark=True):
        for ax in (tree.plot(), ep.Lasso(alpha=0.01).fit(X, y).history_.plot(), ep.LassoCV(cv=3).fit(X, y).plot()):
            assert luminance(ax.figure.get_facecolor()) < 0.02
            assert all(contrast(t.get_color(), paper(ax)) > 3 for t in ax.texts if t.get_bbox_patch() is None)


def test_no_module_has_a_look_of_its_own():
    """Axes are made, and colours named, by the style and epicycle.plot alone."""
    for path in SOURCES:
        if path.parent.name == "plot" or path.name == "_plot_style.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr != "subplots", path
            if isinstance(node, ast.keyword) and node.arg in ("color", "ecolor", "fc", "ec", "mec"):
                fixed = isinstance(node.value, ast.Constant) and node.value.value not in ("none", "white")
                assert not fixed, f"{path}:{node.value.lineno}"


def test_shapes():
    ax = plot.axes_of(None)
    plot.band(ax, [1, 2], [0.5, 0.6], [0.1, np.nan], colour="blue", label="a")
    plot.band(ax, [1, 2], [0.5, 0.7], [0.1, 0.1], colour=None, label="b")
    assert plot.labels_clear(ax).get_legend() is not None
    plot.bars(plot.axes_of(None), ["a", "b" * 60], [1, -2], [0.1, np.nan], colour=["blue", "sky"])
    assert plot.short("b" * 60) == "b" * 18 + "..." + "b" * 17
    assert plot.labels_clear(plot.axes_of(None)).get_legend() is None
