"""A jump at a cutoff, an event study, instruments strong and weak, and a synthetic control."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.causal import (
    DifferenceInDifferences,
    InstrumentalVariables,
    RegressionDiscontinuity,
    SyntheticControl,
)

rng = np.random.default_rng(3)
fig, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")

x = rng.uniform(-1, 1, 1500)
y = np.sin(2 * x) + 0.5 * (x >= 0) + 0.3 * rng.normal(size=1500)
RegressionDiscontinuity().fit(x, y).plot(axes[0, 0])

unit, time = np.repeat(np.arange(300), 8), np.tile(np.arange(8), 300)
begins = rng.choice([3, 5, 99], size=300)[unit]
treated = (time >= begins).astype(float)
y = rng.normal(size=300)[unit] + 0.3 * time + treated * (1 + 0.5 * (time - begins)) + rng.normal(size=2400)
DifferenceInDifferences().fit(None, y, unit=unit, time=time, treatment=treated).plot(axes[0, 1])
axes[0, 1].set_title("treatments that begin at two dates")

ax = axes[1, 0]
z, u, noise = rng.normal(size=(3, 400))
b = np.linspace(-1, 5, 300)
for strength, style in ((1.0, "-"), (0.06, "--")):
    d = strength * z + u + 0.5 * noise
    model = InstrumentalVariables().fit(None, 2 * d + u, treatment=d, instruments=z)
    p = [model._anderson_rubin_.p_value(value) for value in b]
    ax.plot(b, p, style, label=f"first-stage F {model.first_stage_F_.statistic:.1f}")
ax.axhline(0.05, lw=1, color="grey")
ax.set(xlabel="effect", ylabel="p-value (Anderson-Rubin)", title="instruments, true effect 2")
ax.legend()

ax = axes[1, 1]
factor = rng.normal(size=(2, 40)).cumsum(axis=1)
Y = rng.dirichlet(np.ones(2), size=25) @ factor + 0.3 * rng.normal(size=(25, 40))
Y[0, 28:] += 2.0
unit, time = np.repeat(np.arange(25), 40), np.tile(np.arange(40), 25)
model = SyntheticControl().fit(Y.ravel(), unit=unit, time=time, treatment=(unit == 0) & (time >= 28))
for gap in model.placebo_gaps_:
    ax.plot(gap, color="grey", lw=0.7, alpha=0.5)
ax.plot(model.gaps_, label=f"treated unit, placebo p = {model.p_value_:.2f}")
ax.axvline(28, lw=1, ls="--", color="grey")
ax.set(xlabel="time", ylabel="gap to the synthetic control", title="synthetic control, true effect 2")
ax.legend()
