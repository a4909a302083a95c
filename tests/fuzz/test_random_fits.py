"""A minute of random fits from the seed of the day, which is printed; EPICYCLE_FUZZ_SEED takes another."""

import os
from datetime import UTC, datetime

import pytest
from campaign import campaign

#: The same on every machine: a minute of processor time. One that is much slower, or has much else to do, runs fewer.
CASES = 3500


@pytest.mark.slow
def test_a_minute_of_random_fits(capsys):
    seed = int(os.environ.get("EPICYCLE_FUZZ_SEED", datetime.now(UTC).strftime("%Y%m%d")))
    with capsys.disabled():
        print(f"\nrandom fits: EPICYCLE_FUZZ_SEED={seed}")
    report = campaign(seed, 300.0, most=CASES)
    assert report.cases > 10
    assert not report.found, str(report)
