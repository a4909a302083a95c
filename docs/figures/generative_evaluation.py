"""Four samples beside the same real rows, with what each criterion says of them."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.generative.evaluate import frechet_distance, mode_collapse, precision_recall, two_sample_test


def ring(n, rng, modes=8, spread=0.2):
    mode = rng.integers(0, modes, n)
    angle = 2 * np.pi * mode / 8
    return 2 * np.column_stack([np.cos(angle), np.sin(angle)]) + spread * rng.normal(size=(n, 2)), mode


rng = np.random.default_rng(0)
real, label = ring(1000, rng)
samples = {
    "the same distribution": ring(1000, rng)[0],
    "too wide": ring(1000, rng, spread=0.5)[0],
    "three modes missing": ring(1000, rng, modes=5)[0],
    "few rows again and again": real[rng.integers(0, 40, 1000)] + 1e-3 * rng.normal(size=(1000, 2)),
}
figure, axes = plt.subplots(1, 4, figsize=(11.5, 4.4), layout="constrained")
for ax, (name, drawn) in zip(axes, samples.items(), strict=True):
    ax.plot(*real.T, ".", ms=2, color="0.7")
    ax.plot(*drawn.T, ".", ms=2, color="C0", alpha=0.6)
    found, modes = precision_recall(real, drawn), mode_collapse(real, drawn, label)
    ax.set(title=name, xticks=[], yticks=[], xlim=(-3.6, 3.6), ylim=(-3.6, 3.6), aspect="equal")
    ax.set_xlabel(
        f"Fréchet distance {frechet_distance(real, drawn):.3f}\nprecision {found.precision:.2f}, "
        f"recall {found.recall:.2f}\ncoverage {found.coverage:.2f} of {found.expected_coverage:.2f}\n"
        f"two samples: p = {two_sample_test(real, drawn).p_value:.1g}\n"
        f"modes missing: {modes.missing.sum()}, repeats: {'yes' if modes.repeats else 'no'}",
        fontsize=9,
    )
plt.show()
