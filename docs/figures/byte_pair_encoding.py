"""The manual of Python in fewer and fewer tokens, and one sentence as it is written with each vocabulary."""

from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np

from epicycle import BytePairEncoder

texts = list(topics.values())
sizes = np.array([256, 400, 600, 1000, 2000, 4000])
encoders = {size: BytePairEncoder(int(size)).fit(texts[::2]) for size in sizes}
bytes_ = sum(len(text.encode()) for text in texts[1::2])
rate = [bytes_ / sum(map(len, encoders[size].encode(texts[1::2]))) for size in sizes]

figure, (curve, words) = plt.subplots(1, 2, figsize=(9, 3.2), width_ratios=(2, 3), layout="constrained")
curve.semilogx(sizes, rate, "o-", color="#0072B2", ms=4)
curve.set(xlabel="tokens in the vocabulary", ylabel="bytes for each token", title="Texts that were not learnt from")
curve.set_xticks(sizes, [str(size) for size in sizes], fontsize=8)
curve.minorticks_off()
sentence = "The statement raises an unexpected exception."
colors = ("#56B4E9", "#F0E442", "#E69F00", "#CC79A7")
for line, size in enumerate(sizes[::-1]):
    at, tokens = 0, encoders[size].encode(sentence).tolist()
    for i, token in enumerate(tokens):
        width = len(encoders[size].tokens_[token])
        words.barh(line, width, 0.8, left=at, color=colors[i % 4], alpha=0.6, edgecolor="white", lw=1.2)
        at += width
    for place, letter in enumerate(sentence):
        words.text(place + 0.5, line, letter, ha="center", va="center", fontsize=8, family="monospace")
words.set_yticks(range(len(sizes)), [str(size) for size in sizes[::-1]])
words.set(ylabel="tokens in the vocabulary", title="One sentence in tokens", xticks=[])
words.spines[:].set_visible(False)
plt.show()
