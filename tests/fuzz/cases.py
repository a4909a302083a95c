"""Random fits: an estimator, its parameters from their declared domains, and data of awkward shapes, types and sizes.

A case is a function of its seed alone, so that what fails can be run again.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import get_tags

import epicycle as ep
import epicycle.recommend
from epicycle.core._parameters import _NOTHING, AnyOf, Boolean, Choice, Domain, Integer, Real
from epicycle.core.estimator import Estimator
from epicycle.exceptions import EpicycleError

SOURCE = str(Path(ep.__file__).resolve().parent)

#: Arguments that say how long to work: any size of them is meant, and none is drawn large.
WORK = {
    *(
        "max_iter",
        "max_skips",
        "max_trials",
        "n_chains",
        "n_draws",
        "n_estimators",
        "n_restarts_optimizer",
        "n_warmup",
        "max_iter_predict",
        "n_iter_no_change",
        "n_init",
        "n_repeats",
    ),
    *("n_passes", "max_steps", "n_steps", "robust_iterations", "n_starts", "max_rounds", "n_jobs", "n_bootstrap"),
    *("epochs", "cg_steps", "steps_per_iteration", "critic_steps", "n_moves", "n_levels", "n_hops", "n_glimpses"),
}
#: What networks take where nothing else is drawn: their defaults learn for many seconds.
FEW_STEPS = {"max_iter": 3, "steps_per_iteration": 4}
MOST_STEPS = 240  # times layers of a network in all, where it has `steps_per_iteration`: one takes some 20 ms
LEFT_ALONE = {"verbose", "compile"}  # one only prints, the other translates and builds C++ for most of a minute
REALS = (0.0, 1e-300, 1e-12, 1e-3, 0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 10.0, 1e3, 1e8, 1e150, 1e300)
SCALES = (1e-300, 1e-150, 1e-20, 1e-5, 1e5, 1e20, 1e100, 1e150)
METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")
#: What models of the rows alone say beside that.
MODEL_METHODS = {
    **{name: lambda model, X, name=name: getattr(model, name)(X) for name in ("score", "aic", "bic", "icl", "decode")},
    **{name: lambda model, X, name=name: getattr(model, name)() for name in ("get_covariance", "get_precision")},
    "sample": lambda model, X: model.sample(3),
    "inverse_transform": lambda model, X: model.inverse_transform(model.transform(X)),
    "cut": lambda model, X: model.cut(n_clusters=1),
}
#: Fitted arrays that are the model; NaN in others says that there is no such thing (the dispersion of one row).
FITTED = (
    *("coef_", "intercept_", "dual_coef_", "feature_importances_", "means_", "covariances_", "weights_", "precisions_"),
    *("cluster_centers_", "inertia_", "components_", "noise_variance_", "mean_", "theta_", "var_"),
    *("startprob_", "transmat_", "distances_", "probabilities_", "core_distances_", "affinity_matrix_", "scalings_"),
    *("feature_log_prob_", "class_prior_", "probs_", "rates_", "loadings_", "priors_", "labels_", "modes_"),
)


class Undrawable(Exception):  # noqa: N818 - it never leaves this module
    """A domain of objects, of which the default is as good as any."""


@functools.cache
def estimators() -> list[type[Estimator]]:
    """All public estimators that are made without arguments, by name."""
    found = []
    named = {**{name: getattr(ep, name) for name in ep.__all__}, **vars(epicycle.recommend)}
    for _, cls in sorted(named.items()):
        if not (isinstance(cls, type) and issubclass(cls, Estimator)) or inspect.isabstract(cls):
            continue
        parameters = inspect.signature(cls).parameters.values()
        if all(p.default is not p.empty for p in parameters if p.kind is not p.VAR_KEYWORD):
            found.append(cls)
    return found


def draw_value(domain: Domain, rng: np.random.Generator, name: str) -> Any:
    """A value of a domain; ends of intervals are likely."""
    if isinstance(domain, AnyOf):
        return draw_value(domain.domains[rng.integers(len(domain.domains))], rng, name)
    if domain is _NOTHING:
        return None
    if isinstance(domain, Boolean):
        return bool(rng.integers(2))
    if isinstance(domain, Choice):
        return str(rng.choice(domain.names))
    if isinstance(domain, Integer):
        low = 0 if domain.minimum is None else int(domain.minimum)
        drawn = [*range(low, low + 4), low + 7, low + 40, *([] if name in WORK else [10**9, 2**62])]
        values = [-1, -2] if domain.minimum is None and domain.maximum is not None else drawn
    elif isinstance(domain, Real):
        ends = [v for v in (domain.minimum, domain.maximum) if v is not None]
        values = [*REALS, *ends, *([np.inf] if domain.allow_inf else [])]
    else:
        raise Undrawable
    allowed = [value for value in values if domain.accepts(value)]
    if not allowed:
        raise Undrawable
    return allowed[rng.integers(len(allowed))]


def draw_parameters(cls: type[Estimator], rng: np.random.Generator) -> dict[str, Any]:
    given = {}
    for name, domain in cls._parameters.items():
        if name in LEFT_ALONE or rng.random() > rng.choice([0.05, 0.3]):
            continue
        try:
            given[name] = draw_value(domain, rng, name)
        except Undrawable:
            continue
    known = inspect.signature(cls).parameters
    few = FEW_STEPS if cls._card.family in ("nets", "generative") else {}
    drawn = {name: value for name, value in {**few, **given}.items() if name in known}
    if "steps_per_iteration" in drawn:
        most = MOST_STEPS // max(int(drawn.get("n_layers", 4)), 1)
        drawn["max_iter"] = min(drawn["max_iter"], max(1, most))
        drawn["steps_per_iteration"] = min(drawn["steps_per_iteration"], max(1, most // max(drawn["max_iter"], 1)))
    return drawn


def draw_table(rng: np.random.Generator, sparse: bool) -> Any:
    n, p = int(rng.choice([1, 2, 3, 6, 12, 30, 60])), int(rng.choice([1, 1, 2, 3, 8, 40]))
    X = rng.normal(size=(n, p))
    kind = rng.integers(8)
    if kind == 0:
        X = np.round(X)
    elif kind == 1:
        X = X * rng.choice(SCALES)
    elif kind == 2:
        X = X * rng.choice(SCALES, size=p)
    elif kind == 3:
        X[:, rng.integers(p)] = rng.choice([0.0, 1.0, -3.0, 1e150])
    elif kind == 4:
        X[:] = X[:, :1]  # all columns alike
    elif kind == 5:
        X = X[rng.integers(n, size=n)] + rng.choice([0.0, 1e8])  # rows that repeat, far from zero
    dtype = rng.choice(["f8", "f8", "f8", "f4", "f2", "i8", "i1", "?", "O", ">f8", ">i4"])
    with np.errstate(all="ignore"):
        table = X if dtype == "f8" else np.clip(X, -100, 100).round(2).astype(str(dtype))
    return _contained(table, rng, sparse)


def _contained(table: np.ndarray, rng: np.random.Generator, sparse: bool) -> Any:
    """The same numbers in another order of memory, or in another container."""
    form = rng.integers(8)
    if form == 0:
        return np.asfortranarray(table)
    if form == 1:
        return np.repeat(table, 2, axis=0)[::2]
    if form == 2:
        table.flags.writeable = False
    if form == 3:
        table = table.astype(table.dtype.newbyteorder("="))  # pandas takes no rows of a frame in another byte order
        return pd.DataFrame(table, columns=[f"c{j}" for j in range(table.shape[1])])
    if form == 4:
        return table.tolist()
    if form == 5 and sparse and table.dtype.kind in "fi" and table.dtype.isnative and table.dtype != np.float16:
        return rng.choice(np.array([sp.csr_matrix, sp.csc_array, sp.coo_array], dtype=object))(table)
    return table


LETTERS = "aaab cde  fg.,;-'\n\t0Aé\u0301ßİ中😀\x00\u200b"


def draw_documents(rng: np.random.Generator) -> Any:
    """Texts of few words that recur, of any characters, or of nothing."""
    n = int(rng.choice([1, 2, 3, 6, 12, 30]))
    if rng.random() < 0.6:
        words = np.array(["the", "cat", "sat", "on", "mats", "dog", "Ünder", "x", "42", "I'm"])
        texts = [" ".join(rng.choice(words, rng.integers(0, 25))) for _ in range(n)]
    else:
        texts = ["".join(rng.choice(list(LETTERS), rng.integers(0, 60))) for _ in range(n)]
    form = rng.integers(4)
    return texts if form > 1 else pd.Series(texts) if form else np.array(texts, dtype=object)


def draw_pairs(rng: np.random.Generator) -> Any:
    """Users and items of ratings; some pairs come twice."""
    n, most = int(rng.choice([1, 2, 3, 12, 60])), rng.choice([1, 2, 5, 30], size=2)
    pairs = rng.integers(most, size=(n, 2))
    form = rng.integers(4)
    if form == 0:
        return pd.DataFrame(pairs, columns=["who", "what"]).astype(str)
    return pairs.astype(float) if form == 1 else pairs.tolist() if form == 2 else pairs


def draw_labels(n: int, rng: np.random.Generator) -> Any:
    codes = rng.integers(int(rng.choice([1, 2, 2, 2, 3, 5, max(n, 1)])), size=n)
    kind = rng.integers(6)
    if kind == 0:
        return np.array(["a", "bb", "c", "d", "e"])[codes % 5]
    if kind == 1:
        return codes > 0
    if kind == 2:
        return codes.astype(float) * 2 - 1
    if kind == 3:
        return pd.Series(codes)
    return codes


def draw_numbers(n: int, rng: np.random.Generator, several: bool) -> Any:
    y = rng.normal(size=(n, 2) if several and rng.random() < 0.2 else n)
    kind = rng.integers(8)
    if kind == 0:
        return y * rng.choice(SCALES)
    if kind == 1:
        return np.full(n, rng.choice([0.0, 1.0, -1e150]))
    if kind == 2:
        return np.round(np.abs(y)).astype(int)
    if kind == 3:
        return y.astype(">f4")
    return np.abs(y) if kind == 4 else y


def draw_weights(n: int, rng: np.random.Generator) -> Any:
    kind = rng.integers(12)
    if kind == 0:
        return rng.integers(0, 3, size=n)
    if kind == 1:
        return rng.uniform(size=n) * rng.choice(SCALES)
    if kind == 2:
        return rng.choice([0.0, 1e-300, 1.0, 1e100], size=n)
    if kind == 3:
        return np.zeros(n)
    if kind == 4:
        return np.full(n, 1e200)
    return None


@dataclass
class Case:
    """One fit."""

    seed: int
    model: Any
    X: Any
    y: Any
    given: dict[str, Any]

    @property
    def weight(self) -> Any:
        return self.given.get("sample_weight")

    @property
    def words(self) -> str:
        X = self.X
        table = f"{type(X).__name__} {getattr(X, 'dtype', '')} {np.shape(X)}"
        weight = "none" if self.weight is None else f"{np.min(self.weight):.3g}..{np.max(self.weight):.3g}"
        y = "none" if self.y is None else f"{getattr(self.y, 'dtype', '')} {np.unique(self.y)[:4]}"
        return f"{type(self.model).__name__}({self.model.get_params(deep=False)}) X: {table} y: {y} weights: {weight}"


def draw(seed: int, only: str | None = None) -> Case:
    # The class has a stream of its own: with its name a case is the same when there are other classes.
    names = None if only is None else set(only.split(","))
    classes = [cls for cls in estimators() if names is None or names & {cls.__name__, cls._card.family}]
    cls = classes[np.random.default_rng([seed, 1]).integers(len(classes))]
    rng = np.random.default_rng(seed)
    model = cls(**draw_parameters(cls, rng))
    tags, takes = get_tags(cls()), inspect.signature(model.fit).parameters
    ratings = "rating" in cls._parameters
    if ratings:
        X = draw_pairs(rng)
    else:
        X = draw_documents(rng) if tags.input_tags.string else draw_table(rng, tags.input_tags.sparse)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if tags.estimator_type == "classifier":
        y = draw_labels(n, rng)
    elif tags.estimator_type == "regressor" or tags.target_tags.required or "treatment" in takes or ratings:
        y = draw_numbers(n, rng, tags.target_tags.multi_output)
    else:
        y = None
    weight = draw_weights(n, rng) if "sample_weight" in takes else None
    given = {} if weight is None else {"sample_weight": weight}
    if "treatment" in takes and rng.random() < 0.8:  # of methods that take one beside X
        given["treatment"] = rng.normal(size=n) if rng.random() < 0.2 else rng.integers(2, size=n)
    return Case(seed, model, X, y, given)


# ---------------------------------------------------------------------------------------------- what may happen


def complaints(case: Case, numpy_warnings: bool = False) -> Iterator[str]:
    """All that is wrong with a fit and its predictions; NumPy's own warnings where they are asked for."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with ep.config(memory_limit=2**30):
                fit = case.model.fit
                fit(case.X, case.y, **case.given) if case.y is not None else fit(case.X, **case.given)
                finite = _finite(case.X)
                for method in METHODS:
                    answers = getattr(case.model, method)(case.X) if hasattr(case.model, method) and finite else 0.0
                    # Rows without neighbours within a radius have no mean: scikit-learn's NaN, with a warning.
                    announced = any("predicting NaN" in str(warning.message) for warning in caught)
                    if not _finite(_logarithms(case.model, answers)) and not announced:
                        yield f"{method} gives values that are not finite"
                yield from _of_the_model(case, finite)
        except Exception as error:
            if not _expected(error):
                yield f"{type(error).__name__}: {str(error)[:200]} at {_place(error)}"
    for warning in caught if numpy_warnings else []:
        theirs = issubclass(warning.category, RuntimeWarning) and not warning.category.__module__.startswith("epicycle")
        if theirs and SOURCE in str(warning.filename):
            yield f"RuntimeWarning: {warning.message} at {Path(warning.filename).name}:{warning.lineno}"


