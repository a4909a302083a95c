"""Images that are not kept in the repository: in the folder EPICYCLE_DATA, or in shared/data next to the checkout."""

import os
from pathlib import Path

import numpy as np
import pytest

DATA = Path(os.environ.get("EPICYCLE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


def needs(name):
    """Skips a test where the file is in neither place."""
    return pytest.mark.skipif(
        not (DATA / name).exists(), reason=f"{name} is neither in EPICYCLE_DATA nor in shared/data"
    )


def images(name, key):
    """Images of a file, between 0 and 1, in single precision."""
    return np.load(DATA / name)[key].astype(np.float32) / 255
