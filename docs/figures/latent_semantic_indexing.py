"""Two words that never meet: the angle between them as the table has it, and in two dimensions."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import LatentSemanticIndexing

rng = np.random.default_rng(0)
topics = {
    "cars": ["engine", "wheel", "road", "fuel", "driver", "brake", "speed"],
    "cakes": ["flour", "sugar", "oven", "butter", "spoon", "bowl", "cream"],
}
documents, names = [], []
for i in range(80):
    topic = ("cars", "cakes")[i % 2]
    noise = rng.choice(topics[("cakes", "cars")[i % 2]], 1)
    subject = ("car", "automobile")[i // 2 % 2] if topic == "cars" else "cake"
    documents.append(" ".join([*rng.choice(topics[topic], 4, replace=False), *noise, subject]))
    names.append(topic)

index = LatentSemanticIndexing(2, random_state=0).fit(documents)
terms = index.terms()
figure, (plane, angles) = plt.subplots(1, 2, figsize=(8.8, 3.6), layout="constrained")
Z = index.document_vectors_
for topic, colour, marker in (("cars", "#0072B2", "o"), ("cakes", "#D55E00", "^")):
    rows = np.array(names) == topic
    plane.scatter(*Z[rows].T, s=14, c=colour, marker=marker, linewidths=0, label=f"documents on {topic}")
V = index.components_.T * index.singular_values_ * 0.25
small = {"textcoords": "offset points", "fontsize": 8.5}
for term in ("car", "automobile", "cake", "road", "oven"):
    x, y = V[terms.index(term)]
    plane.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": "0.25", "lw": 0.9})
    plane.annotate(term, (x, y), {"car": (-14, -12), "road": (2, -12)}.get(term, (4, 4)), **small)
plane.axhline(0, color="0.85", lw=0.8, zorder=0)
plane.axvline(0, color="0.85", lw=0.8, zorder=0)
plane.set(title="Documents and terms in two dimensions", xticks=[], yticks=[], xlim=(-0.04, 0.8), ylim=(-0.62, 0.72))
plane.legend(frameon=False, fontsize=8, loc="upper left")

dimensions = [1, 2, 3, 4, 6, 8, 10, 12, 14, 17]
for term, colour, marker in (("automobile", "#0072B2", "o"), ("cake", "#D55E00", "^")):
    cosines = []
    for k in dimensions:
        near = dict(LatentSemanticIndexing(k, random_state=0).fit(documents).similar_terms("car", len(terms)))
        cosines.append(near[term])
    angles.plot(dimensions, cosines, color=colour, marker=marker, ms=4.5, lw=1.2, label=f"car and {term}")
angles.axhline(0, color="0.85", lw=0.8, zorder=0)
angles.set(xlabel="dimensions", ylabel="cosine", title="With all dimensions nothing is gained")
angles.legend(frameon=False)
plt.show()
