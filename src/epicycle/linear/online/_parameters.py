"""Parameters of the linear models that learn row by row: their domains, and their entries in docstrings."""

from __future__ import annotations

from collections.abc import Mapping

from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.linear.online._learner import SCHEDULES

POSITIVE = Real(0, inclusive=False)

SHARED_PARAMETERS: Mapping[str, Domain] = {
    "tol": NoneOr(Real(0)),
    "shuffle": Boolean(),
    "early_stopping": Boolean(),
    "validation_fraction": Real(0, 1, inclusive=False),
    "n_iter_no_change": Integer(1),
}
PENALTY_PARAMETERS: Mapping[str, Domain] = {
    "eta0": POSITIVE,
    "penalty": NoneOr(Choice("l2", "l1", "elasticnet")),
    "alpha": Real(0),
    "l1_ratio": NoneOr(Real(0, 1)),
}
SGD_PARAMETERS: Mapping[str, Domain] = {
    **SHARED_PARAMETERS,
    **PENALTY_PARAMETERS,
    "intercept_rate": AnyOf(Choice("auto"), POSITIVE),
    "epsilon": Real(0),
    "learning_rate": Choice(*SCHEDULES),
    "power_t": Real(),
    "offset": Real(0),
    "average": AnyOf(Boolean(), Integer(0)),
}
CLASS_WEIGHT: Domain = NoneOr(AnyOf(InstanceOf(dict), Choice("balanced")))

DOCS: Mapping[str, str] = {
    "max_iter": """max_iter : int, default={default}
    Maximum number of passes of `fit` over the rows.""",
    "shuffle": """shuffle : bool, default={default}
    Whether each pass of `fit` takes the rows in a new order. In memory this order depends on what is in the rows,
    not on how they are stored; of files and Dask collections each block or partition is shuffled.""",
    "random_state": """random_state : int, Generator, RandomState or None, default={default}
    Order of the rows, and choice of the validation set.""",
    "n_jobs": """n_jobs : int, optional
    Threads for prediction. Learning is in order, on one.""",
    "penalty": """penalty : {"l2", "l1", "elasticnet"} or None, default={default}
    rho is 0, 1 or `l1_ratio`. "l1" sets coefficients to exactly zero.""",
    "alpha": """alpha : float, default={default}
    Strength of the penalty; also the step of "optimal".""",
    "l1_ratio": """l1_ratio : float or None, default={default}
    Share of the L1 penalty in "elasticnet".""",
    "fit_intercept": """fit_intercept : bool, default={default}
    Whether b is learnt or 0. It is not penalised.""",
    "intercept_rate": """intercept_rate : float or "auto", default={default}
    Length of the steps of b, relative to those of w. "auto" is 1 for dense rows and 0.01 for sparse ones, whose
    coefficients move rarely while b moves with every row.""",
    "tol": """tol : float or None, default={default}
    `fit` ends when the mean objective has not improved by tol in `n_iter_no_change` passes; None makes all passes.""",
    "epsilon": """epsilon : float, default={default}
    Parameter of the losses "huber" and (squared) "epsilon_insensitive".""",
    "learning_rate": """learning_rate : str, default={default}
    Length of step t: "optimal" 1 / (alpha (t0 + t)), "constant" eta0, "invscaling" eta0 / t^power_t, "adaptive"
    eta0 divided by 5 whenever passes stop to improve, "c/t" eta0 / t, "a/(b+k)" eta0 / (offset + t). "pa1" and "pa2"
    are the steps of :class:`PassiveAggressiveClassifier` and :class:`PassiveAggressiveRegressor` with C = eta0, for
    the losses "hinge" and "epsilon_insensitive".""",
    "eta0": """eta0 : float, default={default}
    See `learning_rate`.""",
    "power_t": """power_t : float, default={default}
    See `learning_rate`.""",
    "offset": """offset : float, default={default}
    See `learning_rate`.""",
    "early_stopping": """early_stopping : bool, default={default}
    Whether `fit` ends by the score on a validation set (accuracy or R^2), instead of the objective.""",
    "validation_fraction": """validation_fraction : float, default={default}
    Share of the rows in the validation set, of each class where there are classes.""",
    "n_iter_no_change": """n_iter_no_change : int, default={default}
    Passes without improvement before `fit` ends.""",
    "class_weight": """class_weight : dict, "balanced" or None, default={default}
    Factors on the weights of the classes.""",
    "average": """average : bool or int, default={default}
    Use the mean of the coefficients over all steps, or over those from step `average` on.""",
    "coef_init": """coef_init, intercept_init : array-like, optional
    Where to start; zero, or with `warm_start` the earlier fit, by default.""",
    "online_attributes": """t_ : float
    One more than the number of rows learnt so far, each counted by its weight.
certificate_ : Certificate
    A duality gap where that is within tol; otherwise none, with what is known.
history_ : History
    Mean objective (losses before each step), step and seconds of every pass, and the mistakes of a classifier;
    "capped" counts steps that were shortened because they would have gone past the row's own minimum.
n_iter_ : int
converged_ : bool""",
}
