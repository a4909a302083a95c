"""Studies whose 95% interval holds the effect, from the table that ``python -m benchmarks.coverage`` writes."""

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

here = Path(__file__).parent if "__file__" in globals() else Path()  # Sphinx runs it where it stands
with (here / "causal_coverage.csv").open(encoding="utf-8") as file:
    lines = list(csv.DictReader(file))
names = [line["intervals"].removesuffix("()").replace(".predict_interval", "") for line in lines]
labels = [f"{name[:58]}{'…' * (len(name) > 58)}  ({line['studies']})" for name, line in zip(names, lines, strict=True)]
share = np.array([float(line["coverage"]) for line in lines])
place = np.arange(len(lines))
figure, ax = plt.subplots(figsize=(10, 9), layout="constrained")
ax.axvspan(0.93, 0.97, color="#0072B2", alpha=0.12, lw=0, label="93% to 97%")
ax.axvline(0.95, color="#0072B2", lw=1)
ax.plot(share, place, "o", color="#D55E00", ms=5, label="share of 500 studies")
ax.set_yticks(place, labels, fontsize=8)
ax.invert_yaxis()
ax.set(xlim=(0.91, 0.99), xlabel="95% intervals that hold the effect")
ax.legend(loc="lower right", fontsize=8)
plt.show()
