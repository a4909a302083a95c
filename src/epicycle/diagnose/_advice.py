"""Advice on the next steps: hyperparameters of a model, and the direction in which to change them.

More rows, fewer features and stronger regularisation fix high variance; more features and weaker regularisation fix
high bias; more iterations and other solvers fix an optimiser; another penalty, weighting or loss fixes an objective.
"""

from __future__ import annotations

from typing import Any

#: Hyperparameters by name: +1 where a larger value reduces variance, -1 where it makes the model more flexible.
_LESS_VARIANCE = (
    "alpha ccp_alpha reg_alpha reg_lambda l2_regularization lambda_l1 lambda_l2 min_samples_leaf min_samples_split "
    "min_child_weight n_neighbors bandwidth tau dropout var_smoothing"
)
_MORE_FLEXIBLE = "C gamma degree max_depth max_leaf_nodes num_leaves n_knots n_components n_nonzero_coefs"
_DIRECTIONS = dict.fromkeys(_LESS_VARIANCE.split(), 1) | dict.fromkeys(_MORE_FLEXIBLE.split(), -1)


def _hyperparameters(model: Any) -> list[tuple[str, Any, int]]:
    """The parameters of the model, or of the last step of a pipeline, that trade bias for variance."""
    found = []
    for name, value in sorted(model.get_params(deep=True).items()):
        short = name.rpartition("__")[2]
        if short in _DIRECTIONS and not hasattr(value, "fit"):
            found.append((name, value, _DIRECTIONS[short]))
    return found


def _changes(model: Any, *, less_variance: bool) -> list[str]:
    steps = []
    for name, value, sign in _hyperparameters(model):
        up = (sign > 0) == less_variance
        if value is None or (up is False and value == 0):
            if not (value is None and not up):
                continue
            steps.append(f"set {name}, which is not limited now")
            continue
        steps.append(f"{'raise' if up else 'lower'} {name} (now {value:g})" if _number(value) else f"change {name}")
    return steps[:4]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def reduce_variance(model: Any, *, more_rows_help: bool, n_features: int) -> tuple[str, ...]:
    """Steps against high variance, the most promising first."""
    rows = "get more rows: the validation score still improves with them"
    steps = [rows] if more_rows_help else []
    changes = _changes(model, less_variance=True)
    if changes:
        steps.append("regularise more: " + ", or ".join(changes))
    else:
        steps.append("use a model with less variance: one with a penalty, or an average of many such as a forest")
    if n_features > 1:
        steps.append("use fewer features: ForwardSelection or FilterSelection find which")
    if not more_rows_help:
        steps.append("more rows would help in the end, but the curve has become flat: expect little from a few more")
    return tuple(steps)


def reduce_bias(model: Any, *, certificate: Any = None) -> tuple[str, ...]:
    """Steps against high bias, the most promising first."""
    steps = list(finish_fit(model, certificate))
    steps.append("add features: interactions, powers, splines, or measurements of another kind")
    changes = _changes(model, less_variance=False)
    if changes:
        steps.append("regularise less: " + ", or ".join(changes))
    steps.append("use a more flexible model: trees, boosting, kernels")
    steps.append("leave the number of rows as it is: more of them would not help this model")
    return tuple(steps)


def finish_fit(model: Any, certificate: Any) -> tuple[str, ...]:
    """Advice to finish the fit, where its certificate does not hold."""
    if certificate is None or certificate.kind == "none" or certificate.holds:
        return ()
    step = "raise max_iter" if "max_iter" in model.get_params(deep=False) else "let the optimiser run longer"
    return (f"finish the fit first: {certificate}; {step}",)
