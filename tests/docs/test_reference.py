"""Every public name is in the reference, and every method has a page."""

import inspect
import re
from pathlib import Path

import pytest

import epicycle as ep
from epicycle import (
    automl,
    bayes,
    causal,
    control,
    data,
    diagnose,
    em,
    engine,
    exceptions,
    generative,
    io,
    metrics,
    nets,
    online,
    optim,
    plot,
    recommend,
    report,
    rl,
    search,
    select,
    svm,
    text,
    theory,
)

DOCS = Path(__file__).parents[2] / "docs"
MODULES = {
    "automl": automl,
    "bayes": bayes,
    "causal": causal,
    "control": control,
    "data": data,
    "diagnose": diagnose,
    "em": em,
    "engine": engine,
    "exceptions": exceptions,
    "generative": generative,
    "io": io,
    "metrics": metrics,
    "nets": nets,
    "online": online,
    "optim": optim,
    "plot": plot,
    "recommend": recommend,
    "report": report,
    "rl": rl,
    "search": search,
    "select": select,
    "svm": svm,
    "text": text,
    "theory": theory,
}


def listed(page: str) -> set[str]:
    """Names in the summaries of a reference page, and those that it describes itself."""
    text = (DOCS / "api" / page).read_text()
    blocks = re.findall(r"\.\. autosummary::\n(?:   :.*\n)+\n((?:   .*\n)+)", text)
    return {name for block in blocks for name in block.split()} | set(re.findall(r"\.\. data:: (\w+)", text))


def public(module) -> set[str]:
    """Its public names; those of a module inside it as ``vc.bound``."""
    names = set()
    for name in module.__all__:
        value = getattr(module, name)
        names |= {f"{name}.{inside}" for inside in value.__all__} if inspect.ismodule(value) else {name}
    return names


def test_package():
    # What a package of methods gives to epicycle is listed from the code while the documentation is built.
    packages = {ep._PUBLIC[m.name] for m in ep.methods()}
    in_packages = {name for name, module in ep._PUBLIC.items() if module in packages}
    known = listed("index.rst") | in_packages | {p.removeprefix("epicycle.") for p in packages} | set(MODULES)
    # "training" is the name of automl in 0.1.0.
    assert set(ep.__all__) - known == {"__version__", "callbacks", "training"}


@pytest.mark.parametrize("name", MODULES)
def test_module(name):
    # What the package itself has is listed there; a penalty has the name of an estimator.
    module = MODULES[name]
    elsewhere = {n for n in module.__all__ if getattr(ep, n, None) is getattr(module, n)}
    assert public(module) - elsewhere == listed(f"{name}.rst")


def test_kernels():
    assert set(ep.kernel.__all__) - set(ep.__all__) == listed("kernel.rst")


@pytest.mark.parametrize("method", ep.methods(), ids=lambda m: m.name)
def test_method_has_a_page_with_formula_figure_example_and_references(method):
    pages = [p for p in (DOCS / "methods").glob("*.rst") if f":class:`~epicycle.{method.name}`" in p.read_text()]
    assert pages != []
    text = "".join(p.read_text() for p in pages)
    for part in (".. math::", ".. plot::", ">>>", "Certificate\n---", "When to use it\n---", "References\n---"):
        assert part in text
