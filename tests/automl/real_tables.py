"""Tables that are not kept in the repository: in the folder EPICYCLE_DATA, or in shared/data next to the checkout."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("EPICYCLE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


def needs(name):
    """A mark: the suite has to pass without these tables."""
    return pytest.mark.skipif(
        not (DATA / name).exists(), reason=f"{name} is neither in EPICYCLE_DATA nor in shared/data"
    )
