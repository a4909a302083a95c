r"""
Where a network looks for an answer
===================================

The answer to a question stands in one of many sentences, or in some cells of an image. A memory network weighs the
sentences by how well they fit the question and adds what it finds to it,

.. math:: u_{k+1} = u_k + \sum_j p_j c_j, \qquad p = \mathrm{softmax}(u_k' m_1, u_k' m_2, \dots),

while the gates for a question about an image, :math:`g_s = \sigma(v' \tanh(A m_s + B q))`, do not add up to one: what
is there twice counts twice. Both sets of weights can be drawn.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
people, places = ["Mary", "John", "Ann"], ["kitchen", "garden", "office"]
stories, where, last = [], [], []
for _ in range(700):
    moves = [(rng.choice(people), rng.choice(places)) for _ in range(rng.integers(2, 7))]
    who = moves[rng.integers(len(moves))][0]
    stories.append(([f"{p} went to the {place}." for p, place in moves], f"Where is {who}?"))
    where.append(str([place for p, place in moves if p == who][-1]))
    last.append(str(moves[-1][1]))
settings = {"embedding_size": 24, "max_iter": 15, "learning_rate": "cosine", "random_state": 0}
reader = ep.MemoryQA(2, **settings).fit(stories[:500], where[:500])
print(f"stories: {reader.score(stories[500:], where[500:]):.2f} of new questions are answered")
print(f"the place of the last sentence: {np.mean(np.array(where[500:]) == last[500:]):.2f}")

# %%
# Images of up to four squares, red or green; the number of one colour is asked for.
X, y = [], []
for i in range(850):
    image = rng.normal(0, 0.05, (12, 12, 3))
    colours = rng.integers(0, 2, 4) * rng.integers(1, 3, 4)  # nothing, red or green in each quarter
    for quarter, colour in enumerate(colours):
        if colour:
            top, left = 6 * (quarter // 2) + 1, 6 * (quarter % 2) + 1
            image[top : top + 4, left : left + 4, colour - 1] += 1
    X.append((image, f"how many are {['red', 'green'][i % 2]}?"))
    y.append(int((colours == i % 2 + 1).sum()))
settings = {"channels": [8, 16], "hidden_size": 24, "learning_rate_init": 0.005, "max_iter": 16, "random_state": 0}
viewer = ep.VisualQA(**settings, learning_rate="cosine").fit(X[:700], y[:700])
print(f"images: {viewer.score(X[700:], y[700:]):.2f} of new questions are answered")
print(f"the most frequent number: {np.bincount(y[700:]).max() / 150:.2f}")

# %%
# A new story with the weights of each look, and a new image with the gates of its cells for either question: over the
# squares of the other colour they close. A cell sees the neighbourhood of its convolutions, so the maps are coarse.
new = [row for row in stories[500:] if len(row[0]) == 6 and row[1][9:-1] not in row[0][-1]]
story, question = max(new, key=lambda row: sum(row[1][9:-1] in line for line in row[0]))
figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
axes[0].imshow(reader.attention_weights([(story, question)])[0].T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
axes[0].set(xticks=[0, 1], xticklabels=["first look", "second"], yticks=range(6), yticklabels=story)
axes[0].set_title(f"{question} {reader.predict([(story, question)])[0]}")
image = next(x[0] for x, n in zip(X[700:], y[700:], strict=True) if n == 2 and x[0].sum() > 45)
axes[1].imshow(np.clip(image, 0, 1))
axes[1].set_title("the image")
for ax, colour in zip(axes[2:], ("red", "green"), strict=True):
    asked = (image, f"how many are {colour}?")
    ax.imshow(viewer.attention_maps([asked])[0].mean(axis=0), cmap="Blues", vmin=0, vmax=1)
    ax.set(title=f"{asked[1]} {viewer.predict([asked])[0]}", xlabel="mean openness of the gates")
for ax in axes:
    ax.grid(visible=False)
for ax in axes[1:]:
    ax.set(xticks=[], yticks=[])
plt.show()
