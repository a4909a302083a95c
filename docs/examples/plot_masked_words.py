r"""
Words that were hidden
======================

BERT hides some words of a text and guesses them from both sides,

.. math:: \min \; - \sum_{t \in M} \log p(x_t \mid x \text{ with the places } M \text{ hidden}),

which needs no labels. The vectors of texts that come of it separate what texts are about, and fine-tuning goes on from
them with the few labels that there are. A bag of words knows nothing of a word that no labelled text contains.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

import epicycle as ep

rng = np.random.default_rng(0)
kinds = ("sports", "food", "travel", "music")
words = {
    "sports": ["goal", "team", "match", "coach", "player", "score", "league", "referee", "stadium", "race"],
    "food": ["bread", "soup", "cheese", "salt", "oven", "recipe", "butter", "pepper", "kitchen", "onion"],
    "travel": ["train", "hotel", "ticket", "map", "luggage", "beach", "airport", "passport", "guide", "border"],
    "music": ["song", "piano", "concert", "melody", "violin", "choir", "drum", "rhythm", "singer", "chord"],
}


def texts(n):
    y = rng.choice(kinds, n)
    return [" and ".join(rng.choice(words[kind], 3, replace=False)) for kind in y], y


X, y = texts(700)
new, answers = texts(400)
settings = {"n_layers": 1, "n_heads": 2, "d_model": 32, "context_length": 8, "learning_rate_init": 0.01}
bert = ep.BERT(**settings, max_iter=25, random_state=0).fit(X)
for text in ("goal and [MASK] and coach", "bread [MASK] soup and cheese", "[MASK] and piano and choir"):
    print(f"{text:30} -> {bert.fill([text])[0]}")
hidden = [text.rsplit(" ", 1) for text in new]
guessed = [text.rsplit(" ", 1)[1] for text in bert.fill([f"{start} [MASK]" for start, _ in hidden])]
print(
    f"{np.mean([g in words[kind] for g, kind in zip(guessed, answers, strict=True)]):.2f} of guesses are of the subject"
)

# %%
# The guesses are of the right subject nearly always, where a guess by lot would be one time in four; that no word comes
# twice in a text is more than so small a network has learnt. Then the same labelled texts for both: BERT goes on from
# its weights, logistic regression counts words.
sizes = (8, 16, 32)
tuned, counted = [], []
for n in sizes:
    model = ep.BERTClassifier(bert, max_iter=12, batch_size=8, learning_rate_init=1e-3, random_state=0)
    tuned.append(1 - model.fit(X[:n], y[:n]).score(new, answers))
    table = CountVectorizer().fit(X)
    linear = ep.LogisticRegression().fit(table.transform(X[:n]), y[:n])
    counted.append(1 - linear.score(table.transform(new), answers))
    print(f"{n} labels: error {tuned[-1]:.3f} after fine-tuning, {counted[-1]:.3f} of a bag of words")

# %%
# Left: texts by their vectors, of which no label was seen. Right: errors on new texts.
figure, (plane, curve) = plt.subplots(1, 2, figsize=(9.4, 3.7), layout="constrained")
Z = ep.PCA(2).fit_transform(bert.transform(X))
for k, kind in enumerate(kinds):
    plane.plot(*Z[y == kind].T, "o", ms=3, color=f"C{k}", alpha=0.7, label=kind)
plane.legend(fontsize=8)
plane.set(title="vectors of texts, labels not seen", xlabel="first component", ylabel="second component")
curve.plot(sizes, tuned, "o-", label="BERT, fine-tuned")
curve.plot(sizes, counted, "s--", label="logistic regression on words")
curve.set(title="few labels", xlabel="texts with labels", ylabel="error on new texts", xticks=sizes, ylim=(-0.02, None))
curve.legend(fontsize=8)
plt.show()
