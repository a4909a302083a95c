"""
Machines for strings
====================

Every kernel machine takes strings, because it looks at rows through a kernel only. Here sequences of letters come from
two families, each with a short motif of its own at a place that is not known, written with a mistake now and then.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

import epicycle as ep
from epicycle.kernel import Mismatch, Spectrum, Subsequence

rng = np.random.default_rng(0)
letters = np.array(list("ACGT"))


def sequence(motif, length=50, mistakes=0.12):
    text = rng.choice(letters, length)
    place = rng.integers(0, length - len(motif))
    wrong = rng.random(len(motif)) < mistakes
    text[place : place + len(motif)] = np.where(wrong, rng.choice(letters, len(motif)), list(motif))
    return "".join(text)


motifs = ["GATTACAGATT", "CCATGGCATGC"]
y = np.repeat([0, 1], 90)
strings = np.array([sequence(motifs[label]) for label in y])
print(strings[0], strings[-1], sep="\n")

# %%
# Words of k letters, the same words with one mismatch, and words with gaps, all normalised to the cosine of the angle
# between their features. The spectrum of short words sees little, that of long words misses motifs with a mistake.

kernels = {f"spectrum {k}": Spectrum(k) for k in (2, 3, 4, 5, 6)}
kernels |= {f"mismatch {k}, 1": Mismatch(k, 1) for k in (4, 5, 6)}
kernels |= {f"subsequence {n}": Subsequence(n, decay=0.5) for n in (3, 4, 5)}
scores = {}
for name, kernel in kernels.items():
    model = ep.KernelLogisticRegression(10.0, kernel=kernel.normalized())
    scores[name] = cross_val_score(model, strings, y, cv=4).mean()
best = max(scores, key=scores.get)
print(f"best: {best}, accuracy {scores[best]:.3f}")

# %%
# The same kernel goes to the other machines: here it draws the two families.

Z = ep.KernelPCA(2, kernel=kernels[best].normalized()).fit_transform(strings)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 4), layout="constrained", width_ratios=[1.1, 1])
left.barh(list(scores)[::-1], list(scores.values())[::-1], color=["C0" if n == best else "0.75" for n in scores][::-1])
left.axvline(0.5, color="k", lw=0.8, ls=":")
left.set(xlabel="accuracy, cross-validated", xlim=(0.4, 1))
for label, motif in enumerate(motifs):
    right.plot(*Z[y == label].T, "o", ms=4, color=f"C{label}", label=motif)
right.set(
    xlabel="first component", ylabel="second component", ylim=(None, 0.56), title=f"kernel principal components, {best}"
)
right.legend(title="motif")
plt.show()
