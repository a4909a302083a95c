"""
An effect with the confounder hidden
====================================

Smokers may differ from others by a gene that also causes cancer. If nobody has measured the gene, no adjustment for
it is possible. But if smoking acts through tar alone, the do-calculus finds a way around: from smoking to tar nothing
is in the way, and from tar to cancer smoking itself closes the back door.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.causal import CausalGraph, identify

graph = CausalGraph("smoking -> tar -> cancer; smoking <-> cancer")
found = identify(graph, "smoking", "cancer")
print(found.derivation())


# %%
# Tables in which the gene is strong: it makes people smoke and protects from cancer, while tar causes it. What is
# seen points the wrong way, however many rows there are. The formula has the right answer, and the interval says how
# sure.


def study(n, seed):
    """Rows of n people, the gene left out, and the true effect."""
    rng = np.random.default_rng(seed)
    gene = rng.random(n) < 0.5
    smoking = rng.random(n) < np.where(gene, 0.85, 0.15)
    tar = rng.random(n) < np.where(smoking, 0.9, 0.1)
    cancer = rng.random(n) < 0.45 + 0.2 * tar - 0.4 * gene
    return {"smoking": smoking.astype(int), "tar": tar.astype(int), "cancer": cancer.astype(int)}


truth = (0.9 - 0.1) * 0.2
sizes = np.geomspace(300, 30_000, 9).astype(int)
seen, effects = [], []
for n in sizes:
    data = study(n, seed=n)
    smokes = data["smoking"] == 1
    seen.append(data["cancer"][smokes].mean() - data["cancer"][~smokes].mean())
    effects.append(found.estimate(data).effect(1, 0))

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=[2, 3])
graph.plot("smoking", "cancer", ax=left)
left.set_title("dashed: the gene that is hidden")
values = np.array([effect.value for effect in effects])
low, high = (np.array([getattr(effect, end) for effect in effects]) for end in ("low", "high"))
right.errorbar(sizes, values, [values - low, high - values], fmt="o", color="C0", label="front-door formula")
right.plot(sizes, seen, "s", color="C1", label="difference that is seen")
right.axhline(truth, color="0.4", ls=":", label="truth")
right.axhline(0, color="0.7", lw=1)
right.set(xscale="log", xlabel="rows", ylabel="effect of smoking on the risk")
right.legend()
plt.show()
