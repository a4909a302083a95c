"""
States behind a series
======================

A system switches between a calm and a wild regime, and only a noisy number is seen. A hidden Markov model learns both
regimes and the probabilities of switching, tells where the system is, and says how many regimes there are.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(1)
n = 900
state = np.zeros(n, dtype=int)
for t in range(1, n):
    state[t] = state[t - 1] if rng.random() > (0.01, 0.03)[state[t - 1]] else 1 - state[t - 1]
change = np.where(state == 0, 0.05 + 0.5 * rng.normal(size=n), -0.1 + 1.8 * rng.normal(size=n))

# %%
# The number of states by BIC, and the two regimes.

scores = {k: ep.HiddenMarkovModel(k, n_init=4, random_state=0).fit(change[:, None]) for k in (1, 2, 3, 4)}
bic = {k: model.bic(change[:, None]) for k, model in scores.items()}
best = min(bic, key=bic.get)
model = scores[best]
order = np.argsort(model.covars_.ravel())
print(f"BIC chooses {best} states")
print(f"standard deviations {np.sqrt(model.covars_.ravel()[order]).round(2)} (truth 0.5 and 1.8)")
print(f"stays with probability {np.diag(model.transmat_)[order].round(3)} (truth 0.99 and 0.97)")

# %%
# What is known at each time when the whole series is seen, and what the true regime was.

wild = model.predict_proba(change[:, None])[:, order[-1]]
print(f"right about {np.mean((wild > 0.5) == (state == 1)):.1%} of the times")
figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(9.6, 4.6), sharex=True, layout="constrained", height_ratios=(1.4, 1)
)
top.plot(np.cumsum(change), color="0.2", lw=0.9)
top.set(ylabel="level", title="a series with two regimes")
bottom.fill_between(np.arange(n), state, color="C1", alpha=0.3, lw=0, step="mid", label="truth: wild")
bottom.plot(wild, color="C0", lw=1, label="probability of the wild state")
bottom.set(xlabel="time", ylim=(0, 1.05), xlim=(0, n - 1))
bottom.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
plt.show()
