"""Blocks are handed to whichever thread is free, and their sums are added in the order of the blocks."""

import matplotlib.pyplot as plt

BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
FILL = ("#9CC9E3", "#F7DDA0")
WORK = [1.0, 1.3, 0.8, 1.1, 0.9, 1.2]  # what each block takes


def schedule(threads):
    """(thread, start, end) of every block when the next one goes to whoever is free first."""
    free, plan = [0.0] * threads, []
    for work in WORK:
        thread = free.index(min(free))
        plan.append((thread, free[thread], free[thread] + work))
        free[thread] += work
    return plan


figure, panels = plt.subplots(1, 2, figsize=(9, 2.9), layout="constrained", width_ratios=[6.3, 3.6])
for ax, threads in zip(panels, (1, 2), strict=True):
    last = 0.0
    for i, (thread, begin, end) in enumerate(schedule(threads)):
        colour = (BLUE, ORANGE)[thread]
        ax.barh(-thread, end - begin - 0.05, left=begin, height=0.6, color=FILL[thread], edgecolor=colour, zorder=2)
        ax.text((begin + end) / 2 - 0.02, -thread, f"$s_{i}$", ha="center", va="center", fontsize=12, zorder=3)
        last = max(last, end)  # a sum waits until all before it are there
        ax.plot([last], [-threads - 0.1], "o", color=GREEN, ms=6, clip_on=False)
        ax.plot([end, last], [-thread - 0.3, -threads], color=GREEN, lw=0.8, zorder=1)
        ax.text(last, -threads - 0.3 - 0.3 * (i % 2), f"+$s_{i}$", ha="center", va="top", fontsize=9, color=GREEN)
    labels = [f"thread {t}" for t in range(threads)] + ["sum"]
    ax.set_yticks([*(-t for t in range(threads)), -threads - 0.1], labels)
    ax.set(xticks=[], ylim=(-2.95, 0.5), title=f"{threads} thread{'s' if threads > 1 else ''}")
    ax.grid(False)
    ax.spines[["left", "bottom", "top", "right"]].set_visible(False)
    ax.tick_params(length=0)
figure.supxlabel(r"time $\longrightarrow$ the sum is $((s_0 + s_1) + s_2) + \ldots$ in both cases", fontsize=10)
plt.show()
