"""
Probabilities that mean what they say
=====================================

Of the rows that are given a probability of 0.8, eight in ten should be of the class. Scores by which rows are ranked
need not have that property; four classifiers on one table, before and after calibration.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss, roc_auc_score

import epicycle as ep

X, y = make_classification(6000, 20, n_informative=4, n_redundant=10, class_sep=0.8, random_state=0)
train, test = slice(0, 2500), slice(2500, None)
models = {
    "logistic regression": ep.LogisticRegression(),
    "naive Bayes": ep.GaussianNB(),
    "random forest": ep.RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
    "boosting": ep.GradientBoostingClassifier(n_estimators=200, learning_rate=0.2, random_state=0),
}

# %%
# Naive Bayes counts correlated columns as if each were new evidence, and is far too sure. Boosting of many rounds is
# too sure of its training rows. An increasing map from scores to probabilities, learnt on other folds, repairs both,
# and leaves the order of the rows nearly as it was.

print(f"{'':22}{'AUC':>7}{'log loss':>10}{'calibrated':>12}")
figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.4), layout="constrained", sharey=True)
bins = np.linspace(0, 1, 11)
for name, model in models.items():
    plain = model.fit(X[train], y[train])
    repaired = CalibratedClassifierCV(model, method="isotonic", cv=5).fit(X[train], y[train])
    losses = []
    for ax, fitted in zip(axes, (plain, repaired), strict=True):
        p = fitted.predict_proba(X[test])[:, 1]
        losses.append(log_loss(y[test], p))
        place = np.clip(np.digitize(p, bins) - 1, 0, 9)
        used = [b for b in range(10) if (place == b).sum() >= 20]
        ax.plot(
            [p[place == b].mean() for b in used], [y[test][place == b].mean() for b in used], "o-", ms=4, label=name
        )
    auc = roc_auc_score(y[test], plain.predict_proba(X[test])[:, 1])
    print(f"{name:22}{auc:7.3f}{losses[0]:10.3f}{losses[1]:12.3f}")
for ax, title in zip(axes, ("as fitted", "calibrated on folds"), strict=True):
    ax.plot([0, 1], [0, 1], color="0.5", lw=1, ls=":")
    ax.set(xlabel="probability that was given", title=title, xlim=(0, 1), ylim=(0, 1))
axes[0].set_ylabel("share of the class")
axes[0].legend()
plt.show()
