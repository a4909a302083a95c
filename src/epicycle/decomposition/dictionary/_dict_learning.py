"""A dictionary in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.decomposition.dictionary._dictionary_learning import DictionaryLearning


def dict_learning(
    X: Any,
    n_components: int | None,
    *,
    alpha: float,
    max_iter: int = 100,
    tol: float = 1e-8,
    method: str = "lars",
    n_jobs: int | None = None,
    dict_init: Any = None,
    code_init: Any = None,
    callback: Any = None,
    verbose: int | bool = False,
    random_state: Any = None,
    return_n_iter: bool = False,
    positive_dict: bool = False,
    positive_code: bool = False,
    method_max_iter: int = 1000,
) -> Any:
    """Codes and atoms, as :class:`DictionaryLearning` finds them.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    n_components : int or None
        Atoms.
    alpha : float
        Penalty of the codes.
    max_iter : int, default=100
        Most rounds.
    tol : float, default=1e-8
        The share of the objective that a last round lowers it by.
    method : {"lars", "cd"}, default="lars"
        As `fit_algorithm` of :class:`DictionaryLearning`.
    n_jobs : int, optional
        Threads.
    dict_init, code_init : array-like, optional
        Start.
    callback : callable, optional
        Called after every fifth round.
    verbose : int, default=False
        Whether to show progress.
    random_state : int, Generator, RandomState or None, default=None
        Seed.
    return_n_iter : bool, default=False
        Whether to return the number of rounds too.
    positive_dict, positive_code : bool, default=False
        Whether atoms, or codes, are at least 0.
    method_max_iter : int, default=1000
        Most sweeps for the code of a row in a round; it goes on from that of the round before.

    Returns
    -------
    code : ndarray of shape (n_samples, n_components)
    dictionary : ndarray of shape (n_components, n_features)
    errors : ndarray
        The objective after every round.
    n_iter : int
        With `return_n_iter`.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import dict_learning
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> code, dictionary, errors = dict_learning(X, 3, alpha=0.5, random_state=0, tol=1e-4)
    >>> code.shape, dictionary.shape, bool(errors[-1] < errors[0])
    ((30, 3), (3, 4), True)
    """
    model = DictionaryLearning(
        n_components,
        alpha=alpha,
        max_iter=max_iter,
        tol=tol,
        fit_algorithm=method,
        n_jobs=n_jobs,
        dict_init=dict_init,
        code_init=code_init,
        callback=callback,
        verbose=verbose,
        random_state=random_state,
        positive_dict=positive_dict,
        positive_code=positive_code,
        transform_max_iter=method_max_iter,
    )
    code = np.asarray(model.fit_transform(X))
    found = (code, model.components_, model.error_)
    return (*found, model.n_iter_) if return_n_iter else found
