"""What a perceptron draws with a Gaussian kernel, the rows it was mistaken on, and its mistakes against their bound."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep
from epicycle.kernel import Gaussian


def rings(gap, seed, n=200):
    rng = np.random.default_rng(seed)
    radius, angle = np.sqrt(rng.uniform(0, 4, n)), rng.uniform(0, 2 * np.pi, n)
    keep = np.abs(radius - 1.2) > gap
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])[keep], (radius > 1.2)[keep]


figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.9), layout="constrained", width_ratios=[1, 1.2])
X, y = rings(0.08, 0)
u, v = np.meshgrid(np.linspace(-2.2, 2.2, 160), np.linspace(-2.2, 2.2, 160))
grid = np.column_stack([u.ravel(), v.ravel()])
for variant, style in (("online", "solid"), ("averaged", "dashed")):
    model = ep.KernelPerceptron(Gaussian(0.7), variant=variant).fit(X, y)
    left.contour(u, v, model.decision_function(grid).reshape(u.shape), levels=[0], colors="k", linestyles=style)
    left.plot([], [], "k", ls=style, label=variant)
for side, colour in ((False, "C0"), (True, "C1")):
    left.plot(*X[y == side].T, "o", ms=3, color=colour, alpha=0.8)
left.plot(*model.X_fit_.T, "o", ms=9, mfc="none", mec="0.3", mew=0.9, label="mistaken once or more")
left.set(xticks=[], yticks=[], aspect="equal", ylim=(-3.1, 2.2))
left.set_title(f"{model.n_mistakes_} mistakes, at most {model.mistake_bound_:.0f}")
left.legend(loc="lower left", fontsize=8)
left.grid(visible=False)

points = []
for gap in np.geomspace(0.4, 0.03, 8):
    for seed in range(4):
        m = ep.KernelPerceptron(Gaussian(0.7), tol=1e-6, max_iter=5000).fit(*rings(gap, seed))
        points.append((m.margin_ / m.radius_, m.mistake_bound_, m.n_mistakes_))
margin, bound, made = np.array(points).T
right.loglog(margin, bound, ".", color="C3", ms=4, label=r"bound $(D/\gamma)^2$")
right.loglog(margin, made, ".", color="C0", ms=4, label="mistakes made")
right.set(xlabel=r"margin in the space of the kernel, $\gamma / D$", ylabel="mistakes", title="the bound of Novikoff")
right.set_xticks([0.03, 0.05, 0.1, 0.2], ["0.03", "0.05", "0.1", "0.2"])
right.set_xticks([], minor=True)
right.legend()
plt.show()
