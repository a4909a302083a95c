"""A linear spline with many knots under three penalties on its changes of slope."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(2)
x = np.sort(rng.uniform(0, 1, size=120))[:, None]
truth = np.sin(8 * x[:, 0]) * x[:, 0]
y = truth + 0.15 * rng.normal(size=120)

chosen = ep.LinearSpline(30, "loo").fit(x, y)
figure, axes = plt.subplots(1, 3, figsize=(10.6, 3.4), layout="constrained", sharey=True)
for ax, (title, alpha) in zip(
    axes, {"too little": 0.0, "leave-one-out": chosen.alpha_, "too much": 300 * chosen.alpha_}.items(), strict=True
):
    model = ep.LinearSpline(30, alpha).fit(x, y)
    model.plot(x, y, ax=ax)
    ax.plot(x, truth, "k:", lw=1.2)
    name = "0" if alpha == 0 else f"{alpha:.2g}"
    ax.set(title=rf"{title}: $\alpha$ = {name}, {model.effective_dof_:.1f} parameters", xlabel="x", ylabel="")
    ax.grid(visible=False)
plt.show()
