"""A model, an intervention on it, and counterfactual scores of one pupil from full and from partial evidence."""

import matplotlib.pyplot as plt

from epicycle.causal import AdditiveNoise, StructuralCausalModel

school = StructuralCausalModel(
    {
        "encouragement": AdditiveNoise(lambda: 0.0),
        "homework": AdditiveNoise(lambda encouragement: 0.5 * encouragement),
        "score": AdditiveNoise(lambda encouragement, homework: 0.7 * encouragement + 0.4 * homework),
    }
)
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(11.5, 3.2), width_ratios=[1.2, 1.2, 1])
school.graph.plot("encouragement", "score", ax=left)
left.set_title("as it is")
school.do({"homework": 2.0}).graph.plot("homework", "score", ax=middle)
middle.set_title("do(homework = 2)")
seen = {"encouragement": 0.5, "homework": 1.0, "score": 1.5}
part = school.counterfactual({"score": 1.5}, {"homework": 2.0}, n_samples=50_000, random_state=0)
right.hist(part.values["score"][0], bins=60, weights=part.weights[0], density=True, alpha=0.5, label="score alone seen")
right.axvline(school.counterfactual(seen, {"homework": 2.0}).mean("score"), color="C1", label="all seen")
right.set(xlabel="score with two hours", yticks=[], ylim=(0, 1.6))
right.legend(loc="upper left")
fig.tight_layout()
