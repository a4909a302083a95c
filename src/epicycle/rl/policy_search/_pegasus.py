r"""PEGASUS (Ng and Jordan 2000): the random numbers of some scenarios are fixed, and the return becomes a function.

    maximise  J(theta) = 1/m sum_i J(theta; scenario i)

of the parameters alone, for which any optimiser will do. One without gradients asks for values; BFGS takes the gradient
through a simulator with derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import (
    AnyOf,
    Callable as CallableDomain,
    Choice,
    Domain,
    Integer,
    Real,
)
from epicycle.core._random import Seed, stream
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._interaction import Interaction
from epicycle.rl.policy_search._linear_policy import LinearPolicy
from epicycle.rl.policy_search._pathwise import differentiable, pathwise_gradients
from epicycle.rl.policy_search._policy_agent import PolicyAgent

Array = np.ndarray
_POINTS = 10  # that are tried before an optimiser starts
_NEAR = 0.01  # length of a simplex at which it has finished, in units of its first one
OPTIMIZERS = ("nelder-mead", "powell", "bfgs")


class _EnoughError(Exception):
    """The optimiser has all values that were to be computed now."""


@in_catalogue("rl", "G8", certificate="none")
class Pegasus(PolicyAgent):
    r"""Policy search on fixed scenarios, by any optimiser.

    .. math:: \max_\theta \; \frac{1}{m} \sum_{i=1}^m J(\theta; \omega_i)

    The random numbers :math:`\omega_i` of m episodes are drawn once; every policy meets the same starts and the same
    chance, so that J is a function without noise. Policies are linear in features and draw nothing. An optimiser
    starts at the best of ten random points; when it has finished it starts again, near the best policy of all, which
    is kept.

    Values that were computed are kept with the agent: learning that goes on from a file runs the optimiser over them
    again, and comes to the same bits.

    Parameters
    ----------
    scenarios : int, default=10
        m.
    optimizer : {"nelder-mead", "powell", "bfgs"} or callable, default="nelder-mead"
        Those of SciPy; "bfgs" needs the environment of a simulator with continuous actions, and takes the exact
        gradient through it. A function ``optimizer(f, start)`` minimises f, which returns a number, from an array on;
        it must ask the same when it is told the same. A file does not keep it.
    spread : float, default=1
        Standard deviation of a start around zero, or later around the best point; side of the first simplex.
    discount : float, default=1
        Discount of the returns.

    Examples
    --------
    >>> from epicycle.control import CartPole
    >>> from epicycle.rl import Pegasus
    >>> env = CartPole().environment(max_steps=100)
    >>> agent = Pegasus(scenarios=5, random_state=0).learn(env, 12_000)
    >>> agent.evaluate(env, 10, seed=0).mean > 60
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "scenarios": Integer(minimum=1),
        "optimizer": AnyOf(Choice(*OPTIMIZERS), CallableDomain()),
        "spread": Real(0, inclusive=False),
    }

    scenarios: int
    optimizer: str | Callable[[Callable[[Array], float], Array], Any]
    spread: float

    @stores_arguments
    def __init__(
        self,
        features: Callable[[Array], Any] | None = None,
        *,
        scenarios: int = 10,
        optimizer: str | Callable[[Callable[[Array], float], Array], Any] = "nelder-mead",
        spread: float = 1.0,
        discount: float = 1.0,
        random_state: Seed = None,
    ) -> None: ...

    def _enter(self, world: Interaction) -> Interaction:
        if self.optimizer is None:
            raise DataError("optimizer: was a function, which a file does not keep; set agent.optimizer to it again")
        if self.optimizer == "bfgs" and differentiable(world.env) is None:
            raise DataError(
                "env: optimizer='bfgs' needs derivatives, of a simulator with continuous actions (its environment()); "
                "expected optimizer='nelder-mead' or 'powell'"
            )
        return super()._enter(world)

    def _new_tables(self, policy: LinearPolicy) -> dict[str, Array]:
        empty = np.zeros((0, 1 + policy.size * (2 if self.optimizer == "bfgs" else 1)))
        best = np.array([-np.inf])
        return {"theta": np.zeros(policy.size), "best": best, "starts": np.zeros(1, dtype=int), "known": empty}

    def _begin(self, seed: int) -> None:
        """Other scenarios: what was known of the first ones says nothing of these."""
        self._tables["known"] = self._tables["known"][:0]
        self._tables["best"][0] = -np.inf
        self._tables["start"] = self._tables["theta"].copy()

    def _advance(self, world: Interaction, most: int) -> int:
        t, size = self._tables, self._policy.size
        exact = self.optimizer == "bfgs"
        due = len(t["known"]) // 10 + 1  # new values until the next time that a file may be written
        new: list[Array] = []
        made = asked = 0

        def loss(theta: Array) -> Any:
            nonlocal made, asked
            asked += 1
            if asked <= len(t["known"]):
                row = t["known"][asked - 1]
            else:
                if len(new) >= due or made >= most:
                    raise _EnoughError
                value, gradient, steps = self._value(world, np.array(theta), most - made, made, exact)
                made += steps
                if value is None:
                    raise _EnoughError
                row = np.concatenate([[-value], theta, *([-gradient] if exact else [])])
                new.append(row)
            return (float(row[0]), row[1 + size :]) if exact else float(row[0])

        try:
            self._minimize(loss, self._points(), exact)
            ended = True
        except _EnoughError:
            ended = False
        if ended and asked <= _POINTS:
            raise DataError("optimizer: asked for no value; expected a function that minimises its first argument")
        if new:
            t["known"] = np.vstack([t["known"], *new])
            for row in new:
                if -row[0] > t["best"][0]:
                    t["best"][0], t["theta"][:] = -row[0], row[1 : 1 + size]
        if ended:
            t["starts"] += 1
            t["known"] = t["known"][:0]
            t["start"] = t["theta"].copy()
        return made

    def _points(self) -> Array:
        """Points of which the best is where an optimiser starts."""
        start = self._tables["start"]
        rng = stream(self._progress["seed"], "start", int(self._tables["starts"][0]))
        return np.asarray(start + self.spread * rng.standard_normal((_POINTS, len(start))))

    def _saved_argument(self, name: str) -> Any:
        return None if name == "optimizer" and callable(self.optimizer) else super()._saved_argument(name)

    def _minimize(self, loss: Callable[[Array], Any], points: Array, exact: bool) -> None:
        first = [loss(point)[0] if exact else loss(point) for point in points]
        start = points[int(np.argmin(first))]
        if callable(self.optimizer):
            self.optimizer(loss, start)
            return
        from scipy.optimize import minimize

        options = {}
        if self.optimizer == "nelder-mead":  # its own first simplex is so small that returns of episodes do not differ
            simplex = start + self.spread * np.eye(len(start) + 1, len(start), -1)
            options = {"initial_simplex": simplex, "xatol": _NEAR * self.spread}
        minimize(loss, start, method=self.optimizer, jac=exact or None, options=options)

    def _value(
        self, world: Interaction, theta: Array, most: int, before: int, exact: bool
    ) -> tuple[float | None, Array, int]:
        """Mean return over the scenarios, its gradient if asked for, and steps; None where these did not suffice."""
        none = np.zeros(0)
        if exact:
            env: Any = world.env
            starts = []
            for i in range(self.scenarios):
                world.episode = i
                starts.append(world.reset())
            noise = np.zeros((self.scenarios, int(env.max_steps), self._policy.n_outputs))
            rewards, gradients, lengths = pathwise_gradients(
                self._policy, theta, env.simulator, np.array(starts), noise, self.discount
            )
            for i, row in enumerate(rewards):
                self._record(before + int(lengths[: i + 1].sum()), row[: lengths[i]], self.discount)
            value = float((rewards @ self.discount ** np.arange(rewards.shape[1])).mean())
            return value, gradients.mean(axis=0), int(lengths.sum())
        total, made = 0.0, 0
        for i in range(self.scenarios):
            world.episode = i
            rewards, _, _, over = self._play(world, theta, most - made, True)
            made += len(rewards)
            if not over:
                return None, none, made
            total += float(rewards @ self.discount ** np.arange(len(rewards)))
            self._record(before + made, rewards, self.discount)
            if made >= most and i + 1 < self.scenarios:
                return None, none, made
        return total / self.scenarios, none, made
