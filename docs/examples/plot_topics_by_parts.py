"""
Topics of documents, by parts
=============================

Documents mix topics, and no topic takes words away: counts of words are a case for non-negative factors. Here 600 short
documents are drawn from three topics over 16 words, and :class:`~epicycle.NMF` finds the topics from the counts alone.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import epicycle as ep

words = ["orbit", "planet", "star", "comet", "river", "lake", "fish", "boat"]
words += ["bread", "oven", "flour", "salt", "light", "water", "cold", "old"]
topics = np.zeros((3, 16))
topics[0, [0, 1, 2, 3, 12, 14]] = [5, 6, 6, 3, 4, 2]
topics[1, [4, 5, 6, 7, 13, 14]] = [6, 5, 5, 4, 5, 2]
topics[2, [8, 9, 10, 11, 13, 15]] = [6, 5, 5, 3, 2, 3]
topics /= topics.sum(axis=1, keepdims=True)

rng = np.random.default_rng(0)
mixture = rng.dirichlet(np.full(3, 0.3), 600)
counts = np.stack([rng.multinomial(rng.poisson(30) + 5, share @ topics) for share in mixture]).astype(float)
X = sp.csr_array(counts)
print(f"{X.shape[0]} documents, {X.nnz / np.prod(X.shape):.0%} of the counts are not zero")

# %%
# Counts call for the Kullback-Leibler divergence, which is maximum likelihood for Poisson counts, and which needs of
# sparse rows only the entries that are not zero. The certificate says that the point is stationary, no more.

model = ep.NMF(3, beta_loss="kullback-leibler", solver="auto", random_state=0, max_iter=2000)
W = model.fit_transform(X)
print(model.certificate_)
for topic in model.components_:
    print(" ".join(words[j] for j in np.argsort(topic)[::-1][:5]))

# %%
# The topics come in any order; matched to those that were planted, words and documents agree.

found = model.components_ / model.components_.sum(axis=1, keepdims=True)
order = [int(np.argmax(topic @ found.T)) for topic in topics]
share = W[:, order] * model.components_[order].sum(axis=1)
share /= share.sum(axis=1, keepdims=True)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=[1.5, 1])
image = np.vstack([np.vstack([topics[t], found[order[t]]]) for t in range(3)])
left.imshow(image, cmap="Blues", aspect="auto")
left.set_xticks(range(16), words, rotation=60, ha="right")
left.set_yticks(range(6), [f"{kind} {t + 1}" for t in range(3) for kind in ("planted", "found")])
left.set_title("words of the topics")
left.grid(False)
right.plot(mixture.ravel(), share.ravel(), ".", ms=3, alpha=0.5)
right.plot([0, 1], [0, 1], "k", lw=0.8)
right.set(xlabel="planted share of a topic", ylabel="found share", title="topics of the documents")
plt.show()
