r"""`DAgger` (Ross, Gordon and Bagnell): the expert is asked in the states to which the policy itself leads.

Round i acts by  beta_i expert + (1 - beta_i) policy_i,  asks the expert in every state that was visited, and fits
policy_i+1 to all states so far. The sequence is one of "follow the leader", without regret: the policy errs rarely in
its own states, not only in the expert's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterTypeError
from epicycle.core._parameters import SHARED_PARAMETERS, Callable as CallableDomain, Domain, Integer, NoneOr, Real
from epicycle.core._random import Seed, stream
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._agent import COLUMNS, Agent
from epicycle.rl._evaluation import NO_PROOF
from epicycle.rl._interaction import Interaction
from epicycle.rl.imitation._action_model import ActionModel, fitted_model, rows_of, takes_numbers
from epicycle.rl.imitation._behavior_cloning import Imitator, disagreement

Array = np.ndarray


@in_catalogue("rl", "G12", certificate="none")
class DAgger(Imitator, Agent):
    r"""Policy of an expert who can be asked, in the states to which the policy itself leads.

    A round of episodes, of `batch_size` steps at least, is made by a mixture: in each episode the expert acts with
    probability :math:`\beta_i =` ``expert_share`` to the power of i, otherwise the policy that was fitted to all rounds
    before. In every state that is visited the expert is asked what to do there, and the policy is fitted anew to all
    that was said. What is lost over T steps is then at most about :math:`\varepsilon T`, where
    :class:`BehaviorCloning` may lose :math:`\varepsilon T^2`. The first round is made by the expert alone, so that
    cloning is the first policy.

    Parameters
    ----------
    expert : callable or agent
        Action in a state: a function of the state, or something with ``act``. A file does not keep it: give it to the
        agent that was loaded by ``agent.expert = ...``.
    batch_size : int, default=200
        Steps after which a round ends with its running episode.
    expert_share : float, default=0.5
        Probability of an episode by the expert in round 1; its powers in the rounds that follow.
    episode_limit : int, optional
        Steps after which an episode is cut off; by default the environment says when. Needed where episodes do not end.

    Attributes
    ----------
    estimators_ : list of estimators
        The fitted estimator, or one for each column of continuous actions.
    n_rounds_ : int
        Rounds that were made.
    history_ : History
        One row for an episode; beside the columns of all agents ``disagreement``, the share of its states in which the
        policy that was known then did not do as the expert, and ``exploration``, the expert's share.

    See Also
    --------
    BehaviorCloning : Learns from what was recorded.

    Examples
    --------
    >>> from epicycle import LogisticRegression
    >>> from epicycle.control import MDPEnvironment, policy_iteration, worlds
    >>> from epicycle.rl import DAgger
    >>> grid = worlds.russell_norvig_grid()
    >>> best = policy_iteration(grid).q_values().argmax(axis=1)
    >>> agent = DAgger(lambda s: best[s], LogisticRegression(C=100.0), random_state=0).learn(grid, 1000)
    >>> agent.evaluate(MDPEnvironment(grid), 100, seed=1).mean > 0.7
    True
    """

    _columns = (*COLUMNS, "disagreement")
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "features": NoneOr(CallableDomain()),
        "batch_size": Integer(minimum=1),
        "expert_share": Real(0, 1),
        "episode_limit": NoneOr(Integer(minimum=1)),
        "random_state": SHARED_PARAMETERS["random_state"],
    }

    expert: Any
    estimator: Any
    batch_size: int
    expert_share: float
    episode_limit: int | None

    @stores_arguments
    def __init__(
        self,
        expert: Any,
        estimator: Any = None,
        *,
        features: Callable[[Any], Any] | None = None,
        batch_size: int = 200,
        expert_share: float = 0.5,
        episode_limit: int | None = None,
        random_state: Seed = None,
    ) -> None: ...

    # ------------------------------------------------------------------------------------------------ learning

    def _enter(self, world: Interaction) -> Interaction:
        if not (callable(self.expert) or callable(getattr(self.expert, "act", None))):
            raise ParameterTypeError(f"expert={self.expert!r:.60}: expected a function of a state, or an agent")
        if not hasattr(self, "_asked"):
            self._asked: dict[str, Array] = {}
            self._rounds = 0
        self._heard: list[tuple[Any, Array]] = []
        self._width, self._numbered = world.n_states or 0, world.n_actions is not None
        return world

    def _ask(self, observation: Any) -> Any:
        answer = self.expert.act(observation) if hasattr(self.expert, "act") else self.expert(observation)
        action = np.asarray(answer)
        if self._numbered:
            if action.ndim or action.dtype.kind not in "iub":
                raise DataError(f"expert: returned {answer!r:.60}; expected the number of an action")
            return action.astype(np.int64)
        if action.ndim > 1 or action.dtype.kind not in "iuf" or not np.isfinite(action).all():
            raise DataError(f"expert: returned {answer!r:.60}; expected a control")
        return action

    def _advance(self, world: Interaction, most: int) -> int:
        """A round; what is cut off by the last step of a call is learnt from all the same."""
        seed, limit = self._progress["seed"], self.episode_limit
        share = float(self.expert_share) ** self._rounds if self._rounds else 1.0
        self._heard = []
        while len(self._heard) < min(self.batch_size, most):
            by_expert = stream(seed, "expert", world.episode).random() < share
            observation, over = world.reset(), False
            self._progress["episode"] = world.episode
            total, begin = 0.0, len(self._heard)
            while not over and len(self._heard) < most:
                answer = self._ask(observation)
                action = answer if by_expert else self._predicted(observation)
                after, reward, terminated, truncated = world.step(action if action.ndim else action[()])
                self._heard.append((observation, answer))
                long = limit is not None and len(self._heard) - begin >= limit
                observation, over, total = after, terminated or truncated or long, total + reward
            if over:
                made, length = self._progress["made"] + len(self._heard), len(self._heard) - begin
                apart = self._apart(self._heard[begin:])
                self._log.extend(np.array([[made, total, length, total, np.nan, share, apart]]))
        return self._learn_from_round()

    def _apart(self, heard: list[tuple[Any, Array]]) -> float:
        if not hasattr(self, "_model"):
            return np.nan
        states, answers = zip(*heard, strict=True)
        return disagreement(self._model, rows_of(self.features, states, self._width), np.array(answers))

    def _learn_from_round(self) -> int:
        """Fit the policy to all answers so far; the number of new ones."""
        states, answers = (np.array(column) for column in zip(*self._heard, strict=True))
        takes_numbers(self.estimator, answers)
        if self._asked:
            before = self._asked["actions"]
            if answers.shape[1:] != before.shape[1:]:
                raise DataError(f"expert: returned actions of shape {answers.shape[1:]}; expected {before.shape[1:]}")
            states, answers = np.concatenate([self._asked["states"], states]), np.concatenate([before, answers])
        self._asked = {"states": states, "actions": answers}
        seed = int(stream(self._progress["seed"], "estimator", self._rounds).integers(2**31))
        X = rows_of(self.features, states, self._width)
        self._model = fitted_model(self.estimator, X, answers, None, self._width, seed)
        self._rounds += 1
        made, self._heard = len(self._heard), []
        return made

    def _break_off(self) -> None:
        """Learn from what was heard in the round that is going on."""
        if self._heard:
            self._progress["made"] += self._learn_from_round()

    def _conclude(self, world: Interaction) -> None:
        if not self._asked:
            return
        n = len(self._asked["actions"])
        X = rows_of(self.features, self._asked["states"], self._width)
        error = disagreement(self._model, X, self._asked["actions"])
        meaning = (
            f"{NO_PROOF}; in the {n:,} states in which the expert was asked the error of the policy is {error:.3g}"
        )
        self.certificate_ = Certificate("none", np.nan, 0.0, meaning)

    @property
    def n_rounds_(self) -> int:
        """Rounds that were made."""
        self._require_learnt()
        return self._rounds

    # ------------------------------------------------------------------------------------------------ files

    def _saved_argument(self, name: str) -> Any:
        return None if name in ("features", "expert") else super()._saved_argument(name)

    def _learnt(self) -> dict[str, Any]:
        model = self._model.state() if hasattr(self, "_model") else None
        return {"asked": self._asked, "rounds": self._rounds, "model": model, "width": self._width}

    def _restore_learnt(self, state: dict[str, Any]) -> None:
        self._asked = {name: np.asarray(table) for name, table in state["asked"].items()}
        self._rounds, self._width = int(state["rounds"]), int(state["width"])
        if state["model"] is not None:
            self._model = ActionModel(**state["model"])
