"""The bound by round, held-out words by method, and planted topics found again."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
phi = rng.dirichlet(np.full(300, 0.05), 8)
theta = rng.dirichlet(np.full(8, 0.15), 900)
X = np.array([rng.multinomial(50, t @ phi) for t in theta])
learn, new = X[:700], X[700:]

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.4, 3.4), layout="constrained")
priors = {"doc_topic_prior": 0.15, "topic_word_prior": 0.05, "random_state": 0}
with ep.config(on_nonconvergence="ignore"):
    fits = {
        "batch": ep.LatentDirichletAllocation(8, max_iter=60, tol=0, **priors).fit(learn),
        "online": ep.LatentDirichletAllocation(8, learning_method="online", max_iter=60, **priors).fit(learn),
        "gibbs": ep.LatentDirichletAllocation(8, learning_method="gibbs", max_iter=400, **priors).fit(learn),
    }
    left.plot(np.arange(1, 61), -np.asarray(fits["batch"].history_.objective) / learn.sum())
    left.set(xscale="log", xlabel="round", ylabel="bound for each word", title="the bound never falls")

    planted = ep.LatentDirichletAllocation(8, max_iter=1, **priors).fit(learn)
    planted.components_ = 1e6 * phi
names, values = [*fits, "planted"], [f.held_out_perplexity(new) for f in (*fits.values(), planted)]
middle.plot(names, values, "o")
middle.set(ylabel="perplexity", title="held-out words")
middle.margins(x=0.15, y=0.2)

found = fits["gibbs"].components_ / fits["gibbs"].components_.sum(axis=1, keepdims=True)
order = [int(np.argmin(np.abs(found - topic).sum(axis=1))) for topic in phi]
right.plot(phi.ravel(), found[order].ravel(), ".", ms=3)
right.plot([0, phi.max()], [0, phi.max()], "--", lw=1)
right.set(xlabel="planted probability of a word", ylabel="by Gibbs sampling", title="words of the topics")
plt.show()
