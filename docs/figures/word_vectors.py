"""Words on a ring, seen only through walks along it, and their vectors."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import PCA, GloVe, Word2Vec

rng = np.random.default_rng(0)
n = 48
walks = (rng.integers(n, size=3000)[:, None] + np.cumsum(rng.integers(-1, 2, size=(3000, 20)), axis=1)) % n
sentences = [[f"w{i}" for i in walk] for walk in walks]
models = {
    "skip-gram, negative samples": Word2Vec(16, subsample=0, learning_rate=0.05, epochs=10, random_state=0),
    "skip-gram, hierarchical": Word2Vec(
        16, negative=0, hierarchical=True, subsample=0, learning_rate=0.05, epochs=10, random_state=0
    ),
    "GloVe": GloVe(16, epochs=50, random_state=0),
}
fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(sentences)
    places = np.array([int(word[1:]) for word in model.words_])
    Z = PCA(n_components=2).fit_transform(model.vectors_.astype(float))
    around = np.argsort(places)
    ax.plot(*Z[np.append(around, around[0])].T, color="0.8", linewidth=1, zorder=0)
    ax.scatter(*Z.T, c=places, cmap="twilight", s=18)
    ax.set_title(name)
    ax.set_aspect("equal", "datalim")
    ax.set(xticks=[], yticks=[])
plt.show()
