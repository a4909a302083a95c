"""What the schedule and the mean do to stochastic gradients: the objective above its minimum, pass by pass."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import epicycle as ep

X, y = load_breast_cancer(return_X_y=True)
X, sign, alpha = scale(X), 2 * y - 1, 1e-3
passes = np.unique(np.geomspace(1, 200, 25).astype(int))


def objective(model):
    z = X @ model.coef_[0] + model.intercept_[0]
    return np.logaddexp(0, -sign * z).mean() + alpha / 2 * model.coef_[0] @ model.coef_[0]


best = objective(ep.LogisticRegression(C=1 / (alpha * len(y)), tol=1e-14).fit(X, y))
figure, axes = plt.subplots(figsize=(6.8, 3.9), layout="constrained")
kinds = {
    "constant": {"learning_rate": "constant", "eta0": 0.2},
    "constant, mean of the last half": {"learning_rate": "constant", "eta0": 0.2},
    "a/(b+k)": {"learning_rate": "a/(b+k)", "eta0": 1000.0, "offset": 10_000.0},
    "optimal": {"learning_rate": "optimal"},
}
for i, (name, rule) in enumerate(kinds.items()):
    gaps = []
    for n in passes:
        average = n * len(y) // 2 if "mean" in name else False
        model = ep.SGDClassifier(
            "log_loss", alpha=alpha, tol=None, max_iter=int(n), average=average, random_state=0, **rule
        )
        gaps.append(objective(model.fit(X, y)) - best)
    axes.loglog(passes, gaps, marker="o", ms=3, color=f"C{i}", label=name)
axes.set(
    xlabel="passes over the rows", ylabel="objective above its minimum", title="logistic regression, breast cancer data"
)
axes.legend()
plt.show()
