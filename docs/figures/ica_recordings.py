"""A foetal heartbeat from eight electrodes, and voices from mixtures; generated signals where the files are missing."""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

folders = [Path(os.environ["EPICYCLE_DATA"])] if "EPICYCLE_DATA" in os.environ else []
folders += [parent / "shared" / "data" for parent in Path.cwd().resolve().parents]
names = ("foetal_ecg.npz", "spoken_digits.npz")
folder = next((f for f in folders if all((f / name).exists() for name in names)), None)
rng = np.random.default_rng(0)


def beats(n, period, width):
    """Spikes with an undershoot, a period apart."""
    phase = (np.arange(n) % period - period / 2) / width
    return (1 - phase) * np.exp(-(phase**2))


def recordings():
    """(electrodes as columns, voices as columns)."""
    if folder is None:
        hearts = np.column_stack([beats(2500, 187, 5), 0.2 * beats(2500, 111, 3), 0.05 * rng.normal(size=2500)])
        voices = rng.laplace(size=(20_000, 3)) * np.abs(np.sin(np.arange(20_000)[:, None] / [700, 900, 1300]))
        return hearts @ rng.normal(size=(3, 8)) + 0.01 * rng.normal(size=(2500, 8)), voices
    with np.load(folder / names[0]) as stored:
        electrodes = stored["signals"].astype(float)
    with np.load(folder / names[1]) as stored:
        pieces = np.split(stored["audio"].astype(float), np.cumsum(stored["length"])[:-1])
        speakers = [
            np.concatenate([piece for piece, who in zip(pieces, stored["speaker"], strict=True) if who == name])
            for name in np.unique(stored["speaker"])[:3]
        ]
    n = min(len(signal) for signal in speakers)
    return electrodes, np.column_stack([signal[:n] for signal in speakers])


electrodes, voices = recordings()
hearts = ep.ICA(random_state=0).fit_transform(electrodes)
hearts /= hearts.std(axis=0)
peaked = np.argsort(-(hearts**4).mean(axis=0))  # heartbeats are the most peaked
voices = voices / voices.std(axis=0)
X = voices @ rng.normal(size=(3, 3)).T
heard = ep.ICA(sources="laplace", random_state=0).fit_transform(X)
order = np.argmax(np.abs(np.corrcoef(voices.T, heard.T)[:3, 3:]), axis=1)

figure, axes = plt.subplots(5, 2, figsize=(11.4, 5.4), layout="constrained")
axes[0, 0].set_title("three of eight electrodes, two of the components")
for ax, signal in zip(axes[:3, 0], electrodes[:, [0, 1, 7]].T, strict=True):
    ax.plot(signal, lw=0.6, color="C0")
mother, others = peaked[0], peaked[1:]
spectrum = np.abs(np.fft.rfft(np.abs(hearts) - np.abs(hearts).mean(axis=0), axis=0))
faster = [j for j in others if 20 <= np.argmax(spectrum[10:30, j]) + 10 <= 24]  # beats in the recording
for ax, j in zip(axes[3:, 0], [mother, (faster or others)[0]], strict=True):
    ax.plot(hearts[:, j], lw=0.6, color="C1")
shown = slice(4000, 16_000, 2)
axes[0, 1].set_title("two of three mixtures of voices, the three components")
for ax, signal in zip(axes[:2, 1], X.T[:2], strict=True):
    ax.plot(signal[shown], lw=0.4, color="C0")
for ax, j in zip(axes[2:, 1], order, strict=True):
    ax.plot(heard[shown, j], lw=0.4, color="C1")
for ax in axes.ravel():
    ax.set(xticks=[], yticks=[])
plt.show()
