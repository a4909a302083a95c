"""A dictionary from mini-batches in one call."""

from __future__ import annotations

from typing import Any

from epicycle.decomposition.dictionary._mini_batch_dictionary_learning import MiniBatchDictionaryLearning


def dict_learning_online(
    X: Any,
    n_components: int | None = 2,
    *,
    alpha: float = 1.0,
    max_iter: int = 100,
    return_code: bool = True,
    dict_init: Any = None,
    callback: Any = None,
    batch_size: int = 256,
    verbose: int | bool = False,
    shuffle: bool = True,
    n_jobs: int | None = None,
    method: str = "lars",
    random_state: Any = None,
    positive_dict: bool = False,
    positive_code: bool = False,
    method_max_iter: int = 1000,
    tol: float = 1e-3,
    max_no_improvement: int | None = 10,
) -> Any:
    """Codes and atoms, as :class:`MiniBatchDictionaryLearning` finds them.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    n_components : int or None, default=2
        Atoms.
    alpha : float, default=1.0
        Penalty of the codes.
    max_iter : int, default=100
        Passes over the rows.
    return_code : bool, default=True
        Whether to return codes too.
    dict_init : array-like of shape (n_components, n_features), optional
        Atoms to start from.
    callback : callable, optional
        Called after every step.
    batch_size : int, default=256
        Rows of a step.
    verbose : int, default=False
        Whether to show progress.
    shuffle : bool, default=True
        Whether rows are drawn into batches in random order.
    n_jobs : int, optional
        Threads.
    method : {"lars", "cd"}, default="lars"
        As `fit_algorithm` of :class:`MiniBatchDictionaryLearning`.
    random_state : int, Generator, RandomState or None, default=None
        Seed.
    positive_dict, positive_code : bool, default=False
        Whether atoms, or codes, are at least 0.
    method_max_iter : int, default=1000
        Most sweeps for the code of a row.
    tol : float, default=1e-3
        Change of the atoms at which the fit ends.
    max_no_improvement : int or None, default=10
        Steps without a lower smoothed cost after which the fit ends.

    Returns
    -------
    code : ndarray of shape (n_samples, n_components)
        With `return_code`.
    dictionary : ndarray of shape (n_components, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import dict_learning_online
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> code, dictionary = dict_learning_online(X, 3, alpha=0.5, random_state=0, batch_size=20)
    >>> code.shape, dictionary.shape
    ((60, 3), (3, 4))
    """
    model = MiniBatchDictionaryLearning(
        n_components,
        alpha=alpha,
        max_iter=max_iter,
        n_jobs=n_jobs,
        fit_algorithm=method,
        batch_size=batch_size,
        shuffle=shuffle,
        dict_init=dict_init,
        random_state=random_state,
        transform_algorithm=f"lasso_{method}",
        transform_alpha=alpha,
        positive_code=positive_code,
        positive_dict=positive_dict,
        transform_max_iter=method_max_iter,
        verbose=verbose,
        callback=callback,
        tol=tol,
        max_no_improvement=max_no_improvement,
    ).fit(X)
    return (model.transform(X), model.components_) if return_code else model.components_
