"""Data sets that are not kept in the repository: tests that need them say so when they are absent."""

import os
from pathlib import Path

import pandas as pd
import pytest


@pytest.fixture(scope="session")
def book_data():
    """Reads a data set by name from the folder EPICYCLE_DATA, or from shared/data next to the checkout."""
    checkout = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("EPICYCLE_DATA", checkout.parent / "shared" / "data"))

    def read(name):
        if not (folder / name).exists():
            pytest.skip(f"{name} is neither in the folder EPICYCLE_DATA nor in shared/data next to the checkout")
        return pd.read_csv(folder / name)

    return read
