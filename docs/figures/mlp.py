"""A perceptron on two moons: its probabilities, and the curves of training and of rows held out."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import epicycle as ep

X, y = make_moons(400, noise=0.25, random_state=0)
model = ep.MLPClassifier(
    (32, 32), "tanh", learning_rate_init=0.01, early_stopping=True, validation_fraction=0.25, random_state=0
).fit(X, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.7), layout="constrained")
a, b = np.meshgrid(np.linspace(-1.9, 2.9, 200), np.linspace(-1.4, 1.9, 200))
p = model.predict_proba(np.column_stack([a.ravel(), b.ravel()]))[:, 1].reshape(a.shape)
shades = left.contourf(a, b, p, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.7)
left.contour(a, b, p, levels=[0.5], colors="k", linewidths=1.2)
for k, colour in enumerate(("C0", "C3")):
    left.plot(*X[y == k].T, "o", color=colour, ms=3, mec="white", mew=0.3)
left.set(xlabel="$x_1$", ylabel="$x_2$", title="probability of the second class")
figure.colorbar(shades, ax=left)

epochs = np.arange(1, model.n_iter_ + 1)
right.plot(epochs, model.history_.objective, color="C0", label="rows of the fit")
right.plot(epochs, model.history_.validation_loss, color="C1", label="rows held out")
best = int(np.argmax(model.history_.validation_score))
right.axvline(best + 1, color="0.5", ls=":", label="epoch that is kept")
right.set(xlabel="epoch", ylabel="mean loss", ylim=(0, None), title="training ends when held-out rows say so")
right.legend()
plt.show()
