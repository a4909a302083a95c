"""How fast random features, drawn landmarks and chosen landmarks approach a kernel, and what that does to a fit."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep
from epicycle.kernel import Gaussian

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
kernel = Gaussian(1.5)
K = kernel(X)
sizes = np.unique(np.geomspace(4, 380, 10).astype(int))


def error(model):
    Z = model.fit_transform(X)
    return np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K)


ways = {
    "random Fourier features": lambda m, s: ep.RandomFourierFeatures(kernel, n_components=m, random_state=s),
    "Nystrom, drawn": lambda m, s: ep.Nystroem(kernel, n_components=m, landmarks="uniform", random_state=s),
    "Nystrom, pivoted": lambda m, s: ep.Nystroem(kernel, n_components=m),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.7), layout="constrained")
for (name, build), colour in zip(ways.items(), ("C1", "C2", "C0"), strict=True):
    repeats = 1 if "pivoted" in name else 2
    left.loglog(
        sizes,
        [np.mean([error(build(m, s)) for s in range(repeats)]) for m in sizes],
        "o-",
        ms=3,
        color=colour,
        label=name,
    )
left.loglog(sizes, 1.6 / np.sqrt(sizes), "k:", lw=1.2, label=r"$1/\sqrt{m}$")
left.set(xlabel="features m", ylabel="relative error of the matrix", title="how near the kernel is")
left.legend(fontsize=8)

y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=400)
train, test = slice(0, 300), slice(300, None)
whole = ep.KernelRidge(0.1, kernel=kernel).fit(X[train], y[train]).predict(X[test])
right.axhline(np.square(whole - y[test]).mean(), color="k", ls=":", lw=1.2, label="kernel ridge")
for (name, build), colour in zip(ways.items(), ("C1", "C2", "C0"), strict=True):
    scores = []
    for m in sizes[sizes <= 300]:
        found = []
        for s in range(1 if "pivoted" in name else 2):
            Z = build(m, s).fit(X[train])
            line = ep.Ridge(0.1, fit_intercept=False).fit(Z.transform(X[train]), y[train])
            found.append(np.square(line.predict(Z.transform(X[test])) - y[test]).mean())
        scores.append(np.mean(found))
    right.loglog(sizes[sizes <= 300], scores, "o-", ms=3, color=colour)
right.set(xlabel="features m", ylabel="mean squared error, test", title="ridge regression of the features")
right.legend()
plt.show()
