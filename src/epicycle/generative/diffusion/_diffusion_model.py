r"""Diffusion models:  minimise  mean_i v_i E_{t, e} 1/d |e - e(x_t, t, y_i)|^2,  x_t = sqrt(a_t) x_i + sqrt(1 - a_t) e,

denoising score matching: the minimum is at e(x, t) = -sqrt(1 - a_t) d/dx log p_t(x), p_t the density of x_t. The
evidence lower bound of the chain x_T -> ... -> x_0 whose steps have the posterior's variance is

    log p(x) >= log N(x; x_0(x_1), b_1 I) - sum_{t=2}^T 1/2 (r_{t-1} / r_t - 1) |e - e(x_t, t)|^2
                - KL(q(x_T | x) | N(0, I))

in expectation, with r_t = a_t / (1 - a_t) and b_1 = 1 - a_1 (Ho et al. 2020; Kingma et al. 2021).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Choice, Domain, Integer, NoneOr, Real, check_parameter
from epicycle.core._random import Seed
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.generative._density_net import DensityNet
from epicycle.generative._shaped_net import SHAPE_DEFAULTS, ShapeArguments, ShapedNet
from epicycle.nets.training._options import TrainingOptions

_SAMPLERS, _SCHEDULES = ("ddim", "ddpm"), ("cosine", "linear")
#: Steps of the sampler that draws nothing, where none are named.
_FEW_STEPS = 50
#: Groups of levels, at most, in each of which one level is drawn for each row, for its bound.
_BOUND_LEVELS = 100
#: A batch of images is computed in pieces side by side, of at least so many images.
_PARTS, _IMAGES_OF_PART = 4, 16


class DiffusionModel(DensityNet, ShapedNet):
    r"""Diffusion model: rows are drawn by taking noise away step by step, as a network has learnt to.

    .. math:: \min \; \frac1n \sum_i E_{t,\,\varepsilon} \frac1d \| \varepsilon - \varepsilon_\theta(x_t, t) \|^2,
              \qquad x_t = \sqrt{a_t}\, x_i + \sqrt{1 - a_t}\, \varepsilon, \quad \varepsilon \sim N(0, I).

    `log_density_gradient` is the gradient that this amounts to. `score_samples` is a lower bound of the log-density,
    estimated by draws, and no more than that.

    Parameters
    ----------
    schedule : {'cosine', 'linear'}, default='cosine'
        How the noise grows with t.
    n_steps : int, default=1000
        Number T of levels of noise.
    label_dropout : float, default=0.1
        Of a conditional model: share of the rows that are learnt from without their label, which guidance needs.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import DiffusionModel
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal([-2, 0], 0.3, (500, 2)), rng.normal([2, 0], 0.3, (500, 2))])
    >>> model = DiffusionModel(hidden_layer_sizes=(64, 64), max_iter=40, random_state=0).fit(X)
    >>> drawn = model.sample(1000, random_state=0)
    >>> bool(0.4 < np.mean(drawn[:, 0] > 0) < 0.6), bool(np.mean(abs(drawn[:, 0]) > 0.5) > 0.95)
    (True, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "schedule": Choice(*_SCHEDULES),
        "n_steps": Integer(2),
        "label_dropout": Real(0, 1),
    }
    _docs: ClassVar[Mapping[str, str]] = {
        "sampler": "sampler : {'ddim', 'ddpm'}, default='ddim'\n"
        "    Whether steps back draw nothing, so that a row follows from its first noise, or draw from the posterior.",
        "sample_n_steps": "n_steps : int, optional\n"
        f"    Steps back: {_FEW_STEPS} by default with 'ddim', and all with 'ddpm'.",
        "guidance": "guidance : float, default=0.0\n"
        "    Of a conditional model: how far to go beyond the class, (1 + w) v(x, y) - w v(x).",
    }
    _card = MethodCard("generative", ("F9",), ("memory", "files", "dask"), "none")
    _module_name = "epicycle.generative.diffusion._module.Denoiser"

    schedule: str
    n_steps: int
    label_dropout: float

    @stores_arguments(
        **{
            **SHAPE_DEFAULTS,
            "hidden_layer_sizes": (128, 128, 128),
            "channels": (32, 64, 64),
            "learning_rate": "cosine",
            "average": 0.999,
            "max_iter": 100,
        }
    )
    def __init__(
        self,
        schedule: str = "cosine",
        *,
        n_steps: int = 1000,
        label_dropout: float = 0.1,
        **shared: Unpack[ShapeArguments],
    ) -> None: ...

    def _architecture(self, rows: Any) -> dict[str, Any]:
        found = self._shape_entries(rows)
        widest = max(found["hidden"] if not found["channels"] else found["channels"], default=1)
        return {**found, "schedule": self.schedule, "n_steps": int(self.n_steps), "width": max(64, widest)}

    def _training_options(self, rows: Any) -> TrainingOptions:
        options = super()._training_options(rows)
        images = len(getattr(self, "row_shape_", [])) > 1
        return replace(options, parts=min(_PARTS, max(1, self.batch_size // _IMAGES_OF_PART))) if images else options

    # ------------------------------------------------------------------------------------------- the objective

    def _row_losses(self) -> Any:
        dropped = float(self.label_dropout)

        def losses(module: Any, batch: Any) -> Any:
            import torch

            from epicycle.nets.training._randomness import generator

            own = getattr(module, "_orig_mod", module)  # of one that torch.compile made
            own = getattr(own, "module", own)  # of one whose gradients several processes share
            x, labels = own.scale(batch.inputs[0]), batch.target
            t = torch.randint(1, own.n_steps + 1, (len(x),), generator=generator(), device=x.device)
            if labels is not None and dropped > 0:
                hidden = torch.rand(len(x), generator=generator(), device=x.device) < dropped
                labels = torch.where(hidden, own.n_classes, labels.long())
            return own.noise_errors(module, x, t, labels) / math.prod(own.row)

        return losses

    # ------------------------------------------------------------------------------------------- the bound

    def score_samples(self, X: Any, y: Any = None) -> np.ndarray:
        """A lower bound of the log-density of each row, in nats: the evidence lower bound (ELBO), by draws."""
        return super().score_samples(X, y)

    def _log_densities(self, module: Any, batch: Any) -> Any:
        import torch

        from epicycle.generative._row_draws import RowDraws

        x, a = module.scale(batch.inputs[0]), module.a
        n, d, total_steps = len(x), math.prod(module.row), module.n_steps
        draws = RowDraws(x, 1)

        def errors(t: Any) -> Any:
            e = draws.normal(d)[0].view(x.shape).to(x)
            return module.noise_errors(module, x, t, batch.target, e).double()

        # log N(x; x_0(x_1), b_1 I), where x - x_0(x_1) = sqrt(b_1 / a_1) (e(x_1) - e)
        b_1 = 1 - a[1]
        bound = -errors(torch.ones(n, dtype=torch.long, device=x.device)) / (2 * a[1]) - d / 2 * np.log(2 * np.pi * b_1)
        # KL(N(sqrt(a_T) x, (1 - a_T) I) | N(0, I))
        a_T = a[-1]
        bound = bound - (a_T * x.flatten(1).double().square().sum(1) - d * a_T - d * np.log1p(-a_T)) / 2
        ratio = a[1:] / (1 - a[1:])
        factor = torch.tensor(np.concatenate([[0, 0], ratio[:-1] / ratio[1:] - 1]) / 2, device=x.device)
        # Factors fall as 1 / t^2 or so: within a group of levels they are to be alike.
        ends = np.unique(np.geomspace(2, total_steps + 1, _BOUND_LEVELS + 1).astype(int))
        for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            t = first + ((last - first) * draws.uniform(1)[0, :, 0]).long()
            bound = bound - (last - first) * factor[t] * errors(t)
        return bound - module.scale.log_volume

    def log_density_gradient(self, X: Any, t: int = 1, y: Any = None) -> np.ndarray:
        r"""The gradient of the log-density of rows with noise of level t, as the network has learnt it.

        With x in units of its deviation around its mean this is :math:`-\varepsilon(x, t) / \sqrt{1 - a_t}`, the vector
        that denoising score matching fits to :math:`\nabla \log p_t(x)`.

        Parameters
        ----------
        X : array or data frame
            Rows with noise of level t.
        t : int, default=1
            From 1, hardly any noise, to `n_steps`, nothing else.
        y : array-like of shape (n_samples,), or a label, optional
            Of a conditional model: the gradient given these labels; by default that of all classes together.

        Returns
        -------
        gradient : ndarray of the shape of X
        """
        import torch

        self._check_fitted()
        owner = f"{type(self).__name__}.log_density_gradient"
        check_parameter(owner, "t", t, Integer(1, int(self.architecture_["n_steps"])))
        if y is None:
            self._require_any_class("y=None")

        def gradient(module: Any, batch: Any) -> Any:
            x = module.scale(batch.inputs[0])
            level = torch.full((len(x),), int(t), dtype=torch.long, device=x.device)
            signal, noise = module.roots(level, x.ndim)
            score = -(x + signal / noise * module(x, level, batch.target)) / module.scale.deviation
            return score.permute(0, 2, 3, 1) if module.images else score

        found = self._mapped(self._rows_of(X, y), gradient)
        return found.reshape(len(found), *self.row_shape_)

    def _require_any_class(self, given: str) -> None:
        """Refuse what needs the network without labels where it never learnt from rows without them."""
        if self.conditional and self.label_dropout == 0:
            raise ParameterError(
                f"{given}: needs what the network says without a label, which label_dropout=0 leaves unlearnt"
            )

    # ------------------------------------------------------------------------------------------- new rows

    def sample(
        self,
        n: int = 1,
        random_state: Seed = None,
        y: Any = None,
        *,
        sampler: str = "ddim",
        n_steps: int | None = None,
        guidance: float = 0.0,
    ) -> Any:
        """Draw rows from the model, in the type and the shape of those of the fit."""
        from functools import partial

        owner = f"{type(self).__name__}.sample"
        check_parameter(owner, "sampler", sampler, Choice(*_SAMPLERS))
        check_parameter(owner, "n_steps", n_steps, NoneOr(Integer(1)))
        check_parameter(owner, "guidance", guidance, Real(0))
        if guidance > 0:
            if not self.conditional:
                raise ParameterError(f"guidance={guidance!r}: is towards a class; expected 0, or conditional=True")
            self._require_any_class(f"guidance={guidance!r}")
        how = partial(self._sampled, sampler=sampler, n_steps=n_steps, guidance=float(guidance))
        return self._as_given(self._draw(n, random_state, y, how))

    def _sampled(
        self,
        module: Any,
        n: int,
        labels: Any,
        sampler: str = "ddim",
        n_steps: int | None = None,
        guidance: float = 0.0,
    ) -> Any:
        import torch

        from epicycle.generative.diffusion._noise import denoised, levels

        if n_steps is None:
            n_steps = _FEW_STEPS if sampler == "ddim" else module.n_steps

        def estimate(x: Any, t: int) -> tuple[Any, Any]:
            at = torch.full((len(x),), t, dtype=torch.long, device=x.device)
            v = module(x, at, labels)
            if guidance > 0 and labels is not None:
                v = (1 + guidance) * v - guidance * module(x, at, None)
            signal, noise = float(module.a[t]) ** 0.5, float(1 - module.a[t]) ** 0.5
            x_0, e = signal * x - noise * v, noise * x + signal * v
            if module.images:  # pixels end at the ends of their range, and the noise is what is left
                x_0 = x_0.clamp(-1, 1)
                e = (x - signal * x_0) / noise
            return x_0, e

        used = levels(module.n_steps, min(n_steps, module.n_steps))
        x = denoised(module.noise(n), estimate, module.a, used, 0.0 if sampler == "ddim" else 1.0)
        return module.scale.inverse(x)
