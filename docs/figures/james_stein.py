"""Eighteen batting averages shrunken towards their mean, and the risk of the estimator."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

hits = np.array([18, 17, 16, 15, 14, 14, 13, 12, 11, 11, 10, 10, 10, 10, 10, 9, 8, 7])
rest = np.array(
    [
        0.346,
        0.298,
        0.276,
        0.222,
        0.273,
        0.270,
        0.263,
        0.210,
        0.269,
        0.230,
        0.264,
        0.256,
        0.303,
        0.264,
        0.226,
        0.285,
        0.316,
        0.200,
    ]
)
early = hits / 45
shrunken = ep.shrink_means(early, variance=early.mean() * (1 - early.mean()) / 45)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
for a, b, c in zip(early, shrunken.values, rest, strict=True):
    left.plot([0, 1, 2], [a, b, c], "-", color="0.8", lw=0.9, zorder=1)
for k, values in enumerate((early, shrunken.values, rest)):
    left.plot(np.full(18, k), values, "o", color=f"C{k}", ms=4.5)
left.set_xticks([0, 1, 2], ["first 45\nat bat", "shrunken", "rest of\nthe season"])
left.set(ylabel="batting average", title="eighteen players, 1970", xlim=(-0.3, 2.3))

rng = np.random.default_rng(0)
p, lengths = 10, np.linspace(0, 8, 17)
risks = {"plain": [], "positive part": []}
for length in lengths:
    theta = np.full(p, length / np.sqrt(p))
    x = theta + rng.normal(size=(1000, p))
    for name, positive in (("plain", False), ("positive part", True)):
        losses = [
            ((ep.shrink_means(row, 1.0, target=0.0, positive_part=positive).values - theta) ** 2).sum() for row in x
        ]
        risks[name].append(np.mean(losses))
right.axhline(p, color="0.4", ls="--", label="least squares")
right.plot(lengths, risks["plain"], label="James and Stein")
right.plot(lengths, risks["positive part"], label="positive part")
right.set(xlabel=r"$|\theta|$", ylabel="expected squared error", ylim=(0, 11), title="ten means of variance one")
right.legend(loc="lower right")
plt.show()
