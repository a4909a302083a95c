"""
Simpson's paradox in Berkeley
=============================

In 1973 the university of Berkeley admitted 44% of the men and 30% of the women who applied. Department by department
women fared no worse. Both are right: they answer different questions, and the diagram says which.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.causal import CausalGraph, StructuralCausalModel, identify
from epicycle.tree import DecisionTreeClassifier

# %%
# Admitted and rejected men, admitted and rejected women in the six largest departments (Bickel, Hammel and
# O'Connell, 1975).

counts = {
    "A": (512, 313, 89, 19),
    "B": (353, 207, 17, 8),
    "C": (120, 205, 202, 391),
    "D": (138, 279, 131, 244),
    "E": (53, 138, 94, 299),
    "F": (22, 351, 24, 317),
}
cells = [(g, d, a) for d in counts for g in ("man", "woman") for a in (1, 0)]
rows = np.repeat(np.array(cells, dtype=object), np.ravel(list(counts.values())), axis=0)
data = {"gender": rows[:, 0].astype(str), "department": rows[:, 1].astype(str), "admitted": rows[:, 2].astype(int)}

# %%
# Applicants choose a department, and the department decides. The total effect runs along both paths; given the
# department the direct one is left.

graph = CausalGraph("gender -> department -> admitted; gender -> admitted")
total = identify(graph, "gender", "admitted").estimate(data).effect("woman", "man")
within = identify(graph, "gender", "admitted", given="department").estimate(data)
print(f"in all: {total.value:+.3f} [{total.low:+.3f}, {total.high:+.3f}]")

# %%
# A model of both equations, with trees deep enough to hold every frequency, splits the total: what if women had
# applied to the same departments as men?

trees = {"department": DecisionTreeClassifier(), "admitted": DecisionTreeClassifier()}
model = StructuralCausalModel.from_data(data, graph, trees, random_state=0)
parts = model.mediation("gender", "admitted", "department", "woman", "man", random_state=0)
direct, indirect = parts.natural_direct.value, parts.natural_indirect.value
print(f"direct: {direct:+.3f}, through the choice of department: {indirect:+.3f}")

# %%
# Women applied to departments that reject most applicants. Whether that choice is free or is itself shaped by the
# treatment of women is a question about the world, not about the table.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.2), width_ratios=[1, 1.3])
graph.plot("gender", "admitted", ax=left)
effects = [within.effect(("woman", d), ("man", d)) for d in counts]
names = ["all", *counts]
values = np.array([(e.value, e.low, e.high) for e in (total, *effects)])
colours = ["C5", *["C0"] * len(counts)]
right.barh(names, values[:, 0], color=colours)
right.hlines(names, values[:, 1], values[:, 2], color="0.3")
right.axvline(0, color="0.3", linewidth=1)
right.invert_yaxis()
right.set(xlabel="admission of women less that of men", ylabel="department")
fig.tight_layout()
plt.show()
