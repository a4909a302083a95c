"""
Ridge coefficients against the penalty
======================================

A penalty trades a little bias for a lot of variance where columns are correlated. The blood values of the diabetes data
are: their least-squares coefficients are large and cancel each other.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import ShuffleSplit, cross_val_score

import epicycle as ep

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X * np.sqrt(len(X))  # columns of unit variance, so that one penalty suits all
alphas = np.logspace(-1, 5, 25)
models = [ep.Ridge(alpha=alpha).fit(X, y) for alpha in alphas]
coef = np.array([model.coef_ for model in models])

# %%
# Every fit on the path carries its own proof.

print("all certified:", all(model.certificate_.holds for model in models))
print("largest distance from a minimum, relative:", f"{max(model.certificate_.value for model in models):.0e}")

# %%
# The estimators are scikit-learn estimators, so that its cross-validation is used as it is. With 80 patients to learn
# from, the variance matters.

few = ShuffleSplit(12, train_size=80, random_state=0)
score = np.array([cross_val_score(ep.Ridge(alpha=alpha), X, y, cv=few).mean() for alpha in alphas])
best = alphas[score.argmax()]
print(f"best alpha {best:.3g}, R2 {score.max():.4f} (least squares: {score[0]:.4f})")

figure, (top, bottom) = plt.subplots(2, 1, figsize=(7.5, 6), sharex=True, layout="constrained", height_ratios=[2.2, 1])
blood = ["s1", "s2", "s3", "s4", "s5", "s6"]
styles = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1))]
labels = []
for name, values in zip(X.columns, coef.T, strict=True):
    correlated = name in blood
    style = styles[blood.index(name)] if correlated else "-"
    top.semilogx(alphas, values, color="C1" if correlated else "C0", lw=1.6, ls=style, label=name)
top.axhline(0, color="k", lw=0.6)
top.axvline(best, color="0.4", lw=0.8, ls=":")
top.set(ylabel="coefficient", title="blood values s1 to s6 in orange, the others in blue")
bottom.semilogx(alphas, score, color="C2")
bottom.plot(best, score.max(), "o", color="C2")
bottom.axvline(best, color="0.4", lw=0.8, ls=":")
bottom.annotate(f"alpha = {best:.3g}", (best, 0.3), (5, 5), textcoords="offset points", color="0.4")
bottom.set(xlabel="alpha", ylabel="R2 after 80 rows", ylim=(0.3, None))
# Names at the left end of each curve, moved apart where they would overlap.
order = np.argsort(coef[0])
position, gap = coef[0][order].copy(), np.ptp(coef) / 22
for i in range(1, len(position)):
    position[i] = max(position[i], position[i - 1] + gap)
position -= (position - coef[0][order]).mean()
for j, level in zip(order, position, strict=True):
    top.annotate(
        X.columns[j],
        (alphas[0], coef[0, j]),
        (alphas[0] / 1.6, level),
        va="center",
        ha="right",
        fontsize=9,
        arrowprops={"arrowstyle": "-", "color": "0.7", "lw": 0.6},
        bbox={"fc": "white", "ec": "none", "pad": 0.5},
    )
top.set_xlim(alphas[0] / 3, alphas[-1])
plt.show()
