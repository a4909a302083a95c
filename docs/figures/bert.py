"""Texts of four kinds by the vectors that BERT gives them, and labels that it needs few of."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from epicycle import BERT, PCA, BERTClassifier, LogisticRegression

rng = np.random.default_rng(0)
kinds = ("sports", "food", "travel", "music")
words = {kind: [f"{kind}{i}" for i in range(15)] for kind in kinds}


def texts(n):
    y = rng.integers(0, 4, n)
    return [" ".join(["today", *rng.choice(words[kinds[k]], 3)]) for k in y], np.array(kinds)[y]


X, y = texts(800)
new, answers = texts(400)
bert = BERT(n_heads=2, d_model=32, context_length=8, max_iter=25, learning_rate_init=5e-3, random_state=0).fit(X)

figure, (plane, curve) = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
Z = PCA(2).fit_transform(bert.transform(X))
for kind, color in zip(kinds, ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True):
    plane.scatter(*Z[y == kind].T, s=8, color=color, label=kind, alpha=0.7, linewidths=0)
plane.legend(fontsize=8)
plane.set(title="Vectors of texts, labels not seen", xlabel="first component", ylabel="second component")
sizes = (8, 16, 32, 64)
tuned, counted = [], []
for n in sizes:
    model = BERTClassifier(bert, max_iter=15, batch_size=8, learning_rate_init=1e-3, random_state=0)
    tuned.append(1 - model.fit(X[:n], y[:n]).score(new, answers))
    table = CountVectorizer(vocabulary=sorted({w for text in X for w in text.split()}))
    linear = LogisticRegression().fit(table.transform(X[:n]), y[:n])
    counted.append(1 - linear.score(table.transform(new), answers))
curve.plot(sizes, tuned, "o-", color="#0072B2", label="BERT, fine-tuned")
curve.plot(sizes, counted, "s--", color="#D55E00", label="logistic regression on words")
curve.set_xscale("log", base=2)
curve.set_xticks(sizes, [str(n) for n in sizes])
curve.set(xlabel="texts with labels", ylabel="error on new texts", title="Few labels", ylim=(-0.02, None))
curve.legend(fontsize=8)
plt.show()
