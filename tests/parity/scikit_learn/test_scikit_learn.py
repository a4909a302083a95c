"""scikit-learn's own tests with our classes in the place of its own, area by area, less a table of exceptions.

One area alone::

    python -m pytest --slow -s tests/parity/scikit_learn -k linear

prints the share of tests that pass, and every failing test that has no row in ``exceptions/*.toml``::

    [[exception]]
    test = "test_svm::test_n_iter_libsvm*"   # one test, a test with all its parameters, or all that begin so
    reason = "One plain sentence."
    kind = "different"                       # "private" where the test looks at what scikit-learn does not document;
                                             # it may be left out, and is "private" where the reason has that word

A row that no failing test needs any more is an error too. Any number of files may hold the rows of an area. Behavioural
tests are those without the rows of kind "private"; the share is counted over them.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import swap

HERE = Path(__file__).resolve().parent
SRC = HERE.parents[2] / "src"

#: Area: (share of the behavioural tests that pass, scikit-learn's modules of tests).
AREAS = {
    "linear": (
        0.97,
        "linear_model.tests.test_base linear_model.tests.test_bayes linear_model.tests.test_common "
        "linear_model.tests.test_coordinate_descent linear_model.tests.test_huber linear_model.tests.test_least_angle "
        "linear_model.tests.test_logistic linear_model.tests.test_omp linear_model.tests.test_passive_aggressive "
        "linear_model.tests.test_perceptron linear_model.tests.test_quantile linear_model.tests.test_ransac "
        "linear_model.tests.test_ridge linear_model.tests.test_sag linear_model.tests.test_sgd "
        "linear_model.tests.test_sparse_coordinate_descent linear_model.tests.test_theil_sen "
        "linear_model._glm.tests.test_glm",
    ),
    "ensembles": (
        0.97,
        "ensemble.tests.test_bagging ensemble.tests.test_base ensemble.tests.test_common ensemble.tests.test_forest "
        "ensemble.tests.test_gradient_boosting ensemble.tests.test_stacking ensemble.tests.test_voting "
        "ensemble.tests.test_weight_boosting ensemble._hist_gradient_boosting.tests.test_gradient_boosting "
        "ensemble._hist_gradient_boosting.tests.test_monotonic_constraints "
        "ensemble._hist_gradient_boosting.tests.test_warm_start",
    ),
    "discriminant": (0.97, "tests.test_discriminant_analysis"),
    "neighbours": (
        0.97,
        "neighbors.tests.test_graph neighbors.tests.test_nearest_centroid neighbors.tests.test_neighbors "
        "neighbors.tests.test_neighbors_pipeline",
    ),
    "anomalies": (0.97, "ensemble.tests.test_iforest neighbors.tests.test_lof neighbors.tests.test_kde"),
    "trees": (0.97, "tree.tests.test_export tree.tests.test_monotonic_tree tree.tests.test_split tree.tests.test_tree"),
    "svm": (0.97, "svm.tests.test_bounds svm.tests.test_sparse svm.tests.test_svm"),
    "gps": (0.97, "gaussian_process.tests.test_gpc gaussian_process.tests.test_gpr"),
    "kernel_ridge": (0.97, "tests.test_kernel_ridge"),
    "clusters": (0.97, "cluster.tests.test_bisect_k_means cluster.tests.test_k_means"),
    # partial_fit needs no list of classes here, and five tests ask that it does: they are 6% of the area.
    "naive_bayes": (0.93, "tests.test_naive_bayes"),
    "spectral": (0.97, "cluster.tests.test_spectral manifold.tests.test_spectral_embedding"),
    "density": (0.97, "cluster.tests.test_dbscan cluster.tests.test_hdbscan cluster.tests.test_optics"),
    # Every solver of PCA takes sparse rows here; eight tests, 2% of the area, ask that two of them refuse.
    "decomposition": (
        0.96,
        "decomposition.tests.test_factor_analysis decomposition.tests.test_fastica decomposition.tests.test_pca "
        "decomposition.tests.test_truncated_svd",
    ),
    # MDS ends where four points are embedded exactly: two tests compare a stress of 1e-31 to seven digits, and six are
    # different for other reasons, each with a row.
    "manifold": (
        0.95,
        "manifold.tests.test_classical_mds manifold.tests.test_isomap manifold.tests.test_locally_linear "
        "manifold.tests.test_mds manifold.tests.test_t_sne",
    ),
    "factors": (
        0.97,
        "decomposition.tests.test_dict_learning decomposition.tests.test_nmf decomposition.tests.test_online_lda",
    ),
    "cluster_metrics": (
        0.97,
        "metrics.cluster.tests.test_common metrics.cluster.tests.test_supervised "
        "metrics.cluster.tests.test_unsupervised",
    ),
    # Divergence is an error or keeps the last good weights, one class is refused, nothing is printed.
    "networks": (0.9, "neural_network.tests.test_mlp"),
    "text": (0.97, "feature_extraction.tests.test_text"),
    "mixtures": (
        0.97,
        "mixture.tests.test_bayesian_mixture mixture.tests.test_gaussian_mixture mixture.tests.test_mixture",
    ),
    "hierarchy": (0.97, "cluster.tests.test_feature_agglomeration cluster.tests.test_hierarchical"),
    # Beyond the areas above: what they ask for of kernels that are no Mercer kernels is refused.
    "kernel_features": (0.85, "tests.test_kernel_approximation decomposition.tests.test_kernel_pca"),
}

#: Tests that take long and prove little about our classes, with the reason: not run.
LEFT_OUT: dict[str, str] = {}

LIMIT = 40  # seconds of processor time for a test of scikit-learn: what takes longer counts as a failure
KINDS = ("different", "private")


def modules_of(area: str) -> list[str]:
    return [f"sklearn.{name}" for name in AREAS[area][1].split()]


def exceptions() -> list[dict[str, str]]:
    """The rows of all tables."""
    rows = []
    for path in sorted((HERE / "exceptions").glob("*.toml")):
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["exception"]:
            kind = row.setdefault("kind", "private" if "private" in row["reason"] else "different")
            assert row.keys() == {"test", "kind", "reason"}, f"{path.name}: {row}"
            assert kind in KINDS, f"{path.name}: kind {kind!r}, expected one of {KINDS}"
            assert len(row["reason"].split()) >= 3, f"{path.name}: {row['test']} has no reason"
            assert "::" in row["test"], f"{path.name}: {row['test']!r} names no module"
            rows.append(row)
    return rows


def areas_of(row: dict[str, str]) -> list[str]:
    """The areas that run the module of a row, which may be written with or without its package."""
    named = row["test"].partition("::")[0]
    return [area for area in AREAS for module in modules_of(area) if named in (module, module.rpartition(".")[2])]


def run(area: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Outcomes of the tests of an area in which one of our classes was built."""
    path = folder / "outcomes.json"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(SRC), str(HERE)]),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "EPICYCLE_SWAP_OUTCOMES": str(path),
        "EPICYCLE_SWAP_LEFT_OUT": "\n".join(LEFT_OUT),
        "EPICYCLE_SWAP_LIMIT": str(LIMIT),
    }
    # Not those of this run: a worker of pytest-xdist would make scikit-learn's tests believe to be one too.
    environment = {key: value for key, value in environment.items() if not key.startswith("PYTEST_")}
    options = ["-q", "--tb=short", "-p", "swap", "-p", "no:cacheprovider", "-W", "ignore", "--pyargs"]
    command = [sys.executable, "-m", "pytest", *options, *modules_of(area)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1200)
    assert path.exists(), (
        f"no outcomes; the run ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    )
    outcomes = json.loads(path.read_text(encoding="utf-8"))
    return {test: entry for test, entry in outcomes.items() if entry.get("built")}


@pytest.mark.slow
@pytest.mark.parametrize("area", AREAS)
def test_area(area: str, tmp_path: Path) -> None:
    ours = run(area, tmp_path)
    failing = {
        test: entry.get("why", "no outcome")
        for test, entry in ours.items()
        if entry.get("outcome") not in ("passed", "skipped", "xfail")
    }
    rows = [row for row in exceptions() if area in areas_of(row)]
    excused: dict[str, str] = {}
    for row in rows:
        excused |= {test: row["kind"] for test in failing if swap.matches(test, row["test"])}
    passed = sum(entry.get("outcome") == "passed" for entry in ours.values())
    behavioural = passed + sum(excused.get(test) != "private" for test in failing)
    seconds = sum(entry.get("seconds", 0.0) for entry in ours.values())
    slowest = sorted(ours, key=lambda test: -ours[test].get("seconds", 0.0))[:8]
    print(
        f"\n{area}: {passed} of {behavioural} behavioural tests pass ({passed / behavioural:.1%}), "
        f"{dict(Counter(excused.values()))} excused; {seconds:.0f} s"
    )
    unexplained = {test: why.split("\n")[0] for test, why in failing.items() if test not in excused}
    for test in slowest:
        print(f"  {ours[test].get('seconds', 0.0):6.1f} s {test}")
    for test, why in unexplained.items():
        print(f"  FAILS {test}: {why[:160]}")
    needless = [row["test"] for row in rows if not any(swap.matches(test, row["test"]) for test in failing)]
    assert not needless, f"rows of the table that no failing test needs: {needless}"
    assert not unexplained, f"{len(unexplained)} failing tests without a row: {list(unexplained)[:20]}"
    assert passed >= AREAS[area][0] * behavioural


def test_every_row_belongs_to_one_area() -> None:
    strangers = [row["test"] for row in exceptions() if len(set(areas_of(row))) != 1]
    assert not strangers, f"rows for modules of no area, or of several (write the package too): {strangers}"


def test_what_is_left_out_has_a_reason() -> None:
    assert all(len(reason.split()) >= 3 for reason in LEFT_OUT.values())


def test_the_plugin_swaps_nothing_by_being_imported() -> None:
    assert importlib.import_module("sklearn.svm").SVC.__module__.startswith("sklearn")
