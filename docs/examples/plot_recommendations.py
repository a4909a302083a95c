"""
Ratings, tastes and what to recommend next
==========================================

Two hundred people rate some of eighty films. Nobody says what the films are about, but those who like one thriller
tend to like the next. Alternating least squares finds this out from the ratings alone, predicts those that are
missing, and recommends what a person has not seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.metrics import ndcg_at_k
from epicycle.recommend import CollaborativeFiltering
from epicycle.select import split_by_time

rng = np.random.default_rng(0)
genres = np.array(["thriller", "comedy", "opera", "western"])
genre = np.arange(80) % 4
films = np.array([f"{genres[g]} {i // 4 + 1}" for i, g in enumerate(genre)])
taste, quality = rng.normal(size=(200, 4)), 0.5 * rng.normal(size=80)
user, film = np.divmod(rng.choice(200 * 80, size=5000, replace=False), 80)
stars = np.clip(np.round(3.3 + quality[film] + taste[user, genre[film]] + 0.5 * rng.normal(size=5000)), 1, 5)
pairs = np.column_stack([user, film])

# %%
# The last quarter of the ratings is left out. Means know nothing of persons, biases nothing of tastes.

train, test = split_by_time(np.arange(5000), test_size=0.25)
print(f"mean           RMSE {np.std(stars[test]):.3f}")
for name, k in (("biases alone", 0), ("eight factors", 8)):
    model = CollaborativeFiltering(n_factors=k, random_state=0).fit(pairs[train], stars[train])
    error = np.sqrt(np.mean((model.predict(pairs[test]) - stars[test]) ** 2))
    print(f"{name:14} RMSE {error:.3f}   {model.certificate_}")

# %%
# Recommendations for one person, who has a taste for one kind, and the films next to a film.

person = int(np.argmax(taste[:, 2] - taste.mean(axis=1)))
items, scores = model.recommend(person, n=5)
print([f"{films[i]} ({score:.1f})" for i, score in zip(items, scores, strict=True)])
print(films[model.similar_items(2, n=4)[0]].tolist())
liked = {u: {int(i) for i in film[test][(user[test] == u) & (stars[test] >= 4)]} for u in np.unique(user[test])}
lists = [found.tolist() for found, _ in model.recommend_all([*liked], n=10)]
print(f"NDCG of the ten best films, of those with four stars later on: {ndcg_at_k(lists, [*liked.values()]):.2f}")

# %%
# The factors of the films: the kinds stand apart, though the model was never told of them.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.plot(model.history_.objective, marker=".")
left.set(xlabel="round", ylabel="F", title="the objective never rises")
U, s, _ = np.linalg.svd(model.item_factors_ - model.item_factors_.mean(axis=0), full_matrices=False)
for g, name in enumerate(genres):
    right.scatter(*(U * s)[genre == g, :2].T, s=20, label=name)
right.set(title="films by their factors", xlabel="first component", ylabel="second component")
right.legend()
plt.show()
