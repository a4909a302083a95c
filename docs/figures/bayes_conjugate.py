"""Prior, likelihood and posterior of a probability, and of a mean with its variance."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.bayes.conjugate import BetaBernoulli, NormalInverseGamma

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
BetaBernoulli(4, 4).plot([1] * 14 + [0] * 6, ax=left)
left.set_title("14 of 20, with a prior around one half")
NormalInverseGamma(mu=0.0, kappa=0.5, alpha=2.0, beta=2.0).plot(np.random.default_rng(0).normal(2.0, 1.2, 12), ax=right)
right.set_title("12 numbers, mean and variance unknown")
plt.show()
