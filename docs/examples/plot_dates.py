"""
Dates in many forms, written in one
===================================

People write dates in many ways. A network with attention reads one character by character and writes it as a machine
would, and the weights of its attention say which characters of the input each one that it writes comes from.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

months = ["january", "february", "march", "april", "may", "june", "july", "august", "september"]
months += ["october", "november", "december"]
rng = np.random.default_rng(0)


def date():
    day, month, year = int(rng.integers(1, 29)), int(rng.integers(1, 13)), int(rng.integers(1990, 2030))
    name = months[month - 1]
    forms = [f"{day} {name} {year}", f"{name} {day}, {year}", f"{day}/{month}/{year}"]
    return forms[rng.integers(3)], f"{year}-{month:02d}-{day:02d}"


X, y = zip(*[date() for _ in range(1300)], strict=True)
settings = {"hidden_size": 48, "max_iter": 10, "learning_rate_init": 0.01, "learning_rate": "cosine", "random_state": 0}
model = ep.Seq2Seq(**settings).fit(X[:1000], y[:1000])
print(f"{model.score(X[1000:], y[1000:]):.3f} of 300 new dates are written to the letter")

# %%
# The year is written first and read last. For the month it looks at the letters that tell one name from the others.

texts = ["17 august 2004", "march 5, 1999"]
written = model.predict(texts)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, text, answer, weights in zip(axes, texts, written, model.attention_weights(texts), strict=True):
    ep.plot.attention(weights, text, answer, ax=ax)
    ax.set_title(f"{text}  →  {answer}")
plt.show()
