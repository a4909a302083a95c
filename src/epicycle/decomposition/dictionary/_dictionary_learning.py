r"""Dictionaries:  minimise  sum_i v_i (1/2 |x_i - c_i D|^2 + alpha |c_i|_1)  over codes c_i and atoms |d_k| <= 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._parameters import ArrayLike, Domain, NoneOr
from epicycle.core._random import seed_of
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import DaskData
from epicycle.decomposition._rounds import Rounds
from epicycle.decomposition._row_factors import RowFactors
from epicycle.decomposition.dictionary._atoms import SWEEPS, coded, revived, swept
from epicycle.decomposition.dictionary._codes import refuse_signs
from epicycle.decomposition.dictionary._learner import DictionaryLearner, Sums, given_array


class DictionaryLearning(DictionaryLearner):
    r"""Sparse coding with a dictionary that is learnt: rows as combinations of few atoms.

    .. math:: \min_{C, D} \; \sum_i v_i \bigl( \tfrac12 |x_i - c_i D|^2 + \alpha |c_i|_1 \bigr), \qquad |d_k| \le 1

    In turn every code is the optimum of a lasso, and the atoms move one at a time to their best place. The objective
    never rises. It has many stationary points; the certificate says how little each half could still gain.

    Parameters
    ----------
    n_components : int or None, default=None
        Atoms; None takes as many as features.
    max_iter : int, default=1000
        Most rounds.
    tol : float, default=1e-8
        The fit ends where a round lowers the objective by less than this share.
    code_init : array-like of shape (n_samples, n_components) or None, default=None
        Codes to start from.
    callback : callable or None, default=None
        Called after every fifth round with a dict of its number, objective and atoms.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the start, and of atoms that take the place of unused ones.

    Attributes
    ----------
    error_ : ndarray of shape (n_iter,)
        The objective after every round.
    certificate_ : Certificate
        The sum of the duality gaps of all codes and what one more sweep over the atoms would gain, relative to the
        objective; the tolerance is sqrt(tol).

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import DictionaryLearning
    >>> rng = np.random.default_rng(0)
    >>> atoms = rng.normal(size=(5, 12))
    >>> codes = rng.normal(size=(300, 5)) * (rng.random((300, 5)) < 0.3)
    >>> model = DictionaryLearning(5, alpha=0.1, random_state=0, tol=1e-5).fit(codes @ atoms)
    >>> bool((np.diff(model.error_) <= 0).all()), model.certificate_.holds
    (True, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **DictionaryLearner._parameters,
        "code_init": NoneOr(ArrayLike()),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition",
        catalogue=("E10",),
        engines=("memory", "files", "dask"),
        certificate="duality gap and gain",
    )

    error_: np.ndarray

    @stores_arguments
    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 1.0,
        max_iter: int = 1000,
        tol: float = 1e-8,
        fit_algorithm: str = "lars",
        transform_algorithm: str = "omp",
        transform_n_nonzero_coefs: int | None = None,
        transform_alpha: float | None = None,
        n_jobs: int | None = None,
        code_init: Any = None,
        dict_init: Any = None,
        callback: Any = None,
        verbose: int | bool = False,
        split_sign: bool = False,
        random_state: Any = None,
        positive_code: bool = False,
        positive_dict: bool = False,
        transform_max_iter: int = 1000,
    ) -> None: ...

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the atoms from rows X."""
        self._fit(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return the codes that the fit has found for them."""
        found = self._fit(X, sample_weight)
        return self.transform(X) if found is None else found

    @fitting
    def _fit(self, X: Any, sample_weight: Any) -> Any:
        refuse_signs(self.fit_algorithm, bool(self.positive_code))
        data = self._fit_data(X, None, sample_weight, target="none")
        n, _ = self._extent(data)
        earlier = self._resume_state()
        seed = seed_of(self.random_state) if earlier is None else int(earlier["seed"])
        if earlier is None:
            D = self._first_atoms(data, n, seed)
            C = (
                np.zeros((n, len(D)))
                if self.code_init is None
                else given_array(self.code_init, (n, len(D)), "code_init")
            )
            C = np.maximum(C, 0.0) if self.positive_code else C
        else:
            D, C = np.array(earlier["D"]), np.array(earlier["C"])
        rows = RowFactors(data, C, self.n_jobs)
        monitor = self._monitor(int(self.max_iter), lambda x: {"components_": x.reshape(D.shape)})

        def kept() -> Mapping[str, Any]:
            return {"seed": seed, "D": D.copy(), "C": rows.factors.copy()}

        on_cluster = isinstance(data, DaskData)
        run = Rounds(
            float(self.tol), int(self.max_iter), monitor, lambda: D.ravel(), None if on_cluster else kept, earlier
        )
        value, certificate, n_iter, reason = self._rounds(rows, D, run, data.head().X, seed)
        dtype = np.float32 if data.dtype == np.float32 else np.float64
        self.components_ = D.astype(dtype)
        self.error_ = np.array(monitor.history().objective)
        self._conclude(Solution(D.ravel(), value, monitor.history(), certificate, n_iter, reason))
        if on_cluster:
            return None
        code = rows.factors.astype(dtype)
        return np.hstack([np.maximum(code, 0), -np.minimum(code, 0)]) if self.split_sign else code

    def _rounds(
        self, rows: RowFactors, D: np.ndarray, run: Rounds, head: Any, seed: int
    ) -> tuple[float, Certificate, int, str]:
        """Rounds until one gains little; D is changed in place."""
        alpha, code, atoms = float(self.alpha), bool(self.positive_code), bool(self.positive_dict)
        value, reason, round_ = run.known("objective") or np.inf, "max_iter", run.done
        for round_ in range(run.done + 1, run.max_iter + 1):
            sums = Sums(*rows.step(coded, D, alpha, code, int(self.transform_max_iter)))
            D[:] = swept(sums.A, sums.B, D, atoms, SWEEPS)
            before, value = value, sums.value(D, alpha)
            left = (before - value) / value if np.isfinite(before) and value > 0 else 0.0
            D[:] = revived(sums.A, D, head, atoms, seed, round_)
            if self.callback is not None and round_ % 5 == 0:
                self.callback({"ii": round_, "errors": value, "dictionary": D.copy()})
            if run.record(round_, value, left, objective=value):
                reason = "stopped"
                break
            if round_ > 1 and before - value <= run.tol * value:
                reason = "converged"
                break
        value, certificate = self._gain(rows, D, float(np.sqrt(run.tol)))
        reason = "converged" if reason == "max_iter" and certificate.holds else reason
        return value, certificate, round_, reason
