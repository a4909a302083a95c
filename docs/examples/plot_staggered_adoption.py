"""
Treatments that begin at different dates
========================================

A law comes into force in some states in year 3, in others in year 6, and in some never; its effect grows by 1 a year.
Least squares with effects of states and years also compares states that get the law with those that have it already,
which gives the large effects of later years too little weight. Comparing every group with states that never have the
law, and averaging afterwards, does not.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.causal import DifferenceInDifferences

rng = np.random.default_rng(0)
state, year = np.repeat(np.arange(90), 10), np.tile(np.arange(10), 90)
begins = np.resize([3, 6, 99], 90)[state]
law = (year >= begins).astype(float)
y = rng.normal(size=90)[state] + 0.4 * year + law * (1 + year - begins) + 0.5 * rng.normal(size=900)
truth = (1 + year - begins)[law == 1].mean()

# %%
# The mean effect on the treated by both, against the truth.

columns = {"unit": state, "time": year, "treatment": law}
groups = DifferenceInDifferences().fit(None, y, **columns)
naive = DifferenceInDifferences("two_way").fit(None, y, **columns)
print(f"truth {truth:.2f}; by groups {groups.effect_:.2f}; two-way fixed effects {naive.effect_:.2f}")

# %%
# The event study shows no effect before the law, as it should, and the growth after it.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=(3, 2))
groups.plot(left)
names = ["by groups", "two-way"]
for i, model in enumerate((groups, naive)):
    low, high = model.interval_
    right.errorbar([model.effect_], [i], xerr=[[model.effect_ - low], [high - model.effect_]], fmt="o", capsize=4)
right.axvline(truth, ls="--", color="grey", label="truth")
right.set(yticks=[0, 1], yticklabels=names, ylim=(-0.6, 1.6), xlabel="mean effect on the treated")
right.legend()
plt.show()
