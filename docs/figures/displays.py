"""The figures of a classifier and a regressor, on a dark ground and on a light one."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep
from epicycle import plot

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 4))
p = 1 / (1 + np.exp(2 - 2 * X[:, 0] - X[:, 1]))
y = np.where(rng.random(3000) < p, "ill", "well")
model = ep.LogisticRegression().fit(X[:1000], y[:1000])
said = model.predict_proba(X[1000:])[:, 0]
truth = y[1000:]

figure = plt.figure(figsize=(10.4, 6.8), layout="constrained")
light, dark = figure.subfigures(2, 1)
axes = light.subplots(1, 3)
plot.calibration(truth, said, axes[0], positive="ill")
plot.precision_recall(truth, said, axes[1], positive="ill", threshold=0.5)
plot.confusion(truth, model.predict(X[1000:]), axes[2])

with plot.in_style(dark=True):
    dark.set_facecolor(plt.rcParams["figure.facecolor"])
    axes = dark.subplots(1, 3)
    plot.roc(truth, said, axes[0], positive="ill")
    target = X @ [1.0, 0.5, 0.0, 0.2] + (0.3 + 0.3 * (X[:, 0] > 0)) * rng.normal(size=3000)
    fit = ep.LinearRegression().fit(X[:1000], target[:1000])
    plot.residuals(target[1000:], fit.predict(X[1000:]), axes[1])
    forest = ep.RandomForestRegressor(n_estimators=40, oob_score=True, random_state=0, n_jobs=1).fit(X, target)
    worth, error = forest.permutation_importances(X, target)
    plot.importances(worth, ["dose", "age", "town", "day"], axes[2], errors=error, what="rise of the error")
plt.show()
