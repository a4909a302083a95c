"""A minute of random fits with a fresh seed, which is printed; EPICYCLE_FUZZ_SEED repeats one."""

import os

import pytest
from campaign import campaign


@pytest.mark.slow
def test_a_minute_of_random_fits(capsys):
    seed = int(os.environ.get("EPICYCLE_FUZZ_SEED", int.from_bytes(os.urandom(4), "big")))
    with capsys.disabled():
        print(f"\nrandom fits: EPICYCLE_FUZZ_SEED={seed}")
    report = campaign(seed, 60.0)
    assert report.cases > 10
    assert not report.found, str(report)
