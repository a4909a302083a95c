"""A word written from its end: what each letter of the answer looks at."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import Transformer

rng = np.random.default_rng(0)
words = ["".join(rng.choice(list("abcdefgh"), size=rng.integers(1, 7))) for _ in range(1500)]
model = Transformer(n_heads=2, d_model=32, max_iter=20, batch_size=32, learning_rate_init=5e-3, random_state=0)
model.fit(words, [word[::-1] for word in words])

word = "headache"[:6]
weights = model.attention(word, word[::-1])
figure, axes = plt.subplots(1, 4, figsize=(9.4, 2.7), layout="constrained", sharey=True)
for k, ax in enumerate(axes):
    ax.imshow(weights[k // 2, k % 2], cmap="Blues", vmin=0, vmax=1)
    ax.set_xticks(range(len(word) + 1), [*word, "end"])
    ax.set_yticks(range(len(word) + 1), ["begin", *word[::-1]])
    ax.set(xlabel="source", title=f"layer {k // 2 + 1}, head {k % 2 + 1}")
axes[0].set_ylabel("target so far")
plt.show()
