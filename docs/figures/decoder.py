"""Digits that are made again from their upper halves, digits between two codes, and the error of missing pixels."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from epicycle import Decoder

X = load_digits().images.astype(np.float32) / 16
train, new = X[:1500], X[1500:1510]
model = Decoder(8, hidden_layer_sizes=128, batch_size=50, max_iter=20, learning_rate_init=0.004, random_state=0)
model.fit(train)
covered = new.copy()
covered[:, 4:] = np.nan
rows = {
    "digits": new,
    "made again": model.reconstruct(new),
    "upper halves": np.nan_to_num(covered, nan=0.5),
    "made of these": model.reconstruct(covered),
    "between codes": model.interpolate(*model.encode(new[[0, 1]]), n_steps=10),
}

rng = np.random.default_rng(0)
shares, some, errors = np.linspace(0.1, 0.9, 5), X[1500:1700], {"decoder": [], "mean of the pixel": []}
for share in shares:
    missing = rng.random(some.shape) < share
    filled = model.reconstruct(np.where(missing, np.nan, some))
    for guess, found in zip((filled, np.broadcast_to(train.mean(axis=0), some.shape)), errors.values(), strict=True):
        found.append(np.mean((guess - some)[missing] ** 2))

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", width_ratios=[3, 2])
sheet = np.pad(np.stack(list(rows.values())), [(0, 0), (0, 0), (0, 1), (0, 1)]).transpose(0, 2, 1, 3).reshape(45, 90)
left.imshow(sheet, cmap="gray", vmin=0, vmax=1)
left.set_yticks(np.arange(5) * 9 + 4, list(rows))
left.set_xticks([])
left.tick_params(length=0)
left.grid(False)
left.spines[:].set_visible(False)
for name, found in errors.items():
    right.plot(shares, found, "o-", label=name)
right.set_ylim(0)
right.set_xlabel("share of pixels that are missing")
right.set_ylabel("mean squared error of these")
right.legend()
plt.show()
