r"""Three facts about networks with more weights than rows, as runs whose answer is known.

`minimum_norm`: of all weights that fit the rows, gradient descent from zero finds the shortest. `double_descent`: the
error on new rows grows until the network can just fit all rows, and falls again beyond. `network_prior`: a network with
random weights is a Gaussian process in the limit of width. `wide_network` is a module for `tangent_kernel`, whose limit
is the kernel `NeuralTangent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._checks import count, number
from epicycle.core._exceptions import ConvergenceError, DataError, ParameterError
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.kernels import NNGP
from epicycle.nets.training._torch import require_torch, seeded

__all__ = [
    "DoubleDescent",
    "MinimumNorm",
    "NetworkPrior",
    "double_descent",
    "minimum_norm",
    "network_prior",
    "wide_network",
]

_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class MinimumNorm:
    """The way of gradient descent to a solution.

    Attributes
    ----------
    weights : ndarray of shape (p,)
        Where the descent ended.
    solution : ndarray of shape (p,)
        The weights that fit and are nearest to the start, in closed form.
    n_steps : int
    steps : ndarray of shape (r,)
        The steps after which the next three were recorded.
    loss : ndarray of shape (r,)
        Mean squared error over 2.
    norm : ndarray of shape (r,)
        Length of the weights.
    distance : ndarray of shape (r,)
        From the solution.
    """

    weights: np.ndarray
    solution: np.ndarray
    n_steps: int
    steps: np.ndarray
    loss: np.ndarray
    norm: np.ndarray
    distance: np.ndarray


@in_catalogue("nets", "F7", certificate="none")
def minimum_norm(X: Any, y: Any, *, start: Any = None, tol: float = 1e-10, max_iter: int = 1_000_000) -> MinimumNorm:
    r"""Gradient descent on a linear network with more weights than rows, and the solution that it comes to.

    .. math:: w_{t+1} = w_t - \eta X^\top (X w_t - y) / n \;\longrightarrow\;
              w_0 + X^{+} (y - X w_0) = \arg\min \{ |w - w_0| : X w = y \}

    Every step is a sum of rows, so what is orthogonal to all rows never changes: from :math:`w_0 = 0` the descent ends
    at the shortest of all solutions. With rows that contradict each other it is the shortest of all that fit best.

    Parameters
    ----------
    X : array-like of shape (n, p)
    y : array-like of shape (n,)
    start : array-like of shape (p,), optional
        The weights :math:`w_0`; zeros unless given.
    tol : float, default=1e-10
        The descent ends when the gradient is this much shorter than at zero weights.
    max_iter : int, default=1000000
        Steps at most.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.nets.examples import minimum_norm
    >>> found = minimum_norm([[1.0, 1.0]], [2.0])
    >>> bool(np.allclose(found.weights, [1, 1])), bool(found.distance[-1] < 1e-9)
    (True, True)
    """
    X, y = _table(X, "X"), np.asarray(y, dtype=np.float64)
    if y.shape != (len(X),) or not np.isfinite(y).all():
        raise DataError(f"y: expected {len(X)} finite numbers; got shape {y.shape}")
    count("max_iter", max_iter, low=1)
    w = np.zeros(X.shape[1]) if start is None else np.array(start, dtype=np.float64)
    if w.shape != (X.shape[1],):
        raise DataError(f"start: expected {X.shape[1]} numbers, one for each column of X; got shape {w.shape}")
    n = len(X)
    solution = w + np.linalg.pinv(X) @ (y - X @ w)
    largest = np.linalg.norm(X, 2) ** 2 / n
    scale = np.linalg.norm(X.T @ y) / n + largest * np.linalg.norm(w)
    rate = 1.0 / largest if largest > 0 else 1.0
    rows: list[tuple[float, ...]] = []
    record = 0
    for t in range(max_iter + 1):
        residual = X @ w - y
        gradient = X.T @ residual / n
        done = np.linalg.norm(gradient) <= tol * scale
        if done or t == record:
            loss, lengths = float(residual @ residual) / (2 * n), (np.linalg.norm(a) for a in (w, w - solution))
            rows.append((t, loss, *map(float, lengths)))
            record = max(t + 1, int(1.2 * t))
        if done:
            return MinimumNorm(w, solution, t, *(np.array(column) for column in zip(*rows, strict=True)))
        w = w - rate * gradient
    raise ConvergenceError(
        f"minimum_norm: the gradient is still {np.linalg.norm(gradient) / scale:.1e} of its first length after "
        f"{max_iter} steps; raise max_iter, or scale the columns of X"
    )


@dataclass(frozen=True)
class DoubleDescent:
    """Errors of networks by the number of their units.

    Attributes
    ----------
    widths : ndarray of shape (n_widths,)
    train_error, test_error : ndarray of shape (n_widths, n_networks)
        Mean squared errors.
    norm : ndarray of shape (n_widths, n_networks)
        Length of the weights of the last layer.
    """

    widths: np.ndarray
    train_error: np.ndarray
    test_error: np.ndarray
    norm: np.ndarray


@in_catalogue("nets", "F7", certificate="none")
def double_descent(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    widths: Sequence[int],
    *,
    alpha: float = 0.0,
    n_networks: int = 10,
    random_state: Any = 0,
) -> DoubleDescent:
    r"""Errors of networks with one hidden layer, from fewer units than rows to many more.

    .. math:: f(x) = \sum_{j=1}^m v_j \max(0, w_j^\top x + b_j), \qquad
              v = \arg\min \tfrac1n |y - f(X)|^2 + \alpha |v|^2 ,

    with random :math:`w_j, b_j` of length one, and of all best :math:`v` the shortest, to which gradient descent from
    zero comes. As m grows to the number of rows the training error falls to zero and the test error rises without
    bound; beyond, the shortest solution becomes shorter and the test error falls again.

    Parameters
    ----------
    X, X_test : array-like of shape (n, p) and (n_test, p)
    y, y_test : array-like of shape (n,) and (n_test,)
    widths : sequence of int
        Numbers of hidden units.
    alpha : float, default=0.0
        Penalty on the weights; a small one takes the peak away.
    n_networks : int, default=10
        Networks of each width, with other hidden units.
    random_state : int, Generator, RandomState or None, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.nets.examples import double_descent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(540, 5))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=540)
    >>> curve = double_descent(X[:40], y[:40], X[40:], y[40:], [10, 40, 1000])
    >>> few, peak, many = np.median(curve.test_error, axis=1)
    >>> bool(peak > 3 * few and peak > 3 * many)
    True
    """
    X, X_test = _table(X, "X"), _table(X_test, "X_test")
    y, y_test = (np.asarray(a, dtype=np.float64) for a in (y, y_test))
    for name, target, rows in (("y", y, X), ("y_test", y_test, X_test)):
        if target.shape != (len(rows),) or not np.isfinite(target).all():
            raise DataError(f"{name}: expected {len(rows)} finite numbers; got shape {target.shape}")
    if X_test.shape[1] != X.shape[1]:
        raise DataError(f"X_test: has {X_test.shape[1]} columns; expected {X.shape[1]} as X")
    number("alpha", alpha, low=0.0)
    count("n_networks", n_networks, low=1)
    sizes = _widths(widths)
    seed = seed_of(random_state)
    train, test, norm = (np.empty((len(sizes), n_networks)) for _ in range(3))
    for i, m in enumerate(sizes):
        for k in range(n_networks):
            rng = stream(seed, "hidden units", m, k)
            units = rng.normal(size=(X.shape[1] + 1, m))
            units /= np.linalg.norm(units, axis=0)
            hidden, hidden_test = (np.maximum(0, Z @ units[:-1] + units[-1]) for Z in (X, X_test))
            v = _ridge(hidden, y, alpha * len(X))
            train[i, k], test[i, k] = np.mean((hidden @ v - y) ** 2), np.mean((hidden_test @ v - y_test) ** 2)
            norm[i, k] = np.linalg.norm(v)
    return DoubleDescent(np.array(sizes), train, test, norm)


def _ridge(H: np.ndarray, y: np.ndarray, strength: float) -> np.ndarray:
    """The v of smallest |y - H v|^2 + strength |v|^2; of several, the shortest."""
    U, s, Vt = np.linalg.svd(H, full_matrices=False)
    kept = s > max(H.shape) * _EPS * s.max(initial=0.0)
    factor = np.divide(s, s**2 + strength, out=np.zeros_like(s), where=kept)
    return np.asarray(Vt.T @ (factor * (U.T @ y)))


@dataclass(frozen=True)
class NetworkPrior:
    """Outputs of random networks at a few rows, by their width.

    Attributes
    ----------
    widths : ndarray of shape (n_widths,)
    outputs : ndarray of shape (n_widths, n_networks, n)
    covariance : ndarray of shape (n_widths, n, n)
        Of the outputs, about zero.
    limit : ndarray of shape (n, n)
        The kernel `NNGP`, to which it comes.
    kurtosis : ndarray of shape (n_widths,)
        Fourth moment over the square of the second, less 3, the mean over rows: 0 for a normal distribution.
    """

    widths: np.ndarray
    outputs: np.ndarray
    covariance: np.ndarray
    limit: np.ndarray
    kurtosis: np.ndarray

    @property
    def distance(self) -> np.ndarray:
        """|covariance - limit| / |limit| by width, in the Frobenius norm."""
        return np.asarray(np.linalg.norm(self.covariance - self.limit, axis=(1, 2)) / np.linalg.norm(self.limit))


@in_catalogue("nets", "F7", certificate="none")
def network_prior(
    X: Any,
    widths: Sequence[int],
    *,
    depth: int = 1,
    weight_variance: float = 2.0,
    bias_variance: float = 0.0,
    n_networks: int = 1000,
    random_state: Any = 0,
) -> NetworkPrior:
    r"""Outputs of networks with random weights, and the Gaussian process that they come to as they grow wide.

    .. math:: f(x) = W_L \max(0, \ldots W_1 x + b_1 \ldots) + b_L, \qquad
              W_l \sim N(0, \sigma_w^2 / \text{inputs}), \quad b_l \sim N(0, \sigma_b^2) .

    The covariance of f(x) and f(z) over the weights is that of the kernel `epicycle.kernel.NNGP`, for `depth` = 1 at
    any width; what makes a narrow network different is that its outputs are not normal.

    Parameters
    ----------
    X : array-like of shape (n, p)
    widths : sequence of int
        Units of every hidden layer.
    depth : int, default=1
        Hidden layers.
    weight_variance, bias_variance : float, default=2.0 and 0.0
        The variances :math:`\sigma_w^2` and :math:`\sigma_b^2`.
    n_networks : int, default=1000
        Networks of each width.
    random_state : int, Generator, RandomState or None, default=0

    Examples
    --------
    >>> from epicycle.nets.examples import network_prior
    >>> prior = network_prior([[1.0, 0.0], [0.6, 0.8]], [2, 200], n_networks=4000)
    >>> bool(prior.kurtosis[0] > 3 and abs(prior.kurtosis[1]) < 0.6)
    True
    """
    X = _table(X, "X")
    sizes = _widths(widths)
    count("depth", depth, low=1)
    count("n_networks", n_networks, low=1)
    limit = NNGP(depth=depth, weight_variance=weight_variance, bias_variance=bias_variance)(X)
    seed, shift = seed_of(random_state), np.sqrt(bias_variance)
    outputs = np.empty((len(sizes), n_networks, len(X)))
    for i, m in enumerate(sizes):
        for k in range(n_networks):
            rng, z = stream(seed, "weights", m, k), X
            for layer in range(depth + 1):
                n_in, n_out = z.shape[1], m if layer < depth else 1
                W = rng.normal(0, np.sqrt(weight_variance / n_in), (n_in, n_out))
                z = z @ W + rng.normal(0, 1, n_out) * shift
                z = np.maximum(z, 0) if layer < depth else z
            outputs[i, k] = z[:, 0]
    covariance = np.einsum("ikr,iks->irs", outputs, outputs) / n_networks
    second, fourth = (outputs**2).mean(axis=1), (outputs**4).mean(axis=1)
    excess = np.divide(fourth, second**2, out=np.full_like(second, 3.0), where=second > 0) - 3
    return NetworkPrior(np.array(sizes), outputs, covariance, limit, excess.mean(axis=1))


@in_catalogue("nets", "F7", certificate="none")
def wide_network(
    n_features: int,
    width: int,
    *,
    depth: int = 1,
    n_outputs: int = 1,
    weight_variance: float = 2.0,
    bias_variance: float = 0.0,
    random_state: Any = 0,
) -> Any:
    r"""A torch module of rectified units whose tangent kernel comes to `epicycle.kernel.NeuralTangent` with its width.

    .. math:: z_l = \max\bigl(0, \sqrt{\sigma_w^2 / n_{l-1}} \, W_l z_{l-1} + \sigma_b b_l\bigr),

    all entries of W and b standard normal: the scale is outside of the weights, so that every layer has its share in
    the tangent kernel.

    Parameters
    ----------
    n_features : int
    width : int
        Units of every hidden layer.
    depth : int, default=1
        Hidden layers.
    n_outputs : int, default=1
    weight_variance, bias_variance : float, default=2.0 and 0.0
        The variances :math:`\sigma_w^2` and :math:`\sigma_b^2`.
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    module : torch.nn.Sequential
        In double precision.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.kernel import NeuralTangent
    >>> from epicycle.nets import tangent_kernel
    >>> from epicycle.nets.examples import wide_network
    >>> X = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> found = tangent_kernel(wide_network(2, 4000), X)
    >>> bool(np.allclose(found, NeuralTangent()(X), rtol=0.1))
    True
    """
    require_torch("wide_network")
    for value, name in ((n_features, "n_features"), (width, "width"), (depth, "depth"), (n_outputs, "n_outputs")):
        count(name, value, low=1)
    from epicycle.nets._wide_network import wide_module

    with seeded(seed_of(random_state)):
        return wide_module(n_features, width, depth, n_outputs, weight_variance, bias_variance)


def _table(X: Any, name: str) -> np.ndarray:
    table = np.asarray(X, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape or not np.isfinite(table).all():
        raise DataError(f"{name}: expected a table of finite numbers, of shape (n, p); got shape {table.shape}")
    return table


def _widths(widths: Any) -> list[int]:
    sizes = [int(m) for m in widths] if isinstance(widths, list | tuple | range | np.ndarray) else []
    if not sizes or min(sizes) < 1:
        raise ParameterError(f"widths={widths!r}; expected a list of numbers of units, each at least 1")
    return sizes
