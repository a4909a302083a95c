"""Local lines with a confidence band; what the bandwidth does; what robust iterations do to outliers."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(4)
x = np.sort(rng.uniform(0, 10, size=220))[:, None]
truth = np.sin(x[:, 0]) + x[:, 0] / 5
y = truth + 0.35 * rng.normal(size=220)

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.4, 3.6), layout="constrained", sharey=True)
chosen = ep.LocallyWeightedRegression("loo").fit(x, y)
chosen.plot(ax=left)
left.plot(x, truth, "k:", lw=1.2, label="truth")
left.set(title=f"bandwidth {chosen.bandwidth_:.2f} by leave-one-out", xlabel="x", ylabel="y", ylim=(-1.3, 5.2))
left.legend(loc="upper left")

middle.plot(x, y, ".", color="0.7", ms=4)
for h, colour in ((0.3, "C1"), (6.0, "C2")):
    model = ep.LocallyWeightedRegression(h).fit(x, y)
    middle.plot(x, model.fitted_values_, color=colour, lw=1.6, label=f"{h:g}: {model.effective_dof_:.0f} parameters")
middle.plot(x, truth, "k:", lw=1.2)
middle.set(title="too small, too large", xlabel="x")
middle.legend(loc="upper left")

wild = y.copy()
out = rng.choice(220, 22, replace=False)
wild[out] += rng.uniform(2, 5, size=22)
right.plot(x, wild, ".", color="0.7", ms=4)
right.plot(x[out], wild[out], "x", color="C5", ms=4)
for times, colour in ((0, "C1"), (3, "C0")):
    model = ep.LocallyWeightedRegression(span=0.2, robust_iterations=times).fit(x, wild)
    label = "three robust iterations" if times else "none"
    right.plot(x, model.fitted_values_, color=colour, lw=1.6, label=label)
right.plot(x, truth, "k:", lw=1.2)
right.set(title="outliers", xlabel="x")
right.legend(loc="upper left")
plt.show()
