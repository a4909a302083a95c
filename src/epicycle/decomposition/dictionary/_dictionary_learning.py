r"""Dictionaries:  minimise  sum_i v_i (1/2 |x_i - c_i D|^2 + alpha |c_i|_1)  over codes c_i and atoms |d_k| <= 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import ArrayLike, Boolean, Callable, Choice, Domain, Integer, NoneOr, Real
from epicycle.core._random import seed_of, stream
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import DaskData, Data
from epicycle.decomposition._rounds import Rounds
from epicycle.decomposition._row_factors import RowFactors
from epicycle.decomposition.dictionary._atoms import SWEEPS, coded, drawn_atom, fit_of, inside, revived, swept
from epicycle.decomposition.dictionary._base import SparseCoding
from epicycle.decomposition.dictionary._codes import refuse_signs
from epicycle.decomposition.nmf._starts import HEAVIEST, LARGEST
from epicycle.decomposition.pca._spectrum import by_products
from epicycle.stats._moments import refuse_non_finite

_RESIDUAL, _PRODUCTS = 1e-6, 30  # of the singular vectors to start from


@dataclass(frozen=True)
class Sums:
    """Of a round: gaps of the codes, half squares of the rows, |c|, A = C'VC and B = C'VX."""

    gap: float
    squares: float
    size: float
    A: np.ndarray
    B: np.ndarray

    def value(self, D: np.ndarray, alpha: float) -> float:
        return max(self.squares + fit_of(self.A, self.B, D), 0.0) + alpha * self.size


class DictionaryLearning(SparseCoding):
    r"""Sparse coding with a dictionary that is learnt: rows as combinations of few atoms.

    .. math:: \min_{C, D} \; \sum_i v_i \bigl( \tfrac12 |x_i - c_i D|^2 + \alpha |c_i|_1 \bigr), \qquad |d_k| \le 1

    In turn every code is the optimum of a lasso, and the atoms move one at a time to their best place. The objective
    never rises. It has many stationary points; the certificate says how little each half could still gain.

    Parameters
    ----------
    n_components : int or None, default=None
        Atoms; None takes as many as features.
    alpha : float, default=1.0
        Penalty of the codes.
    max_iter : int, default=1000
        Most rounds.
    tol : float, default=1e-8
        The fit ends where a round lowers the objective by less than this share.
    fit_algorithm : {"lars", "cd"}, default="lars"
        Accepted for compatibility: both stand for the optimum of the lasso, which is found by coordinate descent on
        the Gram matrix of the atoms. With "lars" `positive_code` is refused, as in scikit-learn.
    code_init : array-like of shape (n_samples, n_components) or None, default=None
        Codes to start from.
    dict_init : array-like of shape (n_components, n_features) or None, default=None
        Atoms to start from; None starts from the leading singular vectors, and from rows where more are wanted.
    callback : callable or None, default=None
        Called after every fifth round with a dict of its number, objective and atoms.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the start, and of atoms that take the place of unused ones.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Atoms.
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
        **SparseCoding._parameters,
        "n_components": NoneOr(Integer(minimum=1)),
        "alpha": Real(minimum=0),
        "tol": Real(minimum=0),
        "max_iter": Integer(minimum=1),
        "fit_algorithm": Choice("lars", "cd"),
        "code_init": NoneOr(ArrayLike()),
        "dict_init": NoneOr(ArrayLike()),
        "callback": NoneOr(Callable()),
        "positive_dict": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition",
        catalogue=("E10",),
        engines=("memory", "files", "dask"),
        certificate="duality gap and gain",
    )

    components_: np.ndarray
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
        refuse_non_finite(data)
        n, weight, largest = engine.sum(_extent, data, n_jobs=self.n_jobs)
        _require_extent(weight, largest.value)
        earlier = self._resume_state()
        seed = seed_of(self.random_state) if earlier is None else int(earlier["seed"])
        if earlier is None:
            D, C = self._start(data, n, seed)
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
        final = Sums(*rows.step(coded, D, alpha, code, int(self.transform_max_iter)))  # codes for the last atoms
        value = final.value(D, alpha)
        gain = max(value - final.value(swept(final.A, final.B, D, atoms, 1), alpha), 0.0)
        certificate = _judged(final.gap, gain, value, float(np.sqrt(run.tol)))
        reason = "converged" if reason == "max_iter" and certificate.holds else reason
        return value, certificate, round_, reason

    # ------------------------------------------------------------------------------------------- start

    def _start(self, data: Data, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """(atoms, codes) to start from."""
        p = data.n_features
        k = p if self.n_components is None else int(self.n_components)
        require_memory(8.0 * k * (n + p + k), f"{k} atoms and their codes", "lower n_components")
        if self.dict_init is not None:
            D = np.array([inside(d, bool(self.positive_dict)) for d in _given(self.dict_init, (k, p), "dict_init")])
        else:
            D = self._drawn(data, k, min(n, p), seed)
        C = np.zeros((n, k)) if self.code_init is None else _given(self.code_init, (n, k), "code_init")
        return D, np.maximum(C, 0.0) if self.positive_code else C

    def _drawn(self, data: Data, k: int, most: int, seed: int) -> np.ndarray:
        """The leading singular vectors, and rows of the data where more atoms are wanted."""
        positive, rng = bool(self.positive_dict), stream(seed, "dictionary")
        found = by_products(
            data,
            min(k, most),
            rng,
            tol=_RESIDUAL,
            max_products=_PRODUCTS,
            n_more=10,
            centred=False,
            n_jobs=self.n_jobs,
        )
        axes = np.abs(found.axes) if positive else found.axes
        head = data.head().X
        more = [drawn_atom(head, positive, seed, 0, j) for j in range(len(axes), k)]
        return np.vstack([axes[:k], *more]) if more else axes[:k].copy()

    # ------------------------------------------------------------------------------------------- use of a fit

    def _atoms(self, n_features: int) -> np.ndarray:
        return np.ascontiguousarray(self.components_, dtype=np.float64)

    def _alpha(self) -> float | None:
        return float(self.alpha) if self.transform_alpha is None else self.transform_alpha

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


class _Largest:
    """The largest entry; the sum of two is that of all their entries."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __add__(self, other: _Largest) -> _Largest:
        return _Largest(max(self.value, other.value))


def _extent(batch: Any) -> tuple[int, float, _Largest]:
    values = batch.X.data if hasattr(batch.X, "indptr") else batch.X
    return batch.n_rows, batch.total_weight, _Largest(float(np.abs(values).max(initial=0.0)))


def _require_extent(weight: float, largest: float) -> None:
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        raise DataError(f"X: a largest entry of {largest:g}; expected one between {1 / LARGEST:g} and {LARGEST:g}")
    if not 1 / HEAVIEST <= weight <= HEAVIEST:
        raise DataError(
            f"sample_weight: a sum of {weight:g}; expected one between {1 / HEAVIEST:g} and {HEAVIEST:g}: multiply all "
            "by a common factor"
        )


def _given(A: Any, shape: tuple[int, int], name: str) -> np.ndarray:
    found = np.array(A, dtype=np.float64)
    if found.shape != shape:
        raise DataError(f"{name}: shape {found.shape}; expected {shape}")
    if not np.isfinite(found).all():
        raise DataError(f"{name}: NaN or infinity; expected finite numbers")
    return found


def _judged(gap: float, gain: float, value: float, tolerance: float) -> Certificate:
    left = (gap + gain) / value if value > 0 else 0.0
    words = (
        "given the atoms the codes are optimal, and one more sweep would not move the atoms: together they would gain "
        "this share of the objective; no proof of a global optimum"
    )
    return Certificate("duality gap and gain", left, tolerance, words)
