"""The floors of the package: a floor imports only from those below it."""

import matplotlib.pyplot as plt

FLOORS = [
    ("cli", "the command epicycle", "tools"),
    ("automl, diagnose, select", "the training command, diagnoses, selection and validation", "tools"),
    ("theory, plot, online, report", "bounds, figures, online evaluation, reports", "tools"),
    ("causal, control", "learning what actions do: any family below is a part of them", "methods"),
    ("anomaly", "rows unlike the others: uses trees, neighbours, mixtures, components", "methods"),
    ("ensemble manifold mixture recommend text", "methods that use other families", "methods"),
    ("linear kernel svm gp cluster hmm tree", "one package a family; none imports another", "methods"),
    ("metrics", "criteria and stability of clusterings, distances of tables and graphs", "mathematics"),
    ("spatial", "distances by name, exact search for near rows", "mathematics"),
    ("kernels", "kernel functions, shared by svm, gp, cluster and kernel", "mathematics"),
    ("em", "expectation maximisation: monotone, restarted, accelerated", "mathematics"),
    ("optim", "losses, penalties, solvers, duality", "mathematics"),
    ("stats", "moments, families and links, class scores, intervals", "mathematics"),
    ("linalg", "factorisations, low rank, conjugate gradients", "mathematics"),
    ("core.estimator", "the contract: Estimator, fitting, callbacks, list of methods", "machinery"),
    ("io", "model files", "machinery"),
    ("engine", "sum and map over batches: threads, files, Dask", "machinery"),
    ("data", "tables in, batches out; categories, quantiles", "machinery"),
    ("core", "Certificate, History, parameters, errors, threads, random streams", "ground"),
    ("_native", "C++ kernels: arrays in, arrays out", "ground"),
]
COLOURS = {
    "tools": "#CC79A7",
    "methods": "#56B4E9",
    "mathematics": "#E69F00",
    "machinery": "#009E73",
    "ground": "#BBBBBB",
}

figure, ax = plt.subplots(figsize=(10.4, 6.4), layout="constrained")
for i, (name, what, group) in enumerate(reversed(FLOORS)):
    ax.barh(i, 1, height=0.82, color=COLOURS[group], alpha=0.35, edgecolor=COLOURS[group])
    ax.text(0.012, i, name, va="center", weight="bold", family="monospace", fontsize=8.5)
    ax.text(0.45, i, what, va="center", fontsize=9)
groups = [group for *_, group in reversed(FLOORS)]
for group in dict.fromkeys(groups):
    rows = [i for i, name in enumerate(groups) if name == group]
    ax.text(1.012, sum(rows) / len(rows), group, va="center", color="0.25", style="italic")
ax.annotate("", (-0.03, -0.3), (-0.03, len(FLOORS) - 0.7), arrowprops={"arrowstyle": "-|>", "color": "0.3"})
ax.text(-0.05, len(FLOORS) / 2 - 0.5, "imports", rotation=90, ha="right", va="center", color="0.3")
ax.set(xlim=(-0.06, 1.15), ylim=(-0.6, len(FLOORS) - 0.4))
ax.axis("off")
plt.show()
