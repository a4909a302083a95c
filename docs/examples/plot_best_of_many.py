"""
The best of many is not that good
=================================

Of forty models the best score on the folds is chosen. That score is the largest of forty noisy numbers, and too high;
nested folds, or rows that are used once, tell what choosing and fitting together are worth.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

# %%
# Labels without any relation to the columns: every classifier is right half of the time, and none more often.

models = {
    f"{c}": (ep.DecisionTreeClassifier(random_state=0), {"max_depth": [c], "max_features": list(range(1, 11))})
    for c in (1, 2, 4, 8)
}
best, nested = [], []
for seed in range(4):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(80, 10)), rng.integers(0, 2, 80)
    best.append(ep.select.k_fold(models, X, y, cv=5, scoring="accuracy", refit=False, random_state=seed).score)
    found = ep.select.nested(models, X, y, cv=5, inner_cv=3, scoring="accuracy", refit=False, random_state=seed)
    nested.append(found.procedure_score)
print(f"best of forty on the folds {np.mean(best):.3f}, nested {np.mean(nested):.3f}, truth 0.500")

# %%
# Each line is one data set.

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for a, b in zip(best, nested, strict=True):
    ax.plot([0, 1], [a, b], "o-", color="C0", alpha=0.6, ms=5)
ax.axhline(0.5, color="0.4", lw=1, ls=":")
ax.set(xticks=[0, 1], xticklabels=["best score on the folds", "nested folds"], xlim=(-0.3, 1.3), ylabel="accuracy")
ax.set_title("four sets of random labels")
plt.show()
