"""`InverseRL`: the reward that explains what an expert does."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle import optim
from epicycle.control import MDP, policy_evaluation, policy_iteration
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceWarning, DataError
from epicycle.core._history import History
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import SHARED_PARAMETERS, Choice, Domain, Integer, Real, check_parameters
from epicycle.core._random import Seed
from epicycle.core._saved import Saved, attributes_of
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._evaluation import Evaluates, state_number
from epicycle.rl.inverse._expert_problem import ExpertProblem, expert_problem
from epicycle.rl.inverse._max_entropy import MaximumEntropy
from epicycle.rl.inverse._projection import project
from epicycle.rl.inverse._reward_program import solve_program

Array = np.ndarray
METHODS = ("max_entropy", "apprenticeship", "linear_programming")
_TAIL = 0.01  # share of all discounted weight behind a cut that is worth a warning
_FITTED = (
    "weights_",
    "reward_",
    "policy_",
    "probabilities_",
    "expert_expectations_",
    "expectations_",
    "history_",
    "certificate_",
    "n_iter_",
)


@in_catalogue("rl", "G13", certificate="distance to the expert's features, or loss of the expert's policy")
class InverseRL(Evaluates, Saved):
    r"""Reward of an expert, learnt from what the expert does in a process that is known but for its rewards.

    The reward is :math:`r(s) = w'\phi(s)`, and :math:`\mu = \mathrm{E} \sum_t \gamma^t \phi(s_t)` are the feature
    expectations of a policy, so that :math:`w'\mu` is its value. By ``method``:

    - "max_entropy" (Ziebart): of all policies with the expert's :math:`\mu` the one of largest entropy, which takes
      actions in proportion to :math:`e^{Q}`; the weights minimise a convex function. An expert who errs is expected.
    - "apprenticeship" (Abbeel and Ng): a mixture of best policies for one reward after the other, whose :math:`\mu`
      comes as near to the expert's as asked, by projections. Whatever the reward is, it is then worth nearly as much.
    - "linear_programming" (Ng and Russell): the reward for which the expert's action is the best in every state, by as
      much as can be, with a penalty on :math:`\|w\|_1`.

    Many rewards explain the same behaviour: multiples, and those that differ by
    :math:`\gamma \mathrm{E} f(s') - f(s)` for any function f of the states. What can be told apart is the policy.

    Parameters
    ----------
    method : {"max_entropy", "apprenticeship", "linear_programming"}, default="max_entropy"
        See above.
    penalty : float, default=1e-3
        Of :math:`\tfrac12 \|w\|^2` by maximum entropy, without which the rewards of an expert who never errs grow
        without bound, or of :math:`\|w\|_1` by linear programming; not used by apprenticeship.
    tol : float, default=1e-6
        Size of the certificate at which it holds.
    max_iter : int, default=1000
        Most iterations.
    random_state : int, Generator, RandomState or None, default=None
        Of actions that are drawn.

    Attributes
    ----------
    weights_ : array (k,)
        Weights of the features.
    reward_ : array (S,)
        Reward of each state.
    policy_ : array (S,)
        Number of the best action under `reward_`.
    probabilities_ : array (S, A)
        The policy that does as the expert did: by maximum entropy the soft one, by apprenticeship the mixture.
    expert_expectations_, expectations_ : arrays (k,)
        Feature expectations of the expert and of `probabilities_`.
    history_ : History
        One row for each iteration.
    certificate_ : Certificate
        By maximum entropy of the convex function; by apprenticeship how far the feature expectations are from the
        expert's, relative to these; by linear programming how much the expert's policy loses under the reward.
    n_iter_ : int
        Number of iterations.

    Examples
    --------
    >>> from epicycle.control import policy_iteration, worlds
    >>> from epicycle.rl import InverseRL
    >>> grid = worlds.russell_norvig_grid()
    >>> expert = policy_iteration(grid).policy
    >>> model = InverseRL(method="linear_programming").fit(grid, expert)
    >>> model.certificate_.holds
    True
    """

    _how_to_learn = "fit(mdp, expert)"
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "method": Choice(*METHODS),
        "penalty": Real(0),
        "tol": Real(0, inclusive=False),
        "max_iter": Integer(minimum=1),
        "random_state": SHARED_PARAMETERS["random_state"],
    }

    weights_: Array
    reward_: Array
    policy_: Array
    probabilities_: Array
    expert_expectations_: Array
    expectations_: Array
    history_: History
    certificate_: Certificate
    n_iter_: int

    method: str
    penalty: float
    tol: float
    max_iter: int

    @stores_arguments
    def __init__(
        self,
        method: str = "max_entropy",
        *,
        penalty: float = 1e-3,
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Seed = None,
    ) -> None: ...

    def fit(self, mdp: MDP, expert: Any, *, features: Any = None, start: Any = None) -> InverseRL:
        """Learn the reward.

        Parameters
        ----------
        mdp : MDP
            The process, with a discount below 1; its rewards are not looked at.
        expert : Episodes, array (S,) or array (S, A)
            What the expert did, the label of the action in each state, or probabilities of the actions.
        features : array (S, k), optional
            Features of the states; by default one for each state.
        start : label of a state, or array (S,) of probabilities, optional
            Where an expert who is given as a policy begins; by default in each state that is not terminal with the same
            probability. Episodes begin where they begin.

        Returns
        -------
        InverseRL
            The object itself.
        """
        check_parameters(self, self._parameters)
        problem = expert_problem(mdp, expert, features, start)
        if hasattr(expert, "truncated"):
            _warn_of_cuts(expert, mdp.discount)
        self.expert_expectations_ = problem.target
        getattr(self, f"_fit_{self.method}")(problem)
        self.expectations_ = problem.expectations(self._by_pair(problem))
        if not self.certificate_.holds:
            warnings.warn(
                f"InverseRL.fit: {self.certificate_}; raise max_iter, or the penalty of an expert who never errs",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _fit_max_entropy(self, problem: ExpertProblem) -> None:
        objective, monitor = MaximumEntropy(problem, float(self.penalty)), Monitor()
        start = np.zeros(objective.size)
        found = optim.solve("lbfgs", objective, start, tol=self.tol, max_iter=self.max_iter, monitor=monitor)
        self.certificate_, self.n_iter_ = found.certificate, found.n_iter
        self._explain(problem, found.x, objective.soft(found.x)[1], monitor)

    def _fit_apprenticeship(self, problem: ExpertProblem) -> None:
        found = project(problem, self.tol, self.max_iter)
        meaning = (
            f"for every reward w'phi with |w| = 1 the policy is worth at most {found.distance:.1e} |mu| less than the "
            "expert, mu the expert's feature expectations"
        )
        self.certificate_ = Certificate("distance of feature expectations", found.distance, self.tol, meaning)
        owner = problem.mdp._pair_state()
        total = np.bincount(owner, found.occupancy, minlength=problem.mdp.n_states)[owner]
        even = 1.0 / np.diff(problem.mdp.pair_start_)[owner]  # where the mixture never comes
        policy = np.where(total > 0, found.occupancy / np.where(total > 0, total, 1.0), even)
        self.n_iter_ = found.monitor.history().n_iter
        self._explain(problem, found.weights, policy, found.monitor)

    def _fit_linear_programming(self, problem: ExpertProblem) -> None:
        weights, monitor = solve_program(problem, float(self.penalty)), Monitor()
        self._explain(problem, weights, problem.policy, monitor)
        process = problem.rewarded(self.reward_)
        best = policy_iteration(process).values
        own = policy_evaluation(process, process.actions[self.probabilities_.argmax(axis=1)])
        scale = float(np.abs(best).max())
        loss = float((best - own).max()) / scale if scale > 0 else np.inf
        meaning = (
            f"under the reward the expert's policy is within {max(loss, 0):.1e} of the best one, relative"
            if scale > 0
            else "the reward is zero: the penalty is too large"
        )
        monitor(1, weights, objective=max(loss, 0.0))
        self.history_, self.n_iter_ = monitor.history(), 1
        self.certificate_ = Certificate("loss of the expert's policy", max(loss, 0.0), self.tol, meaning)

    def _explain(self, problem: ExpertProblem, weights: Array, policy: Array, monitor: Monitor) -> None:
        mdp = problem.mdp
        self.weights_, self.reward_ = weights, problem.features @ weights
        self.probabilities_ = np.zeros((mdp.n_states, mdp.n_actions))
        self.probabilities_[mdp._pair_state(), mdp.pair_action_] = policy
        self.probabilities_[mdp.is_terminal, 0] = 1.0
        # Of actions that are equally good that of the expert is kept.
        own = mdp.actions[self.probabilities_.argmax(axis=1)]
        choice = policy_iteration(problem.rewarded(self.reward_), initial_policy=own).choice
        self.policy_ = np.where(choice >= 0, mdp.pair_action_[choice], 0)
        self.history_ = monitor.history()

    def _by_pair(self, problem: ExpertProblem) -> Array:
        mdp = problem.mdp
        return np.asarray(self.probabilities_[mdp._pair_state(), mdp.pair_action_])

    # ------------------------------------------------------------------------------------------------ afterwards

    def act(self, observation: Any, deterministic: bool = True) -> int:
        """Action in a state.

        Parameters
        ----------
        observation : int
            Number of the state.
        deterministic : bool, default=True
            Whether to take the best action under the reward; otherwise one is drawn as the expert would.

        Returns
        -------
        int
        """
        self._require_learnt()
        state = state_number(observation, len(self.policy_))
        return int(self.policy_[state]) if deterministic else self._drawn(self._probabilities(state))

    def _probabilities(self, state: int) -> Array:
        return np.asarray(self.probabilities_[state])

    def process(self, mdp: MDP) -> MDP:
        """The process with the rewards that were learnt, for planners.

        Parameters
        ----------
        mdp : MDP
            The process, or one with the same states: what is learnt holds when the dynamics have changed.

        Returns
        -------
        MDP
        """
        self._require_learnt()
        if not isinstance(mdp, MDP) or mdp.n_states != len(self.reward_):
            raise DataError(f"mdp={mdp!r:.60}: expected an MDP of {len(self.reward_)} states")
        nothing = np.zeros(0)
        return ExpertProblem(mdp, nothing, nothing, nothing, nothing).rewarded(self.reward_)

    def __epi_state__(self) -> dict[str, Any]:
        self._require_learnt()
        seed = None if isinstance(self.random_state, np.random.Generator | np.random.RandomState) else self.random_state
        arguments = {**attributes_of(self, self._arguments), "random_state": seed}
        return {"parameters": arguments, "fitted": attributes_of(self, _FITTED)}

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["parameters"])  # type: ignore[misc]  # an object that was only allocated
        for name in _FITTED:
            setattr(self, name, state["fitted"][name])

    def __repr__(self) -> str:
        return f"InverseRL(method={self.method!r}, penalty={self.penalty:g})"


def _warn_of_cuts(steps: Any, discount: float) -> None:
    """Warn of cut episodes: what follows a cut is missing from the feature expectations."""
    length = steps.lengths[steps.truncated[steps.starts[1:] - 1]]
    missing = float((discount**length).sum()) / steps.n_episodes if len(length) else 0.0
    if missing > _TAIL:
        warnings.warn(
            f"InverseRL.fit: {len(length)} of {steps.n_episodes} episodes were cut off; what follows is missing from "
            f"the expert's features, {100 * missing:.2g}% of their weight; longer episodes would tell",
            ConvergenceWarning,
            stacklevel=3,
        )
