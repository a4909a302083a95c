"""The examples of the gallery and the figures of the pages run, draw something, and say nothing on stderr."""

import ast
import re
import runpy
from bisect import bisect
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

DOCS = Path(__file__).parents[2] / "docs"
GALLERY = sorted((DOCS / "examples").glob("plot_*.py"))
FIGURES = sorted((DOCS / "figures").glob("*.py"))


@pytest.mark.slow  # `make docs` runs them all, too
@pytest.mark.parametrize("script", [*GALLERY, *FIGURES], ids=lambda p: p.stem)
def test_script(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    runpy.run_path(str(script))
    assert len(plt.get_fignums()) == 1
    drawn = plt.gcf()
    drawn.canvas.draw()
    assert all(ax.has_data() or not ax.axison for ax in drawn.axes)
    assert capsys.readouterr().err == ""


def test_the_order_names_every_example_of_the_gallery():
    order = runpy.run_path(str(DOCS / "_ext" / "gallery_order.py"))["ORDER"]
    assert sorted(order) == [p.name for p in GALLERY]


@pytest.mark.parametrize("script", GALLERY, ids=lambda p: p.stem)
def test_an_example_opens_with_a_title_and_an_explanation(script):
    opening = re.match(r'r?"""\n(.*?)"""', script.read_text(), flags=re.DOTALL).group(1)
    title, line, _, *explanation = opening.splitlines()
    assert line == "=" * len(title)
    assert len(" ".join(explanation)) > 80


@pytest.mark.parametrize("script", GALLERY, ids=lambda p: p.stem)
def test_a_figure_is_drawn_in_the_cell_that_makes_it(script):
    """The gallery takes the picture at the end of that cell: what later ones draw would be missing."""
    text = script.read_text()
    cells = [i for i, line in enumerate(text.splitlines(), 1) if line.startswith("# %%")]
    nodes = list(ast.walk(ast.parse(text)))
    made = {
        name.id: bisect(cells, node.lineno)
        for node in nodes
        if isinstance(node, ast.Assign) and "'subplots'" in ast.dump(node.value)
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    late = {n.id for n in nodes if isinstance(n, ast.Name) and bisect(cells, n.lineno) > made.get(n.id, len(cells))}
    assert not late


def test_every_figure_is_used_by_a_page():
    used = set(re.findall(r"plot:: figures/(\w+)\.py", "".join(p.read_text() for p in DOCS.rglob("*.rst"))))
    assert used == {p.stem for p in FIGURES}
