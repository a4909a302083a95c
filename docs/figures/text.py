"""Words of the manual of Python: how often the commonest occur, and what their weights are."""

from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np

from epicycle import CountVectorizer, TfidfTransformer

documents = list(topics.values())
counts = CountVectorizer()
X = counts.fit_transform(documents)
names, often = counts.get_feature_names_out(), np.asarray(X.sum(axis=0)).ravel()
idf = TfidfTransformer().fit(X).idf_

figure, (ranks, weights) = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
order = np.argsort(-often, kind="stable")
ranks.loglog(np.arange(1, len(order) + 1), often[order], color="#0072B2", lw=1.4)
for rank in (0, 4, 30, 200, 1500):
    ranks.annotate(names[order[rank]], (rank + 1, often[order[rank]]), (6, 3), textcoords="offset points", fontsize=8)
ranks.set(xlabel="rank of the word", ylabel="occurrences", title=f"{len(names):,} words of {len(documents)} documents")
weights.scatter(counts.document_frequency_, idf, s=9, color="#D55E00", linewidths=0)
shown = [order[0], *(list(names).index(word) for word in ("class", "iterator", "generator", "coroutine"))]
for j in shown:
    weights.annotate(names[j], (counts.document_frequency_[j], idf[j]), (5, 2), textcoords="offset points", fontsize=8)
weights.set(xlabel="documents with the word", ylabel="weight", title="Rare words weigh more", xlim=(0, 90))
plt.show()
