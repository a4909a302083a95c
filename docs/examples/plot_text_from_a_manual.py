"""
Text from a manual
==================

A GPT learns the language of the reference of Python, which comes with every Python, from tokens of a byte-pair
encoding: first the commonest words, then which word follows which, then phrases.
"""

from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

text = " ".join(" ".join(topics.values()).split())[:250_000]
encoder = ep.BytePairEncoder(600).fit([text])
tokens = encoder.encode(text)
print(f"{len(text.encode())} bytes, {len(tokens)} tokens")
print([encoder.tokens_[i].decode() for i in encoder.encode(" an exception is raised")])

# %%
# The last tenth of the text is held out. A row of the history is 50 steps.

model = ep.GPT(
    encoder,
    n_layers=2,
    n_heads=4,
    d_model=64,
    context_length=32,
    learning_rate_init=4e-3,
    max_iter=8,
    steps_per_iteration=50,
    early_stopping=True,
    random_state=0,
).fit(text)
print(model.certificate_)

# %%
# New text comes token by token. A low temperature stays with what is likely; a high one tries more.

for temperature in (0.3, 0.9):
    print(f"{temperature}:", "".join(model.generate("If the object", 40, temperature=temperature, random_state=0)))

# %%
# What it knows beyond the shares of tokens, and beyond which follows which:

counts = np.bincount(tokens, minlength=encoder.n_tokens_) + 1.0
pairs = np.ones((encoder.n_tokens_, encoder.n_tokens_)) * counts / counts.sum()
np.add.at(pairs, (tokens[:-1], tokens[1:]), 1)
held = tokens[int(0.9 * len(tokens)) :]
by_counts = -np.log(counts / counts.sum())[held].mean()
by_pairs = -np.log(pairs / pairs.sum(axis=1, keepdims=True))[held[:-1], held[1:]].mean()
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(50 * np.arange(1, 1 + model.n_iter_), model.history_["validation_loss"], "o-", label="GPT, text held out")
ax.axhline(by_counts, color="0.5", ls=":", label="shares of tokens (text held out among them)")
ax.axhline(by_pairs, color="#D55E00", ls="--", label="pairs of tokens (text held out among them)")
ax.set(xlabel="steps", ylabel="nats for each token", title="Learning the language of a manual")
ax.legend()
plt.show()
