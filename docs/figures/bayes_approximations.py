"""A skewed posterior with its normal approximations, and the trace of the bound."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

import epicycle as ep
from epicycle import bayes

rng = np.random.default_rng(4)
X = np.column_stack([np.ones(14), rng.normal(size=14)])
y = (rng.random(14) < expit(X @ [0.5, 2.0])).astype(float)


def log_density(w):
    z = X @ w
    return y @ z - np.logaddexp(0, z).sum() - w @ w / 18


def gradient(w):
    return X.T @ (y - expit(X @ w)) - w / 9


with ep.config(on_nonconvergence="ignore"):
    laplace = bayes.laplace(log_density, [0.0, 0.0], gradient=gradient)
    field, full = (
        bayes.variational(log_density, [0.0, 0.0], gradient=gradient, family=f, random_state=0, n_draws=2000)
        for f in ("mean-field", "full-rank")
    )
    slow = bayes.variational(
        log_density, [0.0, 0.0], gradient=gradient, family="full-rank", init="start", random_state=0, n_draws=2000
    )
grid = np.stack(np.meshgrid(np.linspace(-3, 5, 121), np.linspace(-2, 10, 121)), axis=-1)
exact = np.exp([[log_density(w) for w in row] for row in grid])
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
left.contourf(grid[..., 0], grid[..., 1], exact, levels=8, cmap="Greys")
shown = (
    ("Laplace", laplace, "#E69F00", "--"),
    ("mean-field", field, "#D55E00", ":"),
    ("full-rank", full, "#0072B2", "-"),
)
for name, fit, colour, dashes in shown:
    density = fit.normal.pdf(grid)
    levels = density.max() * np.array([0.1, 0.6])
    left.contour(grid[..., 0], grid[..., 1], density, levels=levels, colors=colour, linestyles=dashes)
    left.plot([], [], color=colour, ls=dashes, label=name)
left.set(xlabel="intercept", ylabel="slope", title="14 rows: a skewed posterior")
left.legend(loc="upper right")
right.plot(slow.history_.elbo, color="#0072B2", lw=0.8, label="ELBO of a step")
right.axhline(slow.log_evidence, color="#D55E00", ls="--", label="evidence, by importance weights")
right.set(
    xlabel="step", ylabel="ELBO", ylim=(slow.log_evidence - 1.5, slow.log_evidence + 0.3), title="from unit variances"
)
right.legend(loc="lower right")
plt.show()
