"""
Sequences read step by step
===========================

A tagger reads zeros and ones and says at each step whether the number of ones so far is odd. No window of the last few
digits can know that, but one bit of memory is enough, and a network with a small state finds it.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
X = [rng.integers(0, 2, n) for n in rng.integers(2, 15, 400)]
y = [np.where(digits.cumsum() % 2, "odd", "even") for digits in X]

model = ep.SequenceTagger("gru", hidden_size=8, max_iter=30, learning_rate_init=0.02, random_state=0)
model.fit(X[:300], y[:300])
print(f"new sequences, up to 14 digits: {model.score(X[300:], y[300:]):.3f} of the digits are right")

# %%
# It was never shown more than 14 digits. What it has learnt is the rule, so it goes on for much longer.

longer = [rng.integers(0, 2, 200) for _ in range(50)]
right = [np.where(digits.cumsum() % 2, "odd", "even") for digits in longer]
print(f"200 digits: {model.score(longer, right):.3f}")

# %%
# Probabilities at each step of one sequence, above the digits that it has read, and the mean accuracy at each place of
# the long sequences.

digits = rng.integers(0, 2, 24)
probability = model.predict_proba([digits])[0][:, list(model.classes_).index("odd")]
accuracy = np.mean([a == b for a, b in zip(model.predict(longer), right, strict=True)], axis=0)

figure, (above, below) = plt.subplots(2, 1, figsize=(8, 4.6), layout="constrained")
above.step(np.arange(24), digits.cumsum() % 2, where="mid", color="0.6", label="odd so far")
above.plot(probability, "o", label="probability of odd")
above.set(xticks=np.arange(24), xticklabels=digits, yticks=[0, 1], xlabel="digits that are read")
above.legend(loc="center right")
below.plot(np.arange(1, 201), accuracy)
below.axvline(14, color="k", lw=0.8, ls=":")
below.set(ylim=(0.4, 1.03), xlabel="place in the sequence (to the dotted line: lengths of the fit)", ylabel="accuracy")
plt.show()
