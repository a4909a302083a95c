r"""Least-squares temporal differences (Bradtke and Barto; Boyan): the weights at which TD(lambda) comes to rest.

    A = sum_t z_t (phi_t - discount phi_t+1)',   b = sum_t z_t r_t+1,   z_t = discount lambda z_t-1 + phi_t,   A w = b

with zero in the place of phi after an end, where the trace z begins anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lstsq

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.core._parameters import Callable as CallableDomain, Integer, Real, check_parameters
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@in_catalogue("rl", "G9", certificate="residual of the projected equation")
class LSTD:
    r"""Values of the policy that made given transitions, linear in features, in one solve.

    .. math:: A w = b, \qquad A = \sum_t z_t (\phi_t - \gamma \phi_{t+1})', \quad b = \sum_t z_t r_{t+1}, \quad
              z_t = \gamma \lambda z_{t-1} + \phi_t

    With one feature for each state and :math:`\lambda = 0` these are the values of the process whose probabilities are
    the frequencies; with :math:`\lambda = 1` the means of returns.

    Parameters
    ----------
    features : callable
        Features (rows, p) of states (rows, d), such as TileCoding, FourierBasis or a function.
    discount : float, default=0.99
        Discount.
    trace_decay : float, default=0
        :math:`\lambda`.
    ridge : float, default=0
        Added to the diagonal of A.

    Attributes
    ----------
    coef_ : array (p,)
        Weights.
    certificate_ : Certificate
        :math:`\|A w - b\| / \|b\|`.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.rl import LSTD
    >>> model = LSTD(lambda s: np.eye(3)[s], discount=0.9)
    >>> model.fit([0, 1, 2], [0.0, 0.0, 1.0], [1, 2, 0], terminated=[False, False, True]).coef_.round(3).tolist()
    [0.81, 0.9, 1.0]
    """

    def __init__(
        self,
        features: Callable[[Any], Array],
        *,
        discount: float = 0.99,
        trace_decay: float = 0.0,
        ridge: float = 0.0,
    ) -> None:
        self.features, self.discount, self.trace_decay, self.ridge = features, discount, trace_decay, ridge
        domains = {"features": CallableDomain(), "discount": Real(0, 1), "trace_decay": Real(0, 1), "ridge": Real(0)}
        check_parameters(self, domains)

    def fit(
        self, states: Any, rewards: Any, next_states: Any, *, terminated: Any = None, truncated: Any = None
    ) -> LSTD:
        """Solve for transitions in the order in which they were made.

        Parameters
        ----------
        states, next_states : arrays (n, ...)
            States before and after each step.
        rewards : array (n,)
            Rewards.
        terminated : array (n,) of bool, optional
            Whether the episode ended with the step.
        truncated : array (n,) of bool, optional
            Whether it was cut off there, so that the next transition belongs to another one.

        Returns
        -------
        LSTD
            The model itself.
        """
        phi, after, r, ends, cut = transitions(self.features, states, rewards, next_states, terminated, truncated)
        z = np.zeros(phi.shape[1])
        traces, fade = np.empty_like(phi), self.discount * self.trace_decay
        if fade == 0:
            traces = phi
        else:
            for t, row in enumerate(phi):
                z = fade * z + row
                traces[t] = z
                if ends[t] or cut[t]:
                    z = np.zeros_like(z)
        self.coef_, self.certificate_ = solved(traces, phi, after, r, self.discount, self.ridge)
        return self

    def predict(self, states: Any) -> Array:
        """Values of states.

        Parameters
        ----------
        states : array (n, ...)
            States.

        Returns
        -------
        array (n,)
        """
        return np.asarray(np.asarray(self.features(states), dtype=np.float64) @ self.coef_)


@in_catalogue("rl", "G9", certificate="change of the weights")
class LSPI:
    r"""Least-squares policy iteration (Lagoudakis and Parr): a policy from given transitions, made by whatever policy.

    With weights for each action, :math:`q(x, a) = w_a'\phi(x)`, every iteration solves LSTD for the policy that is
    greedy for the weights before, until they no longer change.

    Parameters
    ----------
    features : callable
        Features (rows, p) of states (rows, d), such as TileCoding, FourierBasis or a function.
    n_actions : int
        Number of actions.
    discount : float, default=0.99
        Discount, below 1.
    ridge : float, default=1e-6
        Added to the diagonal of A.
    tol : float, default=1e-6
        Largest change of a weight, relative to the largest weight, at which the iteration ends.
    max_iter : int, default=50
        Most iterations.

    Attributes
    ----------
    coef_ : array (A, p)
        Weights of each action.
    history_ : History
        Change of the weights in each iteration.
    certificate_ : Certificate
        Change of the weights in the last iteration, relative to the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.rl import LSPI
    >>> rng = np.random.default_rng(0)
    >>> s, a = rng.integers(4, size=500), rng.integers(2, size=500)
    >>> after = np.clip(s + 2 * a - 1, 0, 3)
    >>> model = LSPI(lambda s: np.eye(4)[s], 2, discount=0.9).fit(s, a, (after == 3) * 1.0, after)
    >>> [model.act(i) for i in range(4)]
    [1, 1, 1, 1]
    """

    def __init__(
        self,
        features: Callable[[Any], Array],
        n_actions: int,
        *,
        discount: float = 0.99,
        ridge: float = 1e-6,
        tol: float = 1e-6,
        max_iter: int = 50,
    ) -> None:
        self.features, self.n_actions, self.discount, self.ridge = features, n_actions, discount, ridge
        self.tol, self.max_iter = tol, max_iter
        domains = {
            "features": CallableDomain(),
            "n_actions": Integer(minimum=1),
            "discount": Real(0, 1, inclusive=(True, False)),
            "ridge": Real(0),
            "tol": Real(0, inclusive=False),
            "max_iter": Integer(minimum=1),
        }
        check_parameters(self, domains)

    def fit(self, states: Any, actions: Any, rewards: Any, next_states: Any, *, terminated: Any = None) -> LSPI:
        """Iterate over transitions, in any order.

        Parameters
        ----------
        states, next_states : arrays (n, ...)
            States before and after each step.
        actions : array (n,) of int
            Numbers of the actions.
        rewards : array (n,)
            Rewards.
        terminated : array (n,) of bool, optional
            Whether the episode ended with the step.

        Returns
        -------
        LSPI
            The model itself.
        """
        phi, after, r, _, _ = transitions(self.features, states, rewards, next_states, terminated, None)
        chosen = np.asarray(actions)
        if chosen.shape != r.shape or not np.isin(chosen, np.arange(self.n_actions)).all():
            raise DataError(f"actions: expected {len(r)} numbers from 0 to {self.n_actions - 1}")
        place = np.eye(self.n_actions)
        own = _blocks(phi, place[chosen])
        w, changes = np.zeros((self.n_actions, phi.shape[1])), []
        for _ in range(self.max_iter):
            best = (after @ w.T).argmax(axis=1)
            flat, _ = solved(own, own, _blocks(after, place[best]), r, self.discount, self.ridge)
            new = flat.reshape(w.shape)
            changes.append(float(np.abs(new - w).max() / max(np.abs(new).max(), 1e-300)))
            w = new
            if changes[-1] <= self.tol:
                break
        self.coef_, self.history_ = w, History(change=changes)
        meaning = "the greedy policy of the weights has the values that they stand for, as far as the features go"
        self.certificate_ = Certificate("change of the weights", changes[-1], self.tol, meaning)
        return self

    def predict(self, states: Any) -> Array:
        """Values of all actions in states.

        Parameters
        ----------
        states : array (n, ...)
            States.

        Returns
        -------
        array (n, A)
        """
        return np.asarray(np.asarray(self.features(states), dtype=np.float64) @ self.coef_.T)

    def act(self, observation: Any, deterministic: bool = True) -> int:
        """Best action in a state.

        Parameters
        ----------
        observation : array (...)
            The state.
        deterministic : bool, default=True
            Not used: the policy draws nothing.

        Returns
        -------
        int
        """
        return int(self.predict(np.asarray(observation)[None])[0].argmax())


def _blocks(phi: Array, place: Array) -> Array:
    """The features in the block of each row's action."""
    return np.asarray((place[:, :, None] * phi[:, None, :]).reshape(len(phi), -1))


