"""
Unusual digits
==============

Handwritten digits of one kind, with a few of another kind among them. Three detectors rank the rows, conformal p-values
bound the share of false discoveries, and an explanation shows the pixels that give a digit away.
"""

# %%
# Nines are normal; a dozen fours are hidden among them. Half of the nines serve to fit, a quarter to calibrate.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

import epicycle as ep

digits = load_digits()
rng = np.random.default_rng(0)
nines, fours = (rng.permutation(digits.data[digits.target == k]) for k in (9, 4))
fit, calibration, rest = nines[:90], nines[90:140], nines[140:]
rows = np.concatenate([rest, fours[:12]])
odd = np.arange(len(rows)) >= len(rest)

# %%
# The area under the ROC curve says how well the fours stand out.
detectors = {
    "isolation forest": ep.IsolationForest(random_state=0),
    "principal components": ep.PCAAnomalyDetector(0.9, statistic="residual", scale=False),
    "normal, all pixels together": ep.GaussianAnomalyDetector(covariance="multivariate", shrinkage=0.2),
}
for name, model in detectors.items():
    area = roc_auc_score(odd, -model.fit(fit).score_samples(rows))
    print(f"{name:<30} {area:.3f}")

# %%
# With nines that the fit did not see, p-values are right whatever the detector. At most a fifth of what is reported is
# expected to be false.
model = detectors["principal components"].calibrate(calibration)
found = model.detect(rows, fdr=0.2) == -1
print(f"{found.sum()} reported, {(found & odd).sum()} of the {odd.sum()} fours among them")

# %%
# The most unusual digits, and the pixels that make them so.
order = np.argsort(model.score_samples(rows))[:6]
parts = model.explain(rows[order])
figure, axes = plt.subplots(2, 6, figsize=(9, 3.2), layout="constrained")
for i, row in enumerate(order):
    axes[0, i].imshow(rows[row].reshape(8, 8), cmap="gray_r")
    axes[0, i].set_title("a four" if odd[row] else "a nine", fontsize=9)
    axes[1, i].imshow(parts[i].reshape(8, 8), cmap="Oranges")
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
plt.show()
