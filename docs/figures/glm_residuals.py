"""Deviance and quantile residuals of a right and of a wrong family for the same counts."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import epicycle as ep
from epicycle.linear import families

rng = np.random.default_rng(0)
X = rng.normal(size=(800, 2))
y = rng.poisson(np.exp(0.5 + X @ [0.4, -0.3]) * rng.gamma(1.25, 0.8, size=800))
wrong = ep.GeneralizedLinearModel("poisson").fit(X, y)
right = ep.GeneralizedLinearModel(families.NegativeBinomial("estimate")).fit(X, y)

figure, (a, b) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
a.plot(right.predict_linear(X), right.residuals(X, y, "deviance"), ".", color="C0", ms=3)
a.axhline(0, color="k", lw=0.6)
a.set(xlabel="linear predictor", ylabel="deviance residual", title="negative binomial: bands are the values of y")
expected = norm.ppf((np.arange(800) + 0.5) / 800)
for model, name, colour in ((wrong, "Poisson", "C1"), (right, "negative binomial", "C0")):
    residuals = np.sort(model.residuals(X, y, "quantile", random_state=0))
    b.plot(expected, residuals, ".", color=colour, ms=3, label=name)
b.plot([-3.3, 3.3], [-3.3, 3.3], "k:", lw=1)
b.set(xlabel="normal quantile", ylabel="quantile residual", title="the wrong family shows in the tails", ylim=(-4, 6))
b.legend(loc="upper left", markerscale=3)
plt.show()
