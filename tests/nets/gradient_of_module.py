"""The gradient of an architecture against differences of its loss, in double precision."""

import numpy as np

from epicycle import optim


def check_module(module, row_losses, batches, *, n_coordinates=60, seed=0):
    """`optim.check_gradient` of the mean loss of `batches` in a random choice of the weights of a module.

    The module is made double, is in evaluation mode, and has no kinks near: smooth activations, or ReLU by luck of the
    seed. `row_losses` is (module, batch) -> (n_rows,), as `NetEstimator._row_losses()` gives it.
    """
    from epicycle.nets.training._objective import ModuleObjective

    objective = ModuleObjective(module.double().eval(), row_losses, batches)
    start = objective.start()
    chosen = np.random.default_rng(seed).permutation(start.size)[:n_coordinates]

    def point(values):
        x = start.copy()
        x[chosen] = values
        return x

    def gradient(values):
        return objective.value_and_gradient(point(values))[1][chosen]

    return optim.check_gradient(lambda values: objective.value(point(values)), start[chosen], gradient=gradient)
