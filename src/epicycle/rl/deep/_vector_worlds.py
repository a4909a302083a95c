"""Vector environments of Gymnasium, which begin the next episode themselves, in one of three ways."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, EpicycleError
from epicycle.core._random import stream
from epicycle.rl.deep._spaces import Spaces, spaces_of
from epicycle.rl.deep._worlds import Step, Worlds

Array = np.ndarray


def sub_environments(env: Any) -> list[Any] | None:
    """The environments inside, where they can be stepped one by one."""
    from gymnasium.vector import SyncVectorEnv

    return list(env.envs) if type(env) is SyncVectorEnv else None


class VectorWorlds(Worlds):
    """A ``gymnasium.vector.VectorEnv``.

    Its episodes have no seeds of their own, only the first ones: learning that goes on in a new process begins new
    episodes. Where the next episode begins with the step after the last one (Gymnasium's default), that step counts
    for nothing.
    """

    def __init__(self, env: Any, seed: int, episode: int) -> None:
        super().__init__([], seed, episode)
        self.env, self.n = env, int(env.num_envs)
        mode = getattr(env.metadata.get("autoreset_mode", None), "value", None) if env.metadata else None
        self.mode = {"NextStep": "next", "SameStep": "same", "Disabled": "never"}.get(str(mode), "next")
        space = env.single_observation_space
        self._n_states = int(space.n) if hasattr(space, "n") else None
        actions = env.single_action_space
        self._n_actions = int(actions.n) if hasattr(actions, "n") else None
        self._offset = int(getattr(actions, "start", 0)), int(getattr(space, "start", 0))

    def spaces(self) -> Spaces:
        """Spaces of observations and actions."""
        shape = self.env.single_observation_space.shape
        return spaces_of(self.env, np.zeros(shape), self._n_states, self._n_actions)

    def _reset(self, **given: Any) -> Array:
        got = self._call("reset", lambda: self.env.reset(**given))
        if not isinstance(got, tuple) or len(got) != 2:
            raise DataError(f"env: reset returned {got!r:.80}; expected observations and a dict of information")
        return self._rows("reset", got[0])

    def _rows(self, what: str, observations: Any) -> Array:
        x = np.asarray(observations)
        given = () if self._n_states is not None else self._spaces.given
        if x.shape != (self.n, *given):
            raise DataError(f"env: {what} returned observations of shape {x.shape}; expected {(self.n, *given)}")
        if x.dtype.kind not in "fiub" or not np.isfinite(x).all():
            raise DataError(f"env: {what} returned observations of {x.dtype} that are not finite numbers")
        return np.stack([self._spaces.encode(row - self._offset[1] if not given else row) for row in x])

    def _call(self, what: str, call: Any) -> Any:
        try:
            return call()
        except EpicycleError:
            raise
        except Exception as error:
            raise DataError(f"env: {what} raised {type(error).__name__}: {error} (after {self.made} steps)") from error

    def start(
        self,
        spaces: Spaces,
        *,
        made: int,
        discount: float,
        episode_limit: int | None,
        value_of: Any,
        running: dict[str, Any] | None = None,
    ) -> bool:
        """Begin an episode in each environment."""
        if episode_limit is not None:
            raise DataError(
                "episode_limit: a vector environment ends its episodes itself; expected None (give the limit to "
                "gymnasium.make_vec as max_episode_steps)"
            )
        self._spaces, self.made, self.discount, self._value_of = spaces, made, discount, value_of
        self.totals, self.discounted, self.factors = np.zeros(self.n), np.zeros(self.n), np.ones(self.n)
        self.lengths, self._waiting = np.zeros(self.n, dtype=np.int64), np.zeros(self.n, dtype=bool)
        seed = int(stream(self.seed, "environment", self.episode).integers(2**31))
        self.observations = self._reset(seed=seed)
        self.episode += self.n
        self.first_values = np.array(value_of(self.observations), dtype=np.float64)
        return running is None

    def step(self, actions: Array) -> Step:
        """Act in each of them."""
        given = actions + self._offset[0] if self._n_actions is not None else actions
        space = self.env.single_action_space
        got = self._call("step", lambda: self.env.step(np.asarray(given, dtype=space.dtype)))
        if not isinstance(got, tuple) or len(got) != 5:
            raise DataError(f"env: step returned {got!r:.80}; expected five things")
        rewards = np.asarray(got[1], dtype=np.float64)
        if not np.isfinite(rewards).all():
            raise DataError(f"env: the rewards after {self.made} steps are {rewards.tolist()!r:.80}; expected numbers")
        terminated, over = (
            np.asarray(got[2], dtype=bool),
            np.asarray(got[2], dtype=bool) | np.asarray(got[3], dtype=bool),
        )
        counts, after = ~self._waiting, self._rows("step", got[0])
        self.observations = after
        self.made += self.n
        self.totals += np.where(counts, rewards, 0.0)
        self.discounted += np.where(counts, self.factors * rewards, 0.0)
        self.factors *= np.where(counts, self.discount, 1.0)
        self.lengths += counts
        terminated, over = terminated & counts, over & counts
        began = self._waiting if self.mode == "next" else over
        for i in np.flatnonzero(over):
            self._finish(int(i))
            self.episode += 1
        if over.any() and self.mode != "next":
            after = after.copy()
            if self.mode == "same":
                last = got[4].get("final_obs", got[4].get("final_observation"))
                for i in np.flatnonzero(over):
                    after[i] = self._spaces.encode(last[i])
            else:
                self.observations = self._reset(options={"reset_mask": over})
        if over.any():
            self.totals[over], self.discounted[over], self.factors[over], self.lengths[over] = 0.0, 0.0, 1.0, 0
        if began.any():
            self.first_values[began] = self._value_of(self.observations[began])
        all_count = bool(counts.all())
        self._waiting = over if self.mode == "next" else self._waiting
        return Step(np.where(counts, rewards, 0.0), terminated, over, after, None if all_count else counts)

    @property
    def exact(self) -> bool:
        """The running episodes cannot be played again."""
        return False

    def state(self) -> dict[str, Any]:
        """Nothing that a file could keep."""
        return {"numbers": np.zeros(0)}
