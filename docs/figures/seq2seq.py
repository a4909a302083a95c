"""Where a network looks while it reverses a text, and how far it gets with attention and without."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
X = ["".join(rng.choice(list("abcde"), rng.integers(1, 9))) for _ in range(1000)]
y = [text[::-1] for text in X]
settings = {"hidden_size": 32, "learning_rate_init": 0.01, "learning_rate": "cosine", "max_iter": 15, "random_state": 0}
models = {name: ep.Seq2Seq(name, **settings).fit(X[:700], y[:700]) for name in ("additive", None)}

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", width_ratios=[1, 1.2])
text = "decabead"
ep.plot.attention(models["additive"].attention_weights([text])[0], text, models["additive"].predict([text])[0], ax=left)
lengths = np.array([len(t) for t in X[700:]])
for name, model in models.items():
    hit = np.array([a == b for a, b in zip(model.predict(X[700:]), y[700:], strict=True)])
    shares = [hit[lengths == n].mean() for n in range(1, 9)]
    right.plot(range(1, 9), shares, "o-", label=f"attention={name!r}")
right.set(xlabel="length of the text", ylabel="share reversed to the letter", ylim=(0, 1.03))
right.legend(loc="lower left")
plt.show()
