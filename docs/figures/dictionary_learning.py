"""Atoms of patches of an image, the image without its noise, and how the objective falls."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
across, down = np.meshgrid(np.arange(96), np.arange(96))
clean = 0.4 + 0.25 * np.sin(across / 3.0) * (down < 48) + 0.3 * ((across - 30) ** 2 + (down - 66) ** 2 < 22**2)
clean += 0.25 * np.sin((across + down) / 2.5) * (down >= 48) * (across > 52)
noisy = clean + 0.12 * rng.normal(size=clean.shape)
corners = [(i, j) for i in range(0, 89) for j in range(0, 89)]
patches = np.stack([noisy[i : i + 8, j : j + 8].ravel() for i, j in corners])
means = patches.mean(axis=1, keepdims=True)

model = ep.DictionaryLearning(25, alpha=0.3, random_state=0, tol=1e-3, transform_algorithm="lasso_cd")
chosen = rng.choice(len(patches), 1500, replace=False)
model.fit((patches - means)[chosen])
smooth = model.inverse_transform(model.transform(patches - means)) + means
total, counts = np.zeros_like(noisy), np.zeros_like(noisy)
for (i, j), patch in zip(corners, smooth, strict=True):
    total[i : i + 8, j : j + 8] += patch.reshape(8, 8)
    counts[i : i + 8, j : j + 8] += 1

figure, axes = plt.subplots(1, 4, figsize=(11.6, 3.1), width_ratios=(1, 1, 1, 1.2), layout="constrained")
tiles = [np.pad(atom.reshape(8, 8) / np.abs(atom).max(), 1) for atom in model.components_]
sheet = np.vstack([np.hstack(tiles[i : i + 5]) for i in range(0, 25, 5)])
axes[0].imshow(sheet, cmap="gray", vmin=-1, vmax=1)
axes[0].set_title("25 atoms")
axes[1].imshow(noisy, cmap="gray", vmin=0, vmax=1)
axes[1].set_title(f"noisy, error {np.sqrt(np.mean((noisy - clean) ** 2)):.3f}")
axes[2].imshow(total / counts, cmap="gray", vmin=0, vmax=1)
axes[2].set_title(f"from sparse codes, error {np.sqrt(np.mean((total / counts - clean) ** 2)):.3f}")
for ax in axes[:3]:
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
axes[3].plot(np.arange(1, len(model.error_) + 1), model.error_)
axes[3].set(xlabel="round", ylabel="objective", title="never rises")
plt.show()
