r"""The gradient of a return through a simulator whose derivatives are known (reparametrisation).

a_t = W phi(x_t) + exp(s) e_t,    u_t = a_t cut to its limits,    x_t+1 = f(x_t, u_t)
J = sum_t discount^t r(x_t, u_t, x_t+1)

With e given, J is a function of theta = (W, s), differentiated backwards: with l_t = dJ / dx_t and g = discount^t,

dJ / du_t = g r_u + f_u' (l_t+1 + g r_x'),    l_t = g r_x + f_x' (l_t+1 + g r_x') + phi_x' W' dJ / da_t.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.rl.policy_search._linear_policy import LinearPolicy

Array = np.ndarray
_STEP = 1e-6  # of differences of rewards and of features


def differentiable(env: Any) -> Any:
    """The simulator of an environment whose controls are continuous, or None."""
    simulator = getattr(env, "simulator", None)
    return simulator if simulator is not None and simulator.actions is None else None


def pathwise_gradients(
    policy: LinearPolicy, theta: Array, simulator: Any, starts: Array, noise: Array, discount: float
) -> tuple[Array, Array, Array]:
    """Rewards (rows, T), gradients of the discounted returns (rows, p) and lengths (rows,) of episodes.

    Parameters
    ----------
    policy : LinearPolicy
        Of continuous actions.
    theta : array (p,)
        Its parameters.
    simulator : Simulator
    starts : array (rows, n)
        First states.
    noise : array (rows, T, m)
        Standard normal numbers of the actions; zeros for the mean.
    discount : float
    """
    rows, T, m = noise.shape
    W, log_sd = theta[: m * policy.n_features].reshape(m, -1), theta[m * policy.n_features :]
    sd = np.exp(log_sd)
    X = np.empty((T + 1, rows, simulator.n_states))
    U, inside = np.zeros((T, rows, m)), np.zeros((T, rows, m), dtype=bool)
    going = np.zeros((T + 1, rows), dtype=bool)
    X[0], going[0] = starts, ~simulator.ended(starts)
    phis = np.zeros((T, rows, policy.n_features))
    for t in range(T):
        phis[t] = _phi(policy, X[t])
        a = phis[t] @ W.T + sd * noise[:, t]
        U[t] = np.clip(a, simulator.control_low, simulator.control_high)
        inside[t] = a == U[t]
        X[t + 1] = simulator.step(X[t], U[t])
        going[t + 1] = going[t] & ~simulator.ended(X[t + 1])
        if not going[t + 1].any():
            X[t + 2 :] = X[t + 1]
            break
    fade = discount ** np.arange(T)
    rewards = np.where(going[:-1], _rewards(simulator, X[:-1], U, X[1:]), 0.0)
    f, A, B = (part.reshape(T, rows, *part.shape[1:]) for part in simulator.derivatives(_flat(X[:-1]), _flat(U)))
    free = np.isclose(f, X[1:], rtol=1e-9, atol=1e-12)[..., None]  # an entry that was cut does not move
    A, B = np.where(free, A, 0.0), np.where(free, B, 0.0)
    r_x, r_u, r_next = _reward_slopes(simulator, X[:-1], U, X[1:])
    after, dW, ds = np.zeros_like(starts), np.zeros((rows, m, policy.n_features)), np.zeros((rows, m))
    for t in range(T - 1, -1, -1):
        on = going[t][:, None]
        ahead = np.where(on, after + fade[t] * r_next[t], 0.0)
        da = np.where(on & inside[t], fade[t] * r_u[t] + np.einsum("rij,ri->rj", B[t], ahead), 0.0)
        dW += da[:, :, None] * phis[t][:, None]
        ds += da * sd * noise[:, t]
        moved = np.where(on, fade[t] * r_x[t], 0.0) + np.einsum("rij,ri->rj", A[t], ahead)
        after = moved + _pull(policy, X[t], da @ W)
    gradient = np.concatenate([dW.reshape(rows, -1), ds], axis=1)
    if not np.isfinite(gradient).all():
        raise DataError("env: the derivatives of the return overflow; expected shorter episodes (max_steps)")
    return rewards.T, gradient, going[:-1].sum(axis=0)


def _flat(X: Array) -> Array:
    return X.reshape(-1, X.shape[-1])


def _rewards(simulator: Any, X: Array, U: Array, X_next: Array) -> Array:
    return np.asarray(simulator.reward(_flat(X), _flat(U), _flat(X_next))).reshape(X.shape[:-1])


def _reward_slopes(simulator: Any, *parts: Array) -> list[Array]:
    """Central differences of the reward by state, control and next state."""
    out = []
    for k, given in enumerate(parts):
        slope = np.empty_like(given)
        for j in range(given.shape[-1]):
            step = np.zeros(given.shape[-1])
            step[j] = _STEP
            ahead, behind = ([*parts[:k], given + side, *parts[k + 1 :]] for side in (step, -step))
            slope[..., j] = (_rewards(simulator, *ahead) - _rewards(simulator, *behind)) / (2 * _STEP)
        out.append(slope)
    return out


def _phi(policy: LinearPolicy, X: Array) -> Array:
    if policy.features is None:
        return np.concatenate([X, np.ones((len(X), 1))], axis=1)
    return np.array([policy.phi(x) for x in X])


def _pull(policy: LinearPolicy, X: Array, back: Array) -> Array:
    """phi_x' back for each row."""
    if policy.features is None:
        return back[:, :-1]
    out = np.empty_like(X)
    for j in range(X.shape[1]):
        step = np.zeros(X.shape[1])
        step[j] = _STEP
        out[:, j] = ((_phi(policy, X + step) - _phi(policy, X - step)) * back).sum(axis=1) / (2 * _STEP)
    return out
