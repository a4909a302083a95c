r"""Style transfer (Gatys, Ecker and Bethge 2016):  minimise over the pixels u of an image

    |F_c(u) - F_c(x)|^2 / |F_c(x)|^2  +  w 1/L sum_l |G_l(u) - S_l|^2 / |S_l|^2,    G_l(u) = F_l(u) F_l(u)' / pixels,

F_l being the maps of a network whose weights stay as they are, and S_l the Gram matrices of the style.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, NotFittedError, ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import Choice, Domain, Integer, Real, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._saved import Saved, attributes_of
from epicycle.core._threads import n_threads
from epicycle.core.estimator import in_catalogue
from epicycle.engine._ordered import in_order
from epicycle.generative._generative_net import GenerativeNet
from epicycle.nets.training._torch import device_named, one_thread_each, require_torch
from epicycle.nets.vision import ConvNetClassifier, ObjectDetector, Segmenter
from epicycle.nets.vision._images import as_image_set, channel_moments
from epicycle.optim import FunctionObjective, Solution, solve

_NETWORKS = (ConvNetClassifier, Segmenter, ObjectDetector, GenerativeNet)
_DOMAINS: Mapping[str, Domain] = {
    "style_weight": Real(0),
    "smoothness": Real(0),
    "start": Choice("content", "noise"),
    "max_iter": Integer(1),
    "tol": Real(0),
}
_ARGUMENTS = ("network", "style_layers", "content_layer", *_DOMAINS, "device", "random_state")
_FITTED = ("network_", "styles_", "n_channels_", "_mean", "_deviation", "_range")


@in_catalogue("generative", "F8", certificate="none")
class StyleTransfer(Saved):
    r"""Style transfer: the content of one image, painted with the colours, strokes and patterns of another.

    .. math:: \min_u \; \frac{\|F_c(u) - F_c(x)\|^2}{\|F_c(x)\|^2}
              + \frac wL \sum_l \frac{\|G_l(u) - S_l\|^2}{\|S_l\|^2}, \qquad G_l(u) = F_l(u) F_l(u)' / \text{pixels},

    over the pixels u of an image, by L-BFGS. The maps :math:`F_l` are those of a network that looks at images; its
    Gram matrices G say which maps are active together, wherever in the image that is.

    Parameters
    ----------
    network : fitted network of images, optional
        A ConvNetClassifier of any architecture, a Segmenter, an ObjectDetector, or a convolutional AutoEncoder or VAE.
        By default a small one is trained here, on pieces of the style, to tell by how many quarter turns they were
        turned.
    style_layers : sequence of int, optional
        Which maps make the style, counted from 0, the finest, among those after activations and blocks; by default all.
    content_layer : int, optional
        Which maps are the content; by default those in the middle.
    style_weight : float, default=10.0
        w, the weight of the style relative to that of the content.
    smoothness : float, default=0.0
        Factor of the mean squared difference of neighbouring pixels.
    start : {'content', 'noise'}, default='content'
        The image that is changed step by step.
    max_iter : int, default=200
        Steps for each image.
    tol : float, default=1e-5
        Steps end where no partial derivative is larger, relative to the objective.
    device : {'cpu', 'cuda', 'auto'}, default='cpu'
    random_state : int, Generator, RandomState or None, default=None
        Of noise, and of the network that is trained here.

    Attributes
    ----------
    network_ : fitted network
    styles_ : list of ndarray of shape (n_maps, n_maps)
        Gram matrices of the style, layer by layer: the means over its images.
    n_channels_ : int
        Channels of the images.
    history_ : History
        Of the images painted last: number of the image, objective and gradient for each step.
    certificate_ : Certificate
        By how much the objective fell. No optimum is claimed.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import StyleTransfer
    >>> x, y = np.meshgrid(np.arange(32), np.arange(32))
    >>> stripes, disc = np.sin(x + y), np.where(np.hypot(x - 16, y - 16) < 9, 1.0, -1.0)
    >>> painter = StyleTransfer(max_iter=20, random_state=0).fit([stripes])
    >>> painted = painter.transform([disc])[0]
    >>> painted.shape
    (32, 32)
    >>> bool(painter.style_distance([painted])[0] < painter.style_distance([disc])[0] / 2)
    True
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "images": "X : array of shape (n, height, width) or (n, height, width, channels), or list of arrays\n"
        "    Images, of any sizes; one image is a list of one.",
    }
    network_: Any
    styles_: list[np.ndarray]
    n_channels_: int
    history_: History
    certificate_: Certificate

    def __init__(
        self,
        network: Any = None,
        *,
        style_layers: Sequence[int] | None = None,
        content_layer: int | None = None,
        style_weight: float = 10.0,
        smoothness: float = 0.0,
        start: str = "content",
        max_iter: int = 200,
        tol: float = 1e-5,
        device: str = "cpu",
        random_state: Seed = None,
    ) -> None:
        given = {"style_weight": style_weight, "smoothness": smoothness, "start": start, "max_iter": max_iter}
        for name, value in {**given, "tol": tol}.items():
            check_parameter("StyleTransfer", name, value, _DOMAINS[name])
        if network is not None and not isinstance(network, _NETWORKS):
            raise ParameterError(
                f"network: got {type(network).__name__}; expected a fitted network of images, such as ConvNetClassifier"
            )
        self.network, self.style_layers, self.content_layer = network, style_layers, content_layer
        self.style_weight, self.smoothness, self.start = style_weight, smoothness, start
        self.max_iter, self.tol, self.device, self.random_state = max_iter, tol, device, random_state

    def __repr__(self) -> str:
        network = "" if self.network is None else f"{type(self.network).__name__}(...), "
        return f"StyleTransfer({network}style_weight={self.style_weight:g}, max_iter={self.max_iter})"

    # ------------------------------------------------------------------------------------------- the style

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the style of one image, or of several: their mean Gram matrices.

        Parameters
        ----------
        %(images)s
        y : None
            Ignored.

        Returns
        -------
        StyleTransfer
            The object itself.
        """
        require_torch("StyleTransfer")
        from epicycle.generative.style._painting import grams

        images = self._images(X, None)
        network = self.network
        if network is None:
            from epicycle.generative.style._turned_pieces import network_of_pieces

            network = network_of_pieces(images, seed_of(self.random_state), self.device)
        else:
            network._check_fitted()
        self.network_, self.n_channels_ = network, images[0].shape[2]
        self._check_channels(images)
        self._mean, self._deviation = channel_moments(images, None)
        self._range = [float(min(x.min() for x in images)), float(max(x.max() for x in images))]
        stages, layers, _ = self._chosen()
        with one_thread_each():
            found = [grams(stages, self._tensor(image), layers) for image in images]
        by_layer = zip(*found, strict=True)
        self.styles_ = [np.mean([g.cpu().numpy().astype(np.float64) for g in one], axis=0) for one in by_layer]
        return self

    def _chosen(self) -> tuple[Any, tuple[int, ...], int]:
        """(stages of the network, layers of the style, layer of the content)."""
        from epicycle.generative.style._stages import stages_of

        stages = stages_of(self.network_, device_named(self.device))
        n = len(stages.compared)
        style = range(n) if self.style_layers is None else self.style_layers
        content = n // 2 if self.content_layer is None else self.content_layer
        for name, value in [*(("style_layers", layer) for layer in style), ("content_layer", content)]:
            if not isinstance(value, int | np.integer) or not -n <= value < n:
                raise ParameterError(f"{name}: {value!r}; the network has {n} layers of maps, counted from 0")
        layers = tuple(sorted({int(layer) % n for layer in style}))
        if not layers:
            raise ParameterError("style_layers: is empty; expected the number of a layer at least")
        return stages, layers, int(content) % n

    def _images(self, X: Any, channels: int | None) -> list[np.ndarray]:
        if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object:
            raise DataError(f"X: StyleTransfer expects images; got one array of shape {X.shape}: give a list of it")
        images = as_image_set(X, "StyleTransfer", channels)
        if not images:
            raise DataError("X: StyleTransfer got no image; expected at least one")
        return images

    def _check_channels(self, images: list[np.ndarray]) -> None:
        mean = self.network_.architecture_["mean"]
        if images[0].shape[2] != len(mean):
            raise DataError(
                f"X: the images have {images[0].shape[2]} channels; {type(self.network_).__name__} was fitted to "
                f"{len(mean)}"
            )

    def _tensor(self, image: np.ndarray) -> Any:
        import torch

        return torch.from_numpy(image.astype(np.float32)).to(device_named(self.device))

    def _check_fitted(self) -> None:
        if not hasattr(self, "styles_"):
            raise NotFittedError("StyleTransfer: no style was learnt yet; call fit with an image, or several, first")

    # ------------------------------------------------------------------------------------------- painting

    def transform(self, X: Any) -> Any:
        """Paint images in the style.

        Parameters
        ----------
        %(images)s

        Returns
        -------
        painted : ndarray, or list of ndarray where X is one
            In the shapes of X, and within the range of its values and those of the style; bytes for bytes.
        """
        self._check_fitted()
        images = self._images(X, self.n_channels_)
        noise = self.start == "noise"
        painted = self._painted(images, [None if noise else image for image in images])
        return _as_given(X, [self._in_range(new, old) for new, old in zip(painted, images, strict=True)])

    def _in_range(self, painted: np.ndarray, content: np.ndarray) -> np.ndarray:
        """A painted image within the range of its content and of the style, in the type of the former."""
        low, high = min(self._range[0], float(content.min())), max(self._range[1], float(content.max()))
        if content.dtype == np.uint8:
            return np.asarray(np.rint(np.clip(painted, max(low, 0), min(high, 255))), dtype=np.uint8)
        return np.asarray(np.clip(painted, low, high), dtype=content.dtype)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit`, then `transform` of the same images."""
        return self.fit(X).transform(X)

    def texture(self, height: int, width: int, random_state: Seed = 0) -> np.ndarray:
        """A new image of the style alone, from noise.

        Parameters
        ----------
        height, width : int
            Its size, any.
        random_state : int, Generator, RandomState or None, default=0

        Returns
        -------
        image : ndarray of shape (height, width) or (height, width, channels)
        """
        self._check_fitted()
        for name, value in (("height", height), ("width", width)):
            check_parameter("StyleTransfer.texture", name, value, Integer(4))
        rng = stream(seed_of(random_state), "texture")
        noise = rng.normal(size=(int(height), int(width), self.n_channels_))
        found = self._painted([None], [np.asarray(self._mean) + np.asarray(self._deviation) * noise])[0]
        found = np.clip(found, self._range[0], self._range[1])
        return np.asarray(found[:, :, 0] if self.n_channels_ == 1 else found)

    def style_distance(self, X: Any) -> np.ndarray:
        r"""Distances of images from the style: :math:`1/L \sum_l \|G_l - S_l\|^2 / \|S_l\|^2` of each.

        Parameters
        ----------
        %(images)s

        Returns
        -------
        distances : ndarray of shape (n,)
        """
        from epicycle.generative.style._painting import grams

        self._check_fitted()
        stages, layers, _ = self._chosen()
        found = []
        with one_thread_each():
            for image in self._images(X, self.n_channels_):
                mine = [g.cpu().numpy() for g in grams(stages, self._tensor(image), layers)]
                apart = [((g - s) ** 2).sum() / (s**2).sum() for g, s in zip(mine, self.styles_, strict=True)]
                found.append(float(np.mean(apart)))
        return np.array(found)

    def _painted(self, contents: Sequence[np.ndarray | None], starts: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """Every image on its own; None for a start is noise of the colours of the style."""
        import torch

        device = device_named(self.device)
        stages, layers, content_layer = self._chosen()
        mean, deviation = (torch.tensor(v, dtype=torch.float32, device=device) for v in (self._mean, self._deviation))
        styles = [torch.from_numpy(style).to(mean) for style in self.styles_]
        seed = seed_of(self.random_state)

        def paint(
            numbered: tuple[int, tuple[np.ndarray | None, np.ndarray | None]],
        ) -> tuple[np.ndarray, Solution, Any]:
            from epicycle.generative.style._painting import Painting

            number, (content, start) = numbered
            kept = None if content is None else self._tensor(content)
            with one_thread_each():
                weights = (self.style_weight, self.smoothness)
                objective = Painting(stages, styles, layers, kept, content_layer, *weights, mean, deviation)
                if start is None:
                    assert content is not None
                    u = stream(seed, "noise", number).normal(size=content.shape)
                else:
                    u = (start - np.asarray(self._mean)) / np.asarray(self._deviation)
                solution = self._solved(objective, u)
            x = solution.x.reshape(u.shape) * np.asarray(self._deviation) + np.asarray(self._mean)
            with torch.no_grad():
                terms = objective.terms(torch.from_numpy(solution.x.reshape(u.shape)).to(mean))
            return x, solution, [float(term) for term in terms]

        painted: list[tuple[np.ndarray, Solution, Any]] = []
        pieces = enumerate(zip(contents, starts, strict=True))
        in_order(pieces, paint, painted.append, n_threads(math.inf) if device.type == "cpu" else 1)
        self._conclude(painted)
        return [x for x, _, _ in painted]

    def _solved(self, objective: Any, u: np.ndarray) -> Solution:
        function = FunctionObjective(lambda x: objective.value_and_gradient(x, u.shape), u.size, lower_bound=0.0)
        return solve("lbfgs", function, u.ravel().astype(np.float64), tol=self.tol, max_iter=int(self.max_iter))

    def _conclude(self, painted: list[tuple[np.ndarray, Solution, Any]]) -> None:
        """History and certificate of some images."""
        names = [name for name in painted[0][1].history if name != "seconds"]
        columns = {name: np.concatenate([solution.history[name] for _, solution, _ in painted]) for name in names}
        image = np.concatenate([np.full(solution.history.n_iter, i) for i, (_, solution, _) in enumerate(painted)])
        self.history_ = History(image=image, **columns)
        first = np.mean([solution.history.objective[0] for _, solution, _ in painted])
        last = np.mean([solution.value for _, solution, _ in painted])
        content, style = (float(np.mean([terms[k] for _, _, terms in painted])) for k in (0, 1))
        self.certificate_ = Certificate(
            "none",
            0.0,
            0.0,
            f"no proof of optimality; the objective fell from {first:.4g} to {last:.4g}, with {content:.2g} of the "
            f"content lost and a distance of {style:.2g} from the style",
        )

    # ------------------------------------------------------------------------------------------- pictures and files

    def plot(self, X: Any, style: Any = None) -> Any:
        """A picture of images, and below them the same as painted; gives the figure.

        Parameters
        ----------
        %(images)s
        style : image, or list of them, optional
            Shown in front of them.
        """
        from epicycle.generative.style._pictures import painted_picture

        images = self._images(X, self.n_channels_)
        painted = self.transform(images)
        shown = [] if style is None else self._images([style] if np.ndim(style) == 2 else style, self.n_channels_)
        return painted_picture(images, painted, shown)

    def __epi_state__(self) -> dict[str, Any]:
        self._check_fitted()
        more = [name for name in ("history_", "certificate_") if hasattr(self, name)]
        parameters = {**attributes_of(self, _ARGUMENTS), "network": None}
        return {"parameters": parameters, "fitted": attributes_of(self, (*_FITTED, *more))}

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["parameters"])  # type: ignore[misc]  # an object that was only allocated
        for name, value in state["fitted"].items():
            setattr(self, name, value)
        self.network = self.network_


def _as_given(X: Any, images: list[np.ndarray]) -> Any:
    """Images in the shapes and the container of X."""
    axes = [np.ndim(x) for x in X]
    found = [image[:, :, 0] if n == 2 else image for image, n in zip(images, axes, strict=True)]
    if isinstance(X, np.ndarray) and X.dtype != object:
        return np.stack(found)
    return found
