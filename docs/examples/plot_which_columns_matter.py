"""
Which columns matter
====================

Sixty columns, of which five carry the target. Four ways to find them, and how often each is right as rows become few.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

true = np.zeros(60)
true[:5] = [2.0, -1.5, 1.0, 1.0, -0.7]


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 60)) + 0.7 * rng.normal(size=(n, 1))  # columns that resemble each other
    return X, X @ true + 1.5 * rng.normal(size=n)


# %%
# The path of the lasso on 80 rows, and the penalty that cross-validation chooses.

X, y = draw(80, 0)
path = ep.lasso_path(X, y, n_alphas=60)
chosen = ep.LassoCV(cv=5).fit(X, y)
print(np.flatnonzero(chosen.coef_))

# %%
# Cross-validation chooses for prediction, and takes some noise along; one standard error further, or orthogonal
# matching pursuit that is told the number, are stricter.


def found_by(name: str, X: np.ndarray, y: np.ndarray) -> set[int]:
    if name == "lasso, cross-validated":
        return set(np.flatnonzero(ep.LassoCV(cv=5).fit(X, y).coef_))
    if name == "lasso by BIC":
        return set(np.flatnonzero(ep.LassoLarsIC("bic").fit(X, y).coef_))
    if name == "matching pursuit, five":
        return set(np.flatnonzero(ep.OrthogonalMatchingPursuit(n_nonzero_coefs=5).fit(X, y).coef_))
    t = np.abs(ep.Ridge(1.0).fit(X, y).coef_)
    return set(np.argsort(-t)[:5])


sizes, truth = (80, 120, 200, 400), set(range(5))
figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.0), layout="constrained")
for j in range(59, -1, -1):  # true columns in colour
    left.semilogx(path.alphas, path.coefs[j], color=f"C{j}" if j < 5 else "0.8", lw=1.8 if j < 5 else 0.7)
left.axvline(chosen.alpha_, color="0.3", lw=1, ls=":")
left.invert_xaxis()
left.set(xlabel="alpha (dotted: by cross-validation)", ylabel="coefficient", title="the path of the lasso, 80 rows")
for name in ("lasso, cross-validated", "lasso by BIC", "matching pursuit, five", "five largest of ridge"):
    overlap = []
    for n in sizes:
        sets = [found_by(name, *draw(n, seed)) for seed in range(12)]
        overlap.append(np.mean([len(s & truth) / len(s | truth) for s in sets]))
    right.plot(sizes, overlap, "o-", ms=4, label=name)
right.set(
    xlabel="rows", ylabel="share of agreement with the truth", ylim=(0, 1.03), xscale="log", title="sets that are found"
)
right.set_xticks(sizes, [str(n) for n in sizes])
right.minorticks_off()
right.legend(fontsize=8)
plt.show()
