"""Figures go nowhere, and settings of an example end with it."""

import matplotlib as mpl
import pytest


@pytest.fixture(autouse=True)
def figures_without_a_screen():
    import matplotlib.pyplot as plt

    before = mpl.get_backend()
    with mpl.rc_context():
        plt.switch_backend("Agg")
        yield
        plt.close("all")
    plt.switch_backend(before)
