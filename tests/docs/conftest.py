"""Helpers beside the tests are importable, figures go nowhere, and settings of an example end with it."""

import sys
from pathlib import Path

import matplotlib as mpl
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def figures_without_a_screen():
    import matplotlib.pyplot as plt

    before = mpl.get_backend()
    with mpl.rc_context():
        plt.switch_backend("Agg")
        yield
        plt.close("all")
    plt.switch_backend(before)
