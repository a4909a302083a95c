r"""Restricted Boltzmann machines:  minimise  - mean_i v_i log p(x_i),   log p(x) = - F(x) - log Z,

    F(x) = - b'x - sum_j log(1 + e^{c_j + w_j'x}),

whose gradient is that of  mean_i v_i F(x_i) - E_p F(x).  The expectation is one over

    persistent     chains that go on from step to step (Tieleman 2008)
    contrastive    chains that start at the rows of the batch (Hinton 2002)
    enumeration    all states: - log Z itself is differentiated
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from epicycle.core._exceptions import MemoryBudgetError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import Choice, Domain, Integer, Real, check_parameter
from epicycle.core._random import Seed
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.generative._density_net import DensityNet
from epicycle.generative._generative_net import GENERATIVE_DEFAULTS, GenerativeArguments
from epicycle.nets.training._torch import device_of

_METHODS = ("persistent", "contrastive", "enumeration")
#: Units of the smaller layer up to which all its states are summed; and moves of a chain before it is given back.
_ENUMERATED, _MOVES = 20, 200


class RestrictedBoltzmannMachine(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityNet):  # type: ignore[misc]
    r"""Restricted Boltzmann machine: bits of rows and hidden bits, with products between the two and none within.

    .. math:: p(x, h) = \frac1Z e^{b'x + c'h + h'Wx}, \qquad
              \log p(x) = b'x + \sum_j \log\bigl(1 + e^{c_j + w_j'x}\bigr) - \log Z .

    Rows are tables or images; an entry is the bit whether it is above `threshold`. Where one of the layers has at most
    20 units log Z is exact, a sum over its states; otherwise it is estimated by annealed importance sampling at the
    end of the fit, with its standard error. As an energy-based model it is the one whose chains draw whole layers at a
    time.

    Parameters
    ----------
    n_hidden : int, default=64
        Hidden bits.
    method : {'persistent', 'contrastive', 'enumeration'}, default='persistent'
        Where the rows come from that are compared with the real ones: chains that go on from step to step, chains that
        start at the rows of the batch, or the exact expectation, for small machines.
    n_moves : int, default=1
        Moves of each chain in a step of the training.
    n_chains : int, default=100
        Persistent chains.
    n_levels : int, default=1000
        Levels of annealed importance sampling, where log Z is not exact; 0 leaves it out.
    n_annealed : int, default=100
        Its chains.
    threshold : float, default=0.5
        Entries above this are ones. Bytes above 1 are divided by 255 first.

    Attributes
    ----------
    log_normalizer_ : float
        log Z, or its estimate.
    log_normalizer_error_ : float
        Standard error of the estimate; 0 where it is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import RestrictedBoltzmannMachine
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.random((500, 1)) < 0.5
    >>> X = (rng.random((500, 6)) < np.where(cause, 0.9, 0.1)).astype(float)  # six bits with one cause
    >>> model = RestrictedBoltzmannMachine(4, method="enumeration", max_iter=60, random_state=0).fit(X)
    >>> bool(model.score(X) > 6 * np.log(0.5) + 0.5)  # independent bits have less
    True
    >>> model.sample(3, random_state=0).shape
    (3, 6)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_hidden": Integer(1),
        "method": Choice(*_METHODS),
        "n_moves": Integer(1),
        "n_chains": Integer(1),
        "n_levels": Integer(0),
        "n_annealed": Integer(2),
        "threshold": Real(),
    }
    _docs: ClassVar[Mapping[str, str]] = {
        "sample_y": "y : None\n    Ignored.",
        "score_samples_y": "%(sample_y)s",
        "score_samples_returns": "log_probability : ndarray of shape (n_samples,)",
        "sample_n_moves": f"n_moves : int, default={_MOVES}\n    Moves of each chain before it is given back.",
    }
    _card = MethodCard("generative", ("F9",), ("memory", "files", "dask"), "none")
    _module_name = "epicycle.generative.energy._rbm_module.BoltzmannMachine"
    conditional = False

    n_hidden: int
    method: str
    n_moves: int
    n_chains: int
    n_levels: int
    n_annealed: int
    threshold: float
    log_normalizer_: float
    log_normalizer_error_: float

    @stores_arguments(
        **{
            **{name: value for name, value in GENERATIVE_DEFAULTS.items() if name != "conditional"},
            "solver": "adam",
            "learning_rate": "cosine",
            "learning_rate_init": 1e-2,
            "max_iter": 50,
        }
    )
    def __init__(
        self,
        n_hidden: int = 64,
        *,
        method: str = "persistent",
        n_moves: int = 1,
        n_chains: int = 100,
        n_levels: int = 1000,
        n_annealed: int = 100,
        threshold: float = 0.5,
        **shared: Unpack[GenerativeArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- the fit

    def _architecture(self, rows: Any) -> dict[str, Any]:
        from epicycle.generative._bit_rows import bit_entries

        found = self._common_architecture(rows, scaled=False)
        smaller = min(int(self.n_hidden), int(np.prod(found["shape"])))
        if self.method == "enumeration" and smaller > _ENUMERATED:
            raise MemoryBudgetError(
                f"method='enumeration': the smaller layer has {smaller} bits, and 2^{smaller} states; expected at most "
                f"{_ENUMERATED} bits, or method='persistent'"
            )
        at_once = max(int(self.n_chains), min(int(self.batch_size), rows.n_rows))
        # Scores, uniform numbers and bits of a layer, for every row or chain of a step.
        needed = 12.0 * at_once * int(self.n_hidden)
        require_memory(needed, f"n_hidden={self.n_hidden}", "take fewer hidden bits or chains")
        if self.n_levels and smaller > _ENUMERATED:
            needed = 24.0 * int(self.n_annealed) * (int(self.n_hidden) + int(np.prod(found["shape"])))
            require_memory(needed, f"n_annealed={self.n_annealed}", "take fewer annealed chains")
        sizes = {"n_hidden": int(self.n_hidden), "n_chains": int(self.n_chains)}
        return {**found, **sizes, **bit_entries(rows, self.threshold)}

    def _own_gradients(self, module: Any, rows: Any) -> Any:
        from epicycle.generative._turns import Turns

        return Turns(
            module,
            {"machine": self._step},
            ["machine"],
            self._training_options(rows),
            mean_weight=rows.mean_weight,
        )

    def _step(self, module: Any, batch: Any) -> tuple[Any, Any]:
        """F of the rows, and -F of as many draws."""
        import torch

        x = module.bits(batch.inputs[0])
        of_rows = -module.machine.log_sum(x)
        if self.method == "enumeration":
            return of_rows, module.machine.log_normalizer().expand(len(x))
        chains = module.moved(module.chains if self.method == "persistent" else x, int(self.n_moves))
        with torch.no_grad():
            module.chains.copy_(torch.cat([chains, module.chains])[: len(module.chains)])
        return of_rows, module.machine.log_sum(chains).mean().expand(len(x))

    def _row_losses(self) -> Any:
        def losses(module: Any, batch: Any) -> Any:
            # The likelihood's gradient with the chains as they are now for the expectation.
            of_rows = -module.machine.log_sum(module.bits(batch.inputs[0]))
            if self.method == "enumeration":
                return of_rows + module.machine.log_normalizer()
            return of_rows + module.machine.log_sum(module.chains).mean()

        return losses

    def _train(self, rows: Any, architecture: dict[str, Any], *, stream: bool = False) -> None:
        super()._train(rows, architecture, stream=stream)
        if min(self._sizes()) <= _ENUMERATED or self.n_levels:
            self._normalise()

    def _sizes(self) -> tuple[int, int]:
        return int(self.architecture_["n_hidden"]), int(np.prod(self.architecture_["shape"]))

    def _normalise(self) -> None:
        """log Z, exact or estimated, and what the certificate says of it."""
        import copy

        import torch

        from epicycle.generative.energy._chains import log_mean
        from epicycle.nets.training._randomness import drawing_from
        from epicycle.nets.training._torch import one_thread_each

        module = self.module_
        with one_thread_each(), torch.no_grad(), drawing_from(0, 0, 0, device_of(module)):
            if min(self._sizes()) <= _ENUMERATED:
                exact = copy.deepcopy(module.machine).double()
                self.log_normalizer_, self.log_normalizer_error_ = float(exact.log_normalizer()), 0.0
                words = "log Z by all states of the smaller layer"
            else:
                log_w = module.annealed(int(self.n_annealed), int(self.n_levels))[1]
                self.log_normalizer_, self.log_normalizer_error_ = log_mean(log_w)
                words = (
                    f"log Z by annealed importance sampling, with a standard error of {self.log_normalizer_error_:.2g}"
                )
        self.certificate_ = replace(self.certificate_, meaning=f"{self.certificate_.meaning}; {words}")

    # ------------------------------------------------------------------------------------------- densities

    def score_samples(self, X: Any, y: Any = None) -> np.ndarray:
        """The logarithm of the probability of each row, exact where log Z is, otherwise with its error."""
        self._check_fitted()
        if not hasattr(self, "log_normalizer_"):
            raise ParameterError("n_levels=0: there is no estimate of the normaliser, which score_samples needs")
        return super().score_samples(X, None)

    def _log_densities(self, module: Any, batch: Any) -> Any:
        return module.machine.log_sum(module.bits(batch.inputs[0])).double() - self.log_normalizer_

    def free_energy(self, X: Any) -> np.ndarray:
        """F of each row: minus its log-probability up to a constant, large for odd rows.

        Returns
        -------
        energy : ndarray of shape (n_samples,)
        """
        found = self._mapped(self._rows_of(X), lambda m, b: -m.machine.log_sum(m.bits(b.inputs[0])))
        return found.astype(np.float64)

    def transform(self, X: Any) -> np.ndarray:
        """Probabilities of the hidden bits of each row: features for other models.

        Returns
        -------
        hidden : ndarray of shape (n_samples, n_hidden)
        """
        return self._mapped(self._rows_of(X), lambda m, b: m.machine.hidden_scores(m.bits(b.inputs[0])).sigmoid())

    @property
    def _n_features_out(self) -> int:
        return self._sizes()[0]

    # ------------------------------------------------------------------------------------------- new rows

    def sample(self, n: int = 1, random_state: Seed = None, y: Any = None, *, n_moves: int = _MOVES) -> Any:
        """Draw rows by chains, which start where those of the fit have come to."""
        check_parameter(f"{type(self).__name__}.sample", "n_moves", n_moves, Integer(0))
        return self._as_given(self._draw(n, random_state, None, partial(self._sampled, n_moves=int(n_moves))))

    def _sampled(self, module: Any, n: int, labels: Any, n_moves: int = _MOVES) -> Any:
        return module.rows(module.moved(self._starts(module, n), n_moves))

    def _pictured(self, module: Any, n: int, labels: Any) -> Any:
        x = module.moved(self._starts(module, n), _MOVES)  # probabilities of bits in place of bits
        return module.rows(module.machine.visible_scores(module.machine.hidden_scores(x).sigmoid()).sigmoid())

    @staticmethod
    def _starts(module: Any, n: int) -> Any:
        import torch

        from epicycle.nets.training._randomness import generator

        chosen = torch.randint(len(module.chains), (n,), generator=generator(), device=module.chains.device)
        return module.chains[chosen]
