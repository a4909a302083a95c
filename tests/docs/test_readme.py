"""What the README shows is what it prints, and what it points to is there."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from printed import agrees

import epicycle as ep

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()
TOURS = re.findall(r"```python\n(.*?)```(?:(?!```).)*?```text\n(.*?)```", TEXT, flags=re.DOTALL)


def test_every_python_block_shows_its_output():
    assert len(TOURS) == len(re.findall(r"```python", TEXT)) >= 1


@pytest.mark.parametrize(("code", "shown"), TOURS)
def test_tour(code, shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert agrees(shown, printed.getvalue()), printed.getvalue()


def test_the_table_counts_the_methods():
    classes = len(ep.methods())
    functions = len(ep.methods(functions=True)) - classes
    assert f"{classes} estimators and {functions} functions" in TEXT


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)", TEXT))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()


@pytest.mark.parametrize("command", re.findall(r"(?:^|`)make ([a-z-]+)", TEXT, flags=re.MULTILINE))
def test_commands_exist(command):
    assert re.search(rf"^{command}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:[A-Z][a-z]+)+)`", TEXT))))
def test_names_exist(name):
    assert hasattr(ep, name)


def test_the_table_has_as_many_cells_in_every_row():
    rows = [line for line in TEXT.splitlines() if line.startswith("|")]
    assert len(rows) > 10
    assert {row.count("|") for row in rows} == {rows[0].count("|")}
