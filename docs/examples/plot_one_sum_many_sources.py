"""
The same coefficients from memory, files and a stream
=====================================================

A fit is a sum over rows inside a loop. The sum can run over an array in memory, over files that are larger than memory,
or over batches as they arrive; the estimator is the same, and so is its answer.
"""

import tempfile
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import epicycle as ep

rng = np.random.default_rng(0)
n, p = 40_000, 8
X = rng.normal(size=(n, p)) @ np.diag(np.logspace(0, 1, p)) + 5.0
y = X @ np.linspace(1.0, -1.0, p) + rng.normal(size=n)
names = [f"x{j}" for j in range(p)]

# %%
# Seven Parquet files of uneven sizes. ``ep.scan`` reads their headers only; each pass over the data reads them block by
# block, ahead of the computation.

folder = Path(tempfile.mkdtemp())
cuts = [0, *np.sort(rng.choice(np.arange(1, n), size=6, replace=False)), n]
for i, (a, b) in enumerate(pairwise(cuts)):
    table = pa.table({**dict(zip(names, X[a:b].T, strict=True)), "y": y[a:b]})
    pq.write_table(table, folder / f"part-{i}.parquet")

scan = ep.scan(folder / "part-*.parquet", target="y")
print(scan)

# %%
# Least squares: memory, files, and a stream. Second moments are a sufficient statistic, so that ``partial_fit`` is
# exact, not an approximation.

memory = ep.LinearRegression().fit(X, y)
files = ep.LinearRegression().fit(scan)
stream = ep.LinearRegression()
for a, b in pairwise(cuts):
    stream.partial_fit(X[a:b], y[a:b])
one, two, four = (ep.LinearRegression(n_jobs=k).fit(X, y) for k in (1, 2, 4))

# %%
# The number of threads changes nothing at all, not even the last bit: blocks, and the order in which they are added,
# depend on the data alone.

print("same bits as 1 thread:", [np.array_equal(one.coef_, other.coef_) for other in (two, four)])

# %%
# A logistic fit makes one pass for each iteration, from wherever the rows are. The tolerance bounds the objective; an
# error of the coefficients enters it squared, so that coefficients to 1e-9 need an objective to 1e-18.

labels = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-(y - y.mean()) / y.std())), "high", "low")
for i, (a, b) in enumerate(pairwise(cuts)):
    table = pa.table({**dict(zip(names, X[a:b].T, strict=True)), "level": labels[a:b]})
    pq.write_table(table, folder / f"label-{i}.parquet")
logistic_memory = ep.LogisticRegression(tol=1e-18).fit(X, labels)
logistic_files = ep.LogisticRegression(tol=1e-18).fit(ep.scan(folder / "label-*.parquet", target="level"))
print(logistic_files.certificate_)

# %%
# How far the coefficients differ from those of the fit in memory. Where the order of addition is another, rounding is
# too; that is all.


def difference(model, reference):
    a, b = np.ravel(model.coef_), np.ravel(reference.coef_)
    return np.abs(a - b).max() / np.abs(b).max()


rows = {
    "least squares\n2 and 4 threads": max(difference(two, one), difference(four, one)),
    "least squares\n7 files": difference(files, memory),
    "least squares\npartial_fit": difference(stream, memory),
    "logistic\n7 files": difference(logistic_files, logistic_memory),
}
eps = np.finfo(float).eps
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
shown = np.maximum(list(rows.values()), 1e-18)
ax.barh(list(rows), shown, left=0, height=0.55)
for i, value in enumerate(rows.values()):
    ax.annotate(
        "identical bits" if value == 0 else f"{value:.0e}",
        (max(value, 1e-18), i),
        (5, 0),
        textcoords="offset points",
        va="center",
    )
ax.axvline(1e-10, color="0.4", lw=0.8, ls=":")
ax.axvline(eps, color="0.4", lw=0.8, ls=":")
ax.annotate(
    "1e-10, what the tests ask for",
    (1e-10, 1),
    (-4, 4),
    xycoords=("data", "axes fraction"),
    textcoords="offset points",
    ha="center",
    color="0.4",
    fontsize=9,
)
ax.annotate(
    "machine precision",
    (eps, 1),
    (-4, 4),
    xycoords=("data", "axes fraction"),
    textcoords="offset points",
    ha="center",
    color="0.4",
    fontsize=9,
)
ax.set(xscale="log", xlim=(1e-18, 1e-8), xlabel="largest difference of a coefficient, relative")
ax.invert_yaxis()
plt.show()
