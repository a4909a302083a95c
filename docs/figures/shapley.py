"""Shapley values of the diabetes data: every dot is a patient, its colour says how large the feature is."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import epicycle as ep
from epicycle.plot import in_style

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = ep.GradientBoostingRegressor(n_estimators=60, max_leaf_nodes=6, learning_rate=0.1).fit(X, y)
phi = model.shap_values(X)
order = np.argsort(-np.abs(phi).mean(axis=0))[:6]
rng = np.random.default_rng(0)

with in_style():
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.6, 3.8), layout="constrained", gridspec_kw={"width_ratios": [1.3, 1]}
    )
for place, j in enumerate(order):
    rank = np.argsort(np.argsort(X.iloc[:, j].to_numpy())) / len(X)
    height = -place + 0.12 * rng.standard_normal(len(X)).clip(-2, 2)
    dots = left.scatter(phi[:, j], height, c=rank, s=7, cmap="cividis", vmin=0, vmax=1, lw=0)
left.set_yticks(-np.arange(len(order)), X.columns[order])
left.axvline(0, color="0.6", lw=0.8)
left.set(xlabel="moves the prediction by", title="what moved the prediction of each row")
bar = figure.colorbar(dots, ax=left, ticks=[0, 1])
bar.ax.set_yticklabels(["small", "large"])
right.scatter(X["bmi"], phi[:, list(X.columns).index("bmi")], c=X["bp"], s=9, cmap="cividis", lw=0)
right.axhline(0, color="0.6", lw=0.8)
right.set(xlabel="bmi", ylabel="moves the prediction by", title="bmi, coloured by blood pressure")
plt.show()
