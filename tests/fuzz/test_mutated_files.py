"""Broken model files (a thousand in a slow run): each is refused with the one right error, nothing runs or crashes."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import mutations
import numpy as np
import pytest
import scipy.sparse
import zoo
from sklearn.preprocessing import FunctionTransformer

from epicycle import Certificate, History
from epicycle.io._files import pack


def seeds() -> list[bytes]:
    """Good files that hold between them every kind of value."""
    wanted = {"standard_scaler", "columns_by_name", "k_bins_discretizer", "spline_transformer", "one_hot_infrequent"}
    models = [case.model for case in zoo.cases() if case.name in wanted]
    rng = np.random.default_rng(0)
    values = {
        "plain": [None, True, 2**100, 1.5, float("nan"), 1 + 2j, "text", b"bytes", (1, 2), {3}, frozenset({4})],
        "pairs": {1: "a", (2, 3): slice(1, None), None: range(4)},
        "arrays": [np.eye(3, order="F"), np.array(["ab", "c"]), np.array([b"x"]), np.array(["2020-01-01"], "M8[D]")],
        "scalars": [np.float32(2), np.str_("s"), np.bool_(True)],
        "objects": np.array(["a", None, 3], dtype=object),
        "sparse": scipy.sparse.csr_array(np.eye(4)),
        "names": [float, np.float64, np.dtype("f4"), np.log1p],
        "random": [rng, np.random.RandomState(1), np.random.SeedSequence(5)],
    }
    evidence = [Certificate("duality gap", 1e-9, 1e-8), History(objective=[3.0, 2.0])]
    log = FunctionTransformer(np.log1p).fit(np.ones((2, 2)))
    return [b"".join(pack(model)) for model in (*models, values, evidence, log)]


def run(folder: Path, *arguments: str) -> dict:
    """Load everything in `folder` in another process: a crash would be an exit code, not the end of the tests."""
    script = Path(__file__).parent / "load_under_audit.py"
    done = subprocess.run(
        [sys.executable, script, folder, *arguments], capture_output=True, text=True, timeout=300, cwd=folder
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def seed_files() -> list[bytes]:
    return seeds()


def test_mutants_are_refused(tmp_path, seed_files, repetitions):
    n_mutants = repetitions(1000)
    for i, content in enumerate(seed_files):
        (tmp_path / f"seed-{i}.epi").write_bytes(content)
    done = {}
    for i, (name, content) in enumerate(mutations.mutants(seed_files, n_mutants, random_state=0)):
        (tmp_path / f"mutant-{i:04}.epi").write_bytes(content)
        done[f"mutant-{i:04}.epi"] = name
    report = run(tmp_path)
    assert report["seen"] == []
    assert len(report["outcomes"]) == n_mutants
    wrong = {f"{path} {done[path]}": outcome for path, outcome in report["outcomes"].items() if outcome != "refused"}
    assert wrong == {}
    counts = Counter(done.values())
    assert min(counts[m.__name__] for m in mutations.BLIND + mutations.INFORMED) >= n_mutants // 200
    assert not (tmp_path / "boom").exists()


def test_the_hook_sees_a_pickle(tmp_path):
    seen = run(tmp_path, "--planted")["seen"]
    assert any(event.startswith("pickle.find_class") for event in seen)


def test_every_single_bit_of_a_file_counts(tmp_path):
    content = b"".join(pack({"w": np.arange(2.0)}))
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1 << (position % 8)
        (tmp_path / f"mutant-{position:05}.epi").write_bytes(changed)
    report = run(tmp_path)
    assert report["seen"] == []
    assert Counter(report["outcomes"].values()) == {"refused": len(content)}


def test_values_in_the_wrong_place(tmp_path, seed_files, repetitions):
    n_mutants = repetitions(300)
    for i, content in enumerate(seed_files):
        (tmp_path / f"seed-{i}.epi").write_bytes(content)
    for i, content in enumerate(mutations.confused(seed_files, n_mutants, random_state=0)):
        (tmp_path / f"mutant-{i:04}.epi").write_bytes(content)
    report = run(tmp_path)
    assert report["seen"] == []
    counts = Counter(report["outcomes"].values())
    assert set(counts) == {"refused", "loaded"}
    assert sum(counts.values()) == n_mutants
