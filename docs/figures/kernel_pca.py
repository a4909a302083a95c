"""Three rings, their components with a Gaussian kernel, and noise that is left behind on the way back."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
ring = np.repeat([0.4, 1.5, 2.6], 130)
angle = rng.uniform(0, 2 * np.pi, len(ring))
X = np.column_stack([ring * np.cos(angle), ring * np.sin(angle)]) + 0.09 * rng.normal(size=(len(ring), 2))
colour = np.searchsorted([1.0, 2.0], ring)

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.4, 3.6), layout="constrained")
Z = ep.KernelPCA(2, kernel="rbf", gamma=0.35).fit_transform(X)
for k in range(3):
    left.plot(*X[colour == k].T, "o", ms=3.2, color=f"C{k}")
    middle.plot(*Z[colour == k].T, "o", ms=3.2, color=f"C{k}")
left.set(title="rows", aspect="equal", xticks=[], yticks=[])
middle.set(title="two components, Gaussian kernel", xlabel="first", ylabel="second")

t = rng.uniform(0, np.pi, 250)
curve = np.column_stack([np.cos(t), np.sin(t)])
noisy = curve + 0.12 * rng.normal(size=curve.shape)
model = ep.KernelPCA(4, kernel="rbf", gamma=1.5, fit_inverse_transform=True, alpha=0.05).fit(noisy)
back = model.inverse_transform(model.transform(noisy))
right.plot(*noisy.T, ".", color="0.7", ms=5, label="with noise")
right.plot(*back.T, ".", color="C0", ms=5, label="by four components and back")
s = np.linspace(0, np.pi, 100)
right.plot(np.cos(s), np.sin(s), "k:", lw=1.2, label="truth")
right.set(title="noise is left behind", aspect="equal", xticks=[], yticks=[], ylim=(-0.75, 1.35))
right.legend(loc="lower center", ncols=1)
plt.show()
