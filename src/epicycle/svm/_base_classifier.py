"""The base of support vector classifiers: pairs of classes, votes, margins, probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from epicycle.core._arguments import defaults_of
from epicycle.core._exceptions import DataError, NotFittedError, ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain
from epicycle.core._random import seed_of, stream
from epicycle.core._settings import config
from epicycle.kernels._machine import KernelClassifier, select_rows
from epicycle.stats._class_scores import choose_class
from epicycle.stats._labels import class_weights, codes
from epicycle.svm._base import MACHINE_DEFAULTS, MACHINE_PARAMETERS, Fit, MachineArguments, SupportVectorMachine
from epicycle.svm._calibration import couple, isotonic_steps, platt, probabilities_of
from epicycle.svm._subproblems import Solved, Split

Array = np.ndarray
_FOLDS = 5  # of the calibration of probabilities, as in LIBSVM

#: The arguments that support vector classifiers share.
CLASSIFIER_PARAMETERS: Mapping[str, Domain] = {
    **MACHINE_PARAMETERS,
    "probability": AnyOf(Boolean(), Choice("deprecated", "platt", "isotonic")),
    "multi_class": Choice("ovo", "ovr"),
    "decision_function_shape": Choice("ovr", "ovo"),
    "break_ties": Boolean(),
}


class ClassifierArguments(MachineArguments, total=False):
    """Arguments of the constructors of support vector classifiers, with their defaults."""

    probability: Annotated[bool | str, "deprecated"]
    multi_class: Annotated[str, "ovo"]
    decision_function_shape: Annotated[str, "ovr"]
    break_ties: Annotated[bool, False]


CLASSIFIER_DEFAULTS: Mapping[str, Any] = {
    **MACHINE_DEFAULTS,
    **defaults_of(ClassifierArguments, random_state=0),
}


class Margins(NamedTuple):
    r"""Margins of rows: y (f(x) + b), the same divided by \|w\|, and by how much the first falls short of 1.

    For more than two classes there is a column for each function, nan where the class of the row has no part in it.
    """

    functional: Array
    geometric: Array
    violation: Array


def _wants_probabilities(self: Any) -> bool:
    if not self.probability or self.probability == "deprecated":
        raise AttributeError(f"{type(self).__name__}: predict_proba is there with probability='platt' or 'isotonic'")
    return True


class SupportVectorClassifier(SupportVectorMachine, KernelClassifier):
    """A support vector machine for labels."""

    _docs: ClassVar[Mapping[str, str]] = {
        "probability": """probability : {"platt", "isotonic"} or bool, default={default}
    By which calibration of cross-validated decision values `predict_proba` is wanted; by default it is not. True
    ("platt") and False are deprecated, as in scikit-learn, and warn.""",
        "multi_class": """multi_class : {"ovo", "ovr"}, default={default}
    One function for each pair of classes, or one for each class against the others.""",
        "decision_function_shape": """decision_function_shape : {"ovr", "ovo"}, default={default}
    Whether `decision_function` gives a column for each class or for each pair.""",
        "break_ties": """break_ties : bool, default={default}
    Whether `predict` takes the class of the largest decision value, so that the sums of the functions decide between
    equal votes; otherwise they go to the first class. Not with ``decision_function_shape="ovo"``.""",
        "class_attributes": """n_support_ : ndarray of shape (n_classes,)
    Number of support vectors of each class.
dual_coef_ : array or sparse matrix of shape (n_classes - 1, n_support) or (n_classes, n_support)
    Signed coefficients of the support vectors: of the pairs that their class is in, or of every class ("ovr").
    Sparse if the rows of the fit were.
class_weight_ : ndarray of shape (n_classes,)
    Factors of the classes, in the order of `classes_`.
probA_, probB_ : ndarray of shape (n_functions,)
    A and B of the probabilities 1 / (1 + exp(A f + B)) with "platt", otherwise empty; deprecated, as in scikit-learn.
