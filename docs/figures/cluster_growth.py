"""Processor time of clusterings against the number of rows, from the figures that ``benchmarks/growth.py`` stored."""

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

here = Path(__file__).parent if "__file__" in globals() else Path()  # Sphinx runs it where it stands
with (here / "cluster_growth.csv").open(encoding="utf-8") as file:
    lines = list(csv.DictReader(file))
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for name, marker in zip(dict.fromkeys(line["method"] for line in lines), "osD^vP", strict=True):
    rows, seconds = np.array(
        [[float(line[c]) for c in ("rows", "seconds")] for line in lines if line["method"] == name]
    ).T
    ax.plot(rows, seconds, marker=marker, ms=5, label=name)
ends = np.array([rows[0], rows[-1]])
ax.plot(ends, 4e-7 * ends, color="#7F7F7F", ls=":", label="proportional to the rows")
ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="processor seconds")
ax.set_ylim(top=30)
ax.legend(fontsize=8, ncols=2, loc="upper left")
plt.show()
