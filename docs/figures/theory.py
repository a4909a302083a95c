"""Upper bounds on an error rate by the number of rows, and scores of learners on random labels."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.tree import DecisionTreeClassifier

from epicycle.theory import rademacher, test_bound, vc

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
n = np.unique(np.geomspace(20, 20_000, 60).astype(int) // 20 * 20)
left.plot(n, [vc.bound(0.05, int(m), 3) for m in n], color="C3", label="training rows, VC dimension 3")
left.plot(
    n, [test_bound(errors=m // 20, n=m, method="hoeffding").upper for m in n], color="C1", label="test rows, Hoeffding"
)
left.plot(n, [test_bound(errors=m // 20, n=m).upper for m in n], color="C0", label="test rows, counted")
left.axhline(0.05, color="black", ls=":", lw=1, label="error on the rows")
left.set(xscale="log", xlabel="rows", ylabel="upper bound at 95%", ylim=(0, 1), title="what an error of 5% says")
left.legend(fontsize=8)

X = np.random.default_rng(0).normal(size=(400, 3))
depths = np.arange(1, 11)
values = [rademacher(DecisionTreeClassifier(max_depth=int(d), random_state=0), X, n_flips=6).value for d in depths]
right.plot(depths, values, "o-", color="C0", ms=4)
right.set(xlabel="depth of the tree", ylabel="score on random labels", ylim=(0, 1), title="fits to noise")
plt.show()
