"""
Three voices, three microphones
===============================

Every microphone records a mixture. Sources that are independent can be told apart without knowing how they were
mixed; directions of largest variance cannot do it, because independence is more than being uncorrelated.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
t = np.linspace(0, 6, 3000)
sources = np.column_stack(
    [
        np.sin(9 * t) * (1 + 0.6 * np.sin(1.1 * t)),  # a voice that swells
        np.sign(np.sin(5 * t)) * np.abs(np.sin(2.5 * t)),  # a buzzer
        rng.laplace(size=t.size) * (np.sin(1.7 * t) > 0),  # crackling, now and then
    ]
)
sources /= sources.std(axis=0)
mixing = np.array([[1.0, 0.7, 0.4], [0.6, 1.0, 0.8], [0.9, 0.4, 1.0]])
recordings = sources @ mixing.T + 0.02 * rng.normal(size=sources.shape)

# %%
# The Amari index is zero where each component is one source.

methods = {
    "principal components": ep.PCA(whiten=True),
    "FastICA": ep.FastICA(random_state=0),
}
found = {name: method.fit_transform(recordings) for name, method in methods.items()}
for name, signals in found.items():
    unmixing = np.linalg.lstsq(recordings - recordings.mean(axis=0), signals)[0].T
    print(f"{name:21} Amari index {ep.metrics.amari_index(unmixing, mixing):.3f}")

# %%
# Order and sign cannot be known: each component is drawn in the row of the source that it is nearest to.

figure, axes = plt.subplots(3, 4, figsize=(11.4, 4.4), sharex=True, layout="constrained")
for column, (name, signals) in zip(
    axes.T,
    {"sources": sources, "recordings": recordings, **{k: found[k] for k in list(found)[:2]}}.items(),
    strict=True,
):
    near = np.abs(np.corrcoef(sources.T, signals.T)[:3, 3:])
    order = np.arange(3) if name == "recordings" else near.argmax(axis=1)
    for ax, k in zip(column, order, strict=True):
        ax.plot(t, signals[:, k], lw=0.6)
        ax.set(yticks=[])
    column[0].set_title(name)
for ax in axes[-1]:
    ax.set_xlabel("seconds")
plt.show()
