"""
A regulator without its equations
=================================

A linear system with quadratic costs is one of the few continuous problems whose best policy is known: with

.. math:: x_{t+1} = a x_t + b u_t + w_t, \\qquad \\min_\\pi \\; E \\sum_t \\gamma^t (q x_t^2 + r u_t^2)

it is :math:`u = -K x`, with K from Riccati's equation. TD3 is not told a, b, q or r. It acts, keeps the steps in a
memory, fits two critics to the values of actions, and moves a network, its policy, towards larger values. What it
learns can be laid beside the line.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import LQR
from epicycle.rl import TD3

# %%
# The plant as an environment: any object with the methods `reset` and `step` of Gymnasium and its two spaces. The
# solution comes from the equations.
a, b, q, r, discount, sd = 1.0, 0.5, 1.0, 0.5, 0.9, 0.1


class Plant:
    """x' = a x + b u + noise, rewarded by -(q x^2 + r u^2)."""

    observation_space = SimpleNamespace(shape=(1,), low=np.array([-np.inf]), high=np.array([np.inf]))
    action_space = SimpleNamespace(shape=(1,), low=np.array([-2.0]), high=np.array([2.0]))

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.x, self.t = self.rng.uniform(-2, 2, 1), 0
        return self.x.copy(), {}

    def step(self, action):
        u = np.clip(action, -2, 2)
        reward = -float(q * self.x[0] ** 2 + r * u[0] ** 2)
        self.x = a * self.x + b * u + sd * self.rng.normal(size=1)
        self.t += 1
        return self.x.copy(), reward, False, self.t >= 20, {}


regulator = LQR([[a]], [[b]], [[q]], [[r]], discount=discount, noise=[[sd**2]]).solve()
print(f"best gain {regulator.gain[0, 0]:.3f}")

# %%
# Small networks and 1,400 steps, of 70 episodes. The learnt policy is compared with the line in the states where
# episodes begin, and both by their cost in new episodes, with the same starts and noise.
agent = TD3(
    (32, 32), learning_rate=3e-3, target_rate=0.02, batch_size=64, learning_starts=200, discount=discount, noise=0.2,
    target_noise=0.1, random_state=0,
)  # fmt: skip
agent.learn(Plant(), 1400)
places = np.linspace(-2, 2, 81)
learnt = np.array([agent.act([x])[0] for x in places])
best = -regulator.gain[0, 0] * places
slope = -(learnt @ places) / (places @ places)
print(
    f"gain of the line nearest to the learnt policy {slope:.3f}, largest difference {np.abs(learnt - best).max():.2f}"
)


def cost(policy, episodes=200, length=40):
    rng, total = np.random.default_rng(1), 0.0
    x = rng.uniform(-2, 2, episodes)
    for t in range(length):
        u = np.clip(policy(x), -2, 2)
        total += discount**t * np.mean(q * x**2 + r * u**2)
        x = a * x + b * u + sd * rng.normal(size=episodes)
    return total


costs = {
    "no control": cost(np.zeros_like),
    "learnt by TD3": cost(lambda x: np.interp(x, places, learnt)),
    "best regulator": cost(lambda x: -regulator.gain[0, 0] * x),
}
for name, value in costs.items():
    print(f"{name:28} discounted cost {value:.2f}")

# %%
# Returns of the episodes while learning, the two policies, and their costs. The learnt control is close to the line,
# though nothing in the network is linear, and costs little more than the least possible.
fig, axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
agent.plot(smooth=5, ax=axes[0])
axes[1].plot(places, best, "--", color="0.3", label=f"regulator, gain {regulator.gain[0, 0]:.2f}")
axes[1].plot(places, learnt, label="learnt by TD3")
axes[1].set(xlabel="state x", ylabel="control u", title="the two policies")
axes[1].legend()
axes[2].barh(list(costs), list(costs.values()), color=["0.6", "C0", "0.3"])
axes[2].set(xlabel="discounted cost")
axes[2].invert_yaxis()
plt.show()
