"""The table of solvers that a model can name, and the function that runs one by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epicycle.core._docs import documented
from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.core._monitor import Monitor
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.optim._objective import Objective
from epicycle.optim.solvers._adam import RULES
from epicycle.optim.solvers._bfgs import bfgs, lbfgs
from epicycle.optim.solvers._conjugate_gradient import conjugate_gradient
from epicycle.optim.solvers._gradient_descent import gradient_descent
from epicycle.optim.solvers._newton import newton
from epicycle.optim.solvers._run import SOLVER_DOCS, State, check_choice
from epicycle.optim.solvers._stochastic import stochastic

_COMMON = {"objective", "start", "tol", "max_iter", "monitor", "state"}


@dataclass(frozen=True)
class SolverInfo:
    """A solver and what it needs.

    function : called as function(objective, start, *, tol, max_iter, monitor, state, ...).
    description : one line.
    requires : the objective has to offer at least one of these capabilities; empty when the gradient is enough.
    stochastic : whether its iterations are epochs over mini-batches.
    """

    function: Callable[..., Solution]
    description: str
    requires: tuple[str, ...] = ()
    stochastic: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that are the solver's own."""
        bound = self.function.keywords if isinstance(self.function, partial) else {}
        return tuple(p for p in inspect.signature(self.function).parameters if p not in _COMMON and p not in bound)


SOLVERS: dict[str, SolverInfo] = {
    "gd": SolverInfo(gradient_descent, "gradient descent with a line search or a fixed step"),
    "gd-ladder": SolverInfo(
        partial(gradient_descent, step="ladder"), "gradient descent with the largest step of 0.001, 0.003, 0.01, ..."
    ),
    **{
        name: SolverInfo(partial(stochastic, rule=name), rule.description, ("minibatches",), stochastic=True)
        for name, rule in RULES.items()
    },
    "cg": SolverInfo(conjugate_gradient, "conjugate gradients (Polak and Ribiere), exact on quadratics"),
    "bfgs": SolverInfo(bfgs, "quasi-Newton with a full approximation of the inverse Hessian"),
    "lbfgs": SolverInfo(lbfgs, "quasi-Newton from the last few gradients, in the objective's metric where it has one"),
    "newton": SolverInfo(
        newton, "Newton's method with Cholesky, or with conjugate gradients", ("hessian", "hessian_product")
    ),
}


@in_catalogue("optim", "A2", certificate="that of the objective")
@documented(SOLVER_DOCS)
def solve(
    name: str,
    objective: Objective,
    start: np.ndarray,
    *,
    tol: float = 1e-8,
    max_iter: int = 1_000,
    monitor: Monitor | None = None,
    state: State | None = None,
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """Minimise `objective` from `start` with the solver of that name.

    Parameters
    ----------
    name : str
        A key of `SOLVERS`.
    objective : Objective
        F, with whatever the solver needs of it.
    max_iter : int, default=1000
        Iterations, or epochs of a stochastic solver.
    options : mapping, optional
        Options of this solver, such as ``{"step": 0.1}``.

    Returns
    -------
    Solution
        Its certificate holds exactly when `converged` is true.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.optim import FunctionObjective, solve
    >>> bowl = FunctionObjective(lambda x: (float(x @ x) + 1, 2 * x), size=3, strong_convexity=2.0)
    >>> solve("bfgs", bowl, np.ones(3)).converged
    True
    """
    if name not in SOLVERS:
        check_choice("solver", name, tuple(SOLVERS))
    if not isinstance(objective, Objective):
        kind = type(objective).__name__
        raise ParameterTypeError(f"objective must be an Objective, got {kind}; see FunctionObjective")
    info, options = SOLVERS[name], dict(options or {})
    if info.requires and not objective.capabilities.intersection(info.requires):
        needed = " or ".join(f"{c!r}" for c in info.requires)
        offered = ", ".join(sorted(objective.capabilities)) or "none"
        raise ParameterError(
            f"solver {name!r} needs the capability {needed}; {type(objective).__name__} offers: {offered}"
        )
    if options and (unknown := sorted(set(options) - set(info.options))):
        raise ParameterError(f"solver {name!r} has no option {unknown[0]!r}; it has: {', '.join(info.options)}")
    return info.function(objective, start, tol=tol, max_iter=max_iter, monitor=monitor, state=state, **options)
