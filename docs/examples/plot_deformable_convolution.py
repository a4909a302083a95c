r"""
A convolution whose taps move
=============================

The taps of a filter of 3 x 3 reach one pixel. A deformable convolution moves each tap by offsets that a second
convolution reads from the input,

.. math:: (z * w)_{uvk} = \sum_{i,j,c} w_{ijck} \, z_{u+i+a_{uvij},\, v+j+b_{uvij},\, c} ,

bilinear between pixels, so that where it looks is learnt together with what it looks for. Here discs have to be moved
by three pixels, to the left or to the right as a second channel says: the answer is known, and out of reach for
an ordinary filter of that size.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from epicycle.nets import DeformableConv

torch.manual_seed(0)
torch.set_num_threads(1)  # small images gain nothing from more
generator = torch.Generator().manual_seed(0)
row, column = torch.meshgrid(torch.arange(20.0), torch.arange(20.0), indexing="ij")


def discs(n):
    """Images of a soft disc with a channel of -1 or 1, and the disc moved by three pixels in that direction."""
    centre, radius = 8 + 4 * torch.rand(n, 2, generator=generator), 2 + 2 * torch.rand(n, generator=generator)
    way = 2.0 * torch.randint(0, 2, (n,), generator=generator) - 1
    middle = centre[:, 1, None, None]

    def disc(column):
        distance = torch.hypot(row - centre[:, 0, None, None], column - middle)
        return torch.sigmoid(2 * (radius[:, None, None] - distance))

    channel = way[:, None, None].expand(n, 20, 20)
    return torch.stack([disc(column), channel], 1), disc(column - 3 * channel)[:, None]


X_new, y_new = discs(100)
layers = {"ordinary": torch.nn.Conv2d(2, 1, 3, padding=1), "deformable": DeformableConv(2, 1)}
for name, layer in layers.items():
    steps = torch.optim.Adam(layer.parameters(), lr=0.04)
    for _ in range(120):
        X, y = discs(8)
        steps.zero_grad()
        torch.mean((layer(X) - y) ** 2).backward()
        steps.step()
    with torch.no_grad():
        print(f"{name:10} mean squared error {torch.mean((layer(X_new) - y_new) ** 2):.5f}")
print(f"{'variance':10} {y_new.var():.5f}")

# %%
# Where do the taps look? Their offsets, at the middle of an image, and the mean place of the taps weighted by the size
# of their weights. To move a disc to the right the layer has to look to the left: the taps have gone to that side, by
# more than the one pixel that an ordinary filter reaches.
layer = layers["deformable"]
tap = np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)])
weight = np.abs(layer.weight[0, 0].detach().numpy().ravel())
shown = [int(torch.nonzero(X_new[:, 1, 0, 0] == way)[0]) for way in (-1, 1)]
places = []
with torch.no_grad():
    offsets = layer.offsets(X_new[shown]).numpy().reshape(2, 9, 2, 20, 20)
    answers = layer(X_new[shown])[:, 0].numpy()
    plain = layers["ordinary"](X_new[shown])[:, 0].numpy()
for way, moved in zip(("left", "right"), offsets, strict=True):
    places.append(tap + moved[:, :, 10, 10])
    middle = np.average(places[-1], axis=0, weights=weight)
    print(f"to the {way:5}: taps at {middle[1]:+.1f} pixels to the right, {middle[0]:+.1f} down")

# %%
# Left to right: the image with the taps of one output (the cross; the larger a point, the larger its weight), what is
# wanted, and the two layers. The ordinary one leaves the disc about where it was.
figure, axes = plt.subplots(2, 4, figsize=(9.6, 4.9), layout="constrained")
for line, k, place, answer, other in zip(axes, shown, places, answers, plain, strict=True):
    pictures = [X_new[k, 0].numpy(), y_new[k, 0].numpy(), answer, other]
    for ax, picture in zip(line, pictures, strict=True):
        ax.imshow(picture, cmap="gray_r", vmin=0, vmax=1.2)
        ax.grid(visible=False)
        ax.set(xticks=[0, 10, 19], yticks=[0, 10, 19])
    line[0].plot(10, 10, "+", color="C3", ms=11, mew=2)
    line[0].scatter(10 + place[:, 1], 10 + place[:, 0], s=4 + 60 * weight / weight.max(), color="C0", alpha=0.8)
    line[0].set(xlim=(-0.5, 19.5), ylim=(19.5, -0.5))
for ax, title in zip(axes[0], ("image and taps", "wanted", "deformable", "ordinary"), strict=True):
    ax.set_title(title)
for ax, way in zip(axes[:, 0], ("left", "right"), strict=True):
    ax.set_ylabel(f"to the {way}")
plt.show()
