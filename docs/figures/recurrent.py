"""How long three cells remember the first step, and a model of characters against the entropy of its source."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import CharacterModel, SequenceClassifier

rng = np.random.default_rng(0)
lengths = (5, 10, 20, 40)
scores = {cell: [] for cell in ("rnn", "gru", "lstm")}
for length in lengths:
    X = rng.normal(size=(600, length, 1))
    y = X[:, 0, 0] > 0
    for cell, found in scores.items():
        settings = {"hidden_size": 16, "max_iter": 12, "learning_rate_init": 0.01, "random_state": 0}
        found.append(SequenceClassifier(cell, **settings).fit(X[:400], y[:400]).score(X[400:], y[400:]))

# A source with a memory of two characters: each pair has one that follows it nine times out of ten.
text, bits = "ab", 0.0
for _ in range(3000):
    p = np.full(3, 0.05)
    p[(2 * "abc".index(text[-2]) + "abc".index(text[-1]) + 1) % 3] = 0.9
    k = rng.choice(3, p=p)
    text, bits = text + "abc"[k], bits - np.log2(p[k]) / 3000
model = CharacterModel(
    "gru",
    hidden_size=24,
    window=30,
    batch_size=8,
    learning_rate_init=0.01,
    max_iter=15,
    early_stopping=True,
    random_state=0,
)
held_out = -model.fit([text]).history_["validation_score"]

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for cell, found in scores.items():
    left.plot(lengths, found, "o-", label=cell)
left.axhline(0.5, color="0.5", lw=1, ls=":")
left.set(xscale="log", xticks=lengths, xticklabels=lengths, xlabel="steps", ylabel="accuracy on new sequences")
left.minorticks_off()
left.legend()
right.plot(np.arange(1, len(held_out) + 1), held_out, label="the last tenth of the text")
right.axhline(bits, color="0.5", lw=1, ls=":", label="entropy of the source")
right.set(xlabel="epoch", ylabel="bits for a character", ylim=(0, None))
right.legend()
plt.show()
