"""What the studies of coverage assume, as diagrams: measured confounders, a front door, an instrument."""

import matplotlib.pyplot as plt

from epicycle.causal import CausalGraph

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.0), layout="constrained")
measured = CausalGraph("x0 -> treatment; x0 -> outcome; x1 -> treatment; x1 -> outcome; treatment -> outcome")
measured.plot("treatment", "outcome", given=["x0", "x1"], ax=left)
left.set_title("linear, curved: all confounders are seen")
CausalGraph("x -> m -> y; x <-> y").plot("x", "y", ax=middle)
middle.set_title("front door")
CausalGraph("z -> treatment -> outcome; treatment <-> outcome").plot("treatment", "outcome", ax=right)
right.set_title("instruments")
