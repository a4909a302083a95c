"""The layers of the package: a layer imports only from those below it."""

import matplotlib.pyplot as plt

LAYERS = [
    ("cli", "the command epicycle", "contract"),
    ("linear, ...", "estimators: objective, solver and class of each method", "contract"),
    ("base, parameters, callbacks, progress", "what all estimators share: checks, evidence, callbacks", "contract"),
    ("optim", "losses, penalties, solvers, duality: NumPy and SciPy only", "mathematics"),
    ("engine", "sum and map over batches: threads, files, Dask", "machinery"),
    ("data   |   io", "tables in   |   model files out", "machinery"),
    ("_native", "C++ kernels: arrays in, arrays out", "machinery"),
    ("evidence, settings, exceptions", "Certificate and History: anyone may use them", "ground"),
]
COLOURS = {"contract": "#56B4E9", "mathematics": "#E69F00", "machinery": "#009E73", "ground": "#BBBBBB"}

figure, ax = plt.subplots(figsize=(9.6, 4.4), layout="constrained")
for i, (name, what, group) in enumerate(reversed(LAYERS)):
    ax.barh(i, 1, height=0.82, color=COLOURS[group], alpha=0.35, edgecolor=COLOURS[group])
    ax.text(0.015, i, name, va="center", weight="bold", family="monospace", fontsize=9)
    ax.text(0.43, i, what, va="center", fontsize=9.5)
names = [group for *_, group in reversed(LAYERS)]
for group in dict.fromkeys(names):
    rows = [i for i, name in enumerate(names) if name == group]
    ax.text(1.015, sum(rows) / len(rows), group, va="center", color="0.25", style="italic")
ax.annotate("", (-0.03, -0.3), (-0.03, len(LAYERS) - 0.7), arrowprops={"arrowstyle": "-|>", "color": "0.3"})
ax.text(-0.05, len(LAYERS) / 2 - 0.5, "imports", rotation=90, ha="right", va="center", color="0.3")
ax.set(xlim=(-0.06, 1.15), ylim=(-0.6, len(LAYERS) - 0.4))
ax.axis("off")
plt.show()
