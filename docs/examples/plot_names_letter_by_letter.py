r"""
Names, letter by letter
=======================

A model of characters gives each next one a probability, :math:`P(x_{t+1} \mid x_1, \dots, x_t)`, and with it a text a
cost in bits, :math:`-\tfrac1n \sum_t \log_2 P(x_{t+1} \mid x_1, \dots, x_t)`. No model can stay below the entropy of
the source. Names of a source that is known show how near this one comes, and what the temperature :math:`\tau` does
that divides the scores before characters are drawn, :math:`P \propto \exp(s / \tau)`.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
# A name has one to three syllables of a consonant and a vowel; the consonant decides which vowels are likely.
consonants, vowels = "blmnrt", "aeiou"
likely = rng.dirichlet(np.full(5, 0.3), size=6)
ends = 0.4  # after each syllable but the third


def entropy(p):
    p = p[p > 0]
    return -(p * np.log2(p)).sum()


def name():
    text = ""
    for k in range(3):
        c = rng.integers(6)
        text += consonants[c] + vowels[rng.choice(5, p=likely[c])]
        if k < 2 and rng.random() < ends:
            break
    return text


names = [name() for _ in range(1500)]
new = [name() for _ in range(500)]
syllables = 1 + (1 - ends) + (1 - ends) ** 2
bits = syllables * (np.log2(6) + np.mean([entropy(p) for p in likely]))
bits += (2 - ends) * entropy(np.array([ends, 1 - ends]))  # go on or end, after the first and the second syllable
limit = bits / (2 * syllables + 1)  # the end counts as a character

settings = {"hidden_size": 32, "window": 40, "batch_size": 8, "learning_rate_init": 0.01, "random_state": 0}
model = ep.CharacterModel("gru", max_iter=8, **settings).fit(names)
letters = ep.CharacterModel("gru", max_iter=1, **settings).fit(names)
counts = np.unique(list("".join(f"{text}." for text in names)), return_counts=True)[1]
print(f"entropy of the source       {limit:.3f} bits a character")
print(f"model, eight epochs         {model.bits_per_character(new):.3f}")
print(f"model, one epoch            {letters.bits_per_character(new):.3f}")
print(f"frequencies of letters only {entropy(counts / counts.sum()):.3f}")

# %%
# Drawn names at three temperatures, and the share of them that the source could have made.
possible = {consonants[c] + vowels[v] for c in range(6) for v in range(5) if likely[c, v] > 0.01}


def drawn(temperature, n=100):
    return [model.sample(8, temperature=temperature, random_state=seed) for seed in range(n)]


def valid(text):
    pieces = [text[i : i + 2] for i in range(0, len(text), 2)]
    return 1 <= len(pieces) <= 3 and all(piece in possible for piece in pieces)


temperatures = (0.3, 1.0, 2.0)
texts = {temperature: drawn(temperature) for temperature in temperatures}
for temperature, found in texts.items():
    kinds, share = len(set(found)), np.mean([valid(text) for text in found])
    print(f"temperature {temperature}: {kinds} kinds of 100 names, {share:.0%} possible:", *found[:5])

# %%
# What the names cost, and how hot names go wrong: low temperatures repeat the likely names, high ones break the rules.
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained")
costs = {
    "letters only": entropy(counts / counts.sum()),
    "one epoch": letters.bits_per_character(new),
    "eight epochs": model.bits_per_character(new),
}
left.bar(list(costs), list(costs.values()), color="C0")
left.axhline(limit, color="k", ls="--", lw=1, label="entropy of the source")
left.set(ylabel="bits a character, new names")
left.legend(loc="upper right")
place = np.arange(3)
right.bar(place - 0.2, [np.mean([valid(t) for t in texts[k]]) for k in temperatures], 0.4, label="possible")
right.bar(place + 0.2, [len(set(texts[k])) / 100 for k in temperatures], 0.4, label="different")
right.set(xticks=place, xticklabels=temperatures, xlabel="temperature", ylabel="share of 100 names", ylim=(0, 1.25))
right.legend(loc="upper center", ncols=2)
plt.show()
