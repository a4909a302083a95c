"""`ModelBasedAgent`: estimate the process from experience, plan in the estimate, act, repeat."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from epicycle.control.agents import _confidence as confidence
from epicycle.control.agents._environment import as_environment, reference_process
from epicycle.control.agents._experience import Experience
from epicycle.control.mdp._mdp import MDP
from epicycle.control.mdp._planning_solution import PlanningSolution
from epicycle.control.mdp._policy_evaluation import exact_values
from epicycle.control.mdp._policy_iteration import modified_policy_iteration, policy_iteration
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, NotFittedError, ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import SHARED_PARAMETERS, Choice, Integer, Real, check_parameter
from epicycle.core._plot_style import Axes, axes_of, styled
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._saved import Saved
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
_DELTA = 0.05  # probability with which the certificate may be wrong
_TOLERANCE = 0.1  # loss of the policy, relative to the largest possible value, at which it holds
_PAIRS_A_STEP = 200  # of a process that ask for one step more with each plan
_PLAN_TOL = 1e-6
_BOUNDED = 4_000_000  # entries of the table of frequencies up to which the bounds are computed
_DOMAINS = {
    "exploration": Choice("optimistic", "posterior", "greedy"),
    "discount": Real(0, 1, inclusive=(True, False)),
    "bonus": Real(0),
    "prior": Real(0, inclusive=False),
    "random_state": SHARED_PARAMETERS["random_state"],
}


@dataclass
class _Epoch:
    """Steps with one policy: actions of the states, and what the policy loses in each where the process is known."""

    action: Array
    loss: Array | None
    visits: Array  # of the pairs when it began
    began: int
    doubled: bool = False  # whether a pair has since got as many visits again


@in_catalogue("control", "G2", certificate="loss of the policy, with confidence")
class ModelBasedAgent(Saved):
    r"""Learner that counts what its actions lead to, plans in the process that the counts give, and acts by the plan.

    With :math:`n(s, a)` visits the estimates are :math:`\hat P_{sa}(s') = n(s, a, s') / n(s, a)` and the mean reward
    :math:`\hat R(s, a)`. A plan for the estimates alone never tries what looked bad once, therefore

    - *optimistic*: rewards are raised by :math:`\beta / \sqrt{n(s, a)}`, and pairs that were never tried are worth
      more than all others (Strehl and Littman);
    - *posterior*: the plan is made for a process drawn from the posterior, successors with a Dirichlet prior (Thompson
      sampling);
    - *greedy*: the estimates as they are, with untried pairs at the lowest reward.

    A new plan is made when the visits of some pair have doubled; with posterior draws also when a plan was used for one
    step longer than the last, so that a few thousand plans suffice for a million steps. In large processes a plan is
    used for at least S A / 200 steps.

    Parameters
    ----------
    exploration : {"optimistic", "posterior", "greedy"}, default="optimistic"
        How the plan makes up for what is not known.
    discount : float, default=0.95
        Discount, below 1.
    bonus : float, default=0.3
        :math:`\beta` in units of the range of rewards. Proofs ask for values above :math:`1 / (1 - \gamma)`; smaller
        ones learn faster and may miss what is rare.
    prior : float, default=1
        Sum of the weights of the Dirichlet prior, spread evenly over the states.
    reward_range : pair of float, optional
        Least and greatest reward. By default 0 and 1, widened by what is seen.
    random_state : int, Generator, RandomState or None, default=None
        Draws of the posterior, and the seed of the environment.

    Attributes
    ----------
    policy_ : array (S,)
        Number of the action in each state: the best for the estimates, without exploration.
    solution_ : PlanningSolution
        Plan for the estimates; its last state is the end of an episode.
    counts_ : array (S, A, S + 1)
        How often s' followed s and a; the last column counts ends.
    rewards_ : array (steps,)
        Reward of each step of the last call of `learn`.
    regret_ : array (steps,) or None
        :math:`\sum_{u \le t} V^*(s_u) - V^{\pi_u}(s_u)`, what the plans lost up to each step of the last call,
        where the process behind the environment is known.
    history_ : History
        One row for each plan: first step, mean reward of its steps, share of pairs that were tried, seconds.
    certificate_ : Certificate
        With probability 0.95, the loss of `policy_` against the best one, from the starts that were seen, is at most
        so large: the best process that agrees with the counts against the worst one. Relative to the largest possible
        value.

    Examples
    --------
    A swimmer gets little for drifting, and much for swimming up the river, which takes many strokes to find out:

    >>> from epicycle.control import MDPEnvironment, ModelBasedAgent, worlds
    >>> river = MDPEnvironment(worlds.river_swim(), start=0)
    >>> agent = ModelBasedAgent(random_state=0).learn(river, 5000)
    >>> agent.policy_.tolist()
    [1, 1, 1, 1, 1, 1]
    >>> greedy = ModelBasedAgent(exploration="greedy", random_state=0).learn(river, 5000)
    >>> int(greedy.policy_[0])
    0
    """

    _arguments = ("exploration", "discount", "bonus", "prior", "reward_range", "random_state")
    policy_: Array
    solution_: PlanningSolution
    rewards_: Array
    regret_: Array | None
    history_: History
    certificate_: Certificate

    def __init__(
        self,
        *,
        exploration: str = "optimistic",
        discount: float = 0.95,
        bonus: float = 0.3,
        prior: float = 1.0,
        reward_range: tuple[float, float] | None = None,
        random_state: Seed = None,
    ) -> None:
        given = {"exploration": exploration, "discount": discount, "bonus": bonus, "prior": prior}
        for name, value in {**given, "random_state": random_state}.items():
            check_parameter("ModelBasedAgent", name, value, _DOMAINS[name])
        self.exploration, self.discount, self.bonus, self.prior = exploration, float(discount), float(bonus), prior
        self.reward_range, self.random_state = _checked_range(reward_range), random_state
        self._experience: Experience | None = None
        self._values: Array | None = None  # of the last plan, from which the next begins

    def _prepare(self, n_states: int, n_actions: int) -> Experience:
        if self._experience is None:
            self._experience = Experience(n_states, n_actions)
        known = self._experience
        if (known.n_states, known.n_actions) != (n_states, n_actions):
            raise DataError(
                f"env: got {n_states} states and {n_actions} actions; expected {known.n_states} and {known.n_actions}, "
                "as in the first call of learn"
            )
        return known

    # ------------------------------------------------------------------------------------------------ learning

    def learn(self, env: Any, steps: int, *, seed: int | None = None, reference: MDP | None = None) -> ModelBasedAgent:
        """Act in an environment and learn from it; a second call goes on with what is known.

        Parameters
        ----------
        env : MDP, MDPEnvironment or gymnasium.Env
            Environment with discrete states and actions. Actions that are not available are those that its
            ``info["action_mask"]`` leaves out.
        steps : int
            Number of steps.
        seed : int, optional
            Seed of this call; by default from `random_state`.
        reference : MDP, optional
            The true process with states and actions in the order of the environment, for the regret. By default that
            of an `MDPEnvironment`, or the table of a Gymnasium environment.

        Returns
        -------
        ModelBasedAgent
            The agent itself.
        """
        check_parameter("ModelBasedAgent.learn", "steps", steps, Integer(minimum=1))
        world = as_environment(env)
        known = self._prepare(int(world.observation_space.n), int(world.action_space.n))
        seed = seed_of(self.random_state) if seed is None else seed_of(seed)
        truth = reference if reference is not None else reference_process(world, self.discount)
        best = None if truth is None else policy_iteration(truth).values
        if best is not None and len(best) != known.n_states:
            raise DataError(f"reference: got {len(best)} states; expected those of the environment, {known.n_states}")
        self._walk(world, known, steps, seed, truth, best)
        self._conclude(known)
        self.certificate_ = self._certify(known)
        return self

    def _walk(
        self, world: Any, known: Experience, steps: int, seed: int, truth: MDP | None, best: Array | None
    ) -> None:
        first_state, first_action = (int(getattr(s, "start", 0)) for s in (world.observation_space, world.action_space))
        rewards, losses = np.zeros(steps), np.zeros(steps)
        rows: list[tuple[int, float, float]] = []
        clock = perf_counter()
        state, epoch, longest = known.enter(world.reset(seed=seed % 2**31), first_state), None, 0
        for t in range(steps):
            if epoch is None or self._over(epoch, known, t, longest):
                longest = 0 if epoch is None else t - epoch.began
                epoch = self._plan(known, stream(seed, "plan", len(rows)), t, truth, best)
                rows.append((t, float((known.visits > 0)[known.allowed].mean()), perf_counter() - clock))
            action = int(epoch.action[state])
            if not known.allowed[state, action]:  # its mask was not known when the plan was made
                action = int(np.argmax(known.allowed[state]))
            observation, reward, terminated, truncated, info = world.step(action + first_action)
            rewards[t] = reward = float(reward)
            if not np.isfinite(reward):
                raise DataError(f"env: the reward of action {action} in state {state} is {reward}; expected a number")
            losses[t] = 0.0 if epoch.loss is None else epoch.loss[state]
            after = known.n_states if terminated else int(observation) - first_state
            epoch.doubled |= known.add(state, action, reward, after, epoch.visits)
            state = known.enter(world.reset(), first_state) if terminated or truncated else known.see(after, info)
        self.rewards_, self.regret_ = rewards, None if best is None else np.cumsum(losses)
        firsts = [row[0] for row in rows]
        means = [float(part.mean()) for part in np.split(rewards, firsts[1:])]
        seen, seconds = [row[1] for row in rows], [row[2] for row in rows]
        self.history_ = History(step=firsts, mean_reward=means, tried=seen, seconds=seconds)

    def _over(self, epoch: _Epoch, known: Experience, t: int, longest: int) -> bool:
        """Whether it is time for a new plan."""
        age = t - epoch.began
        if age * _PAIRS_A_STEP < known.visits.size:
            return False
        return epoch.doubled or (self.exploration == "posterior" and age > longest)

    def _plan(
        self, known: Experience, rng: np.random.Generator, t: int, truth: MDP | None, best: Array | None
    ) -> _Epoch:
        low, high = self._range(known)
        if self.exploration == "optimistic":
            process = known.optimistic(self.bonus * (high - low), high, self.discount)
        elif self.exploration == "posterior":
            process = known.draw(self.prior, (low, high), self.discount, rng)
        else:
            process = known.mean(low, self.discount)
        solution = modified_policy_iteration(process, tol=_PLAN_TOL, initial_values=self._values)
        self._values = solution.values
        action = solution.policy[: known.n_states]
        loss = None
        if truth is not None and best is not None:
            loss = best - exact_values(truth, _pairs(truth, action))
        return _Epoch(action, loss, known.visits.copy(), t)

    def _range(self, known: Experience) -> tuple[float, float]:
        if self.reward_range is not None:
            return self.reward_range
        return min(0.0, known.lowest), max(1.0, known.highest)

    def _certify(self, known: Experience) -> Certificate:
        low, high = self._range(known)
        state, action = known.pairs()
        kind, size = "loss of the policy, with confidence", len(state) * (known.n_states + 1)
        if size > _BOUNDED:
            words = f"no bound was computed: {size:,} frequencies are beyond {_BOUNDED:,}"
            return Certificate(kind, np.inf, _TOLERANCE, words)
        visits, P, rewards = known.frequencies()
        P[visits == 0, -1] = 1.0  # any probabilities: their radius is that of all
        around = confidence.radii(visits, known.n_states + 1, high - low, known.steps, len(state), _DELTA)
        chosen = np.flatnonzero(action == self.policy_[state])
        upper, lower = confidence.value_bounds(
            P, rewards, *around, (low, high), state, chosen, known.n_states, self.discount
        )
        start = known.starts / known.starts.sum()
        loss = float(start @ (upper - lower)) * (1 - self.discount) / (high - low)
        meaning = (
            f"with probability {1 - _DELTA:g}, if rewards lie between {low:g} and {high:g}, no policy is better than "
            f"this one by more than {loss:.1e} of the range of values from the starts that were seen"
        )
        return Certificate(kind, loss, _TOLERANCE, meaning)

    # ------------------------------------------------------------------------------------------------ afterwards

    def act(self, state: int) -> int:
        """Action of `policy_` in a state.

        Parameters
        ----------
        state : int
            Number of the state.
        """
        self._require_learnt()
        if not 0 <= state < len(self.policy_):
            raise DataError(f"state={state!r}; expected a number from 0 to {len(self.policy_) - 1}")
        return int(self.policy_[state])

    @property
    def counts_(self) -> Array:
        """Number of times that s' followed s and a; the last column counts ends."""
        if self._experience is None:
            raise AttributeError("counts_: the agent has not learnt yet; call learn")
        return self._experience.counts

    @styled
    def plot(self, *, ax: Axes | None = None, **line: Any) -> Axes:
        """Draw the regret against the steps; the sum of rewards where the process is not known.

        Parameters
        ----------
        **line
            Passed on to matplotlib.
        """
        self._require_learnt()
        ax = axes_of(ax)
        curve = np.cumsum(self.rewards_) if self.regret_ is None else self.regret_
        line.setdefault("label", self.exploration)
        ax.plot(np.arange(1, len(curve) + 1), curve, **line)
        ax.set_xlabel("step")
        ax.set_ylabel("sum of rewards" if self.regret_ is None else "regret")
        return ax

    def __epi_state__(self) -> dict[str, Any]:
        self._require_learnt()
        names = ("rewards_", "regret_", "history_", "certificate_")
        return {
            "parameters": {name: getattr(self, name) for name in self._arguments},
            "experience": self._known().state(),
            **{name: getattr(self, name) for name in names},
        }

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["parameters"])  # type: ignore[misc]  # an object that was only allocated
        self._experience = Experience.restored(state["experience"])
        for name in ("rewards_", "regret_", "history_", "certificate_"):
            setattr(self, name, state[name])
        self._conclude(self._experience)

    def __repr__(self) -> str:
        steps = "" if self._experience is None else f", {self._experience.steps:,} steps"
        return f"ModelBasedAgent({self.exploration}, discount={self.discount:g}{steps})"

    def _known(self) -> Experience:
        self._require_learnt()
        assert self._experience is not None
        return self._experience

    def _conclude(self, known: Experience) -> None:
        """The plan for the estimates."""
        self.solution_ = policy_iteration(known.mean(self._range(known)[0], self.discount))
        self.policy_ = self.solution_.policy[: known.n_states]

    def _require_learnt(self) -> None:
        if not hasattr(self, "certificate_"):
            raise NotFittedError("ModelBasedAgent has not learnt yet; call learn(env, steps)")


def _pairs(truth: MDP, action: Array) -> Array:
    """Pairs of the true process for actions; where one is not available, the first that is, as the agent acts."""
    table = np.full((truth.n_states, truth.n_actions), -1, dtype=np.int64)
    table[truth._pair_state(), truth.pair_action_] = np.arange(truth.n_pairs)
    chosen = table[np.arange(truth.n_states), action]
    return np.where(truth.is_terminal, -1, np.where(chosen < 0, truth.pair_start_[:-1], chosen))


def _checked_range(given: Any) -> tuple[float, float] | None:
    if given is None:
        return None
    try:
        low, high = (float(x) for x in given)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ParameterError(f"reward_range={given!r:.80}; expected two numbers, the smaller one first")
    return low, high
