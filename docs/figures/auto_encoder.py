"""Digits: reconstructions by auto-encoders and by principal components of equal size, noise taken away."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from epicycle import PCA, AutoEncoder

X = load_digits().images / 16
train, new = X[:1500], X[1500:]
options = {"hidden_layer_sizes": 128, "learning_rate_init": 0.004, "max_iter": 40, "random_state": 0}
sizes = (2, 4, 8, 16)
models = {k: AutoEncoder(k, **options).fit(train) for k in sizes}
lost = {"auto-encoder": [models[k].reconstruction_error(new).mean() for k in sizes], "PCA": []}
flat, by_pca = new.reshape(-1, 64), {}
for k in sizes:
    pca = PCA(k).fit(train.reshape(-1, 64))
    by_pca[k] = pca.inverse_transform(pca.transform(flat))
    lost["PCA"].append(np.sum((by_pca[k] - flat) ** 2, axis=1).mean())

rng = np.random.default_rng(0)
noisy = new[:8] + 0.3 * rng.normal(size=(8, 8, 8))
denoised = AutoEncoder(32, noise=0.8, **options).fit(train).reconstruct(noisy)
rows = {
    "digits": new[:8],
    "by 4 numbers": models[4].reconstruct(new[:8]),
    "by 4 components": by_pca[4][:8].reshape(8, 8, 8),
    "with noise": noisy,
    "denoised": denoised,
}

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", width_ratios=[3, 2])
sheet = np.pad(np.stack(list(rows.values())), [(0, 0), (0, 0), (0, 1), (0, 1)]).transpose(0, 2, 1, 3).reshape(45, 72)
left.imshow(sheet, cmap="gray", vmin=0, vmax=1)
left.set_yticks(np.arange(5) * 9 + 4, list(rows))
left.set_xticks([])
left.tick_params(length=0)
left.grid(False)
left.spines[:].set_visible(False)
for name, errors in lost.items():
    right.plot(sizes, errors, "o-", label=name)
right.set_xscale("log", base=2)
right.set_xticks(sizes, [str(k) for k in sizes])
right.set_ylim(0)
right.set_xlabel("length of a code")
right.set_ylabel("squared error of new digits")
right.legend()
plt.show()
