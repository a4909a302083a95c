"""The package as others meet it: import, names, types, metadata, and what its files may not say."""

import ast
import importlib.metadata
import inspect
import re
import statistics
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import epicycle
from epicycle import _native

ROOT = Path(__file__).parents[1]
PACKAGE = Path(epicycle.__file__).parent

HEAVY = ("sklearn", "scipy", "pandas", "polars", "pyarrow", "matplotlib", "dask", "rich", "typer", "torch")


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


def test_import_loads_nothing_heavy():
    loaded = run_python("import sys, epicycle; print(*sorted({name.partition('.')[0] for name in sys.modules}))")
    assert set(loaded.split()).isdisjoint(HEAVY)


@pytest.mark.serial
def test_import_is_quick():
    """Under 100 ms beyond numpy's own import: medians of interleaved fresh interpreters."""
    clock = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
    numpy_seconds, both_seconds = [], []
    for _ in range(9):
        numpy_seconds.append(float(run_python(clock.format("import numpy"))))
        both_seconds.append(float(run_python(clock.format("import numpy, epicycle"))))
    assert statistics.median(both_seconds) - statistics.median(numpy_seconds) < 0.1


def test_every_public_name_resolves():
    assert len(set(epicycle.__all__)) == len(epicycle.__all__)
    assert {name for name in epicycle.__all__ if getattr(epicycle, name, None) is None} == set()
    assert set(epicycle.__all__) <= set(dir(epicycle))


def test_public_names_of_the_first_release_are_there():
    text = (Path(__file__).parent / "names_of_0_1_0.txt").read_text()
    for entry in re.split(r"\n(?=\S)", text.strip()):
        module, _, names = entry.partition(":")
        assert [name for name in names.split() if not hasattr(importlib.import_module(module), name)] == [], module


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'LinearRegresion'"):
        epicycle.LinearRegresion  # noqa: B018


@pytest.mark.parametrize("name", ["callbacks", "data", "engine", "io", "linear", "optim"])
def test_subpackages_export_what_they_define(name):
    module = getattr(epicycle, name)
    assert module.__all__ == sorted(set(module.__all__), key=module.__all__.index)
    assert [n for n in module.__all__ if not hasattr(module, n)] == []


def test_version_is_that_of_the_metadata():
    assert epicycle.__version__ == importlib.metadata.version("epicycle")


def test_package_is_typed():
    assert (PACKAGE / "py.typed").is_file()


# ---------------------------------------------------------------- where things are

