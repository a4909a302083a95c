r"""The Fréchet distance of two samples, taken as normal:

    d^2 = |m - n|^2 + tr(S + T - 2 (S T)^(1/2))        with means m, n and covariances S = A'A, T = B'B,

where tr (S T)^(1/2) is the sum of the singular values of A B'. A and B are triangular factors of the centred rows, so
that no root of a matrix is taken and singular covariances need no ridge.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import qr, svdvals

from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.generative.evaluate._features import FEATURE_DOCS, feature_pair


@in_catalogue("generative", "F9", certificate="exact", docs=FEATURE_DOCS)
def frechet_distance(real: Any, drawn: Any, *, features: Any = None) -> float:
    r"""The Fréchet distance of drawn rows from real ones, from the means and covariances of their features.

    .. math:: \|m - n\|^2 + \operatorname{tr}\bigl(S + T - 2 (S T)^{1/2}\bigr)

    with means m, n and covariances S, T: the squared Wasserstein distance of two normal distributions. Of two samples
    of one distribution it is not zero but of the order of the number of features over that of the rows, so compare
    values for the same numbers of rows, and with the distance of two halves of the real rows.

    Returns
    -------
    float

    References
    ----------
    M. Heusel and others, GANs trained by a two time-scale update rule converge to a local Nash equilibrium, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.generative.evaluate import frechet_distance
    >>> x = np.array([[-1.0], [1.0]])  # mean 0, variance 2
    >>> round(frechet_distance(x, 3 + 2 * x), 10)  # 3^2 + (2 sqrt(2) - sqrt(2))^2
    11.0
    """
    X, Y = feature_pair(real, drawn, features, "frechet_distance")
    (m, A), (n, B) = _moments(X), _moments(Y)
    overlap = float(svdvals(A @ B.T).sum())
    distance = float(np.square(m - n).sum() + np.square(A).sum() + np.square(B).sum() - 2 * overlap)
    return max(distance, 0.0)  # rounding of equal samples


def _moments(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(mean, triangular factor A of the covariance A'A)."""
    mean = X.mean(axis=0)
    return mean, qr((X - mean) / np.sqrt(len(X) - 1), mode="r", check_finite=False)[0][: X.shape[1]]
