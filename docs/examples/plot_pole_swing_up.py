"""
A pole swings up and stays
==========================

A cart is to swing its pole up from rest and to hold it there. Differential dynamic programming finds the way up, a
linear quadratic regulator holds the pole, and both use the exact derivatives of the simulator.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import DDP, LQR, CartPole, QuadraticCost

cart = CartPole(integrator="rk4")

# %%
# The way up: a cheap path and a dear end. No force is above 10 N, and the certificate says that no small change of the
# controls would lower the cost.

cost = QuadraticCost(np.diag([0.1, 0.01, 0.1, 0.01]), [[0.001]], Q_final=np.diag([100.0, 10.0, 100.0, 10.0]))
way = DDP(cart, cost).solve([0.0, 0.0, np.pi, 0.0], horizon=100)
print(way.certificate)

# %%
# Then the regulator of the upright position takes over.

_, A, B = cart.derivatives(np.zeros(4), np.zeros(1))
regulator = LQR(A, B, np.eye(4), [[0.1]]).solve()
held = cart.rollout(way.states[-1], policy=regulator, n_steps=150)
states = np.vstack([way.states, held.states[1:]])
forces = np.vstack([way.controls, held.controls])
print(f"the pole stands for {held.lengths} steps; last angle {np.degrees(states[-1, 2]):.2f} degrees")

# %%
# Frames: the pole at its full length, its last positions faintly, and an arrow for the force. Below, angle and force
# over time: the regulator takes over at two seconds and needs hardly any force.


def draw(ax, index, trail=8):
    """Cart and pole at one time, with a trail of the pole."""
    for back in range(trail, -1, -2):
        if index - back < 0:
            continue
        x, _, angle, _ = states[index - back]
        tip = x + np.sin(angle), np.cos(angle)
        fade = 1.0 if back == 0 else 0.25 * (1 - back / (trail + 2))
        ax.plot([x, tip[0]], [0, tip[1]], color="C1", lw=3, alpha=fade, solid_capstyle="round")
    x = states[index, 0]
    ax.add_patch(plt.Rectangle((x - 0.25, -0.12), 0.5, 0.24, color="C0"))
    force = forces[min(index, len(forces) - 1), 0]
    if abs(force) > 0.5:
        ax.annotate("", (x + 0.08 * force, -0.3), (x, -0.3), arrowprops={"arrowstyle": "->", "color": "0.3"})
    ax.axhline(-0.12, color="0.6", lw=0.8)
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.2, 1.2), aspect="equal", xticks=[], yticks=[])
    ax.set_title(f"{index * cart.time_step:.1f} s", fontsize=9)
    ax.grid(visible=False)


times = [0, 15, 25, 35, 45, 55, 65, 75, 85, 100, 150, 249]
figure = plt.figure(figsize=(9, 9.5), layout="constrained")
frames, curves = figure.subfigures(2, 1, height_ratios=[1.8, 1])
for ax, index in zip(frames.subplots(3, 4).flat, times, strict=True):
    draw(ax, index)
above, below = curves.subplots(2, 1, sharex=True)
seconds = cart.time_step * np.arange(len(states))
above.plot(seconds, np.degrees(states[:, 2]))
above.axhline(0, color="0.5", lw=0.8)
above.set_ylabel("angle (degrees)")
below.step(seconds[:-1], forces[:, 0], where="post", color="C1")
below.set(xlabel="seconds", ylabel="force (N)")
for ax in (above, below):
    ax.axvline(2.0, color="0.5", ls=":")
plt.show()