def transitions(
    features: Callable[[Any], Array], states: Any, rewards: Any, next_states: Any, terminated: Any, truncated: Any
) -> tuple[Array, Array, Array, Array, Array]:
    """Features before and after, rewards, ends and cuts, all checked; the features after an end are zero."""
    r = np.asarray(rewards, dtype=np.float64)
    if r.ndim != 1 or not len(r) or not np.isfinite(r).all():
        raise DataError(f"rewards: got shape {r.shape}; expected finite numbers (n,), at least one")
    found = []
    for name, given in (("states", states), ("next_states", next_states)):
        phi = np.asarray(features(np.asarray(given)), dtype=np.float64)
        if phi.ndim != 2 or len(phi) != len(r) or not np.isfinite(phi).all():
            raise DataError(f"{name}: their features have shape {phi.shape}; expected finite numbers ({len(r)}, p)")
        found.append(phi)
    flags = []
    for name, given in (("terminated", terminated), ("truncated", truncated)):
        flag = np.zeros(len(r), dtype=bool) if given is None else np.asarray(given, dtype=bool)
        if flag.shape != r.shape:
            raise DataError(f"{name}: got shape {flag.shape}; expected ({len(r)},)")
        flags.append(flag)
    return found[0], np.where(flags[0][:, None], 0.0, found[1]), r, flags[0], flags[1]


def solved(z: Array, phi: Array, after: Array, r: Array, discount: float, ridge: float) -> tuple[Array, Certificate]:
    """Weights of the projected equation; of several the shortest, where features were not seen."""
    A = z.T @ (phi - discount * after) + ridge * np.eye(phi.shape[1])
    b = z.T @ r
    w = lstsq(A, b)[0]
    size = float(np.linalg.norm(b))
    residual = float(np.linalg.norm(A @ w - b)) / (size if size > 0 else 1.0)
    meaning = "the weights solve the projected Bellman equation of the transitions"
    return np.asarray(w), Certificate("residual of the projected equation", residual, 1e-8, meaning)