def _of_the_model(case: Case, finite: bool) -> Iterator[str]:
    """What is wrong with the fitted arrays, and with what a model of the rows alone says."""
    for name in FITTED if finite else ():
        value = vars(case.model).get(name)
        if isinstance(value, np.ndarray | float) and np.asarray(value).dtype.kind == "f" and np.isnan(value).any():
            yield f"{name} has values that are NaN"
    if np.isnan(case.model.certificate_.value) and case.model.certificate_.kind != "none":
        yield "the certificate is NaN"
    for name, call in MODEL_METHODS.items() if case.y is None and finite else ():
        if hasattr(case.model, name):
            answers = call(case.model, case.X)
            for part in answers if isinstance(answers, tuple) else (answers,):
                if not _finite(_logarithms(case.model, part)):
                    yield f"{name} gives values that are not finite"


def _logarithms(model: Any, values: Any) -> Any:
    """Answers, with a number for the logarithm of a density of zero: no kernel reaches a row of weight zero."""
    return np.where(np.isneginf(values), 0.0, values) if isinstance(model, ep.KernelDensity) else values


def _finite(values: Any) -> bool:
    if sp.issparse(values):
        values = values.data
    if isinstance(values, list):
        return all(map(_finite, values))
    array = np.asarray(values)
    if array.dtype.kind not in "fc":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            return True  # labels
    return bool(np.isfinite(array).all())


def _expected(error: Exception) -> bool:
    """An error of ours, or a ValueError or TypeError that was raised on purpose, in words."""
    if isinstance(error, EpicycleError):
        return len(str(error)) > 10
    if not isinstance(error, ValueError | TypeError):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    return SOURCE in last.filename or "/sklearn/" in last.filename


def _place(error: Exception) -> str:
    """The last line of ours on the way to the error."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if SOURCE in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


def _end_with_parent(parent: int) -> None:
    """A campaign that is killed leaves no case behind that goes on for ever."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main() -> None:
    """Run the cases whose seeds come on the standard input, two lines of JSON for each on the standard output."""
    import json
    import resource

    # What estimators print goes elsewhere.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    only, numpy_warnings = sys.argv[1] or None, sys.argv[2] == "warnings"
    for line in sys.stdin:
        case = draw(int(line), only)
        print(json.dumps({"began": case.seed, "words": case.words}), file=answers)
        found = list(dict.fromkeys(complaints(case, numpy_warnings)))
        print(json.dumps({"ended": case.seed, "complaints": found}), file=answers)


if __name__ == "__main__":
    main()
