"""An interrupt that Python drops in a finaliser still ends the pass; nothing else about the signal changes."""

import os
import signal
import sys
import threading

import pytest

from epicycle.engine._dask import remembered_interrupts


class InterruptedWhileDying:
    """The signal arrives while this object is finalised, where Python ignores what is raised."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # the handler runs between two bytecodes of this thread
            pass


@pytest.fixture
def ignored(monkeypatch):
    """What Python reports as ignored."""
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda message: seen.append(message.exc_type))
    return seen


def die_in_a_pass():
    with remembered_interrupts():
        doomed = InterruptedWhileDying()
        del doomed


def test_an_interrupt_in_a_finaliser_is_raised_at_the_end(ignored):
    with pytest.raises(KeyboardInterrupt):
        die_in_a_pass()
    assert ignored == [KeyboardInterrupt]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def interrupt_in_a_pass(reached):
    with remembered_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
        reached.append("the end")


def test_an_ordinary_interrupt_is_raised_at_once():
    reached = []
    with pytest.raises(KeyboardInterrupt):
        interrupt_in_a_pass(reached)
    assert not reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_program_is_left_alone():
    came = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        with remembered_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
        assert came == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_may_use_it():
    errors = []

    def work():
        try:
            with remembered_interrupts():
                pass
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == []
