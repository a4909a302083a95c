"""Eight schools by NUTS, and how fast four samplers forget where they were."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep
from epicycle import bayes

effects = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
errors = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
draws = bayes.sample(bayes.HierarchicalModel(effects, errors), target_accept=0.95, random_state=0)
low, middle, high = np.quantile(draws.stacked("theta"), (0.1, 0.5, 0.9), axis=0)

figure, (schools, memory) = plt.subplots(1, 2, figsize=(8.6, 3.5), layout="constrained")
rows = np.arange(8)[::-1]
schools.errorbar(
    effects, rows + 0.14, xerr=1.28 * errors, fmt="^", ms=4.5, color="#E69F00", lw=1.2, label="estimate alone"
)
schools.errorbar(
    middle, rows - 0.14, xerr=[middle - low, high - middle], fmt="o", ms=4.5, color="#0072B2", lw=1.6, label="posterior"
)
schools.axvline(draws["mu"].mean(), color="#6E6E6E", lw=0.9, ls=":")
schools.set(yticks=rows, yticklabels=[f"school {k}" for k in "ABCDEFGH"], xlabel="effect, with 80% intervals")
schools.set_xlim(-28, 72)
schools.legend(frameon=False, loc="center right")
schools.set_title(f"Eight schools: {draws.certificate_}", fontsize=10)

model = bayes.NormalModel([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]])
for method, colour, line in (
    ("metropolis", "#D55E00", "-"),
    ("gibbs", "#E69F00", "--"),
    ("slice", "#009E73", "-."),
    ("nuts", "#0072B2", "-"),
):
    with ep.config(on_nonconvergence="ignore"):
        x = bayes.sample(model, method, chains=2, draws=2000, random_state=1)["x"][..., 0]
    centred = x - x.mean()
    rho = [np.mean(centred[:, : 2000 - t] * centred[:, t:]) / np.mean(centred**2) for t in range(41)]
    ess = bayes.effective_sample_size(x)
    memory.plot(rho, color=colour, ls=line, lw=1.5, label=f"{method}, ESS {ess:,.0f} of 4,000")
memory.set(xlabel="lag", ylabel="autocorrelation", xlim=(0, 40), title="Two coordinates with correlation 0.9")
memory.legend(frameon=False)
memory.grid(alpha=0.25)
