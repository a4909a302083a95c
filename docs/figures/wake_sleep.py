"""Digits that a Helmholtz machine draws, and its bound and its estimate against the exact log-probabilities."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from epicycle import WakeSleep

X = (load_digits().images > 7).astype(float)
model = WakeSleep((12, 8), batch_size=64, max_iter=60, learning_rate_init=0.02, random_state=0).fit(X)
some = X[::15]
exact, bound = model.exact_log_likelihood(some), model.score_samples(some)
estimate = model.log_likelihood(some, n_importance=200)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", width_ratios=[3, 2])
drawn = model.sample(40, random_state=1).reshape(5, 8, 8, 8)
real = X[:40].reshape(5, 8, 8, 8)
sheet = np.concatenate([np.pad(part, [(0, 0), (0, 0), (0, 1), (0, 1)]) for part in (real, drawn)], axis=1)
sheet = sheet.transpose(0, 2, 1, 3).reshape(45, 144)
sheet[:, 71] = 1.0
left.imshow(sheet, cmap="gray")
left.set_title("bits of digits (left), and bits that are drawn (right)", fontsize=9)
left.set_axis_off()
right.plot(exact, bound, ".", label="bound")
right.plot(exact, estimate, ".", label="importance sampling")
right.axline((exact.mean(), exact.mean()), slope=1, color="grey", lw=1)
right.set_xlabel("exact log-probability, nats")
right.legend()
plt.show()
