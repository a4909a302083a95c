r"""
Letters put in order
====================

A transformer turns one sequence into another. Each letter that it writes looks at all letters of the source,

.. math:: \mathrm{attention}(Q, K, V) = \mathrm{softmax}\bigl(Q K^\top / \sqrt{d}\bigr) V ,

whatever their distance. Sorting the letters of a word has a known answer, and the weights say where each letter that is
written was found.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
words = sorted({"".join(rng.permutation(list("abcdefgh"))[: rng.integers(2, 6)]) for _ in range(1400)})
rng.shuffle(words)
in_order = ["".join(sorted(word)) for word in words]
train, test = slice(None, 700), slice(700, None)
settings = {"n_layers": 1, "n_heads": 2, "d_model": 32, "batch_size": 32, "learning_rate_init": 0.01}
model = ep.Transformer(**settings, max_iter=20, random_state=0).fit(words[train], in_order[train])
copied = np.mean([word == answer for word, answer in zip(words[test], in_order[test], strict=True)])
print(f"{model.score(words[test], in_order[test]):.3f} of {len(words[test])} new words are sorted without a mistake")
print(f"{copied:.3f} of them were in order already")

# %%
# Rows are the letters written so far: each row is about to write the next one, and looks for it in the source.
examples = [word for word in words[test] if len(word) == 5][:3]
figure, axes = plt.subplots(1, 3, figsize=(10, 3.5), layout="constrained")
for ax, word, answer in zip(axes, examples, model.predict(examples), strict=True):
    weights = model.attention(word, answer)[0].mean(axis=0)
    ax.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    ax.set_xticks(range(len(word) + 1), [*word, "end"])
    ax.set_yticks(range(len(answer) + 1), ["begin", *answer])
    ax.set(title=f"{word}  →  {answer}", xlabel="source", ylabel="written so far")
    ax.grid(visible=False)
plt.show()
