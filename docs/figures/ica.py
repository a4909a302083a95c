"""Three signals, three mixtures of them, and what independent components make of these."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

t = np.linspace(0, 8, 2000)
rng = np.random.default_rng(0)
sources = np.column_stack([np.sin(2 * t), np.sign(np.sin(3 * t)), 2 * ((t * 1.1) % 1) - 1])
sources += 0.1 * rng.normal(size=sources.shape)
sources /= sources.std(axis=0)
mixing = np.array([[1.0, 1.0, 1.0], [0.5, 2.0, 1.0], [1.5, 1.0, 2.0]])
X = sources @ mixing.T
found = ep.FastICA(random_state=0).fit_transform(X)
axes_of_variance = ep.PCA(whiten=True).fit_transform(X)

figure, axes = plt.subplots(3, 4, figsize=(11.4, 4.2), sharex=True, layout="constrained")
columns = {"sources": sources, "mixtures": X, "principal components": axes_of_variance, "FastICA": found}
for ax, (title, signals) in zip(axes.T, columns.items(), strict=True):
    ax[0].set_title(title)
    for one, signal in zip(ax, signals.T, strict=True):
        one.plot(t, signal, lw=0.8)
        one.set(yticks=[])
for one in axes[-1]:
    one.set_xlabel("time")
plt.show()
