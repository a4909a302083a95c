"""Ptolemy's model:  z(t) = c + sum_k r_k exp(i w_k t),  circles that ride on circles.

"boosting" looks for one circle after the other on a grid of frequencies and refines all frequencies by Newton's
method; "lasso" and "ridge" keep the frequencies fixed, many of them, and shrink the radii.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import ArrayLike, Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import Data
from epicycle.linear.epicycles._fit import Problem, fit_by_boosting, fit_by_lasso, fit_by_ridge, prepare
from epicycle.linear.epicycles._orbit import Circles, orbit_batch

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

METHODS = {"boosting": fit_by_boosting, "lasso": fit_by_lasso, "ridge": fit_by_ridge}


class EpicycleRegression(RegressorMixin, Estimator):  # type: ignore[misc]
    r"""An orbit as a sum of uniform circular motions, circles on circles.

    .. math:: z(t) = c + \sum_{k=1}^K r_k \, e^{i \omega_k t}

    The targets are positions in the plane, as complex numbers or in two columns; a single real column is one
    coordinate of the orbit. The times are the column of X; of several columns each may turn circles of its own, and
    their motions add up.

    Parameters
    ----------
    n_circles : int, default=2
        Circles that "boosting" adds, one after the other; 1 fits a single circle.
    method : {"boosting", "lasso", "ridge"}, default="boosting"
        "boosting" takes the frequency that explains most of what is left, by grid search and least squares, and so on
        (matching pursuit). "lasso" fits all frequencies of the grid with the penalty :math:`\alpha \sum_k |r_k|`, which
        keeps few circles. "ridge" fits them with :math:`\tfrac{\alpha}{2} \sum_k |\omega_k|^p |r_k|^2`. Both penalties
        are relative to half the mean square of the residuals.
    frequencies : array-like of shape (n_frequencies,), optional
        Angular frequencies to look at, in radians per unit of t. Default: a grid up to what the sampling resolves,
        whether it is even or not; both senses of turning for positions in the plane.
    alpha : float, default=0.1
        Strength of the penalty of "lasso" (in units of the radii: each shrinks by about alpha) and "ridge".
    frequency_power : float, default=0.0
        p: 0 penalises all circles of "ridge" alike, 1 fast ones in proportion to their frequency.
    fit_centre : bool, default=True
        Whether the centre c is fitted or 0.
    refit : bool, default=True
        Whether "boosting" fits all radii anew with each circle (orthogonal matching pursuit).
    refine : bool, default=True
        Whether "boosting" moves all frequencies off the grid, by Newton's method, after each circle; implies `refit`.
    tol : float, default=1e-10
        What the certificate asserts, relative to half the (mean) square of the data about their mean.
    max_iter : int, default=100
        Newton steps of a refinement, or rounds of the lasso, at most.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_circles,)
        Angular frequencies, the largest circle first.
    radii_ : complex ndarray of shape (n_circles,)
        Radii, with the phase at t = 0.
    centre_ : complex
        c; real for a single column.
    columns_ : ndarray of shape (n_circles,)
        The column of X with which a circle turns.
    origin_ : ndarray of shape (n_features,)
        Middle of the times, from which predictions are computed.
    n_grid_ : int
        Number of frequencies that were looked at.
    certificate_ : Certificate
        "boosting": how far the sum of squares can fall by moving all frequencies, radii and the centre a little (the
        choice of the circles is greedy and has no certificate), or, without `refine`, the radii alone; "lasso": the
        duality gap; "ridge": the distance from the minimum.
    history_ : History
        One row for each circle or round.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import EpicycleRegression
    >>> t = np.linspace(0, 20, 300)
    >>> z = 3 * np.exp(1j * t) + 1.5 * np.exp(-2.5j * t) + (1 + 2j)
    >>> orbit = EpicycleRegression(n_circles=2).fit(t[:, None], z)
    >>> orbit.frequencies_.round(6), np.abs(orbit.radii_).round(6)
    (array([ 1. , -2.5]), array([3. , 1.5]))
    >>> orbit.centre_.__class__, round(orbit.score(t[:, None], z), 6)
    (<class 'complex'>, 1.0)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_circles": Integer(1, 1000),
        "method": Choice(*METHODS),
        "frequencies": NoneOr(ArrayLike()),
        "alpha": Real(minimum=0),
        "frequency_power": Real(minimum=0),
        "fit_centre": Boolean(),
        "refit": Boolean(),
        "refine": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear",
        catalogue=("A5",),
        engines=("memory", "files", "dask"),
        certificate="stationarity, duality gap or newton decrement",
    )

    @stores_arguments(tol=1e-10, max_iter=100, n_jobs=None, verbose=0)
    def __init__(
        self,
        n_circles: int = 2,
        *,
        method: str = "boosting",
        frequencies: Any = None,
        alpha: float = 0.1,
        frequency_power: float = 0.0,
        fit_centre: bool = True,
        refit: bool = True,
        refine: bool = True,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit an orbit to positions y at the times X.

        Parameters
        ----------
        X : array, data frame, Scan or Dask collection of shape (n_samples, n_features)
            Times; usually one column.
        y : array-like of shape (n_samples,) or (n_samples, 2)
            Complex positions, two columns of coordinates, or one real coordinate. A scan brings its own.
        """
        self._complex_ = is_complex(y)
        data = self._positions(X, y, sample_weight)
        plane = data.n_targets == 2
        self._two_columns_ = plane
        problem = prepare(data, self, plane=plane)
        self.origin_, self.n_grid_ = problem.origin, sum(int(g.usable.sum()) for g in problem.grids)
        circles, solution = METHODS[self.method](problem, self)
        for name, value in self._attributes(problem, circles).items():
            setattr(self, name, value)
        self._conclude(solution)
        return self

    def _positions(self, X: Any, y: Any, sample_weight: Any) -> Data:
        """The data with a target of one or two real columns."""
        if self._complex_:
            y = np.asarray(y).reshape(len(y), -1)
            if y.shape[1] != 1:
                raise DataError(f"y: complex positions are one number a row, got {y.shape[1]} columns")
            y = np.column_stack([y[:, 0].real, y[:, 0].imag])
        # One column of a table is a vector, as everywhere; two are the coordinates of a position.
        data = self._fit_data(X, y, sample_weight, target="numeric", multi_output=n_columns(y) != 1)
        if data.n_targets > 2:
            raise DataError(f"y: positions have one or two coordinates, got {data.n_targets} columns")
        return data

    def _attributes(self, problem: Problem, circles: Circles) -> dict[str, Any]:
        order = np.argsort(-np.abs(circles.radii), kind="stable")
        circles = replace(
            circles, columns=circles.columns[order], frequencies=circles.frequencies[order], radii=circles.radii[order]
        )
        at_zero = np.exp(-1j * circles.frequencies * circles.origin[circles.columns])
        return {
            "frequencies_": circles.frequencies,
            "radii_": circles.radii * at_zero,
            "columns_": circles.columns,
            "_radii_at_origin_": circles.radii,
            "centre_": complex(circles.centre),
            "origin_": circles.origin,
            "_two_columns_": problem.setting.plane,
            "_complex_": self._complex_,
        }

    # ------------------------------------------------------------------------------------------- what was found

    def _circles(self) -> Circles:
        return Circles(self.columns_, self.frequencies_, self._radii_at_origin_, self.centre_, self.origin_)

    @property
    def periods_(self) -> np.ndarray:
        """The time of one revolution of every circle."""
        self._check_fitted()
        return np.asarray(2 * np.pi / np.abs(self.frequencies_))

    @property
    def amplitudes_(self) -> np.ndarray:
        """The lengths of the radii."""
        self._check_fitted()
        return np.asarray(np.abs(self.radii_))

    @property
    def phases_(self) -> np.ndarray:
        """The angles of the radii at t = 0, between -pi and pi."""
        self._check_fitted()
        return np.asarray(np.angle(self.radii_))

    def predict(self, X: Any) -> Any:
        """Positions at the times X, in the form that y had: complex, of shape (n_samples, 2), or one coordinate."""
        data = self._predict_data(X)
        values = engine.map(orbit_batch, data, self._circles(), self._two_columns_, n_jobs=self.n_jobs)
        if self._complex_:
            return values[:, 0] + 1j * values[:, 1]
        return values if self._two_columns_ else values[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2 of the positions, averaged over the two coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, 2)
        """
        predicted = self.predict(X)
        if self._complex_:
            y, predicted = (np.column_stack([np.real(v), np.imag(v)]) for v in (np.asarray(y), predicted))
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    # ------------------------------------------------------------------------------------------- drawing

    def plot(self, X: Any = None, y: Any = None, *, at: float | None = None, ax: Axes | None = None) -> Axes:
        """Draw the orbit with its circles: the largest around the centre, each other one on the rim of the one before.

        Parameters
        ----------
        X, y : array-like, optional
            Times and positions to draw as points; the orbit then covers these times.
        at : float, optional
            The time at which the arm of radii stands; default: where the orbit drawn ends.
        """
        from epicycle.linear.epicycles._plot import draw_coordinate, draw_orbit

        self._check_fitted()
        draw = draw_orbit if self._two_columns_ else draw_coordinate
        return draw(self._circles(), X, y, at, ax)

    def animate(self, X: Any = None, y: Any = None, *, frames: int = 200, interval: float = 40.0) -> FuncAnimation:
        """The arm of circles drawing the orbit, as a matplotlib animation.

        Parameters
        ----------
        X, y : array-like, optional
            Times and positions to draw as points; the orbit then covers these times.
        frames : int, default=200
            Number of pictures.
        interval : float, default=40.0
            Milliseconds between them.

        Returns
        -------
        matplotlib.animation.FuncAnimation
        """
        from epicycle.linear.epicycles._plot import animate_orbit

        self._check_fitted()
        return animate_orbit(self._circles(), X, y, frames, interval)

    def _penalty_line(self) -> str:
        if self.method == "boosting":
            return "no penalty"
        return f"{self.alpha:g} sum |r|" if self.method == "lasso" else f"{self.alpha:g}/2 sum |w|^p |r|^2"


def is_complex(y: Any) -> bool:
    """Whether y holds complex numbers."""
    return np.iscomplexobj(y) if isinstance(y, np.ndarray | list | tuple) or hasattr(y, "dtype") else False


def n_columns(y: Any) -> int | None:
    """The columns of a two-dimensional y; None for anything else."""
    try:
        shape = tuple(y.shape if hasattr(y, "shape") else np.asarray(y).shape)
    except ValueError:  # ragged: whoever checks the target says so
        return None
    return int(shape[1]) if len(shape) == 2 else None
