"""The diagram of an omitted variable, what it would leave of an estimate, and Rosenbaum's bounds for matched pairs."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.causal import CausalGraph, OmittedVariableBias, rosenbaum_bounds

fig, (first, left, right) = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained", width_ratios=[0.8, 1, 1])
omitted = CausalGraph("X -> treatment -> outcome; X -> outcome; U -> treatment; U -> outcome", latent=["U"])
omitted.plot("treatment", "outcome", given="X", ax=first)
first.set_title("U is not observed")
OmittedVariableBias(0.0973, 0.0233, 783, {"female": (0.0091, 0.1090)}).plot(left)
left.set_title("attitudes to peace in Darfur (Cinelli and Hazlett)")

exposed = [38, 23, 41, 18, 37, 36, 23, 62, 31, 34, 24, 14, 21, 17, 16, 20, 15, 10, 45, 39, 22, 35, 49, 48, 44, 35, 43]
exposed += [39, 34, 13, 73, 25, 27]
neighbour = [16, 18, 18, 24, 19, 11, 10, 15, 16, 18, 18, 13, 19, 10, 16, 16, 24, 13, 9, 14, 21, 19, 7, 18, 19, 12, 11]
neighbour += [22, 25, 16, 13, 11, 13]
gamma = np.linspace(1, 7, 120)
found = rosenbaum_bounds(exposed, neighbour, gamma=gamma)
right.fill_between(gamma, found.lower, found.upper, alpha=0.25)
right.plot(gamma, found.upper)
right.axhline(0.05, lw=1, color="grey")
right.axvline(found.critical_gamma, lw=1, ls="--", color="grey")
right.set(xlabel="largest ratio of the odds of treatment", ylabel="bounds on the p-value")
right.set_title(f"significant up to a ratio of {found.critical_gamma:.2f}")
