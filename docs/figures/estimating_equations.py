"""The line through two centres, and the sampling spread of the choices of weights."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(2)
x = np.sort(rng.gamma(2.0, 1.0, 24))
y = 1 + 0.8 * x + 0.7 * rng.normal(size=24)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
above = x > x.mean()
left.plot(x[above], y[above], "o", color="C1", ms=4)
left.plot(x[~above], y[~above], "o", color="C0", ms=4)
centres = np.array([[x[g].mean(), y[g].mean()] for g in (~above, above)])
left.plot(*centres.T, "k*", ms=13, label="sums of the two groups")
ends = np.array([[0.0], [x.max()]])
left.plot(ends, ep.EstimatingEquations(weights="mayer").fit(x[:, None], y).predict(ends), "k-", lw=1.2, label="Mayer")
left.plot(ends, ep.LinearRegression().fit(x[:, None], y).predict(ends), "k:", label="least squares")
left.set(xlabel="x", ylabel="y", title="two unknowns, two combined equations")
left.legend(loc="upper left")

rules = ["least_squares", "laplace", "sign", "mayer"]
slopes = {rule: [] for rule in rules}
for _ in range(300):
    z = 1 + 0.8 * x + 0.7 * rng.normal(size=24)
    for rule in rules:
        slopes[rule].append(ep.EstimatingEquations(weights=rule).fit(x[:, None], z).coef_[0])
right.boxplot(
    [slopes[rule] for rule in rules],
    orientation="horizontal",
    widths=0.6,
    showfliers=False,
    medianprops={"color": "C0"},
)
right.axvline(0.8, color="0.4", lw=0.8, ls=":")
efficiency = [ep.EstimatingEquations(weights=rule).fit(x[:, None], y).efficiency()[0] for rule in rules]
right.set_yticks(range(1, 5), [f"{rule}\nefficiency {e:.2f}" for rule, e in zip(rules, efficiency, strict=True)])
right.invert_yaxis()
right.set(xlabel="slope in 300 samples (truth: 0.8)", title="all unbiased, none below Gauss")
plt.show()