intercept_ : ndarray of shape (n_functions,)""",
        "geometric_margin_": r"""geometric_margin_ : ndarray of shape (n_functions,)
    1 / \|w\|, half the width of the street between the classes.""",
        "n_iter_": """n_iter_ : ndarray of shape (n_functions,)
    Number of steps for each function.""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("classes_", "class_attributes", "geometric_margin_")

    probability: bool | str
    multi_class: str
    decision_function_shape: str
    break_ties: bool
    geometric_margin_: Array
    class_weight_: Array

    # ------------------------------------------------------------------------------------------- fit

    def _functions(self) -> list[tuple[int, int]]:
        """(positive class, negative class or -1 for all others) of each function."""
        K = len(self.classes_)
        if K == 2:
            return [(1, 0)]
        return list(combinations(range(K), 2)) if self.multi_class == "ovo" else [(k, -1) for k in range(K)]

    def _check_some_weight(self, sample_weight: Any, y: Any) -> None:
        super()._check_some_weight(sample_weight, y)
        try:
            weight, labels = np.asarray(sample_weight, dtype=np.float64), np.asarray(y)
        except (TypeError, ValueError):
            return  # refused with the other checks
        if weight.ndim != 1 or labels.shape != weight.shape or (weight > 0).all() or not len(labels):
            return
        left = labels[weight > 0]
        if (left == left[0]).all() and not (labels == labels[0]).all():
            reason = "specified nu is infeasible" if hasattr(self, "nu") else "Invalid input"
            raise DataError(
                f"sample_weight: {reason} - all samples with positive weights belong to the same class, {left[0]!r}"
            )

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array, Array]:
        rows, coded, weight, kept = super()._labelled(X, y, sample_weight)
        # As the weights of rows are for _fit_data to check, the factors are had from the totals again.
        given = np.ones(len(coded)) if sample_weight is None else _row_weights(sample_weight, kept)
        factors = class_weights(getattr(self, "class_weight", None), self.classes_, np.bincount(coded, weights=given))
        self.class_weight_ = np.ones(len(self.classes_)) if factors is None else factors
        return rows, coded, weight, kept

    def _splits(self, coded: Array) -> Iterator[Split]:
        """The rows that each function separates."""
        labels = self.classes_.tolist()
        if len(labels) == 2:
            yield Split(np.arange(len(coded)), np.where(coded == 1, 1.0, -1.0), (), (labels[1], labels[0]), "")
            return
        members = [np.flatnonzero(coded == k) for k in range(len(labels))]
        for i, j in self._functions():
            other = "the others" if j < 0 else labels[j]
            parts = () if j < 0 else (members[i], members[j])
            rows = np.concatenate(parts) if parts else np.arange(len(coded))
            name = f" between {labels[i]!r} and {'the others' if j < 0 else repr(labels[j])}"
            yield Split(rows, np.where(coded[rows] == i, 1.0, -1.0), parts, (labels[i], other), name)

    def _assign(self, fit: Fit, solutions: Sequence[Solved | None]) -> None:
        assert fit.coded is not None
        coded = fit.coded
        n, m = len(coded), len(fit.problems)
        columns, intercepts, norms = np.zeros((n, m)), np.zeros(m), np.zeros(m)
        for k, (problem, found) in enumerate(zip(fit.problems, solutions, strict=True)):
            if found is not None:
                columns[problem.rows, k], intercepts[k], norms[k] = found.coefficients, found.intercept, found.norm
        support = np.flatnonzero(columns.any(axis=1))
        support = support[np.argsort(coded[support], kind="stable")]
        columns = columns[support]
        self.n_support_ = np.bincount(coded[support], minlength=len(self.classes_)).astype(np.int32)
        self._keep_support(fit, support, columns, intercepts)
        # Signed coefficients: of a row those of the pairs that its class is in, one for each other class.
        K = len(self.classes_)
        by_pairs = np.ascontiguousarray(columns.T)
        if K > 2 and self.multi_class == "ovo":
            by_pairs = np.zeros((K - 1, len(columns)))
            for k, (i, j) in enumerate(self._functions()):
                mine, other = coded[support] == i, coded[support] == j
                by_pairs[j - 1, mine] = columns[mine, k]
                by_pairs[i, other] = columns[other, k]
        self.dual_coef_ = self._like_rows(fit, by_pairs)
        self.weight_norm_ = norms
        with np.errstate(divide="ignore"):
            self.geometric_margin_ = 1 / norms

    # ------------------------------------------------------------------------------------------- prediction

    def _scores(self, X: Any) -> Array:
        return self._raw_scores(X)

    def decision_function(self, X: Any) -> Array:
        """Decision values.

        Parameters
        ----------
        X : rows

        Returns
        -------
        ndarray of shape (n,), (n, n_classes) or (n, n_pairs)
            For two classes the function itself, positive on the side of ``classes_[1]``. For more, one column for each
            class (with pairs: votes, and within a vote the sum of the functions), or with
            ``decision_function_shape="ovo"`` one for each pair (i, j), positive on the side of class i.
        """
        F = self._scores(X)
        if F.shape[1] == 1:
            return F[:, 0]
        if self.multi_class == "ovr" or self.decision_function_shape == "ovo":
            return F
        return self._class_values(F)

    def _class_values(self, F: Array) -> Array:
        """A value for each class from the functions of the pairs: votes, and the sums within less than half a vote."""
        votes, sums = self._votes(F, F >= 0)
        return np.asarray((votes + sums / (3 * (np.abs(sums) + 1))).astype(F.dtype))

    def _votes(self, F: Array, positive: Array) -> tuple[Array, Array]:
        K = len(self.classes_)
        votes, sums = np.zeros((len(F), K)), np.zeros((len(F), K))
        for k, (i, j) in enumerate(self._functions()):
            first = positive[:, k]
            votes[:, i] += first
            votes[:, j] += ~first
            sums[:, i] += F[:, k]
            sums[:, j] -= F[:, k]
        return votes, sums

    def predict(self, X: Any) -> Array:
        """The class of every row: on whose side it lies, for more than two that of most votes."""
        self._check_fitted()
        if self.break_ties and self.decision_function_shape == "ovo" and self.multi_class == "ovo":
            raise ParameterError("break_ties must be False when decision_function_shape='ovo'; expected 'ovr' with it")
        F = self._scores(X)
        if F.shape[1] == 1 or self.multi_class == "ovr":
            return choose_class(F, self.classes_)
        if self.break_ties:
            return choose_class(self._class_values(F), self.classes_)
        # Equal votes go to the first class, and a value of zero to the second of a pair, as in LIBSVM.
        return choose_class(self._votes(F, F > 0)[0], self.classes_)

    def margins(self, X: Any, y: Any) -> Margins:
        """Functional and geometric margins of rows, and by how much they violate the margin.

        Parameters
        ----------
        X : rows
        y : array-like of labels

        Returns
        -------
        Margins
            ``functional``, ``geometric`` and ``violation``, of shape (n,), or (n, n_functions) for several classes.
        """
        F = np.asarray(self._scores(X), dtype=np.float64)
        labels = np.asarray(y)
        if labels.shape != (len(F),):
            raise DataError(f"y: has shape {labels.shape}; expected {len(F)} labels, one for each row of X")
        coded = codes(labels, labels=self.classes_)
        wrong = np.flatnonzero(self.classes_[coded] != labels)
        if len(wrong):
            label = labels.tolist()[wrong[0]]
            raise DataError(f"y: row {wrong[0]} is {label!r}; expected one of the classes {self.classes_.tolist()}")
        sign = np.full(F.shape, np.nan)
        for k, (i, j) in enumerate(self._functions()):
            sign[coded == i, k] = 1.0
            sign[(coded != i) if j < 0 else (coded == j), k] = -1.0
        functional = sign * F
        with np.errstate(divide="ignore", invalid="ignore"):
            geometric = functional / self.weight_norm_
        found = Margins(functional, geometric, np.maximum(1 - functional, 0.0))
        return Margins(*(m[:, 0] for m in found)) if F.shape[1] == 1 else found

    # ------------------------------------------------------------------------------------------- probabilities

    def _calibrate(self, rows: Any, coded: Array, weight: Array) -> None:
        """Decision values of rows that the function has not seen, and from them a calibration for each function."""
        functions = self._functions()
        F = np.zeros((len(coded), len(functions)))
        known = np.zeros(F.shape, dtype=bool)
        fold = _folds(coded, seed_of(self.random_state))
        for k in range(int(fold.max()) + 1):
            inside, outside = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            present = np.unique(coded[inside])
            if len(present) < 2 or not len(outside):
                continue
            model = clone(self).set_params(probability="deprecated", kernel=self.kernel_, verbose=0)
            if hasattr(model, "class_weight"):  # it is part of the weights here
                model.set_params(class_weight=None)
            model.set_callbacks()
            with config(on_nonconvergence="ignore"):  # the fit of all rows reports it
                model.fit(select_rows(rows, self.kernel_, inside), coded[inside], sample_weight=weight[inside])
            if self.kernel_.takes == "precomputed":
                given = rows[np.ix_(outside, inside)]
            else:
                given = select_rows(rows, self.kernel_, outside)
            found = model._scores(given)
            place = {int(c): int(model.classes_[c]) for c in range(len(model.classes_))}
            for column, (i, j) in enumerate(model._functions()):
                pair = (place[i], -1 if j < 0 else place[j])
                if pair in functions:
                    at = functions.index(pair)
                    F[outside, at], known[outside, at] = found[:, column], True
                elif pair[::-1] in functions:  # only two classes were left
                    at = functions.index(pair[::-1])
                    F[outside, at], known[outside, at] = -found[:, column], True
        self._calibrations_ = [
            self._calibration(F[:, k], known[:, k], coded, i, j, weight) for k, (i, j) in enumerate(functions)
        ]

    def _calibration(self, f: Array, known: Array, coded: Array, i: int, j: int, weight: Array) -> dict[str, Array]:
        use = known & ((coded == i) | (coded == j) if j >= 0 else np.ones(len(coded), dtype=bool))
        positive = coded[use] == i
        if self.probability == "isotonic" and positive.any() and not positive.all():
            at, value = isotonic_steps(f[use], positive, weight[use])
            return {"at": at, "value": value}
        return {"sigmoid": np.array(platt(f[use], positive, weight[use]))}

    @available_if(_wants_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, in the order of `classes_`, from calibrated decision values.

        Pairs are coupled into one distribution; with ``multi_class="ovr"`` the probabilities are divided by their sum.
        """
        self._check_fitted()
        if not hasattr(self, "_calibrations_"):
            raise NotFittedError(
                f"{type(self).__name__}: predict_proba is not available when fitted with probability=False; fit again "
                "with probability='platt' or 'isotonic'"
            )
        F = np.asarray(self._scores(X), dtype=np.float64)
        P = np.column_stack([probabilities_of(F[:, k], c) for k, c in enumerate(self._calibrations_)])
        K = len(self.classes_)
        if K == 2:
            return np.column_stack([1 - P[:, 0], P[:, 0]])
        if self.multi_class == "ovr":
            P = np.maximum(P, 1e-12)
            return np.asarray(P / P.sum(axis=1, keepdims=True))
        r = np.zeros((len(P), K, K))
        for k, (i, j) in enumerate(self._functions()):
            r[:, i, j], r[:, j, i] = P[:, k], 1 - P[:, k]
        return couple(r)

    @available_if(_wants_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _sigmoids(self, column: int, name: str) -> Array:
        self._check_fitted()
        warnings.warn(
            f"Attribute `{name}` was deprecated in scikit-learn 1.9; predict_proba gives the probabilities",
            FutureWarning,
            stacklevel=3,
        )
        found = [c["sigmoid"][column] for c in getattr(self, "_calibrations_", []) if "sigmoid" in c]
        return np.array(found, dtype=np.float64)

    @property
    def probA_(self) -> Array:  # noqa: N802
        """A of the probabilities 1 / (1 + exp(A f + B)) of every function; empty without them."""
        return self._sigmoids(0, "probA_")

    @property
    def probB_(self) -> Array:  # noqa: N802
        """B of the same."""
        return self._sigmoids(1, "probB_")

    def _wants_probabilities(self) -> bool:
        """Whether probabilities are wanted; warns of the deprecated values."""
        if isinstance(self.probability, bool | np.bool_):
            warnings.warn(
                "The values True and False of the `probability` parameter are deprecated, as in scikit-learn 1.9: "
                "take 'platt' or 'isotonic', or leave it out",
                FutureWarning,
                stacklevel=4,
            )
        return bool(self.probability)


def _row_weights(sample_weight: Any, kept: Array) -> Array:
    """The weights of the kept rows, from one number for all or one for each."""
    given = np.asarray(sample_weight, dtype=np.float64)
    return np.full(len(kept), float(given)) if given.ndim == 0 else given.ravel()[kept]


def _folds(coded: Array, seed: int) -> Array:
    """The fold of each row: of every class about as many in each."""
    fold = np.empty(len(coded), dtype=np.int64)
    counts = np.bincount(coded)
    folds = int(np.clip(counts[counts > 0].min(), 2, _FOLDS))
    for k in np.flatnonzero(counts):
        mine = stream(seed, "fold", int(k)).permutation(np.flatnonzero(coded == k))
        fold[mine] = np.arange(len(mine)) % folds
    return fold
