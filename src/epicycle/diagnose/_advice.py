"""What to try next: the knobs of a model, and which way to turn them.

More rows, fewer features and stronger regularisation fix high variance; more features and weaker regularisation fix
high bias; more iterations and other solvers fix an optimiser; another penalty, weighting or loss fixes an objective.
"""

from __future__ import annotations

from typing import Any

__all__ = ["more_flexible", "steadier", "unfinished"]

#: Parameters by name; +1 where a larger value makes a model steadier (less variance), -1 where more flexible.
_KNOBS = {
    "alpha": 1,
    "ccp_alpha": 1,
    "reg_alpha": 1,
    "reg_lambda": 1,
    "l2_regularization": 1,
    "lambda_l1": 1,
    "lambda_l2": 1,
    "min_samples_leaf": 1,
    "min_samples_split": 1,
    "min_child_weight": 1,
    "n_neighbors": 1,
    "bandwidth": 1,
    "tau": 1,
    "dropout": 1,
    "var_smoothing": 1,
    "C": -1,
    "gamma": -1,
    "degree": -1,
    "max_depth": -1,
    "max_leaf_nodes": -1,
    "num_leaves": -1,
    "n_knots": -1,
    "n_components": -1,
    "n_nonzero_coefs": -1,
}


def _knobs(model: Any) -> list[tuple[str, Any, int]]:
    """The parameters of the model, or of the last step of a pipeline, that trade bias for variance."""
    found = []
    for name, value in sorted(model.get_params(deep=True).items()):
        short = name.rpartition("__")[2]
        if short in _KNOBS and not hasattr(value, "fit"):
            found.append((name, value, _KNOBS[short]))
    return found


def _turns(model: Any, steadier_wanted: bool) -> list[str]:
    steps = []
    for name, value, sign in _knobs(model):
        up = (sign > 0) == steadier_wanted
        if value is None or (up is False and value == 0):
            if not (value is None and not up):
                continue
            steps.append(f"set {name}, which is not limited now")
            continue
        steps.append(f"{'raise' if up else 'lower'} {name} (now {value:g})" if _number(value) else f"change {name}")
    return steps[:4]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def steadier(model: Any, *, more_rows_help: bool, n_features: int) -> tuple[str, ...]:
    """Against high variance, the most promising first."""
    rows = "get more rows: the validation score is still rising with them"
    steps = [rows] if more_rows_help else []
    turned = _turns(model, True)
    if turned:
        steps.append("regularise more: " + ", or ".join(turned))
    else:
        steps.append("take a steadier model: one with a penalty, or an average of many such as a forest")
    if n_features > 1:
        steps.append("use fewer features: ForwardSelection or FilterSelection find which")
    if not more_rows_help:
        steps.append("more rows would help in the end, but the curve has become flat: expect little from a few more")
    return tuple(steps)


def more_flexible(model: Any, *, certificate: Any = None) -> tuple[str, ...]:
    """Against high bias, the most promising first."""
    steps = list(unfinished(model, certificate))
    steps.append("add features: interactions, powers, splines, or measurements of another kind")
    turned = _turns(model, False)
    if turned:
        steps.append("regularise less: " + ", or ".join(turned))
    steps.append("take a more flexible model: trees, boosting, kernels")
    steps.append("leave the number of rows as it is: more of them would not help this model")
    return tuple(steps)


def unfinished(model: Any, certificate: Any) -> tuple[str, ...]:
    """Where the fit itself did not end, that comes first."""
    if certificate is None or certificate.kind == "none" or certificate.holds:
        return ()
    said = "raise max_iter" if "max_iter" in model.get_params(deep=False) else "let the optimiser run longer"
    return (f"finish the fit first: {certificate}; {said}",)
