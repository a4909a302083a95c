"""The page on architecture tells the truth about the present tree."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_figure_draws_the_floors_of_the_import_contract():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    floors = [
        {re.sub(r"^epicycle\.", "", package.strip()) for package in layer.split("|")} for layer in contract["layers"]
    ]
    figure = (ROOT / "docs" / "figures" / "layers.py").read_text()
    drawn = [
        set(re.findall(r"[a-z_.]+", name.replace("\\n", " ")))
        for name in re.findall(r'^    \(\s*"([^"]+)"', figure, flags=re.MULTILINE)
    ]
    names = [floor - {"callbacks", "exceptions"} for floor in floors]
    assert set().union(*names) == set().union(*drawn) - {"core", "_native"}
    heights = [i for floor in names for i, row in enumerate(drawn) if floor & row]
    assert heights == sorted(heights)


def test_folders_with_openmp_are_named():
    found = {
        path.relative_to(ROOT / "native").parts[0]
        for path in (ROOT / "native").rglob("*.[hc]pp")
        if "#pragma omp parallel" in path.read_text()
    }
    page = (ROOT / "docs" / "architecture.rst").read_text()
    paragraph = page[page.index("*Some kernels use OpenMP inside*") :].split("\n\n")[0]
    assert set(re.findall(r"``(\w+)``", paragraph)) == found
