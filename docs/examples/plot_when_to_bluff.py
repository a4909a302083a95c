"""
When to bluff
=============

Three cards, two players, one coin to bet: Kuhn poker is the smallest game in which bluffing is right. Two learners
that regret what they did not do play themselves to an equilibrium, and the certificate says how much the best
opponent could still win against them.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from epicycle.search import CFR, KuhnPoker

game = KuhnPoker()
checks = np.unique(np.geomspace(1, 3000, 60).astype(int))
bets, answers, gaps = [], [], []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the short runs have not converged
    for n in checks:
        found = CFR("cfr+", tol=1e-9).learn(game, int(n))
        # After nothing: the first player bets; after a check (0): the second one bets.
        bets.append([found.strategy_[0, (card, ())][1] for card in range(3)])
        answers.append([found.strategy_[1, (card, (0,))][1] for card in range(3)])
        gaps.append(found.exploitability_)
found = CFR(tol=1e-4).learn(game, 20_000)
print(f"value of the first player {found.value_:+.4f}; by theory -1/18 = {-1 / 18:+.4f}")
print(found.certificate_)

# %%
# The second player bets every king, no queen, and bluffs with one jack in three. The first player may bluff with any
# share a of the jacks up to a third, as long as kings are bet three times as often: a family of equilibria, of which
# the learner finds one.

fig, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained")
for card, (name, colour) in enumerate((("jack", "C1"), ("queen", "C2"), ("king", "C0"))):
    axes[0].semilogx(checks, np.array(bets)[:, card], color=colour, label=name)
    axes[1].semilogx(checks, np.array(answers)[:, card], color=colour, label=name)
axes[0].semilogx(checks, 3 * np.array(bets)[:, 0], ":", color="0.4", label="three times the jacks")
axes[1].axhline(1 / 3, ls=":", color="0.4")
axes[2].loglog(checks, gaps, color="C3")
axes[0].set(title="first player bets", ylim=(-0.03, 1.03), xlabel="iterations", ylabel="probability")
axes[1].set(title="second player bets after a check", ylim=(-0.03, 1.03), xlabel="iterations")
axes[2].set(title="what the best opponent wins", xlabel="iterations", ylabel="exploitability")
axes[0].legend()
plt.show()
