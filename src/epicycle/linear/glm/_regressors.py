"""Generalized linear models under scikit-learn's names: responses whose variance is a power of their mean.

minimise  1 / (2 sum_i v_i) sum_i v_i d(y_i, mu_i) + alpha/2 |w|^2,  which is the objective of the general model with
``l1_ratio=0``, so that the same alpha gives the same coefficients in all of them and in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import AnyOf, Choice, Domain, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.linear._scikit_learn import GLM_SOLVERS
from epicycle.linear.glm._generalized_linear_model import GeneralizedLinearModel
from epicycle.stats._family import Family
from epicycle.stats.families import Tweedie


class PowerRegressor(GeneralizedLinearModel):
    """Base of the regressors: what the general model lets users choose, and these do not, is fixed here."""

    _docs: ClassVar[Mapping[str, str]] = {
        "alpha": """alpha : float, default={default}
    Strength of the L2 penalty; 0 fits without one and gives inference.""",
        "solver": """solver : {"auto", "newton", "irls", "lbfgs", "newton-cholesky"}, default={default}
    "auto", and by scikit-learn's name "newton-cholesky", takes Newton's method on summed Hessians, and L-BFGS for
    thousands of coefficients; "irls" is Newton's method with expected Hessians.""",
        "tol": """tol : float, default={default}
    Bound on the distance of the objective from its minimum, relative to that of the model without features.""",
        "fitted": """coef_ : ndarray of shape (n_features,)
intercept_ : float
deviance_, null_deviance_ : float
    Deviance of the model, and of that with a constant alone.
log_likelihood_, aic_, bic_ : float
dispersion_, pearson_dispersion_, deviance_dispersion_ : float
    The dispersion of standard errors, and both estimates of it.
n_observations_ : int
    Rows of positive weight.
effective_parameters_, residual_degrees_ : float
    The rank of the design (less with a penalty), and what it leaves of the rows.
family_, link_, coefficient_names_, categories_
    As those of :class:`GeneralizedLinearModel`.
certificate_ : Certificate
    A proven bound on the distance from the minimum, or where the deviance is not convex what a Newton step would gain.
history_ : History
n_iter_ : int
converged_ : bool""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("fitted",)
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "alpha": Real(minimum=0),
        "solver": Choice("auto", "newton", "irls", "lbfgs", *GLM_SOLVERS),
    }
    l1_ratio = 0.0
    penalty_weights = None
    dispersion = "auto"
    categorical_features = "from_dtype"
    drop = "auto"
    handle_unknown = "error"
    solver_options = None
    random_state = None
    link: Any = "log"
    _polishes = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = getattr(self, "power", 1) > 0
        return tags


class PoissonRegressor(PowerRegressor):
    r"""Regression for counts: Poisson's distribution with a logarithmic link and an L2 penalty.

    .. math:: \min_{w, b} \; \frac{1}{\sum_i v_i} \sum_i v_i \left( \mu_i - y_i + y_i \log \frac{y_i}{\mu_i} \right)
              + \tfrac{\alpha}{2} \|w\|^2 , \qquad \mu_i = e^{b + w'x_i} .

    See Also
    --------
    GeneralizedLinearModel : any family and link, elastic net, offsets and exposures.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import PoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = rng.poisson(np.exp(0.5 + X @ [0.3, -0.2]))
    >>> model = PoissonRegressor(alpha=0.01).fit(X, y)
    >>> model.coef_.round(1), round(model.score(X, y), 2)
    (array([ 0.3, -0.2]), 0.17)
    """

    family = "poisson"

    @stores_arguments(fit_intercept=True, max_iter=1000, tol=1e-8, warm_start=False, n_jobs=None, verbose=0)
    def __init__(self, *, alpha: float = 1.0, solver: str = "auto", **shared: Unpack[SharedArguments]) -> None: ...


class GammaRegressor(PowerRegressor):
    r"""Regression for positive responses of constant coefficient of variation: gamma distribution, logarithmic link.

    .. math:: \min_{w, b} \; \frac{1}{\sum_i v_i} \sum_i v_i \left( \frac{y_i}{\mu_i} - 1 - \log \frac{y_i}{\mu_i}
              \right) + \tfrac{\alpha}{2} \|w\|^2 , \qquad \mu_i = e^{b + w'x_i} .

    See Also
    --------
    GeneralizedLinearModel : any family and link, elastic net, offsets and exposures.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import GammaRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = rng.gamma(2, np.exp(0.5 + X @ [0.3, -0.2]) / 2)
    >>> model = GammaRegressor(alpha=0.01).fit(X, y)
    >>> model.coef_.round(1), model.certificate_.holds
    (array([ 0.3, -0.2]), True)
    """

    family = "gamma"

    @stores_arguments(fit_intercept=True, max_iter=1000, tol=1e-8, warm_start=False, n_jobs=None, verbose=0)
    def __init__(self, *, alpha: float = 1.0, solver: str = "auto", **shared: Unpack[SharedArguments]) -> None: ...


class TweedieRegressor(PowerRegressor):
    r"""Regression for responses whose variance is a power of their mean.

    .. math:: \min_{w, b} \; \frac{1}{2 \sum_i v_i} \sum_i v_i \, d_p(y_i, \mu_i) + \tfrac{\alpha}{2} \|w\|^2 ,
              \qquad g(\mu_i) = b + w'x_i ,

    with the unit deviance :math:`d_p` of :math:`\operatorname{var} y_i = \phi \mu_i^p / v_i`.

    Parameters
    ----------
    power : float, default=0.0
        p: 0 is the normal distribution, 1 Poisson's, between 1 and 2 a Poisson number of gamma variables with a mass at
        zero, 2 the gamma and 3 the inverse Gaussian distribution; none has a power between 0 and 1.
    link : {"auto", "identity", "log"}, default="auto"
        g; "auto" is the identity for powers up to 0 and the logarithm above.

    See Also
    --------
    GeneralizedLinearModel : any family and link, elastic net, offsets and exposures.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import TweedieRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = rng.poisson(np.exp(0.5 + X @ [0.3, -0.2])) * rng.gamma(2, 0.5, size=1000)
    >>> model = TweedieRegressor(power=1.5, alpha=0.01).fit(X, y)
    >>> model.coef_.round(1), model.certificate_.holds
    (array([ 0.4, -0.2]), True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **PowerRegressor._parameters,
        "power": AnyOf(Real(maximum=0), Real(minimum=1)),
        "link": Choice("auto", "identity", "log"),
    }

    @stores_arguments(fit_intercept=True, max_iter=1000, tol=1e-8, warm_start=False, n_jobs=None, verbose=0)
    def __init__(
        self,
        *,
        power: float = 0.0,
        alpha: float = 1.0,
        link: str = "auto",
        solver: str = "auto",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @property
    def family(self) -> Family:
        """Tweedie's family of the power."""
        return Tweedie(self.power)

    def _link(self) -> str:
        if self.link == "auto":
            return "identity" if self.power <= 0 else "log"
        return str(self.link)
