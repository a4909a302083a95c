r"""Energy-based models:  minimise  - mean_i v_i log p(x_i),   log p(u) = f(u) + log N(u; 0, I) - log Z,

u = (x - mean) / deviation, whose gradient is that of  - mean_i v_i f(u_i) + E_p f(u).  The expectation is one over

    persistent     chains that go on from step to step (Tieleman 2008)
    contrastive    chains that start at the rows of the batch (Hinton 2002)
    adversarial    a generator pi, which in turn is moved towards p: min_f max_pi KL(data | p) - KL(pi | p)

where KL(pi | p) = - H(pi) - E_pi (f + log N) + log Z, and H is bounded from below by a recogniser of codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import EpicycleWarning, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, Real, check_parameter
from epicycle.core._random import Seed
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.generative._density_net import DensityNet
from epicycle.generative._shaped_net import SHAPE_DEFAULTS, ShapeArguments, ShapedNet
from epicycle.nets.training._torch import device_of

_METHODS, _SAMPLERS = ("persistent", "contrastive", "adversarial"), ("langevin", "hmc")
#: Steps of leapfrog in one move.
_LEAPFROG = {"langevin": 1, "hmc": 5}
#: Moves of a chain from where it stands to a row that is given back.
_MOVES = 200
#: Chains that find the steps of annealed ones, at least; and the error of log Z beyond which it says nothing.
_PILOTS, _LARGEST_ERROR = 16, 0.5


class EnergyBasedModel(DensityNet, ShapedNet):
    r"""Energy-based model: a network f gives every row an energy, and rows of low energy are likely.

    .. math:: \log p(u) = f(u) + \log N(u;\, 0, I) - \log Z, \qquad u = (x - \text{mean}) / \text{deviation},

    fitted by maximum likelihood with Markov chains (persistent or not), or against a generator. `energy` tells odd
    rows from usual ones. `score_samples` is an estimate, since Z is one: annealed importance sampling at the end of
    the fit gives `log_normalizer_` and its standard error.

    Parameters
    ----------
    method : {'persistent', 'contrastive', 'adversarial'}, default='persistent'
        Where the rows come from that are compared with the real ones: chains that go on from step to step, chains
        that start at the rows of the batch, or a generator that learns to draw from the model.
    sampler : {'langevin', 'hmc'}, default='langevin'
        Moves of the chains: one step along the gradient with noise, or several with momentum; both are corrected by
        Metropolis' rule, and their size follows the share that is accepted.
    n_moves : int, default=10
        Moves of each chain in a step of the training.
    n_chains : int, default=256
        Persistent chains.
    renewal : float, default=0.02
        Share of the persistent chains that start from noise again in each step.
    energy_penalty : float, default=0.01
        Factor of the mean of :math:`f^2` over real rows and draws, which keeps energies within bounds.
    noise : float, default=0.0
        Deviation of normal noise that is added to the real rows, in units of u. Bytes, counts and pixels that are
        exactly black have no density, and need some, 0.1 say.
    n_codes : int, default=16
        Length of the codes of the generator, with ``method='adversarial'``.
    n_levels : int, default=500
        Levels of annealed importance sampling; 0 leaves it out, and `score_samples` with it.
    n_annealed : int, default=200
        Chains of annealed importance sampling, for each class of a conditional model.
    spectral_norm : bool, default=False
        Whether every layer has the largest singular value 1, so that f is as smooth as can be.

    Attributes
    ----------
    log_normalizer_ : ndarray of shape (n_classes,) or (1,)
        Estimates of log Z.
    log_normalizer_error_ : ndarray of shape (n_classes,) or (1,)
        Their standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import EnergyBasedModel
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal([-2, 0], 0.5, (500, 2)), rng.normal([2, 0], 0.5, (500, 2))])
    >>> model = EnergyBasedModel(
    ...     hidden_layer_sizes=(32, 32), learning_rate_init=0.01, n_moves=5, max_iter=40, n_levels=100, random_state=0
    ... ).fit(X)
    >>> bool(model.energy([[0.0, 0.0]])[0] > model.energy([[2.0, 0.0]])[0])  # between the two parts, and in one
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "method": Choice(*_METHODS),
        "sampler": Choice(*_SAMPLERS),
        "n_moves": Integer(1),
        "n_chains": Integer(1),
        "renewal": Real(0, 1),
        "energy_penalty": Real(0),
        "noise": Real(0),
        "n_codes": Integer(1),
        "n_levels": Integer(0),
        "n_annealed": Integer(2),
        "spectral_norm": Boolean(),
    }
    _docs: ClassVar[Mapping[str, str]] = {
        "sample_n_moves": f"n_moves : int, default={_MOVES}\n    Moves of each chain before it is given back.",
    }
    _card = MethodCard("generative", ("F9",), ("memory", "files", "dask"), "none")
    _module_name = "epicycle.generative.energy._module.Energy"

    method: str
    sampler: str
    n_moves: int
    n_chains: int
    renewal: float
    energy_penalty: float
    noise: float
    n_codes: int
    n_levels: int
    n_annealed: int
    spectral_norm: bool
    log_normalizer_: np.ndarray
    log_normalizer_error_: np.ndarray

    @stores_arguments(
        **{**SHAPE_DEFAULTS, "solver": "adam", "learning_rate": "cosine", "learning_rate_init": 3e-3, "max_iter": 100}
    )
    def __init__(
        self,
        method: str = "persistent",
        *,
        sampler: str = "langevin",
        n_moves: int = 10,
        n_chains: int = 256,
        renewal: float = 0.02,
        energy_penalty: float = 0.01,
        noise: float = 0.0,
        n_codes: int = 16,
        n_levels: int = 500,
        n_annealed: int = 200,
        spectral_norm: bool = False,
        **shared: Unpack[ShapeArguments],
    ) -> None: ...

    def _architecture(self, rows: Any) -> dict[str, Any]:
        if self.n_chains < self._n_classes():
            raise ParameterError(
                f"n_chains={self.n_chains}: every class needs a chain; expected at least {self._n_classes()}"
            )
        return {
            **self._shape_entries(rows),
            "shares": self.class_prior_.tolist() if self.conditional else [1.0],
            "method": self.method,
            "n_codes": int(self.n_codes),
            "n_chains": int(self.n_chains),
            "activation": "silu",
            "spectral_norm": bool(self.spectral_norm),
        }

    # ------------------------------------------------------------------------------------------- the objective

    def _own_gradients(self, module: Any, rows: Any) -> Any:
        from epicycle.generative._turns import Turns
        from epicycle.generative.energy._draws import Draws

        moves = int(self.n_moves), _LEAPFROG[self.sampler]
        draws = Draws(self.method, *moves, self.renewal, self.energy_penalty, self.noise)
        players = {"energy": draws.energy, "actor": draws.actor}
        order = ["energy", "actor"] if self.method == "adversarial" else ["energy"]
        return Turns(
            module,
            {name: players[name] for name in order},
            order,
            self._training_options(rows),
            mean_weight=rows.mean_weight,
            labelled=self.conditional,
            columns=draws.columns,
        )

    def _row_losses(self) -> Any:
        from epicycle.generative.energy._draws import mean_of_draws

        def losses(module: Any, batch: Any) -> Any:
            # The likelihood's gradient with the draws as they are now for the expectation.
            f = module(module.scale(batch.inputs[0]), batch.target)
            return mean_of_draws(module, len(f)) - f

        return losses

    def _train(self, rows: Any, architecture: dict[str, Any], *, stream: bool = False) -> None:
        if self.n_levels:
            # Positions, momenta, slopes and what the slope of each layer needs, of all chains at a time.
            width = 6 * int(np.prod(architecture["shape"])) + 3 * sum(architecture["hidden"])
            require_memory(4.0 * width * self.n_annealed, f"n_annealed={self.n_annealed}", "take a smaller n_annealed")
        super()._train(rows, architecture, stream=stream)
        if self.n_levels:
            self._normalise()

    def _normalise(self) -> None:
        """log Z of each class by annealed importance sampling, with steps that other chains have found."""
        import torch

        from epicycle.generative.energy._chains import annealed, log_mean
        from epicycle.nets.training._randomness import drawing_from
        from epicycle.nets.training._torch import one_thread_each

        module, found = self.module_, []
        device, n, levels = device_of(module), int(self.n_annealed), (int(self.n_levels), _LEAPFROG[self.sampler])
        for k in range(max(self._n_classes(), 1)):
            with one_thread_each(), drawing_from(0, k, 0, device):
                few = max(_PILOTS, n // 8)
                label = [torch.full((m,), k, device=device) if self.conditional else None for m in (few, n)]
                f = [partial(module, labels=labels) for labels in label]
                steps = annealed(f[0], module.log_normal, module.noise(few), module.step.clone(), *levels)[2]
                log_w = annealed(f[1], module.log_normal, module.noise(n), steps, *levels)[1]
                found.append(log_mean(log_w))
        self.log_normalizer_, self.log_normalizer_error_ = np.array(found).T
        worst = float(self.log_normalizer_error_.max())
        words = f"; log Z by annealed importance sampling, with a standard error of {worst:.2g}"
        if not worst < _LARGEST_ERROR:
            words += ", which is too large for densities: raise n_levels or n_annealed"
            self._run.notices.append(
                EpicycleWarning(
                    f"EnergyBasedModel: the standard error of log Z is {worst:.2g}, which score_samples shares; raise "
                    "n_levels or n_annealed, or set n_levels=0 where energies and samples are enough"
                )
            )
        self.certificate_ = replace(self.certificate_, meaning=self.certificate_.meaning + words)

    # ------------------------------------------------------------------------------------------- energies

    def energy(self, X: Any, y: Any = None) -> np.ndarray:
        """The energy of each row, -f(u) - log N(u; 0, I): minus its log-density up to a constant, large for odd rows.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or a label, optional
            Of a conditional model: the labels of the rows, which it needs.

        Returns
        -------
        energy : ndarray of shape (n_samples,)
        """
        if self.conditional and y is None:
            raise ParameterError("y=None: the energies of a conditional model are those of given labels")
        return self._mapped(self._rows_of(X, y), lambda m, b: -self._unnormalised(m, b)).astype(np.float64)

    def score_samples(self, X: Any, y: Any = None) -> np.ndarray:
        """An estimate of the log-density of each row, in nats: log Z is estimated, and its error is shared by all."""
        self._check_fitted()
        if not hasattr(self, "log_normalizer_"):
            raise ParameterError("n_levels=0: there is no estimate of the normaliser, which score_samples needs")
        return super().score_samples(X, y)

    def _unnormalised(self, module: Any, batch: Any) -> Any:
        u = module.scale(batch.inputs[0])
        return module(u, batch.target) + module.log_normal(u)

    def _log_densities(self, module: Any, batch: Any) -> Any:
        import torch

        log_z = torch.from_numpy(self.log_normalizer_).to(device_of(module))
        of_row = log_z[batch.target.long()] if self.conditional else log_z
        return self._unnormalised(module, batch).double() - of_row - module.scale.log_volume

    # ------------------------------------------------------------------------------------------- new rows

    def sample(self, n: int = 1, random_state: Seed = None, y: Any = None, *, n_moves: int = _MOVES) -> Any:
        """Draw rows by chains, which start where those of the fit have come to, or from the generator."""
        check_parameter(f"{type(self).__name__}.sample", "n_moves", n_moves, Integer(0))
        return self._as_given(self._draw(n, random_state, y, partial(self._sampled, n_moves=int(n_moves))))

    def _sampled(self, module: Any, n: int, labels: Any, n_moves: int = _MOVES) -> Any:
        from epicycle.generative.energy._chains import move
        from epicycle.generative.energy._draws import starts

        u = starts(module, n, labels)
        if n_moves:
            step = module.step.clone()
            u = move(lambda x: module(x, labels) + module.log_normal(x), u, step, n_moves, _LEAPFROG[self.sampler]).u
        return module.scale.inverse(u)
