"""A minute of random fits from the seed of the day, which is printed; EPICYCLE_FUZZ_SEED takes another."""

import os
from datetime import UTC, datetime

import pytest
from campaign import campaign


@pytest.mark.slow
def test_a_minute_of_random_fits(capsys):
    seed = int(os.environ.get("EPICYCLE_FUZZ_SEED", datetime.now(UTC).strftime("%Y%m%d")))
    with capsys.disabled():
        print(f"\nrandom fits: EPICYCLE_FUZZ_SEED={seed}")
    report = campaign(seed, 60.0, most=1500)  # the same cases on every machine that is quick enough
    assert report.cases > 10
    assert not report.found, str(report)
