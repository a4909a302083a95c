"""
Text from a manual
==================

A GPT learns the language of the reference of Python, which comes with every Python, letter by letter: which letters
there are, which follow each other, and then words.
"""

from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

text = " ".join(" ".join(topics.values()).split())[:250_000].lower()
text = "".join(c for c in text if c.isalpha() or c in " .,")
model = ep.GPT(
    n_layers=2,
    d_model=64,
    context_length=48,
    batch_size=16,
    learning_rate_init=5e-3,
    max_iter=8,
    steps_per_iteration=75,
    early_stopping=True,
    random_state=0,
).fit(text)
print(model.certificate_)

# %%
# New text comes letter by letter. A low temperature stays with what is likely; a high one tries more.

for temperature in (0.3, 0.9):
    print(f"{temperature}:", "".join(model.generate("if the object", 80, temperature=temperature, random_state=0)))

# %%
# The last tenth of the text was held out. What is known of it beyond the shares of letters, and beyond counts of which
# letter follows which:

_, letters = np.unique(list(text), return_inverse=True)
cut = int(0.9 * len(letters))
pairs = np.ones((letters.max() + 1,) * 2)
np.add.at(pairs, (letters[: cut - 1], letters[1:cut]), 1)
by_counts = -np.log(pairs.sum(axis=0) / pairs.sum())[letters[cut:]].mean()
by_pairs = -np.log(pairs / pairs.sum(axis=1, keepdims=True))[letters[cut:-1], letters[cut + 1 :]].mean()
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(75 * np.arange(1, 1 + model.n_iter_), model.history_["validation_loss"], "o-", label="GPT")
ax.axhline(by_counts, color="0.5", ls=":", label="shares of letters")
ax.axhline(by_pairs, color="#D55E00", ls="--", label="pairs of letters")
ax.set(xlabel="steps", ylabel="nats for each letter held out", title="Learning the language of a manual")
ax.legend()
plt.show()
