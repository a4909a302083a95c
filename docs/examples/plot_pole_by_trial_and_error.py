"""
Learning to balance by falling
==============================

Proximal policy optimisation knows nothing of carts and poles. It acts, looks which actions went better than expected,
and makes those a little more likely, never by more than a fifth at a time. Twelve thousand steps later the pole stays
up for most of the time, or all of it.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import CartPole
from epicycle.rl import PPO

pole = CartPole().environment(max_steps=200)
settings = {"n_envs": 8, "n_steps": 32, "batch_size": 256, "trace_decay": 0.8, "discount": 0.98, "learning_rate": 1e-3}
agents = [PPO(**settings, random_state=seed).learn(pole, 12_000) for seed in range(2)]
for agent in agents:
    print(agent.evaluate(pole, 20, seed=1))

# %%
# Returns of the episodes while two agents learn, one for each seed; 200 is the most that an episode gives. The
# other figure shows the policy of the first: which way it pushes, by the angle of the pole and how fast that changes.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for k, agent in enumerate(agents):
    agent.plot(smooth=10, ax=left)
    left.lines[-1].set_label(f"seed {k}")
left.legend()
angle, speed = np.meshgrid(np.linspace(-0.2, 0.2, 60), np.linspace(-2, 2, 60))
states = np.column_stack([np.zeros(angle.size), np.zeros(angle.size), angle.ravel(), speed.ravel()])
pushes = np.array([agents[0].act(state) for state in states]).reshape(angle.shape)
right.contourf(angle, speed, pushes, levels=[-0.5, 0.5, 1.5], colors=["C1", "C0"], alpha=0.5)
right.text(-0.12, -1.2, "push left", ha="center")
right.text(0.12, 1.2, "push right", ha="center")
right.set(xlabel="angle of the pole", ylabel="its speed", title="the policy, cart at rest in the middle")
plt.show()
