"""Architectures of convolutional networks as lists of layers, by name and for images of any size.

A layer is a name, or a list of a name and numbers:

    ["conv", channels, size, stride]    convolution that keeps height and width (divided by the stride, 1 by default)
    ["deformable", channels, size, stride]   the same with taps that are moved by learnt offsets (Dai et al. 2017)
    ["max_pool", size], ["average_pool", size]     largest or mean value of squares; "global_pool": mean of all pixels
    ["residual", channels, stride]      x + conv(a(conv(x))), each convolution 3 x 3 with batch norm (He et al. 2016)
    ["inception", a, b, c, d]           1 x 1, 3 x 3, 5 x 5 convolutions and pooling side by side (Szegedy et al. 2015)
    ["linear", units], ["dropout", p], "flatten", "batch_norm", "relu", "gelu", "tanh", "sigmoid"

A linear layer with one output for each class follows the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from epicycle.core._exceptions import ParameterError

Layer = list[Any]

#: Numbers of each kind of layer: (at least, at most), and whether they are whole.
_NUMBERS: Mapping[str, tuple[int, int]] = {
    "conv": (2, 3),
    "deformable": (2, 3),
    "max_pool": (1, 1),
    "average_pool": (1, 1),
    "residual": (1, 2),
    "inception": (4, 4),
    "linear": (1, 1),
    "dropout": (1, 1),
    **dict.fromkeys(("global_pool", "flatten", "batch_norm", "relu", "gelu", "tanh", "sigmoid"), (0, 0)),
}


def _scaled(channels: int, width: float) -> int:
    return max(1, round(channels * width))


def lenet(side: int, width: float) -> list[Layer]:
    """Two convolutions with pooling, and two layers of hidden units (LeCun et al. 1998), rectified."""
    layers: list[Layer] = []
    for channels in (32, 64):
        layers += [["conv", _scaled(channels, width), 5], ["relu"]]
        side = _pooled(layers, side)
    return [*layers, ["flatten"], ["linear", _scaled(256, width)], ["relu"], ["dropout", 0.5]]


def alexnet(side: int, width: float) -> list[Layer]:
    """Five convolutions and two wide hidden layers with dropout (Krizhevsky et al. 2012)."""
    large = side >= 96  # the first filters of the original see 11 x 11 pixels of large photographs, every fourth
    layers: list[Layer] = [["conv", _scaled(64, width), *((11, 4) if large else (3,))], ["relu"]]
    side = _pooled(layers, -(-side // 4) if large else side)
    layers += [["conv", _scaled(192, width), 5 if large else 3], ["relu"]]
    side = _pooled(layers, side)
    for channels in (384, 256, 256):
        layers += [["conv", _scaled(channels, width), 3], ["relu"]]
    _pooled(layers, side)
    hidden: list[Layer] = [["dropout", 0.5], ["linear", _scaled(1024, width)], ["relu"]]
    return [*layers, ["flatten"], *hidden, *hidden]


def vgg(side: int, width: float) -> list[Layer]:
    """Blocks of 3 x 3 convolutions with batch norm; poolings double the channels (Simonyan and Zisserman 2015)."""
    layers: list[Layer] = []
    for channels, n in ((64, 1), (128, 1), (256, 2), (512, 2)):
        for _ in range(n):
            layers += [["conv", _scaled(channels, width), 3], ["batch_norm"], ["relu"]]
        side = _pooled(layers, side)
        if side == 1:
            break
    return [*layers, ["flatten"], ["linear", _scaled(512, width)], ["relu"], ["dropout", 0.5]]


def inception(side: int, width: float) -> list[Layer]:
    """A stem and blocks of convolutions of several sizes side by side (Szegedy et al. 2015)."""
    layers: list[Layer] = [["conv", _scaled(64, width), 3], ["batch_norm"], ["relu"]]
    side = _pooled(layers, side)
    for branches in ((32, 64, 16, 16), (64, 96, 32, 32)):
        layers += [["inception", *(_scaled(c, width) for c in branches)]]
    side = _pooled(layers, side)
    for branches in ((96, 128, 32, 32), (128, 160, 48, 48)):
        layers += [["inception", *(_scaled(c, width) for c in branches)]]
    return [*layers, ["global_pool"], ["dropout", 0.4]]


def resnet(side: int, width: float) -> list[Layer]:
    """Residual blocks, twice the channels where the side is halved, and the mean of all pixels (He et al. 2016)."""
    layers: list[Layer] = []
    if side >= 96:  # large photographs are halved twice before the first block
        layers += [["conv", _scaled(64, width), 7, 2], ["batch_norm"], ["relu"], ["max_pool", 2]]
        side = -(-side // 4)
    else:
        layers += [["conv", _scaled(64, width), 3], ["batch_norm"], ["relu"]]
    layers += [["residual", _scaled(64, width), 1]] * 2
    for channels in (128, 256, 512):
        if side < 4:
            break
        layers += [["residual", _scaled(channels, width), 2], ["residual", _scaled(channels, width), 1]]
        side = -(-side // 2)
    return [*layers, ["global_pool"]]


def _pooled(layers: list[Layer], side: int) -> int:
    """Add a pooling by two where the images are not a single pixel yet; gives the side after it."""
    if side < 2:
        return side
    layers.append(["max_pool", 2])
    return side // 2


ARCHITECTURES: Mapping[str, Callable[[int, float], list[Layer]]] = {
    "lenet": lenet,
    "alexnet": alexnet,
    "vgg": vgg,
    "inception": inception,
    "resnet": resnet,
}


def layers_of(architecture: Any, height: int, width_: int, factor: float) -> list[Layer]:
    """The layers of an architecture for images of this size, each as a list of a name and numbers, checked."""
    if isinstance(architecture, str):
        layers = ARCHITECTURES[architecture](min(height, width_), factor)
    else:
        layers = [_layer(layer, i) for i, layer in enumerate(architecture)]
    _check_sizes(layers, height, width_)
    return layers


def _layer(layer: Any, i: int) -> Layer:
    """One layer of a user's list as a list, or an error that names it."""
    given = [layer] if isinstance(layer, str) else layer
    known = isinstance(given, Sequence) and len(given) > 0 and given[0] in _NUMBERS
    if not known:
        raise ParameterError(f"architecture[{i}]={layer!r}; expected one of {', '.join(_NUMBERS)}, with its numbers")
    name, *values = given
    least, most = _NUMBERS[name]
    if not least <= len(values) <= most:
        wanted = str(least) if least == most else f"{least} or {most}"
        raise ParameterError(f"architecture[{i}]={layer!r}: {name!r} takes {wanted} numbers; got {len(values)}")
    if name == "dropout":
        if not (isinstance(values[0], int | float) and 0 <= values[0] < 1):
            raise ParameterError(f"architecture[{i}]={layer!r}; expected a probability from 0 to below 1")
        return [name, float(values[0])]
    if not all(isinstance(v, int) and not isinstance(v, bool) and v >= 1 for v in values):
        raise ParameterError(f"architecture[{i}]={layer!r}; expected whole numbers of at least 1")
    if name in ("conv", "deformable") and values[1] % 2 == 0:
        raise ParameterError(f"architecture[{i}]={layer!r}: filters have an odd side, so that images keep theirs")
    return [name, *(int(v) for v in values)]


def _check_sizes(layers: list[Layer], height: int, width: int) -> None:
    """Raise where a layer is left without pixels, or asks for an image after they were laid out in a row."""
    flat = False
    for i, (name, *values) in enumerate(layers):
        spatial = name in ("conv", "deformable", "max_pool", "average_pool", "global_pool", "residual", "inception")
        if spatial and flat:
            raise ParameterError(
                f"architecture[{i}]={[name, *values]!r} needs an image; the layers before it end in a row"
            )
        if name in ("max_pool", "average_pool"):
            if min(height, width) < values[0]:
                raise ParameterError(
                    f"architecture[{i}]={[name, *values]!r}: the images are {height} x {width} there, less than a "
                    "square"
                )
            height, width = height // values[0], width // values[0]
        elif name in ("conv", "deformable", "residual"):
            stride = values[-1] if len(values) == (2 if name == "residual" else 3) else 1
            height, width = -(-height // stride), -(-width // stride)
        flat |= name in ("global_pool", "flatten", "linear")
