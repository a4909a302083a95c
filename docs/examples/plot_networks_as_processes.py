"""
Networks as Gaussian processes
==============================

A network with random weights is a random function. As its layers grow wide, this function becomes a Gaussian process
whose covariance is known in closed form, and training the network becomes regression with a kernel.
"""

# %%
# Random networks of 2 and of 500 units, drawn along a circle. Fourth moments say how far from normal the outputs are.
import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep
from epicycle.kernel import NNGP, NeuralTangent
from epicycle.nets import tangent_kernel
from epicycle.nets.examples import network_prior, wide_network

angles = np.linspace(-np.pi, np.pi, 81)
circle = np.column_stack([np.cos(angles), np.sin(angles)])
prior = network_prior(circle, [2, 500], n_networks=300)
for width, kurtosis, distance in zip(prior.widths, prior.kurtosis, prior.distance, strict=True):
    print(f"{width:4d} units: excess kurtosis {kurtosis:6.2f}, covariance off by {distance:.3f}")

# %%
# The tangent kernel of wide networks comes to its limit as well.
limit = NeuralTangent()(circle[::8])
for width in (10, 100, 1000):
    found = tangent_kernel(wide_network(2, width, random_state=0), circle[::8])
    print(f"{width:4d} units: tangent kernel off by {np.linalg.norm(found - limit) / np.linalg.norm(limit):.3f}")

# %%
# What all wide networks that fit five points say together: a Gaussian process with the kernel of random networks.
at = np.array([-2.5, -1.2, 0.1, 0.9, 2.2])
points, values = np.column_stack([np.cos(at), np.sin(at)]), np.sin(2 * at)
model = ep.GaussianProcessRegressor(NNGP(depth=3, bounds="fixed"), noise=1e-4, noise_bounds="fixed").fit(points, values)
mean, deviation = model.predict(circle, return_std=True)

# %%
figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.2), layout="constrained")
for ax, outputs, width in zip(axes, prior.outputs, prior.widths, strict=False):
    ax.plot(angles, outputs[:12].T, lw=1, alpha=0.8)
    ax.fill_between(angles, *(2 * sign * np.sqrt(np.diag(prior.limit)) for sign in (-1, 1)), color="0.5", alpha=0.15)
    ax.set(title=f"random networks of {width} units", xlabel="angle", ylim=(-5, 5))
axes[2].plot(angles, mean, color="C0")
axes[2].fill_between(angles, mean - 2 * deviation, mean + 2 * deviation, color="C0", alpha=0.2)
axes[2].plot(at, values, "o", color="C3")
axes[2].set(title="given five points", xlabel="angle")
plt.show()
