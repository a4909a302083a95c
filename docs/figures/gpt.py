"""Sums that a small GPT learns digit by digit, against counts of pairs, and where it looks for them."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import GPT

rng = np.random.default_rng(0)
pairs = rng.integers(0, 10, (3000, 2))
lines = [f"{a}+{b}={a + b}" for a, b in pairs]
model = GPT(
    n_layers=2,
    n_heads=2,
    d_model=48,
    context_length=16,
    batch_size=32,
    max_iter=30,
    steps_per_iteration=20,
    learning_rate_init=5e-3,
    early_stopping=True,
    random_state=0,
).fit(lines)

figure, (curve, looks) = plt.subplots(1, 2, figsize=(8.6, 3.4), width_ratios=(3, 2), layout="constrained")
steps = 20 * np.arange(1, len(model.history_["validation_loss"]) + 1)
curve.plot(steps, model.history_["validation_loss"], color="#0072B2", label="GPT, lines held out")
text = "\n".join(lines) + "\n"
_, codes = np.unique(list(text), return_inverse=True)
counts = np.zeros((codes.max() + 1,) * 2)
np.add.at(counts, (codes[:-1], codes[1:]), 1)
share = counts / counts.sum(axis=1, keepdims=True)
by_pairs = -np.sum(counts[counts > 0] * np.log(share[counts > 0])) / counts.sum()
curve.axhline(by_pairs, color="#D55E00", ls="--", lw=1, label="counts of pairs of characters")
chance = 2 * np.log(10) / np.mean([len(line) + 1 for line in lines])
curve.axhline(chance, color="0.4", ls=":", lw=1, label="the two digits that nothing tells")
curve.set(xlabel="steps", ylabel="nats for each character", title="Learning to add", ylim=(0, None))
curve.legend(fontsize=8)
line = "7+8=15"
weights = model.attention(line).mean(axis=1)[-1]
looks.imshow(weights, cmap="Blues", vmin=0, vmax=1)
looks.set_xticks(range(len(line)), list(line))
looks.set_yticks(range(len(line)), list(line))
looks.set(xlabel="what is looked at", ylabel="where it is looked from", title="Attention of the last layer")
plt.show()
