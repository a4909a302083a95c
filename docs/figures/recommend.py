"""Collaborative filtering: the objective round by round, the choice of the penalty, and items by their factors."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep
from epicycle.recommend import CollaborativeFiltering

rng = np.random.default_rng(0)
kind = np.arange(60) % 3  # items of three kinds, and users who like one of them
taste = rng.normal(size=(300, 3)) * [1.0, 0.7, 0.5]
user, item = np.divmod(rng.choice(300 * 60, size=6000, replace=False), 60)
rating = 3.5 + rng.normal(size=60)[item] * 0.4 + taste[user, kind[item]] + 0.8 * rng.normal(size=6000)
rating = np.clip(np.round(2 * rating) / 2, 0.5, 5)
pairs, test = np.column_stack([user, item]), rng.random(6000) < 0.25

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.4, 3.6), layout="constrained")
for name, method, solver, style in [
    ("ALS, Cholesky", "als", "cholesky", "-"),
    ("ALS, 3 conjugate gradients", "als", "cg", "--"),
    ("joint gradient, L-BFGS", "gradient", "lbfgs", "-"),
]:
    with ep.config(on_nonconvergence="ignore"):
        model = CollaborativeFiltering(method, solver=solver, n_factors=5, max_iter=40, tol=1e-6, random_state=0)
        trace = np.asarray(model.fit(pairs, rating).history_.objective)
    left.plot(np.arange(1, len(trace) + 1), trace, style, label=name)
left.set(title="F never rises", xlabel="round or iteration", ylabel="F", ylim=(None, 2.0 * trace.min()))
left.legend(fontsize=8)

penalties = np.geomspace(0.02, 1.0, 10)
for k in (0, 2, 5, 20):
    errors = []
    for reg in penalties:
        model = CollaborativeFiltering(n_factors=k, reg=reg, tol=1e-2, random_state=0).fit(pairs[~test], rating[~test])
        errors.append(np.sqrt(np.mean((model.predict(pairs[test]) - rating[test]) ** 2)))
    middle.semilogx(penalties, errors, marker=".", label=f"{k} factors" if k else "biases alone")
middle.set(title="error on ratings left out", xlabel="penalty", ylabel="RMSE")
middle.legend(fontsize=8)

Y = CollaborativeFiltering(n_factors=5, random_state=0).fit(pairs, rating).item_factors_
Z = ep.PCA(2).fit_transform(Y)
for a, marker in enumerate("os^"):
    right.scatter(*Z[kind == a].T, s=22, marker=marker, label=f"kind {a + 1}")
right.set(title="items by their factors", xlabel="first component", ylabel="second component")
right.locator_params(nbins=5)
right.legend(fontsize=8)
plt.show()
