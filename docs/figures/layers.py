"""The floors of the package: a floor imports only from those below it."""

import matplotlib.pyplot as plt

FLOORS = [
    ("cli", "the command epicycle", "tools"),
    ("automl, diagnose, select", "the training command, diagnoses, selection and validation", "tools"),
    ("online, plot, theory", "online evaluation, figures, bounds", "tools"),
    ("report", "pages of reports from records in plain data", "tools"),
    ("rl, search", "agents that learn by acting, in the worlds of control; games", "methods"),
    ("causal, control", "learning what actions do: any family below is a part of them", "methods"),
    ("anomaly", "rows unlike the others: trees, neighbours, mixtures", "methods"),
    (
        "discriminant, ensemble, generative,\nmanifold, mixture, recommend, text",
        "families that use those below",
        "methods",
    ),
    (
        "bayes, cluster, decomposition, gp,\nhmm, kernel, linear, naive_bayes,\nneighbors, nets, svm, tree",
        "one package a family; none imports another",
        "methods",
    ),
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

figure, ax = plt.subplots(figsize=(10.4, 7.2), layout="constrained")
top, middles = 0.0, {}
for name, what, group in reversed(FLOORS):
    height = 0.45 + 0.55 * (name.count("\n") + 1)
    middle = top + height / 2
    ax.barh(middle, 1, height=height - 0.18, color=COLOURS[group], alpha=0.35, edgecolor=COLOURS[group])
    ax.text(0.012, middle, name, va="center", weight="bold", family="monospace", fontsize=8.5)
    ax.text(0.45, middle, what, va="center", fontsize=9)
    middles.setdefault(group, []).append(middle)
    top += height
for group, rows in middles.items():
    ax.text(1.012, sum(rows) / len(rows), group, va="center", color="0.25", style="italic")
ax.annotate("", (-0.03, 0.2), (-0.03, top - 0.2), arrowprops={"arrowstyle": "-|>", "color": "0.3"})
ax.text(-0.05, top / 2, "imports", rotation=90, ha="right", va="center", color="0.3")
ax.set(xlim=(-0.06, 1.15), ylim=(-0.1, top + 0.1))
ax.axis("off")
plt.show()
