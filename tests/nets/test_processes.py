"""Fits across processes: two that train together, and one that is killed again and again."""

import multiprocessing
import random
import subprocess
import sys
import time
from pathlib import Path

import fit_and_die
import numpy as np
import pytest
import train_in_two_processes
from numpy.testing import assert_allclose

import epicycle as ep

HERE = Path(__file__).resolve().parent


@pytest.mark.slow
def test_two_processes_train_as_one(tmp_path):
    """Each computes half of every batch: the weights are those of one process up to the order of addition."""
    script = str(HERE / "train_in_two_processes.py")
    runs = [
        subprocess.Popen([sys.executable, script, str(rank), str(tmp_path / "meet"), str(tmp_path / "out")])
        for rank in (0, 1)
    ]
    try:
        assert [run.wait(timeout=120) for run in runs] == [0, 0]
    finally:
        for run in runs:
            run.kill()
    first, second = (ep.load(tmp_path / f"out{rank}.epi") for rank in (0, 1))
    alone = train_in_two_processes.model().fit(*train_in_two_processes.problem())
    for a, b, c in zip(first.coefs_, second.coefs_, alone.coefs_, strict=True):
        assert np.array_equal(a, b)
        assert_allclose(a, c, rtol=1e-8, atol=1e-10)
    assert_allclose(first.loss_curve_, alone.loss_curve_, rtol=1e-8)


@pytest.mark.slow
def test_killed_at_random_twenty_times_it_ends_in_the_same_bits(tmp_path):
    whole = fit_and_die.model().fit(*fit_and_die.problem())
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fit_and_die"])
    file, rng, kills = tmp_path / "run.epi", random.Random(0), 0
    while True:
        run = context.Process(target=fit_and_die.fit, args=(str(file),))
        before = file.stat().st_mtime_ns if file.exists() else 0
        run.start()
        if kills == 20:
            break
        while run.is_alive() and (file.stat().st_mtime_ns if file.exists() else 0) == before:
            time.sleep(0.002)  # at least one checkpoint further, or the fit would never get on
        time.sleep(rng.uniform(0, 0.01))
        assert run.is_alive(), f"it was done after {kills} kills: the fit is too short for this machine"
        run.kill()
        run.join()
        kills += 1
    run.join(timeout=120)
    assert run.exitcode == 0
    resumed = ep.load(file)
    assert resumed.history_.n_iter == whole.n_iter_ == 300
    assert np.array_equal(resumed.history_.objective, whole.history_.objective)
    for a, b in zip(resumed.coefs_ + resumed.intercepts_, whole.coefs_ + whole.intercepts_, strict=True):
        assert np.array_equal(a, b)
