"""The diagram of a confounded study, its love plot and the overlap of its propensity scores."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from epicycle import TreatmentEffect
from epicycle.causal import CausalGraph

rng = np.random.default_rng(0)
n = 3000
X = pd.DataFrame(
    {
        "age": rng.uniform(20, 70, n),
        "income": rng.lognormal(0, 0.5, n),
        "smoker": rng.random(n) < 0.3,
        "visits": rng.poisson(2, n),
    }
).astype(float)
score = 0.09 * (X.age - 45) - 1.2 * (X.income - 1) + 0.8 * X.smoker
treated = rng.random(n) < 1 / (1 + np.exp(-score))
y = 0.05 * X.age - X.income + 2 * treated + rng.normal(size=n)
model = TreatmentEffect(method="ipw").fit(X, y, treatment=treated)
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.4), width_ratios=[0.9, 1, 1])
CausalGraph("covariates -> treatment -> outcome; covariates -> outcome").plot("treatment", "outcome", ax=left)
model.plot_balance(middle)
model.plot_overlap(right)
fig.tight_layout()
