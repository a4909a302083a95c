"""L1-penalised logistic regression on the breast cancer data: coefficients and held-out scores against C."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import epicycle as ep

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = ((X - X.mean()) / X.std()).filter(like="worst")
model = ep.LogisticRegressionCV(Cs=np.geomspace(1e-3, 10, 25), l1_ratios=[0.0, 0.5, 1.0]).fit(X, y == 0)
sparse = ep.LogisticRegressionCV(Cs=np.geomspace(1e-3, 10, 25), l1_ratios=[1.0]).fit(X, y == 0)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4), layout="constrained")
sparse.plot("path", ax=left)
left.set(title="L1: one feature after the other")
left.legend(loc="upper left", fontsize="small", frameon=False)
model.plot(ax=right)
right.set(title="scores of five folds, with standard errors", ylim=(-0.45, 0))
plt.show()
