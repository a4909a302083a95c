"""One graph by PC, by FCI with a variable hidden, and by LiNGAM."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.causal import discover

rng = np.random.default_rng(1)
n = 3000


def table(noise):
    talent, wealth, school, degree, income, house = noise
    school = 0.8 * wealth + school
    degree = school + talent + degree
    income = 0.7 * degree + 0.6 * wealth + income
    return np.column_stack([talent, wealth, school, degree, income, income + house])


NAMES = ["talent", "wealth", "school", "degree", "income", "house"]
X = table(rng.normal(size=(6, n)))
fig, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
discover(X, names=NAMES, bootstrap=20).plot(axes[0])
kept = [0, 2, 3, 4, 5]
discover(X[:, kept], "fci", names=[NAMES[j] for j in kept], bootstrap=20).plot(axes[1])
axes[1].set_title("PAG by fci, wealth hidden")
discover(table(rng.uniform(-1.7, 1.7, size=(6, n))), "lingam", names=NAMES, bootstrap=5).plot(axes[2])
