"""
A picture in two styles
=======================

Style transfer looks at images through the maps :math:`F_l` of a convolutional network. The content x is where the
maps are active, the style which of them are active together, the Gram matrix :math:`G_l(u) =
F_l(u) F_l(u)' / \\text{pixels}`. The image u that is painted minimises

.. math:: \\frac{\\|F_c(u) - F_c(x)\\|^2}{\\|F_c(x)\\|^2}
          + \\frac wL \\sum_l \\frac{\\|G_l(u) - S_l\\|^2}{\\|S_l\\|^2} ,

over its pixels, where S are the Gram matrices of the style. No network is downloaded: a small one is trained on
pieces of the style, to tell by how many quarter turns they were turned, so that the style needs a direction.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import StyleTransfer

# %%
# The content is a ring, the styles are stripes and a wall of bricks.
side = 32
x, y = np.meshgrid(np.arange(side), np.arange(side))
mortar = (y % 5 == 0) | ((x + 5 * (y // 5 % 2)) % 10 == 0)
styles = {"stripes": np.sin(0.9 * (x + y)), "bricks": np.where(mortar, 1.0, -0.6)}
content = np.where(np.hypot(x - 15.5, y - 15.5) < 12, 0.7, -0.9)
content[np.hypot(x - 15.5, y - 15.5) < 5] = -0.9

# %%
# The mean of both images is the baseline: it keeps the content, and is nearly as far from the style as that. The
# painted image is much nearer to the stripes, where it gives up more of the content, and nearer to the bricks. A
# texture starts from noise and has no content at all.
painted, drawn = {}, {}
for name, style in styles.items():
    painter = StyleTransfer(style_weight=5, max_iter=25, random_state=0).fit([style])
    painted[name], drawn[name] = painter.transform([content])[0], painter.texture(side, side)
    pictures = {"content": content, "mean": (content + style) / 2, "painted": painted[name], "texture": drawn[name]}
    for title, picture in pictures.items():
        away, alike = painter.style_distance([picture])[0], np.corrcoef(picture.ravel(), content.ravel())[0, 1]
        print(f"{name}, {title:8} distance to the style {away:.3f}, correlation with the content {alike:.2f}")

# %%
# From left to right: what is given, the baseline, and what is painted.
fig, axes = plt.subplots(2, 5, figsize=(10, 4.2), layout="constrained")
for line, name in zip(axes, styles, strict=True):
    columns = {
        "content": content,
        f"style: {name}": styles[name],
        "mean of both": (content + styles[name]) / 2,
        "painted": painted[name],
        "texture from noise": drawn[name],
    }
    for ax, (title, picture) in zip(line, columns.items(), strict=True):
        ax.imshow(picture, cmap="gray", vmin=-1, vmax=1)
        ax.set(title=title, xticks=[], yticks=[])
        ax.grid(False)
plt.show()
