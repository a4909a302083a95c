"""
Searching a manual by meaning
=============================

The reference of the Python language comes with every Python, as some eighty documents. Latent semantic indexing puts
them, and their words, into a few dimensions. A search then goes by the company that words keep, and not by the words
alone.
"""

from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage

import epicycle as ep

names, documents = list(topics), list(topics.values())
counts = ep.CountVectorizer(stop_words="english", min_df=2, token_pattern=r"(?u)\b[a-z]{3,}\b")
index = ep.LatentSemanticIndexing(20, vectorizer=counts, weights="log-tfidf", random_state=0).fit(documents)
print(f"{len(documents)} documents, {len(index.terms())} terms, {len(index.components_)} dimensions")
print(index.certificate_)

# %%
# Queries are documents too. Each is answered by the topics at the smallest angle.

for query in ("a loop before its end", "errors and how to handle them", "decimal point of a number"):
    found = index.search(query, 4)
    answers = ", ".join(f"{names[i]} ({c:.2f})" for i, c in zip(found.documents, found.similarities, strict=True))
    print(f"{query}: {answers}")

# %%
# Words that are used like a word:

for term in ("coroutine", "exception", "integer"):
    print(f"{term}: {', '.join(name for name, _ in index.similar_terms(term, 6))}")

# %%
# All pairs of topics, in the order of a tree of them: what belongs together is near.

Z = index.document_vectors_ / np.linalg.norm(index.document_vectors_, axis=1, keepdims=True)
order = leaves_list(linkage(Z, "average", "cosine"))
figure, ax = plt.subplots(figsize=(7.2, 6.2), layout="constrained")
image = ax.imshow((Z @ Z.T)[np.ix_(order, order)], cmap="viridis", vmin=0, vmax=1)
ticks = np.arange(0, len(order), 4)
ax.set_xticks(ticks, [names[order[i]] for i in ticks], rotation=90, fontsize=7)
ax.set_yticks(ticks, [names[order[i]] for i in ticks], fontsize=7)
ax.set_title("Cosines between topics of the manual")
figure.colorbar(image, ax=ax, shrink=0.7)
plt.show()
