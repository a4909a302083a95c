r"""
What a recurrent network remembers
==================================

A recurrent network reads a sequence step by step, :math:`h_t = \mathrm{cell}(x_t, h_{t-1})`. In the plain cell,
:math:`h_t = \tanh(W x_t + U h_{t-1} + b)`, the gradient is multiplied by a matrix at every step back, and what is far
back is hard to learn. A cell with gates can keep its memory as it is,

.. math:: c_t = f \odot c_{t-1} + i \odot \tilde c_t \quad \text{with } f \text{ near } 1.

Two tasks with a known answer show the difference: the sign of the first step, and the largest value so far.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

lengths = (10, 30)
settings = {"hidden_size": 12, "max_iter": 20, "learning_rate_init": 0.02, "random_state": 0}
scores = {"rnn": [], "lstm": []}
for length in lengths:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, length, 1))
    y = X[:, 0, 0] > 0
    for cell, found in scores.items():
        model = ep.SequenceClassifier(cell, **settings).fit(X[:600], y[:600])
        found.append(model.score(X[600:], y[600:]))
for cell, found in scores.items():
    print(f"{cell:4}", ", ".join(f"{s:.2f} after {n} steps" for s, n in zip(found, lengths, strict=True)))

# %%
# One number for each step: the running maximum. A linear model of the value of the step itself has no memory.
rng = np.random.default_rng(1)
X = rng.normal(size=(450, 25, 1))
y = np.maximum.accumulate(X[:, :, 0], axis=1)
settings["max_iter"] = 10
regressors = {}
for cell in ("rnn", "gru"):
    regressors[cell] = ep.SequenceRegressor(cell, per_step=True, **settings).fit(X[:300], y[:300])
line = ep.LinearRegression().fit(X[:300].reshape(-1, 1), y[:300].ravel())
print(f"no memory: R² {line.score(X[300:].reshape(-1, 1), y[300:].ravel()):.2f}")
for cell, model in regressors.items():
    print(f"{cell}: R² {model.score(X[300:], y[300:]):.2f}")

# %%
# Left: over ten steps both cells know the first one; over thirty the plain one guesses like a coin, while the LSTM,
# whose gate starts open, still knows it. Right: a new sequence and its maximum, which the cell with gates follows more
# closely.
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained")
place = np.arange(2)
for shift, (cell, found) in zip((-0.2, 0.2), scores.items(), strict=True):
    left.bar(place + shift, found, 0.4, label=cell)
left.axhline(0.5, color="k", ls=":", lw=1, label="a coin")
left.set(
    xticks=place,
    xticklabels=lengths,
    xlabel="steps",
    ylim=(0, 1.3),
    ylabel="accuracy on new sequences",
    title="sign of the first step",
)
left.legend(loc="upper center", ncols=3)
steps = np.arange(1, 26)
k = 300 + int(np.argmax([len(set(values)) for values in y[300:]]))  # the one whose maximum changes most often
right.plot(steps, X[k, :, 0], ".", color="0.6", label="sequence")
right.plot(steps, y[k], color="k", drawstyle="steps-post", label="largest so far")
for cell, model in regressors.items():
    right.plot(steps, np.ravel(model.predict(X[k : k + 1])[0]), "--", label=cell)
right.set(xlabel="step", ylabel="value", title="largest value so far", ylim=(-4, None))
right.legend(fontsize=8, loc="lower right", ncols=2)
plt.show()
