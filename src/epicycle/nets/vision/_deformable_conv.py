r"""Deformable convolution (Dai et al. 2017):  (z * w)_{uvk} = sum_{ijc} w_{ijck} z_{u+i+a, v+j+b, c},

where the offsets (a, b) of every place (u, v) and tap (i, j) come from an ordinary convolution of z. Between pixels z
is bilinear, and zero outside of the image, so at zero offsets it is the ordinary convolution.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class DeformableConv(nn.Module):  # type: ignore[misc]
    r"""Convolution whose taps are moved by offsets that it learns from its input.

    .. math:: (z * w)_{uvk} = \sum_{i,j,c} w_{ijck} \, z_{u+i+a_{uvij},\, v+j+b_{uvij},\, c}

    The offsets start at zero, where it is the ordinary convolution.

    Parameters
    ----------
    n_in, n_out : int
        Channels of the input and of the output.
    size : int, default=3
        Side of the filters, odd.
    stride : int, default=1
    bias : bool, default=True

    Examples
    --------
    >>> import torch
    >>> from epicycle.nets import DeformableConv
    >>> layer = DeformableConv(3, 8)
    >>> layer(torch.zeros(2, 3, 10, 12)).shape
    torch.Size([2, 8, 10, 12])
    """

    def __init__(self, n_in: int, n_out: int, size: int = 3, stride: int = 1, bias: bool = True) -> None:
        super().__init__()
        self.size, self.stride = size, stride
        plain = nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=bias)
        nn.init.kaiming_normal_(plain.weight, nonlinearity="relu")
        self.weight, self.bias = plain.weight, plain.bias
        if bias:
            nn.init.zeros_(self.bias)
        self.offsets = nn.Conv2d(n_in, 2 * size * size, size, stride, padding=size // 2)
        nn.init.zeros_(self.offsets.weight)
        nn.init.zeros_(self.offsets.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer."""
        return deformed_convolution(x, self.offsets(x), self.weight, self.bias, self.stride)

    def extra_repr(self) -> str:
        """The shape of the filters."""
        n_out, n_in = self.weight.shape[:2]
        return f"{n_in}, {n_out}, size={self.size}, stride={self.stride}"


def deformed_convolution(
    x: torch.Tensor, offsets: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: int
) -> torch.Tensor:
    """The convolution at given offsets of shape (n, 2 size^2, rows, columns): down and right for each tap in turn."""
    n, channels, height, width = x.shape
    size, (rows, columns) = weight.shape[2], offsets.shape[2:]
    moved = offsets.view(n, size * size, 2, rows, columns)
    tap = torch.arange(size * size, device=x.device)
    down = (tap // size - size // 2)[:, None, None] + stride * torch.arange(rows, device=x.device)[:, None]
    right = (tap % size - size // 2)[:, None, None] + stride * torch.arange(columns, device=x.device)
    # In the units of grid_sample the pixels of a row are at (2 j + 1) / width - 1.
    places = torch.stack(
        [(2 * (right + moved[:, :, 1]) + 1) / width - 1, (2 * (down + moved[:, :, 0]) + 1) / height - 1], dim=-1
    )
    sampled = functional.grid_sample(
        x, places.reshape(n, size * size * rows, columns, 2), mode="bilinear", padding_mode="zeros", align_corners=False
    )
    patches = sampled.view(n, channels * size * size, rows * columns)
    found = (weight.flatten(1) @ patches).view(n, -1, rows, columns)
    return found if bias is None else found + bias[:, None, None]
