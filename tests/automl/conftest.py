"""One short run that many tests look at, and tables with a known fault."""

import numpy as np
import pyarrow as pa
import pytest

import epicycle as ep


def mixed_table(n=240, seed=0):
    """Numbers with gaps, levels, dates, and a target of two classes that all of them explain."""
    rng = np.random.default_rng(seed)
    size, colour = rng.normal(size=n), rng.choice(["red", "green", "blue"], n)
    day = np.datetime64("2024-01-01") + rng.integers(0, 300, n).astype("timedelta64[D]")
    score = size + (colour == "red") + 0.5 * rng.normal(size=n)
    return pa.table(
        {
            "size": pa.array(size, mask=rng.random(n) < 0.1),
            "weight": rng.gamma(2.0, size=n),
            "colour": pa.array(colour.tolist(), mask=rng.random(n) < 0.05),
            "day": pa.array(day.astype("datetime64[s]")),
            "answer": np.where(score > 0.4, "yes", "no"),
        }
    )


@pytest.fixture(scope="session")
def table():
    return mixed_table()


@pytest.fixture(scope="session")
def run(table, tmp_path_factory):
    """A run on the table above, and the folder that it wrote."""
    folder = tmp_path_factory.mktemp("runs")
    path = folder / "table.parquet"
    pa.parquet.write_table(table, path)
    found = ep.train(
        path, "answer", time=3, models=["logistic", "gradientboosting", "decisiontree"], out=folder / "run"
    )
    return found, folder / "run"