#: Modules named after a family of public names, by the word that they share in the field, not after one of them.
FAMILIES = {
    "automl._parts": "reading the parts of a data set from files",
    "automl.tables._tables": "reading tables",
    "bayes.sampling._constraints": "constraints of parameters",
    "bayes.sampling._diagnostics": "diagnostics of Markov chains",
    "bayes.sampling._native_models": "models with compiled densities",
    "core._plot_style": "the style of all figures",
    "core._settings": "config and get_config",
    "core._threads": "numbers of threads",
    "core.estimator._callbacks": "callbacks",
    "core.estimator._catalogue": "the list of methods",
    "data._data": "data sets and their batches",
    "data._documents": "documents as lines of files",
    "rl.linear._linear_sarsa": "SARSA and Q-learning over features",
    "rl.linear._lstd": "least-squares temporal differences and policy iteration",
    "rl.policy_search._reinforce": "the policy gradient and its variance",
    "rl.tabular._planning": "Q-learning with steps of a learnt model",
    "rl._schedules": "numbers that change while an agent learns, and ways to explore",
    "exceptions": "errors and warnings, named by their public module",
    "em._latent_model": "latent models and their expectations",
    "em._run_em": "climbs from one start and from several",
    "engine._dask": "passes on a cluster",
    "engine._passes": "sum and map",
    "gp._gpc": "as in scikit-learn",
    "gp._gpr": "as in scikit-learn",
    "io._describe": "describe and what it returns",
    "io._files": "save and load",
    "io._registry": "classes that files may hold",
    "kernel._approximation": "as scikit-learn's kernel_approximation",
    "kernels._compositions": "kernels made of kernels",
    "kernels._given": "kernels that the user gives",
    "kernels._histograms": "kernels of histograms",
    "kernels._inner_products": "kernels of inner products",
    "kernels._networks": "kernels of wide networks",
    "kernels._stationary": "stationary kernels",
    "kernels._strings": "kernels of strings",
    "linalg._least_squares": "solvers of least squares",
    "linear.lars._orthogonal_matching_pursuit": "orthogonal matching pursuit, its class and its function",
    "linear.lasso._lasso": "the lasso and the elastic net",
    "linear.lasso._lasso_cv": "the lasso and the elastic net by cross-validation",
    "linear.lasso._path": "paths of the lasso and the elastic net",
    "linear.least_squares._james_stein": "shrinkage of means",
    "metrics._dispersion": "criteria of a clustering from its means",
    "metrics._distances": "distances by name",
    "metrics._information": "mutual information of partitions, and what is made of it",
    "metrics._pair_counts": "agreement of partitions by pairs of rows",
    "metrics._ranking": "criteria of ranked lists",
    "mixture._choose_k": "the choice of the number of components",
    "mixture._linear_mixture": "mixtures over exponential families that are linear in x",
    "neighbors._classification": "as in scikit-learn",
    "metrics._neighborhoods": "neighbours in embeddings",
    "neighbors._graph": "as in scikit-learn",
    "kernels._kernel": "kernels and their hyper-parameters",
    "neighbors._regression": "as in scikit-learn",
    "neighbors._unsupervised": "as in scikit-learn",
    "online._evaluate": "evaluation on a stream and its result",
    "optim._likelihoods": "losses that are likelihoods",
    "optim._losses": "losses",
    "optim._objective": "objectives and their metrics",
    "optim._penalties": "penalties",
    "optim.solvers._gradient_descent": "gradient descent and its learning rates",
    "optim.solvers._solve": "solve and the list of solvers",
    "optim.teaching._duality": "programs and their optimality conditions",
    "optim.teaching._games": "games and saddle points",
    "plot._classification": "figures of classifiers",
    "plot._principal_components": "figures of principal components",
    "plot._regression": "figures of regressions",
    "report._page": "the page of a report",
    "search.games._board_games": "games on boards",
    "search.games._poker": "games of poker",
    "search.trees._play_match": "matches and their results",
    "select._greedy_selection": "forward and backward selection",
    "select._procedures": "procedures of validation",
    "select._scorers": "scores",
    "text._latent_semantic_indexing": "latent semantic indexing and what a search finds",
    "svm._svc": "support vector classification and the hulls of its classes",
    "theory._decomposition": "decompositions of the error",
}

#: Too many modules in a folder to find one by looking.
MAX_MODULES = 22


