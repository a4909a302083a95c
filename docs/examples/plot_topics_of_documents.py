"""
Topics of documents, and which method finds them
================================================

Documents are drawn from topics over 24 words, whose number of documents changes over ten years.
:class:`~epicycle.LatentDirichletAllocation` finds the topics from the counts; words that were held out say how well.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import epicycle as ep

groups = {
    "space": ["orbit", "planet", "star", "comet", "rocket", "launch"],
    "water": ["river", "lake", "fish", "boat", "storm", "coast"],
    "kitchen": ["bread", "oven", "flour", "salt", "butter", "recipe"],
}
words = [w for group in groups.values() for w in group] + ["light", "cold", "old", "year", "people", "work"]
topics = np.full((3, 24), 0.05)
for k in range(3):
    topics[k, 6 * k : 6 * k + 6] = [6, 5, 5, 4, 3, 3]
    topics[k, 18:] = 1.5
topics /= topics.sum(axis=1, keepdims=True)

rng = np.random.default_rng(0)
year = np.repeat(np.arange(2010, 2020), 90)
rise = (year - 2010) / 9
mixture = np.array([rng.dirichlet([0.1 + 0.6 * t, 0.3, 0.7 - 0.6 * t]) for t in rise])
X = sp.csr_array(np.stack([rng.multinomial(rng.poisson(25) + 5, share @ topics) for share in mixture]))
new = rng.random(len(year)) < 0.2

# %%
# Rounds over all documents maximise a lower bound of their probability, which never falls; Gibbs sampling draws a topic
# for every word. Perplexity is that of half of the words of new documents, given the other half.

fits = {}
for method in ("batch", "gibbs"):
    model = ep.LatentDirichletAllocation(
        3, learning_method=method, doc_topic_prior="auto", topic_word_prior=0.1, max_iter=600, random_state=0
    )
    with ep.config(on_nonconvergence="ignore"):
        fits[method] = model.fit(X[~new])
    print(f"{method}: held-out perplexity {model.held_out_perplexity(X[new]):.2f}, {model.certificate_}")

# %%
# The most probable words, how often they occur together, and the topics over the years.

model = fits["gibbs"]
for topic, coherence in zip(model.top_words(words, 6), model.coherence(X, n_words=6), strict=True):
    print(f"{coherence:.2f} {' '.join(topic)}")
years, shares = model.topics_over(X, year)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=[1.4, 1])
ep.plot.topics(model.components_, words, ax=left)
for k, top in enumerate(model.top_words(words, 2)):
    right.plot(years, shares[:, k], label=", ".join(top))
right.set(xlabel="year", ylabel="share of the words")
right.legend()
plt.show()
