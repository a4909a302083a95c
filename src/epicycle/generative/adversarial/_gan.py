r"""Generative adversarial networks:  a generator x = g(z), z ~ N(0, I), against a critic f that tells real rows apart:

    critic      minimise  mean_i v_i l_+(f(x_i)) + E_z l_-(f(g(z))) + penalty of f'
    generator   minimise  E_z l_g(f(g(z)))

with the losses of `_losses`. Both see the labels of a conditional model. They take turns, `critic_steps` to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from epicycle.core._exceptions import CollapseWarning
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.generative._latent_net import LatentNet
from epicycle.generative._shaped_net import SHAPE_DEFAULTS, ShapeArguments, ShapedNet
from epicycle.generative.evaluate import ModeCollapse
from epicycle.nets.training._options import TrainingOptions

_LOSSES = ("non_saturating", "minimax", "wasserstein", "hinge")


class GAN(LatentNet, ShapedNet):
    r"""Generative adversarial network: a generator that learns from a critic which tells its rows from real ones.

    .. math:: \min_g \max_f \; \frac1n \sum_i v_i \log \sigma(f(x_i)) + E_{z \sim N(0, I)} \log(1 - \sigma(f(g(z)))),

    the original game, and three others with losses of their own. There is no density, and so no `score_samples`.
    After each epoch the regions of the real rows in which nothing is drawn are looked for (`coverage` in `history_` is
    the share of the others); at the end mode collapse is warned of (`CollapseWarning`).

    Parameters
    ----------
    loss : {'non_saturating', 'minimax', 'wasserstein', 'hinge'}, default='non_saturating'
        The game: the generator makes the critic's error on its rows large, or its success small (the original); or
        both play for the distance of Wasserstein, or for the margins of a hinge.
    n_codes : int, default=16
        Length k of a code.
    gradient_penalty : float, optional
        Factor of the penalty of the critic's slope: at points between real and drawn rows with the Wasserstein loss,
        where the slope is drawn to 1 (10 by default); at real rows otherwise, where it is drawn to 0 (1 by default).
    spectral_norm : bool, default=False
        Whether every layer of the critic has the largest singular value 1.
    critic_steps : int, optional
        Steps of the critic for each of the generator; by default 5 with the Wasserstein loss, and 1 otherwise.

    Attributes
    ----------
    coverage_ : float
        The share of the real rows in regions of which the generator draws rows, at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import GAN
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal([-2, 0], 0.3, (500, 2)), rng.normal([2, 0], 0.3, (500, 2))])
    >>> model = GAN(n_codes=4, hidden_layer_sizes=(64, 64), max_iter=60, random_state=0).fit(X)
    >>> drawn = model.sample(1000, random_state=0)
    >>> bool(0.3 < np.mean(drawn[:, 0] > 0) < 0.7)
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "loss": Choice(*_LOSSES),
        "n_codes": Integer(1),
        "gradient_penalty": NoneOr(Real(0)),
        "spectral_norm": Boolean(),
        "critic_steps": NoneOr(Integer(1)),
    }
    _card = MethodCard("generative", ("F9",), ("memory", "files", "dask"), "none")
    _module_name = "epicycle.generative.adversarial._module.Adversaries"

    loss: str
    n_codes: int
    gradient_penalty: float | None
    spectral_norm: bool
    critic_steps: int | None
    coverage_: float

    @stores_arguments(
        **{**SHAPE_DEFAULTS, "solver": "adam", "learning_rate_init": 2e-3, "average": 0.997, "max_iter": 200}
    )
    def __init__(
        self,
        loss: str = "non_saturating",
        *,
        n_codes: int = 16,
        gradient_penalty: float | None = None,
        spectral_norm: bool = False,
        critic_steps: int | None = None,
        **shared: Unpack[ShapeArguments],
    ) -> None: ...

    def _architecture(self, rows: Any) -> dict[str, Any]:
        return {
            **self._shape_entries(rows),
            "n_codes": int(self.n_codes),
            "activation": "leaky_relu",
            "spectral_norm": bool(self.spectral_norm),
        }

    def _n_codes(self) -> int:
        return int(self.architecture_["n_codes"])

    def _decoded(self, module: Any, z: Any, labels: Any) -> Any:
        return module.scale.inverse(module.generator(z, labels))

    # ------------------------------------------------------------------------------------------- the game

    def _players(self) -> Any:
        from epicycle.generative.adversarial._losses import Players

        penalty = self.gradient_penalty
        if penalty is None:
            penalty = 10.0 if self.loss == "wasserstein" else 1.0
        return Players(self.loss, float(penalty))

    def _training_options(self, rows: Any) -> TrainingOptions:
        # A first moment that forgets soon: the other player changes what a gradient means.
        return replace(super()._training_options(rows), betas=(0.5, 0.99))

    def _own_gradients(self, module: Any, rows: Any) -> Any:
        from epicycle.generative._turns import Turns
        from epicycle.generative.adversarial._compared import Compared

        players, real = self._players(), Compared(module, rows)
        steps = self.critic_steps or (5 if self.loss == "wasserstein" else 1)
        return Turns(
            module,
            {"critic": players.critic, "generator": players.generator},
            ["critic"] * int(steps) + ["generator"],
            self._training_options(rows),
            mean_weight=rows.mean_weight,
            labelled=self.conditional,
            columns=lambda: {"coverage": covered(real.collapse(module, repeats=False))},
        )

    def _row_losses(self) -> Any:
        players = self._players()

        def losses(module: Any, batch: Any) -> Any:
            # The value of the game without penalty: at its end neither player has a slope.
            real = players.game.real(module.critic(module.scale(batch.inputs[0]), batch.target))
            drawn = module.generator.drawn(len(real), batch.target)[0]
            return real + players.game.drawn(module.critic(drawn, batch.target))

        return losses

    # ------------------------------------------------------------------------------------------- evidence

    def _validate(self, module: Any, held: Any) -> dict[str, float]:
        from epicycle.generative.adversarial._compared import Compared

        distance = Compared(module, held).energy_distance(module)
        return {"validation_loss": distance, "validation_score": -distance}

    def _train(self, rows: Any, architecture: dict[str, Any], *, stream: bool = False) -> None:
        from epicycle.generative.adversarial._compared import Compared

        super()._train(rows, architecture, stream=stream)
        found = Compared(self.module_, rows).collapse(self.module_)
        self.coverage_ = covered(found)
        said = f"; {found.verdict} (which is no proof that they are drawn as often as they should be)"
        self.certificate_ = replace(self.certificate_, meaning=self.certificate_.meaning + said)
        if found.collapsed:
            self._run.notices.append(
                CollapseWarning(
                    f"GAN: {found.verdict}; raise max_iter, batch_size or gradient_penalty, or take another loss"
                )
            )


def covered(found: ModeCollapse) -> float:
    """The share of the real rows in regions of which rows are drawn."""
    return float(1 - found.real_shares[found.missing].sum())
