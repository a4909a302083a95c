"""The graph of the guide's example, and the estimates of ``epicycle effect`` side by side."""

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

import epicycle as ep
from epicycle.causal import CausalGraph

rng = np.random.default_rng(0)
age = rng.normal(50, 10, size=800)
drug = rng.random(800) < 1 / (1 + np.exp(-(age - 50) / 8))
table = pa.table({"age": age, "drug": drug, "pressure": 70 + age - 6.0 * drug + rng.normal(0, 8, size=800)})
graph = CausalGraph("age -> drug -> pressure; age -> pressure")
run = ep.effect_table(table, "drug", "pressure", graph=graph, repeats=3)

fig, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.4), layout="constrained", width_ratios=[2, 3])
graph.plot("drug", "pressure", given="age", ax=left)
left.set_title("given age, only the effect is open")
names = [row["words"] for row in run.estimates]
found = np.array([(row["lower"], row["effect"], row["upper"]) for row in run.estimates])
right.hlines(names, found[:, 0], found[:, 2], color="C0")
right.plot(found[:, 1], names, "o", color="C0")
right.axvline(-6, color="0.4", ls=":", label="truth")
right.axvline(0, color="0.7", lw=1)
right.invert_yaxis()
right.set_xlabel("effect of the drug on the pressure, 95% intervals")
right.legend()
