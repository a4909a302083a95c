"""A pole on a cart: returns while three agents with networks learn, and values against what was earned."""

import matplotlib.pyplot as plt

from epicycle.control import CartPole
from epicycle.rl import DQN, PPO, ActorCritic, LinearDecay

pole = CartPole().environment(max_steps=200)
agents = [
    DQN((64,), epsilon=LinearDecay(1.0, 0.05, 3000), train_every=2, random_state=0),
    PPO(n_envs=8, n_steps=32, batch_size=256, trace_decay=0.8, discount=0.98, learning_rate=1e-3, random_state=0),
    ActorCritic(n_envs=8, learning_rate=3e-3, random_state=0),
]
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
for agent in agents:
    agent.learn(pole, 12_000).plot(smooth=10, ax=left)
left.legend()
history = agents[1].history_
right.plot(history["steps"], history["discounted_return"], ".", markersize=3, alpha=0.5, label="what was earned")
right.plot(history["steps"], history["value"], label="value of the first state")
right.set_xlabel("step")
right.set_title("PPO: discounted returns")
right.legend()
fig.tight_layout()
