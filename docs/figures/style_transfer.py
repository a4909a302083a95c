"""A face and rings painted in two styles, by the maps of networks that were trained on the spot."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import StyleTransfer

side = 40
x, y = np.meshgrid(np.arange(side), np.arange(side))
styles = {
    "waves": np.sin(0.8 * (x + y) + 1.5 * np.sin(0.25 * (x - y))),
    "strokes": np.where(np.sin(0.9 * (x - y)) > 0.3, 1.0, -1.0),
}
face = np.where(np.hypot(x - 20, y - 20) < 16, 0.7, -1.0)
for column in (14, 26):
    face[np.hypot(x - column, y - 15) < 3] = -0.8
face[(np.abs(np.hypot(x - 20, y - 20) - 9) < 1.3) & (y > 24)] = -0.8
rings = np.cos(np.hypot(x - 12, y - 30) / 5)
contents = [face, rings]

fig, axes = plt.subplots(3, 3, figsize=(6.2, 6.2), layout="constrained")
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    for side_ in ax.spines.values():
        side_.set_visible(False)
for line, content in zip(axes[1:, 0], contents, strict=True):
    line.imshow(content, cmap="gray", vmin=-1, vmax=1)
for column, (name, style) in enumerate(styles.items(), start=1):
    painter = StyleTransfer(style_weight=5, max_iter=50, random_state=0).fit([style])
    pictures = [style, *painter.transform(contents)]
    for ax, picture in zip(axes[:, column], pictures, strict=True):
        ax.imshow(picture, cmap="gray", vmin=-1, vmax=1)
    axes[0, column].set_title(name, fontsize=9)
axes[0, 0].set_axis_off()
axes[0, 0].text(
    0.5, 0.5, "content below,\nstyles to the right", ha="center", va="center", transform=axes[0, 0].transAxes
)
plt.show()
