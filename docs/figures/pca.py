"""Principal components: scree plot, biplot, and digits from a few components."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_wine

import epicycle as ep

figure, axes = plt.subplots(1, 3, figsize=(11.4, 3.6), width_ratios=(1, 1.25, 1.05), layout="constrained")
digits = load_digits().data
model = ep.PCA().fit(digits)
ep.plot.scree(model.explained_variance_ratio_[:30], axes[0])
axes[0].set_title("digits, 64 pixels")

wine = load_wine()
names = ["alcohol", "malic_acid", "flavanoids", "color_intensity", "hue", "proline"]
X = wine.data[:, [wine.feature_names.index(name) for name in names]]
X = (X - X.mean(axis=0)) / X.std(axis=0)
two, names = ep.PCA(2).fit(X), [name.replace("_", " ") for name in names]
ep.plot.biplot(two.transform(X), two.components_, wine.target, names, axes[1])
axes[1].set_title("wines of three growers")

shown = [0, 11, 25, 36]
rows = [digits[shown]]
for k in (2, 10, 30):
    some = ep.PCA(k).fit(digits)
    rows.append(some.inverse_transform(some.transform(digits[shown])))
image = np.vstack([np.hstack([digit.reshape(8, 8) for digit in row]) for row in rows])
axes[2].imshow(image, cmap="gray_r", vmin=0, vmax=16)
axes[2].set(title="digits from k components", xticks=[], yticks=[3.5, 11.5, 19.5, 27.5])
axes[2].set_yticklabels(["rows", "k = 2", "k = 10", "k = 30"])
axes[2].grid(False)
plt.show()
