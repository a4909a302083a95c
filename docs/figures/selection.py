"""Models compared on folds, with those that cannot be distinguished; and a forward search beside a filter."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(120, 1))
y = X[:, 0] ** 3 - 2 * X[:, 0] + rng.normal(size=120)
models = {f"degree {d}": ep.PolynomialRegression(degree=d) for d in (1, 2, 3, 5, 9)}
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
ep.select.k_fold(models, X, y, n_jobs=1).plot(left)
left.set_title("degrees 3, 5 and 9 cannot be distinguished")

Z = rng.normal(size=(150, 15))
target = Z[:, [2, 5, 9]] @ [2.0, -1.5, 1.0] + 1.5 * rng.normal(size=150)
ep.ForwardSelection(one_standard_error=True, n_jobs=1).fit(Z, target).plot(right)
right.set_title("forward search: three features were planted")
plt.show()
