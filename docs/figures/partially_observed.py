"""The tiger's vectors over the belief, and the bounds of heuristic search closing."""

import matplotlib.pyplot as plt

from epicycle.control import heuristic_search_value_iteration, incremental_pruning, worlds

tiger = worlds.tiger()
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
incremental_pruning(tiger).plot(ax=left)
left.set_title("tiger")
heuristic_search_value_iteration(worlds.machine_maintenance(), tol=0.01).plot_convergence(ax=right)
right.set_title("machine maintenance")
