"""Data sets that are not kept in the repository: tests that need them say so when they are absent."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def book_data():
    """Reads a table or arrays by name, from the folder EPICYCLE_DATA or from shared/data next to the checkout.

    Of a text it gives the path.
    """
    checkout = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("EPICYCLE_DATA", checkout.parent / "shared" / "data"))

    def read(name, **options):
        if not (folder / name).exists():
            pytest.skip(f"{name} is neither in the folder EPICYCLE_DATA nor in shared/data next to the checkout")
        if name.endswith(".npz"):
            return np.load(folder / name, allow_pickle=False)
        if ".txt" in name:
            return folder / name
        return pd.read_csv(folder / name, **options)

    return read
