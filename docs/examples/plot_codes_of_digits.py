"""
Digits in a few numbers
=======================

An auto-encoder passes every digit through a code of k numbers, and learns both ways, :math:`z = f(x)` and
:math:`\\hat x = g(z)`, so that little is lost: :math:`\\min_{f, g} \\sum_i |g(f(x_i)) - x_i|^2`. With linear maps
this is principal component analysis; with networks the rows may lie near a curved surface. A variational auto-encoder
gives the codes a distribution as well, :math:`z \\sim N(0, I)`, and maximises a lower bound of the log-probability,

.. math:: \\log p(x) \\ge E_{q(z \\mid x)} \\log p(x \\mid z) - \\mathrm{KL}(q(z \\mid x) \\,|\\, p(z)) ,

so that new digits can be drawn and digits be scored.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from epicycle import PCA, VAE, AutoEncoder

X = load_digits().images / 16
train, new = X[:1200], X[1500:]
flat, new_flat = train.reshape(-1, 64), new.reshape(-1, 64)

# %%
# Squared error of new digits by the length of the code. No number at all leaves the mean image, the baseline. The
# network loses less than principal components of the same number.
sizes = (2, 4, 8)
options = {"hidden_layer_sizes": 96, "learning_rate_init": 0.006, "max_iter": 25, "random_state": 0}
coders = {k: AutoEncoder(k, **options).fit(train) for k in sizes}
components = {k: PCA(k).fit(flat) for k in sizes}
by_network = [coders[k].reconstruction_error(new).mean() for k in sizes]
rebuilt = {k: pca.inverse_transform(pca.transform(new_flat)) for k, pca in components.items()}
by_pca = [np.sum((rebuilt[k] - new_flat) ** 2, axis=1).mean() for k in sizes]
by_mean = np.sum((new_flat - flat.mean(axis=0)) ** 2, axis=1).mean()
print(f"mean image      {by_mean:.2f}")
for k, network, pca in zip(sizes, by_network, by_pca, strict=True):
    print(f"{k} numbers: PCA {pca:.2f}, auto-encoder {network:.2f}")

# %%
# The VAE takes a pixel for the probability of a bit. Its bound and the estimate of the log-probability by importance
# sampling, which lies above the bound, are compared with independent pixels, each with its own mean. An entry of the
# code that tells about zero nats is not used: the bound charges for every nat, and the fit spends no more than pays.
vae = VAE(8, decoder="bernoulli", hidden_layer_sizes=96, max_iter=70, learning_rate_init=0.004, random_state=0)
vae.fit(train)
some = new[:100]
bound, likelihood = vae.score(some), np.mean(vae.log_likelihood(some, n_importance=100))
p = np.clip(train.mean(axis=0), 0.002, 0.998)
independent = np.mean(np.sum(some * np.log(p) + (1 - some) * np.log(1 - p), axis=(1, 2)))
print(
    f"nats per new digit: independent pixels {independent:.1f}, bound {bound:.1f}, importance sampling {likelihood:.1f}"
)
print("nats told by the entries of the code:", np.sort(vae.code_divergences_)[::-1].round(2))

# %%
# Below the reconstructions: means of digits that are drawn, and the path along the two entries that tell most, from
# -2.5 to 2.5 with the others at zero.
along = vae.latent_traversal(np.argsort(-vae.code_divergences_)[:2], n_steps=10)
sheets = {
    "digits": new[:10],
    "PCA, 4 numbers": rebuilt[4][:10].reshape(-1, 8, 8),
    "auto-encoder, 4": coders[4].reconstruct(new[:10]),
    "VAE, 8 numbers": vae.reconstruct(new[:10]),
    "drawn by VAE": vae.decode(np.random.default_rng(0).normal(size=(10, 8))),
    "along an entry": along[0],
    "another entry": along[1],
}
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=[3, 2])
sheet = np.pad(np.stack(list(sheets.values())), [(0, 0), (0, 0), (0, 1), (0, 1)], constant_values=1)
left.imshow(sheet.transpose(0, 2, 1, 3).reshape(9 * len(sheets), -1), cmap="gray", vmin=0, vmax=1)
left.set_yticks(9 * np.arange(len(sheets)) + 4, list(sheets))
left.set_xticks([])
left.grid(False)
left.tick_params(length=0)
left.spines[:].set_visible(False)
right.plot((0, *sizes), (by_mean, *by_pca), "o-", label="PCA")
right.plot((0, *sizes), (by_mean, *by_network), "o-", label="auto-encoder")
right.set(xlabel="numbers in a code", ylabel="squared error of new digits", ylim=(0, None))
right.legend()
plt.show()
