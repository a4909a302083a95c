"""What each design assumes, as a diagram: dashed arrows are causes that are not observed."""

import matplotlib.pyplot as plt

from epicycle.causal import CausalGraph

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.0), layout="constrained")
CausalGraph("instrument -> treatment -> outcome; treatment <-> outcome").plot("treatment", "outcome", ax=left)
left.set_title("an instrument")
cutoff = CausalGraph("score -> treatment -> outcome; score -> outcome; score <-> outcome")
cutoff.plot("treatment", "outcome", given="score", ax=middle)
middle.set_title("a cutoff of the score")
panel = CausalGraph("unit -> treatment; unit, time -> outcome; time -> treatment; treatment -> outcome")
panel.plot("treatment", "outcome", given=["unit", "time"], ax=right)
right.set_title("units over time")
