"""
A certificate is a bound
========================

A certificate is worth something only if it is true. Here the distance from the minimum that each certificate asserts is
put beside the distance that it really has, for fits that are cut short after 1, 2, 3, ... iterations.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import epicycle as ep

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# The objective is written out here with NumPy alone, so that nothing of the library vouches for itself. The intercept
# is not penalised.


def objective(model):
    z = X @ model.coef_[0] + model.intercept_[0]
    return np.sum(np.logaddexp(0, z) - y * z) + model.coef_[0] @ model.coef_[0] / (2 * model.C)


minimum = objective(ep.LogisticRegression(tol=1e-13).fit(X, y))

# %%
# A fit that is cut short warns; since that is the purpose here, the warning is turned off for a while. A certificate
# that does not hold is kept all the same: it says how far the fit has come.


def cut_short(solver, n):
    with ep.config(on_nonconvergence="ignore"):
        return ep.LogisticRegression(solver=solver, max_iter=n, tol=1e-13).fit(X, y)


figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for ax, solver, steps in zip(panels, ["lbfgs", "newton"], [range(1, 50, 3), range(1, 9)], strict=True):
    models = [cut_short(solver, n) for n in steps]
    value = np.array([objective(model) for model in models])
    true = np.maximum((value - minimum) / value, 1e-16)
    asserted = np.array([model.certificate_.value for model in models])
    assert (asserted >= (value - minimum) / value - 1e-15).all()
    kinds = np.array([model.certificate_.kind for model in models])
    ax.semilogy(steps, true, "k-", label="true distance")
    for kind, marker in (("duality gap", "s"), ("newton decrement", "o")):
        here = kinds == kind
        ax.semilogy(np.array(steps)[here], np.maximum(asserted[here], 1e-16), marker, ms=5, label=f"bound: {kind}")
    ax.axhline(1e-8, color="0.4", lw=0.8, ls=":")
    ax.set(title=f"solver={solver!r}", xlabel="iterations before the cut")
    ax.legend()
panels[0].set_ylabel("distance from the minimum, relative")
panels[0].annotate("default tol", (1, 1e-8), (0, 3), textcoords="offset points", color="0.4")
plt.show()

# %%
# The bound never lies below the truth. The duality gap, which needs a penalty but no Hessian, is loose by a few orders
# of magnitude; the Newton decrement is asymptotically exact. A fit takes whichever proves more.
