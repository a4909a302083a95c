"""
Pixels that are missing
=======================

A decoder makes a row of a code of few numbers, :math:`x = g(z) + s \\varepsilon` with :math:`z \\sim N(0, I)`. Where
entries of a row are missing, the code is sought that explains the others,

.. math:: \\max_z \\; -\\frac{1}{2 s^2} \\sum_{j \\text{ observed}} (x_j - g_j(z))^2 - \\frac12 |z|^2 ,

and :math:`g(z)` fills the gaps. No model of the missing entries by the others has to be fitted for each pattern of
gaps. The second term matters where little is observed: it keeps the code near those of other rows, which imputation
by principal components does not.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from epicycle import PCA, Decoder

# %%
# One network is fitted to complete digits, of 8 numbers; without hidden layers the same class is factor analysis,
# whose maps are linear. Imputation by PCA goes round: missing pixels are replaced by their reconstruction from 8
# components, until they stay.
X = load_digits().images / 16
train, new = X[:1000], X[1500:1580]
options = {"batch_size": 50, "max_iter": 12, "learning_rate_init": 0.006, "random_state": 0}
network = Decoder(8, hidden_layer_sizes=96, **options).fit(train)
linear = Decoder(8, hidden_layer_sizes=(), **options).fit(train)
pca = PCA(8).fit(train.reshape(-1, 64))
average = train.mean(axis=0)


def by_mean(rows):
    return np.where(np.isnan(rows), average, rows)


def by_pca(rows, n_iter=100):
    filled = by_mean(rows)
    for _ in range(n_iter):
        flat = pca.inverse_transform(pca.transform(filled.reshape(-1, 64)))
        filled = np.where(np.isnan(rows), flat.reshape(rows.shape), rows)
    return filled


def by_decoder(model):
    return lambda rows: np.where(np.isnan(rows), model.reconstruct(rows), rows)


# %%
# The error of the missing pixels alone, in digits that were not in the fit. PCA is good where most is observed and
# worse than the mean of the pixel where little is. The linear decoder does not have that fault, due to its term in z,
# and the one with a hidden layer has the smallest error at every share.
rng = np.random.default_rng(0)
gaps = {f"{share:.0%}": rng.random(new.shape) < share for share in (0.2, 0.4, 0.6, 0.8)}
gaps["lower\nhalf"] = np.broadcast_to(np.arange(8)[:, None] > 3, new.shape)
methods = {
    "mean of the pixel": by_mean,
    "PCA": by_pca,
    "linear decoder": by_decoder(linear),
    "decoder": by_decoder(network),
}
errors = {name: [] for name in methods}
for title, gap in gaps.items():
    rows = np.where(gap, np.nan, new)
    for name, fill in methods.items():
        errors[name].append(np.mean((fill(rows) - new)[gap] ** 2))
    print(
        title.replace("\n", " ") + " missing:", ", ".join(f"{name} {found[-1]:.3f}" for name, found in errors.items())
    )

# %%
# Digits of which 60% of the pixels were taken away, and what the methods make of the rest.
some = new[:8]
rows = np.where(gaps["60%"][:8], np.nan, some)
sheets = {"digits": some, "60% missing": rows, **{name: fill(rows) for name, fill in methods.items()}}
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=[1, 1])
sheet = np.full((len(sheets), 8, 9, 9), np.nan)
sheet[:, :, :8, :8] = np.stack(list(sheets.values()))
left.imshow(sheet.transpose(0, 2, 1, 3).reshape(9 * len(sheets), -1), cmap="gray", vmin=0, vmax=1)
left.set_facecolor("#c5d8ea")
left.set_yticks(9 * np.arange(len(sheets)) + 4, list(sheets))
left.set_xticks([])
left.grid(False)
left.tick_params(length=0)
left.spines[:].set_visible(False)
place = np.arange(len(gaps))
for k, (name, found) in enumerate(errors.items()):
    right.bar(place + 0.21 * (k - 1.5), found, 0.19, label=name)
right.set_xticks(place, list(gaps))
right.set(xlabel="pixels that are missing", ylabel="mean squared error of these")
right.legend()
plt.show()
