r"""`CollaborativeFiltering`: ratings of items by users, explained by factors of both.

    r_ui  ~  m_i + b_u + c_i + x_u'y_i

with m_i a mean, b and c biases. `_alternating` has the objective and its stationarity; `_joint_gradient` the same for
all parameters at once; `_ranking` the one of personalised ranking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle import engine, optim
from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Described, Domain, Integer, NoneOr, Real
from epicycle.core._random import seed_of, stream
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import Batch, DaskData, Scan
from epicycle.recommend._alternating import (
    ClusterEquations,
    Equations,
    MemoryEquations,
    Model,
    SidePenalty,
    alternate,
    confidence,
    explicit_entries,
    gradient_certificate,
    implicit_entries,
    left_out,
)
from epicycle.recommend._coded_table import Side, coded_table
from epicycle.recommend._factor_model import RANKED, FactorModel
from epicycle.recommend._joint_gradient import JointObjective, descend
from epicycle.recommend._ranking import rank
from epicycle.recommend._ratings import Ratings, batch_codes, on_cluster
from epicycle.recommend._side_features import fill_in
from epicycle.recommend._tables import Columns

Array = np.ndarray

#: Penalties of factors that are taken where none is given.
_PENALTIES = {"als": 0.15, "gradient": 0.15, "content": 1.0, "implicit": 0.1, "bpr": 0.01}
#: Products of ratings and factors, which grow like their roots, are squared.
_LARGEST = 1e80
_NAME = Described("the name of a column", lambda value: isinstance(value, str))
#: Solvers of each method, the default first.
_SOLVERS = {"als": ("cholesky", "cg"), "implicit": ("cholesky", "cg"), "gradient": ("lbfgs", "sgd")}


class CollaborativeFiltering(FactorModel):
    r"""Recommendations from ratings, or from what users bought, played or read.

    .. math:: \hat r_{ui} = m_i + b_u + c_i + x_u'y_i , \qquad
        F = \tfrac12 \sum_{(u,i)} w_{ui} (r_{ui} - \hat r_{ui})^2
          + \tfrac\lambda2 \sum_u n_u |x_u|^2 + \tfrac\lambda2 \sum_i n_i |y_i|^2
          + \tfrac\mu2 \Bigl( \sum_u b_u^2 + \sum_i c_i^2 \Bigr)

    over the ratings that exist. `method` says what is minimised and how. It keeps the training pairs, so as not to
    recommend what a user knows.

    Parameters
    ----------
    method : {"als", "gradient", "content", "implicit", "bpr"}, default="als"
        "als": F by alternating least squares, in which every half-step is a ridge regression for each user or item.
        "gradient": F by its joint gradient. "content": a ridge regression of the ratings of each user on given features
        of the items (`item_features`), with an intercept that is not penalised. "implicit": every pair counts, with
        preference 1 where there is a positive rating and 0 elsewhere, and confidence :math:`1 + \alpha |r_{ui}|`
        (Hu, Koren and Volinsky 2008); rows of one pair add up, there are no biases. "bpr": items that a user has
        are to score above those that the user has not, for triples that are drawn (Rendle et al. 2009).
    n_factors : int, default=20
        Length of x and y; 0 leaves the biases alone.
    reg : float, optional
        :math:`\lambda`; None is 0.15, for "content" 1, for "implicit" 0.1 and for "bpr" 0.01.
    bias_reg : float, default=5.0
        :math:`\mu`.
    weighted_reg : bool, default=True
        Whether the penalty of a user or item grows with its number of ratings, as in F above; otherwise n is 1.
    biases : bool, default=True
        Whether there are b and c ("als", "gradient"), or c ("bpr").
    center : {"global", "item", "none"}, default="global"
        Mean normalisation: m is the mean of all ratings, the mean of those of the item, or zero.
    alpha : float, default=10.0
        Confidence that one unit of implicit feedback adds.
    solver : {"auto", "cholesky", "cg", "lbfgs", "sgd"}, default="auto"
        For "als" and "implicit" "cholesky", which solves every half-step, or "cg", which improves it by `cg_steps`
        conjugate gradients. For "gradient" "lbfgs", or "sgd", one rating after another.
    cg_steps : int, default=3
        Conjugate gradients in a half-step.
    learning_rate : float, default=0.05
        Step of "sgd" and "bpr".
    clip : bool, default=True
        Whether predictions are kept within the range of the ratings of the fit ("als", "gradient", "content").
    feature_reg : float, default=1.0
        Penalty of the ridge regression from features to factors, which serves users and items without ratings.
    user, item, rating : str, optional
        Names of the columns of a table; by default its first, second and third.
    tol : float, default=1e-3
        The fit ends when the gradient of F is at most `tol`, relative to the right-hand sides of the regressions.
    max_iter : int, default=200
        Rounds, iterations or passes; "bpr" makes all of them.

    Attributes
    ----------
    users_, items_ : ndarray
        The ids, sorted.
    user_factors_, item_factors_ : ndarray of shape (n_users, n_factors), (n_items, n_factors)
        x and y; for "content" the coefficients of users and the features.
    user_bias_, item_bias_ : ndarray
        b and c; zeros where there are none.
    mean_ : float
        The mean of all ratings; 0 with ``center="none"`` and for "implicit" and "bpr".
    item_mean_ : ndarray of shape (n_items,)
        m.
    n_ratings_ : int
    certificate_ : Certificate
        Norm of the joint gradient of F, relative to the right-hand sides of the regressions. F is not convex: it
        certifies a stationary point. None for "bpr".
    history_ : History
        F after every round, which never rises for "als" and "implicit"; for "bpr" the loss of triples drawn once.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.recommend import CollaborativeFiltering
    >>> pairs = [("ann", "Alien"), ("ann", "Brazil"), ("bob", "Alien"), ("bob", "Cabaret"), ("cat", "Brazil")]
    >>> model = CollaborativeFiltering(n_factors=2, bias_reg=1.0, random_state=0).fit(pairs, [5, 3, 4, 1, 2])
    >>> model.predict([("cat", "Alien"), ("someone new", "Alien")]).round(1).tolist()
    [3.2, 3.3]
    >>> items, scores = model.recommend("ann", n=2)  # what she has not rated yet
    >>> items.tolist()
    ['Cabaret']
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "method": Choice("als", "gradient", "content", "implicit", "bpr"),
        "n_factors": Integer(minimum=0, maximum=1000),
        "reg": NoneOr(Real(minimum=0, inclusive=False)),
        "bias_reg": Real(minimum=0, inclusive=False),
        "weighted_reg": Boolean(),
        "biases": Boolean(),
        "center": Choice("global", "item", "none"),
        "alpha": Real(minimum=0, inclusive=False),
        "solver": Choice("auto", "cholesky", "cg", "lbfgs", "sgd"),
        "cg_steps": Integer(minimum=1),
        "learning_rate": Real(minimum=0, inclusive=False),
        "clip": Boolean(),
        "feature_reg": Real(minimum=0, inclusive=False),
        "user": NoneOr(_NAME),
        "item": NoneOr(_NAME),
        "rating": NoneOr(_NAME),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        "recommend", ("E15",), ("memory", "files", "dask"), "gradient norm", keeps_rows=True
    )
    _docs: ClassVar[Mapping[str, str]] = {
        "X": "X : array, list, data frame, scan or Dask collection of pairs (user, item), or sparse matrix\n"
        "    Ids are numbers or text.",
    }

    @stores_arguments(tol=1e-3, max_iter=200, n_jobs=None, random_state=None, verbose=0)
    def __init__(
        self,
        method: str = "als",
        *,
        n_factors: int = 20,
        reg: float | None = None,
        bias_reg: float = 5.0,
        weighted_reg: bool = True,
        biases: bool = True,
        center: str = "global",
        alpha: float = 10.0,
        solver: str = "auto",
        cg_steps: int = 3,
        learning_rate: float = 0.05,
        clip: bool = True,
        feature_reg: float = 1.0,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- the fit

    @fitting
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, item_features: Any = None, user_features: Any = None
    ) -> Self:
        """Learn from ratings.

        Parameters
        ----------
        X : array, list, data frame, scan or Dask collection of pairs (user, item), or sparse matrix
            Ids are numbers or text. A table may hold the ratings too, in the column `rating`. The stored entries of
            a sparse matrix are the ratings of the rows (users) for the columns (items). A Dask collection is taken by
            "als" and "implicit" with Cholesky's factor; the normal equations are added up where the partitions are.
        y : array-like of shape (n_samples,), optional
            Ratings. Where X has none either, "implicit" and "bpr" take 1.
        item_features, user_features : mapping, data frame or pair (ids, matrix), optional
            Numbers that describe items and users: a vector for each id, or a row with the id in the column `item` or
            `user` (else the first). Ids without ratings get their factors by a ridge regression from the features.
        """
        method = self.method
        solver = self._solver()
        columns = Columns(self.user, self.item, self.rating)
        table, y, users, items = coded_table(X, y, columns, user_features, item_features, type(self).__name__)
        data = self._fit_data(table, self._or_ones(y, table), sample_weight, target="numeric")
        seed = seed_of(self.random_state) if self._resume_state() is None else int(self._resume_state()["seed"])  # type: ignore[index]
        self.users_, self.items_ = users.ids, items.ids
        if method == "content" and items.features is None:
            raise DataError('item_features: method="content" regresses ratings on features of items, got None')
        if on_cluster(data, method):
            if solver != "cholesky":
                raise ParameterError(f"solver={self.solver!r}: rows on a cluster take 'cholesky'")
            solution, model, rated = self._fit_cluster(data, seed)  # type: ignore[arg-type]
        else:
            ratings = Ratings.of(data, len(users.ids), len(items.ids))
            solution, model, rated = self._fit_memory(ratings, items, solver, seed)
        self._set(model)
        if method != "content":
            for side, parameters, has in ((users, model.users, rated[0]), (items, model.items, rated[1])):
                if side.features is not None and side.known is not None:
                    fill_in(parameters, side.features, side.known, has, float(self.feature_reg))
            self._set(model)
        solution.state = {**solution.state, "seed": seed}
        self._conclude(solution)
        return self

    def _solver(self) -> str:
        choices = _SOLVERS.get(self.method, ("auto",))
        if self.solver in ("auto", choices[0]):
            return choices[0]
        if self.solver not in choices:
            raise ParameterError(
                f"solver={self.solver!r}: method={self.method!r} takes {' or '.join(map(repr, choices))}"
            )
        return str(self.solver)

    def _or_ones(self, y: Any, table: Any) -> Any:
        if y is not None or (isinstance(table, Scan) and table.targets):
            return y
        if self.method in RANKED and isinstance(table, np.ndarray):
            return np.ones(len(table))
        raise DataError(
            f"{type(self).__name__} requires y to be passed, but the target y is None: method={self.method!r} needs "
            "ratings, as y or in a column of X; ids in files and on a cluster come with a column of ratings"
        )

    def _penalties(self, totals: tuple[Array, Array]) -> tuple[SidePenalty, SidePenalty]:
        reg = float(_PENALTIES[self.method] if self.reg is None else self.reg)
        bias = float(self.bias_reg)
        weighted = self.weighted_reg and self.method in ("als", "gradient")
        # Without ratings the parameters are zero, whatever the penalty.
        scales = [np.where(t > 0, t, 1.0) if weighted else np.ones(len(t)) for t in totals]
        return SidePenalty(reg, bias, scales[0]), SidePenalty(reg, bias, scales[1])

    def _means(self, totals: Array, sums: Array) -> None:
        """Set m from the weights and weighted ratings of every item."""
        if self.center == "none" or self.method in RANKED:
            self.mean_, self.item_mean_ = 0.0, np.zeros(len(totals))
            return
        self.mean_ = float(sums.sum() / totals.sum())
        self.item_mean_ = np.full(len(totals), self.mean_)
        if self.center == "item":
            np.divide(sums, totals, out=self.item_mean_, where=totals > 0)

    def _start(self, seed: int, spread: float) -> Model:
        """Small random factors whose products are as large as the ratings; no biases."""
        k = int(self.n_factors)
        bias = bool(self.biases) and self.method != "implicit"
        n, m = len(self.users_), len(self.items_)
        model = Model(np.zeros((n + m) * (k + bias)), n, m, k, bias)
        size = np.sqrt(spread / np.sqrt(max(k, 1)))
        for side, label in ((model.users, "users"), (model.items, "items")):
            side[:, :k] = size * stream(seed, label).normal(size=(len(side), k))
        return model

    def _fit_memory(
        self, ratings: Ratings, items: Side, solver: str, seed: int
    ) -> tuple[Solution, Model, tuple[Array, Array]]:
        self._range_ = _checked_range(ratings.value)
        self.n_ratings_ = len(ratings.value)
        self._seen_start_, self._seen_items_ = ratings.seen()
        totals = ratings.totals()
        weighted = ratings.value if ratings.weight is None else ratings.value * ratings.weight
        self._means(totals[1], np.bincount(ratings.item, weighted, ratings.n_items))
        rated = totals[0] > 0, totals[1] > 0
        if self.method == "implicit":
            solution, model = self._fit_implicit(ratings.added_up(), solver, seed)
            return solution, model, rated
        if self.method == "bpr":
            solution, model = self._fit_ranking(ratings, seed)
            return solution, model, rated
        target = ratings.value - self.item_mean_[ratings.item]
        equations = MemoryEquations(
            penalties=self._penalties(totals),
            entries=ratings.grouped(target, ratings.weight),
            steps=int(self.cg_steps) if solver == "cg" else 0,
            n_jobs=self.n_jobs,
        )
        if self.method == "content":
            solution, model = self._fit_content(equations, items, rated[1])
            return solution, model, rated
        model = self._start(seed, float(np.sqrt(np.average(target**2, weights=ratings.weight))))
        if self.method == "als":
            return self._alternate(equations, model, exact=solver == "cholesky"), model, rated
        monitor = self._factor_monitor(model)
        run = {"tol": self.tol, "max_iter": self.max_iter, "monitor": monitor, "state": self._resume_state()}
        if solver == "sgd":
            rate = float(self.learning_rate)
            return descend(ratings, target, equations, model, rate=rate, seed=seed, **run), model, rated
        solution = optim.solve("lbfgs", JointObjective(equations, model), model.flat.copy(), **run)
        model.flat[:] = solution.x
        return solution, model, rated

    def _alternate(self, equations: Equations, model: Model, *, exact: bool) -> Solution:
        return alternate(
            equations,
            model,
            exact=exact,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            monitor=self._factor_monitor(model),
            state=self._resume_state(),
        )

    def _fit_implicit(self, ratings: Ratings, solver: str, seed: int) -> tuple[Solution, Model]:
        a, target, constant = confidence(ratings.value, float(self.alpha))
        kept = a > 0
        listed = Ratings(ratings.user[kept], ratings.item[kept], a[kept], None, ratings.n_users, ratings.n_items)
        equations = MemoryEquations(
            penalties=self._penalties(listed.totals()),
            entries=listed.grouped(target[kept], a[kept]),
            everywhere=True,
            constant=constant,
            steps=int(self.cg_steps) if solver == "cg" else 0,
            n_jobs=self.n_jobs,
        )
        model = self._start(seed, 0.1)
        return self._alternate(equations, model, exact=solver == "cholesky"), model

    def _fit_ranking(self, ratings: Ratings, seed: int) -> tuple[Solution, Model]:
        liked = ratings.value > 0
        if not liked.any():
            raise DataError("y: no positive rating; bpr ranks items with a positive rating above the others")
        pairs = Ratings(
            ratings.user[liked], ratings.item[liked], ratings.value[liked], None, ratings.n_users, ratings.n_items
        )
        model = self._start(seed, 0.01)
        if self.biases:
            model.users[:, model.k] = 0.0
        solution = rank(
            pairs,
            (self._seen_start_, self._seen_items_),
            model,
            penalty=float(_PENALTIES["bpr"] if self.reg is None else self.reg),
            rate=float(self.learning_rate),
            seed=seed,
            max_iter=int(self.max_iter),
            monitor=self._factor_monitor(model),
            state=self._resume_state(),
        )
        return solution, model

    def _fit_content(self, equations: MemoryEquations, items: Side, rated: Array) -> tuple[Solution, Model]:
        features, known = items.features, items.known
        assert features is not None and known is not None  # noqa: PT018 - checked by fit
        if not known[rated].all():
            missing = self.items_[np.flatnonzero(rated & ~known)[0]]
            raise DataError(f"item_features: none for item {missing!r}; expected features of every rated item")
        n, m, k = len(self.users_), len(self.items_), features.shape[1]
        model = Model(np.zeros((n + m) * (k + 1)), n, m, k, True)
        model.items[:, :k] = features
        users = equations.penalties[0]
        # The intercept of a user is not penalised; that of a user without ratings is zero.
        equations.penalties = SidePenalty(users.factor, 0.0, users.scale), SidePenalty(0.0, 0.0, np.zeros(m))
        empty = np.diff(equations.entries[0].start) == 0
        scale = float(np.sqrt(equations.half_step(model, 0).size))
        model.users[empty] = 0.0
        value, gradient = equations.objective(model)
        relative = float(np.linalg.norm(gradient)) / scale if scale > 0 else 0.0
        certificate = gradient_certificate(relative, float(self.tol))
        monitor = self._factor_monitor(model)
        monitor(1, model.flat, objective=value, gradient=relative)
        reason = "converged" if certificate.holds else "stalled"
        return Solution(model.flat, value, monitor.history(), certificate, 1, reason), model

    def _fit_cluster(self, data: DaskData, seed: int) -> tuple[Solution, Model, tuple[Array, Array]]:
        n, m = len(self.users_), len(self.items_)
        users, items, sums, squares, count = engine.sum(rating_sums, data, n, m)
        self._means(items, sums)
        rows = np.asarray(engine.map(keys_and_ratings, data, m))
        rows = rows[rows[:, 0] >= 0]
        self._range_ = _checked_range(rows[:, 1])
        key = rows[:, 0].astype(np.int64)
        pairs = Ratings((key // m).astype(np.int32), (key % m).astype(np.int32), rows[:, 1], None, n, m)
        self._seen_start_, self._seen_items_ = pairs.seen()
        self.n_ratings_ = int(count)
        if self.method == "implicit":
            if len(np.unique(key)) < len(key):
                raise DataError(
                    "X: a pair of user and item has several rows, whose feedback would have to be added up across "
                    "partitions; expected one row for each: X.groupby([user, item]).sum().reset_index()"
                )
            alpha = float(self.alpha)
            equations = ClusterEquations(
                penalties=self._penalties((users, items)),
                data=data,
                read=implicit_entries,
                given=alpha,
                everywhere=True,
                constant=float(engine.sum(left_out, data, alpha)[0]),
            )
            model = self._start(seed, 0.1)
        else:
            equations = ClusterEquations(
                penalties=self._penalties((users, items)), data=data, read=explicit_entries, given=self.item_mean_
            )
            # sum w (r - m)^2 = sum w r^2 - 2 sum w r m + sum w m^2
            spread = float(squares - 2 * sums @ self.item_mean_ + items @ self.item_mean_**2) / float(items.sum())
            model = self._start(seed, np.sqrt(max(spread, 0.0)))
        return self._alternate(equations, model, exact=True), model, (users > 0, items > 0)

    def _factor_monitor(self, model: Model) -> Any:
        return self._monitor(int(self.max_iter), lambda flat: self._parts(flat, model))


def _checked_range(value: Array) -> Array:
    """The smallest and the largest rating."""
    low, high = float(value.min()), float(value.max())
    if max(-low, high) > _LARGEST:
        raise DataError(
            f"y: {high if high > -low else low:g}; expected ratings of at most {_LARGEST:g} in size, because squares "
            "of their products with factors would overflow: divide all by a common factor"
        )
    return np.array([low, high])


def rating_sums(batch: Batch, n_users: int, n_items: int) -> tuple[Array, Array, Array, float, float]:
    """Weights of every user and item, weighted ratings of every item, weighted squares, rows that count."""
    user, item, value, weight = batch_codes(batch)
    weighted = value if weight is None else value * weight
    return (
        np.bincount(user, weight, n_users).astype(np.float64),
        np.bincount(item, weight, n_items).astype(np.float64),
        np.bincount(item, weighted, n_items),
        float(np.sum(weighted * value)),
        float(len(value) if weight is None else np.count_nonzero(weight)),
    )


def keys_and_ratings(batch: Batch, n_items: int) -> Array:
    """The number user * n_items + item of every pair, -1 for rows of no weight, and the rating."""
    user, item, value, weight = batch_codes(batch)
    key = user.astype(np.float64) * n_items + item
    return np.column_stack([key if weight is None else np.where(weight > 0, key, -1.0), value])