def words(name: str) -> set[str]:
    """``GradientBoostingClassifier``, ``_gradient_boosting`` and plurals as words in the singular."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return {word.removesuffix("s") for word in snake.split("_") if word}


def test_public_names_live_in_modules_of_their_name_or_family():
    objects = [getattr(epicycle, name) for name in epicycle._PUBLIC]
    packages = [getattr(epicycle, name) for name in epicycle._DECLARED if name not in epicycle._PUBLIC]
    objects += [getattr(package, name) for package in packages for name in getattr(package, "__all__", [])]
    wrong = set()
    for thing in objects:
        if not (inspect.isclass(thing) or inspect.isfunction(thing)) or not thing.__module__.startswith("epicycle."):
            continue
        module = thing.__module__.removeprefix("epicycle.")
        stem = module.rpartition(".")[2]
        # The words of a module are among those of the class: _huber for HuberRegressor.
        named = words(stem) <= words(thing.__name__) or stem.replace("_", "") in thing.__name__.lower()
        if module not in FAMILIES and not named:
            wrong.add(f"{module}: {thing.__name__}")
    assert sorted(wrong) == []


def test_no_folder_holds_too_many_modules():
    folders = Counter(path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.stem != "__init__")
    assert {str(folder): n for folder, n in folders.items() if n > MAX_MODULES} == {}


def ancestors_in_a_row(cls: type) -> int:
    """The longest chain of classes of the package between a class and the contract of estimators or of networks."""
    shared = ("epicycle.core.", "epicycle.nets._base")
    own = [base for base in cls.__bases__ if base.__module__.startswith("epicycle.")]
    return max((1 + ancestors_in_a_row(base) for base in own if not base.__module__.startswith(shared)), default=0)


def test_few_classes_stand_between_an_estimator_and_the_contract():
    classes = [getattr(epicycle, info.name) for info in epicycle.methods()]
    assert [cls.__name__ for cls in classes if ancestors_in_a_row(cls) > 3] == []


def test_the_import_contract_has_no_exceptions():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert [c["name"] for c in contracts if c.get("ignore_imports")] == []
    assert [layer for c in contracts for layer in c.get("layers", []) if ":" in layer] == []


def test_the_readme_counts_the_methods():
    (shown,) = re.findall(
        r"\| number of methods \| (\d+) estimators and (\d+) functions", (ROOT / "README.md").read_text()
    )
    estimators = len(epicycle.methods())
    assert tuple(map(int, shown)) == (estimators, len(epicycle.methods(functions=True)) - estimators)


# ---------------------------------------------------------------- the compiled module and its stub


def stub_functions() -> dict[str, set[tuple[str, ...]]]:
    """Parameter names of every overload of every function in the stubs, one file for each submodule."""
    functions: dict[str, set[tuple[str, ...]]] = {}
    for stub in (PACKAGE / "_native").glob("*.pyi"):
        for node in ast.parse(stub.read_text()).body:
            name = f"{stub.stem}.{getattr(node, 'name', None)}"
            if isinstance(node, ast.ClassDef):  # a record of options or a model: the function that makes it
                (node,) = (part for part in node.body if getattr(part, "name", None) == "__init__")
            if isinstance(node, ast.FunctionDef):
                arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                functions.setdefault(name, set()).add(tuple(a.arg for a in arguments))
    return functions


def native_functions() -> dict[str, set[tuple[str, ...]]]:
    """The same of the module, from the signatures that the binding library keeps with each function."""
    return {
        f"{submodule}.{name}": {parameter_names(signature) for signature, *_ in signatures(function)}
        for submodule, kernels in vars(_native).items()
        if isinstance(kernels, ModuleType)
        for name, function in vars(kernels).items()
        if callable(function) and not name.startswith("_")
    }


def signatures(function: Any) -> tuple[Any, ...]:
    return (function.__init__ if isinstance(function, type) else function).__nb_signature__


def parameter_names(signature: str) -> tuple[str, ...]:
    """``def f(X: ndarray[shape=(*, *)], n: int = 1) -> float`` has the names ``("X", "n")``."""
    while (without := re.sub(r"\[[^][]*\]", "", signature)) != signature:
        signature = without
    inside = re.fullmatch(r"def \w+\((.*)\) -> .*", signature).group(1)
    return tuple(part.partition(":")[0].strip() for part in inside.split(",") if part.strip() not in ("", "/", "*"))


def test_stubs_and_compiled_module_are_equal():
    assert stub_functions() == native_functions()


def test_native_calls_take_records_where_arguments_are_many():
    many = {
        f"{submodule}.{name}"
        for submodule, kernels in vars(_native).items()
        if isinstance(kernels, ModuleType)
        for name, function in vars(kernels).items()
        if callable(function) and not name.startswith("_") and not isinstance(function, type)
        if max(len(parameter_names(signature)) for signature, *_ in signatures(function)) > 12
    }
    assert many == set()


def test_submodules_can_be_imported_by_name():
    # The folder of stubs lies beside the compiled module: without an __init__.py it must not shadow it.
    submodules = {name for name, value in vars(_native).items() if isinstance(value, ModuleType)}
    assert submodules == {stub.stem for stub in (PACKAGE / "_native").glob("*.pyi")} - {"__init__"}
    for name in submodules:
        assert importlib.import_module(f"epicycle._native.{name}") is getattr(_native, name)


# ---------------------------------------------------------------- what the files say


def project_files() -> list[Path]:
    """What git tracks or would track; without git (an unpacked sdist) all that is not hidden."""
    if not (ROOT / ".git").exists():
        return [p for p in ROOT.rglob("*") if p.is_file() and not any(x.startswith(".") for x in p.parts)]
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize(
    "word",
    [
        pytest.param(r"(?<![\w.\]])/(root|work|home/\w+|Users/\w+|opt)/", id="path of one machine"),
        pytest.param(r"--(extra-)?index-url|--find-links|\bpip\.conf\b|/simple/", id="package index"),
    ],
)
def test_no_file_depends_on_one_machine(word):
    pattern = re.compile(word)
    found = {
        str(path.relative_to(ROOT)): match.group()
        for path in project_files()
        if path != Path(__file__) and (match := pattern.search(path.read_text(errors="replace")))
    }
    assert found == {}


def test_constraints_pin_every_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = list(project["build-system"]["requires"]) + project["project"]["dependencies"]
    asked += [r for extra in project["project"]["optional-dependencies"].values() for r in extra]
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9.]+", line)] == []
    pinned = {line.partition("==")[0] for line in lines}
    names = {re.match(r"[\w-]+", requirement).group().lower().replace("_", "-") for requirement in asked}
    assert names - pinned == {"epicycle"}
