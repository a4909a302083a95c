"""The way of four solvers over a narrow valley."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import optim


class Path(optim.Monitor):
    """Keeps every iterate."""

    def __init__(self, start):
        super().__init__()
        self.points = [start]

    def __call__(self, iteration, x, **columns):
        self.points.append(x.copy())
        return super().__call__(iteration, x, **columns)


STIFFNESS = np.array([1.0, 14.0])
ANGLE = np.deg2rad(25)
ROTATION = np.array([[np.cos(ANGLE), np.sin(ANGLE)], [-np.sin(ANGLE), np.cos(ANGLE)]])


def value_and_gradient(x):
    """1 at the bottom of a rotated, narrow valley; convex, not quadratic."""
    u = ROTATION @ x
    value = 1 + np.sum(STIFFNESS * np.log(np.cosh(u))) + 0.05 * x @ x
    return float(value), ROTATION.T @ (STIFFNESS * np.tanh(u)) + 0.1 * x


def hessian(x):
    u = ROTATION @ x
    return ROTATION.T @ np.diag(STIFFNESS / np.cosh(u) ** 2) @ ROTATION + 0.1 * np.eye(2)


start = np.array([-2.1, 0.35])
objective = optim.FunctionObjective(value_and_gradient, 2, hessian=hessian, strong_convexity=0.1)
a, b = np.meshgrid(np.linspace(-2.6, 0.9, 200), np.linspace(-1.9, 1.05, 160))
values = np.array([value_and_gradient(np.array(x))[0] for x in zip(a.ravel(), b.ravel(), strict=True)]).reshape(a.shape)

runs = [("gd, step 0.13", "gd", {"step": 0.13}), ("gd", "gd", {}), ("cg", "cg", {}), ("newton", "newton", {})]
figure, panels = plt.subplots(2, 2, figsize=(9, 7), sharex=True, sharey=True, layout="constrained")
for ax, (title, solver, options), colour in zip(panels.flat, runs, ("C1", "C0", "C2", "C5"), strict=True):
    path = Path(start)
    solution = optim.solve(solver, objective, start, tol=1e-9, max_iter=500, monitor=path, options=options)
    ax.contour(a, b, values, levels=1 + np.geomspace(0.05, 20, 12), colors="0.8", linewidths=0.9)
    ax.plot(*np.array(path.points).T, "o-", color=colour, ms=3.5, lw=1.2)
    ax.plot(*start, "ko", ms=6)
    ax.plot(0, 0, "k*", ms=10)
    ax.grid(False)
    ax.set(title=f"{title}: {solution.n_iter} iterations", aspect="equal", xlim=(-2.6, 0.9), ylim=(-1.9, 1.05))
plt.show()
