"""
Policies without a model
========================

A policy can be improved by trial alone. The policy gradient of an episode weights the scores of its actions by what
followed,

.. math:: \\nabla J(\\theta) = E \\sum_t \\gamma^t \\, \\nabla \\log \\pi_\\theta(a_t \\mid x_t) \\, (G_t - b_t) .

Reinforce takes returns :math:`G_t` less their mean, an actor-critic what a second network expects. An evolution
strategy asks no gradient of the policy: it tries neighbours of :math:`\\theta` and moves to where they earn more.
SARSA learns values of actions instead. On a grid with known probabilities value iteration gives the best policy, with
a bound, and the value of each learnt policy is computed exactly.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import MDPEnvironment, policy_evaluation, value_iteration, worlds
from epicycle.rl import ActorCritic, EvolutionStrategy, LinearSARSA, Reinforce, TileCoding

# %%
# A robot on a grid slips to the side one time in five. Two cells end the walk, with +1 and -1, and each step costs
# 0.04. Observations are numbers of states; the tiles of LinearSARSA are made for coordinates, so that it is given the
# number as one, a tile for each.
grid = worlds.russell_norvig_grid(discount=0.95, step_reward=-0.04)
world = MDPEnvironment(grid, max_steps=50)
plan = value_iteration(grid)
inner = ~grid.is_terminal
best = plan.values[inner].mean()
tiles = TileCoding([0], [grid.n_states - 1], n_tiles=grid.n_states - 1, n_tilings=1)


class OneNumber:
    """The number of the state as an observation of one number, for which tiles are made."""

    def __init__(self, env):
        self.env, self.action_space = env, env.action_space

    def reset(self, *, seed=None):
        state, info = self.env.reset(seed=seed)
        return np.array([float(state)]), info

    def step(self, action):
        state, *rest = self.env.step(action)
        return np.array([float(state)]), *rest


# %%
# Values below are means over the states, where episodes begin, of the policy without random actions. All agents come
# close to the best policy, far from what random policies are worth, the baseline. The evolution strategy, which learns
# from whole episodes alone, is given several times as many steps.
agents = {
    "LinearSARSA": LinearSARSA(tiles, learning_rate=0.1, epsilon=0.1, discount=0.95, random_state=0),
    "Reinforce": Reinforce(learning_rate=0.1, discount=0.95, random_state=0),
    "ActorCritic": ActorCritic((32,), n_envs=8, learning_rate=5e-3, entropy_weight=0.01, discount=0.95, random_state=0),
    "EvolutionStrategy": EvolutionStrategy(pairs=8, spread=1.0, learning_rate=0.3, discount=0.95, random_state=0),
}
steps = {"LinearSARSA": 15_000, "Reinforce": 15_000, "ActorCritic": 15_000, "EvolutionStrategy": 50_000}
everything = np.arange(grid.n_states)
found = {}
for name, agent in agents.items():
    as_number = name == "LinearSARSA"
    agent.learn(OneNumber(world) if as_number else world, steps[name])
    actions = [agent.act(np.array([float(s)]) if as_number else s) for s in everything]
    values = policy_evaluation(grid, grid.actions[actions])
    found[name] = values[inner].mean()
    print(f"{name:18} mean value {found[name]:.3f}")
rng = np.random.default_rng(0)
chance = [policy_evaluation(grid, rng.choice(grid.actions, grid.n_states))[inner].mean() for _ in range(50)]
print(f"{'random policies':18} mean value {np.mean(chance):.3f}")
print(f"{'value iteration':18} mean value {best:.3f}")

# %%
# Returns while learning, over the last hundred episodes, and the best policy with its values.
fig, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.6), layout="constrained")
for name, agent in agents.items():
    agent.plot(smooth=100, ax=left)
    left.lines[-1].set_label(name)
left.legend()
plan.plot_grid(ax=right)
plt.show()
