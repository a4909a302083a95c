"""Every example in a page of the documentation runs and prints what it shows; every page is reachable."""

import doctest
import re
from pathlib import Path

import pytest
from printed import Checker

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.rst") if not {"_build", "auto_examples", "generated"} & set(p.parts))
FLAGS = doctest.NORMALIZE_WHITESPACE


def examples(page: Path) -> doctest.DocTest:
    name = str(page.relative_to(DOCS))
    return doctest.DocTestParser().get_doctest(page.read_text(), {"__name__": "page"}, name, str(page), 0)


@pytest.mark.parametrize("page", [p for p in PAGES if ">>>" in p.read_text()], ids=lambda p: p.stem)
def test_examples_of(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report: list[str] = []
    runner = doctest.DocTestRunner(checker=Checker(), optionflags=FLAGS)
    runner.run(examples(page), out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_every_guide_and_method_page_has_an_example():
    pages = [p for p in PAGES if p.parent.name in ("guide", "methods") and p.stem != "index"]
    assert len(pages) >= 12
    assert [p.stem for p in pages if ">>>" not in p.read_text()] == []


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in PAGES:
        for block in re.findall(r"\.\. toctree::\n((?:   .*\n|\n)+)", page.read_text()):
            entries = [line.strip() for line in block.splitlines() if line.strip() and not line.strip().startswith(":")]
            listed |= {(page.parent / entry).resolve() for entry in entries}
    pages = {p.with_suffix("") for p in PAGES if p.name not in ("GALLERY_HEADER.rst",) and "_templates" not in p.parts}
    assert pages - listed == {DOCS / "index"}


@pytest.mark.parametrize("figure", sorted(set(re.findall(r"plot:: (\S+)", "".join(p.read_text() for p in PAGES)))))
def test_figures_of_pages_exist(figure):
    assert (DOCS / figure).is_file()


def test_no_list_item_begins_with_an_initial_that_would_be_a_list_of_its_own():
    initial = re.compile(r" *[-*] [A-Z]\. ")
    found = [f"{page.stem}: {line}" for page in PAGES for line in page.read_text().splitlines() if initial.match(line)]
    assert found == []
