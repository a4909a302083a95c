"""Classes without a row of positive weight, beside a free intercept.

Nothing holds the intercept of such a class: the objective falls as it goes to minus infinity, and in the limit the
class has probability zero, coefficients zero, and no influence on the others. So the others are fitted alone, and the
class gets an intercept so low that its probability is below the smallest normal number: the objective is then above its
infimum by less than rounding.

K rows W_k of which two have weight differ from one row w for two classes: only w = W_2 - W_1 changes the loss, and the
least penalty is that of W_2 = w/2 = -W_1, which is |w|_1 and |w|^2 / 4 in the place of |w|^2 / 2.
"""

from __future__ import annotations

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.data import ArrayData, Data

#: Intercept of an absent class: the others' scores sum to zero, so that its probability is at most e^b.
ABSENT = float(np.log(np.finfo(np.float64).tiny))


def ridge_factor(present: np.ndarray) -> float:
    """By what the L2 penalty is multiplied when only the classes that are present are fitted."""
    return 0.5 if present.sum() == 2 < len(present) else 1.0


def recoded(codes: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Codes among the classes that are present; any for rows of the others, which have no weight."""
    new = (np.cumsum(present) - 1).clip(0)[codes.astype(np.intp)]
    return new.astype(np.float64) if present.sum() == 2 else new


def rows_present(data: Data, present: np.ndarray) -> ArrayData:
    """The rows of classes that are present, with codes among those."""
    if not isinstance(data, ArrayData):
        raise DataError("class_weight: a class of weight 0 needs X in memory; leave its rows out of the files")
    if present.sum() < 2:
        raise ParameterError("class_weight leaves fewer than 2 classes with a weight above 0; expected at least two")
    assert data.y is not None
    keep = np.flatnonzero(present[data.y.astype(np.intp)])
    weight = None if data.weight is None else data.weight[keep]
    return ArrayData(data.X[keep], recoded(data.y[keep], present), weight)


def embedded(params: np.ndarray, present: np.ndarray) -> np.ndarray:
    """(W, b) of all classes from those (..., rows, p + 1) of a fit to the classes that are present."""
    K, found = len(present), int(present.sum())
    *more, _, d = params.shape
    out = np.zeros((*more, 1 if K == 2 else K, d))
    if K == 2:
        out[..., -1] = -ABSENT if present[1] else ABSENT
        return out
    out[..., -1] = ABSENT
    if found == 1:
        out[..., present, :] = 0.0
    elif found == 2:
        out[..., present, :] = np.concatenate([-params / 2, params / 2], axis=-2)
    else:
        out[..., present, :] = params
    return out
