"""Where networks look that answer questions: the sentences of a story, the cells of an image."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import MemoryQA, VisualQA

rng = np.random.default_rng(0)
people, places = ["Mary", "John", "Ann"], ["kitchen", "garden", "office"]
stories, where = [], []
for _ in range(800):
    moves = [(rng.choice(people), rng.choice(places)) for _ in range(rng.integers(2, 7))]
    who = moves[rng.integers(len(moves))][0]
    stories.append(([f"{p} went to the {place}." for p, place in moves], f"Where is {who}?"))
    where.append(str([place for p, place in moves if p == who][-1]))
reader = MemoryQA(2, embedding_size=24, max_iter=20, learning_rate="cosine", random_state=0).fit(stories, where)

X, y = [], []
for i in range(800):
    image = rng.normal(0, 0.05, (12, 12, 3))
    colours = rng.integers(0, 2, 4) * rng.integers(1, 3, 4)  # nothing, red or green in each quarter
    for quarter, colour in enumerate(colours):
        if colour:
            top, left = 6 * (quarter // 2) + 1, 6 * (quarter % 2) + 1
            image[top : top + 4, left : left + 4, colour - 1] += 1
    asked = i % 2
    X.append((image, f"how many are {['red', 'green'][asked]}?"))
    y.append(int((colours == asked + 1).sum()))
settings = {"channels": [8, 16], "hidden_size": 24, "learning_rate_init": 0.005, "max_iter": 10, "random_state": 0}
viewer = VisualQA(**settings, learning_rate="cosine").fit(X, y)

fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", width_ratios=[1, 1, 1])
story, question = next((s, q) for s, q in stories if len(s) == 6 and sum(q[9:-1] in line for line in s) > 2)
axes[0].imshow(reader.attention_weights([(story, question)])[0].T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
axes[0].set(xticks=[0, 1], xticklabels=["first look", "second"], yticks=range(6), yticklabels=story)
axes[0].set_title(f"{question} {reader.predict([(story, question)])[0]}")
chosen = next(i for i in range(800) if y[i] == 2 and X[i][0].sum() > 45)
image, question = X[chosen]
axes[1].imshow(np.clip(image, 0, 1))
axes[1].set_title(f"{question} {viewer.predict([X[chosen]])[0]}")
gates = viewer.attention_maps([X[chosen]])[0]
axes[2].imshow(gates[gates.std(axis=(1, 2)).argmax()], cmap="Blues", vmin=0)
axes[2].set_title("gates of the cells")
for ax in axes:
    ax.grid(visible=False)
for ax in axes[1:]:
    ax.set(xticks=[], yticks=[])
plt.show()
