"""A fit that does not look at the clock is stopped, and the run goes on without it."""

import signal
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import epicycle as ep
from epicycle.automl._budget import Budget, PartlySpent
from epicycle.automl._deadline import OutOfTimeError, time_limit
from epicycle.automl._evaluation import Evaluation

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs the alarm signal of POSIX")


def endless():
    while True:
        pass


def test_work_without_end_is_stopped_and_the_alarm_is_given_back():
    with pytest.raises(OutOfTimeError, match=r"did not end within 0\.1 s"), time_limit(0.1):
        endless()
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with time_limit(60):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_native_loop_is_stopped():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 60))
    y = rng.integers(0, 2, 20_000)
    began = time.monotonic()
    with pytest.raises(OutOfTimeError), time_limit(0.2):
        ep.RandomForestClassifier(n_estimators=100_000, n_jobs=1, random_state=0).fit(X, y)
    assert time.monotonic() - began < 60  # the forest would take hours


class Target:
    """Something that weak references can point to."""


@pytest.mark.parametrize("known", [True, False])
def test_a_limit_that_is_over_inside_a_finaliser_holds_after_it(known):
    """What is raised in a finaliser is lost, so the signal comes again: after its end, where it has a usual name."""
    began, done = [], []
    hook = sys.unraisablehook

    def weakref_cb(_):
        began.append(time.monotonic())
        while time.monotonic() < began[0] + 0.3:
            pass
        done.append(True)

    def unknown(_):
        began.append(time.monotonic())
        endless()

    def work():
        target = Target()
        kept = weakref.ref(target, weakref_cb if known else unknown)
        del target
        assert kept() is None
        endless()

    with pytest.raises(OutOfTimeError), time_limit(0.1):
        work()
    assert len(began) == 1
    assert done == ([True] if known else [])
    assert time.monotonic() - began[0] < 3  # not the five seconds after which it comes anyhow
    assert sys.unraisablehook is hook


def test_another_alarm_and_other_threads_are_left_alone():
    seen = []
    with time_limit(60):
        inner = signal.getsignal(signal.SIGALRM)
        with time_limit(1e-3):
            time.sleep(0.05)  # the outer limit holds
        assert signal.getsignal(signal.SIGALRM) is inner

    def work():
        with time_limit(1e-3):
            time.sleep(0.05)
            seen.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["done"]


def test_a_slow_candidate_does_not_lose_the_best(table, monkeypatch):
    quick = Evaluation.fitted

    def fitted(self, candidate, rows, **options):
        if candidate.family.name == "DecisionTree":
            while True:
                time.sleep(0.01)
        return quick(self, candidate, rows, **options)

    monkeypatch.setattr(Evaluation, "fitted", fitted)
    run = ep.train(table, "answer", time=4, models=["logistic", "decisiontree"], n_jobs=1)
    assert run.leaderboard[0]["method"] == "LogisticRegression"
    slow = [row for row in run.leaderboard if row["method"] == "DecisionTree"]
    assert slow
    assert all(row["score_mean"] is None for row in slow)
    assert any(row["status"].startswith("stopped after") for row in slow)


def test_the_start_of_a_command_counts_and_leaves_half():
    began = time.perf_counter()
    quick = Budget(PartlySpent.since(began - 3.0, 20.0))
    assert 3.0 <= quick.spent() < 4.0
    assert quick.seconds == 20.0
    assert 10.0 <= Budget(PartlySpent.since(began - 60.0, 20.0)).spent() < 11.0
    run = ep.train("iris", time=PartlySpent.since(began - 60.0, 4.0), models="logistic")
    assert run.budget == 4.0
    assert run.seconds >= 2.0
