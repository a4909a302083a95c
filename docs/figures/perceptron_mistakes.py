"""A perceptron's boundary next to the largest margin, and its mistakes against their bound."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep


def rows(gap, rng, n=300):
    X = rng.uniform(-1, 1, size=(n, 2))
    side = X @ [0.8, 0.6]
    X, side = X[np.abs(side) > gap], side[np.abs(side) > gap]
    return X, np.sign(side)


figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.9), layout="constrained")

X, y = rows(0.06, np.random.default_rng(1))
for variant, style in (("online", "-"), ("averaged", "--")):
    model = ep.Perceptron(variant=variant).fit(X, y)
    (w, b), line = (model.coef_[0], model.intercept_[0]), np.linspace(-1.1, 1.1, 2)
    left.plot(line, -(w[0] * line + b) / w[1], style, color="k", label=variant)
for sign, marker in ((1, "o"), (-1, "s")):
    left.plot(*X[y == sign].T, marker, ms=3.5, alpha=0.7, color="C0" if sign > 0 else "C1")
last = ep.Perceptron().fit(X, y)
left.set(
    xlim=(-1.1, 1.1),
    ylim=(-1.1, 1.1),
    xticks=[-1, 0, 1],
    yticks=[-1, 0, 1],
    xlabel="$x_1$",
    ylabel="$x_2$",
    title=f"{last.n_mistakes_} mistakes, at most {last.mistake_bound_:.0f}",
)
left.legend(loc="lower left", frameon=True, framealpha=0.95)

gaps = np.geomspace(0.4, 0.01, 14)
made, bound, spread = [], [], []
for gap in gaps:
    models = [ep.Perceptron(tol=None, max_iter=5000).fit(*rows(gap, np.random.default_rng(seed))) for seed in range(12)]
    made.append([model.n_mistakes_ for model in models])
    bound.append([model.mistake_bound_ for model in models])
    spread.append([model.margin_ / model.radius_ for model in models])
right.loglog(np.ravel(spread), np.ravel(bound), ".", color="C3", ms=3, label=r"bound $(D/\gamma)^2$")
right.loglog(np.ravel(spread), np.ravel(made), ".", color="C0", ms=3, label="mistakes made")
right.set(xlabel=r"margin of the data, $\gamma / D$", ylabel="mistakes", title="the bound holds, with room to spare")
right.legend()
plt.show()
