"""The allow-list: every class, function and type that a model file may name.

A name in a file is only ever looked up here. What is imported is what stands in these tables.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from epicycle.core._exceptions import ModelFormatError, ParameterError, ParameterTypeError

C = TypeVar("C", bound=type)

#: scikit-learn's estimators, by public module. Their constructors store their arguments and do nothing else.
_SKLEARN = {
    "sklearn.compose": "ColumnTransformer TransformedTargetRegressor",
    "sklearn.feature_selection": "GenericUnivariateSelect SelectFdr SelectFpr SelectFwe SelectKBest SelectPercentile "
    "VarianceThreshold",
    "sklearn.frozen": "FrozenEstimator",
    "sklearn.impute": "KNNImputer MissingIndicator SimpleImputer",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing": "Binarizer FunctionTransformer KBinsDiscretizer LabelBinarizer LabelEncoder MaxAbsScaler "
    "MinMaxScaler MultiLabelBinarizer Normalizer OneHotEncoder OrdinalEncoder PolynomialFeatures PowerTransformer "
    "QuantileTransformer RobustScaler SplineTransformer StandardScaler TargetEncoder",
}
#: Functions that a transformer or selector may hold.
_FUNCTIONS = {
    "numpy": "absolute arccosh arcsinh arctan arctanh cbrt ceil cos cosh deg2rad exp exp2 expm1 floor log log10 log1p "
    "log2 max mean median min negative positive rad2deg reciprocal rint sign sin sinh sqrt square tan tanh trunc",
    "scipy.special": "expit logit",
    "sklearn.feature_selection": "chi2 f_classif f_regression mutual_info_classif mutual_info_regression r_regression",
}


def _table(groups: dict[str, str]) -> dict[str, tuple[str, str]]:
    return {f"{module}.{name}": (module, name) for module, names in groups.items() for name in names.split()}


#: Estimators of ours that are no learners from tables of features, and not among the names of the package itself.
_OWN_ESTIMATORS = {
    "epicycle.automl": "EnsembleTableModel PixelNetClassifier",
    "epicycle.recommend": "CollaborativeFiltering",
    "epicycle.causal": "DifferenceInDifferences InstrumentalVariables RegressionDiscontinuity SyntheticControl",
}
_ESTIMATORS = _table(_SKLEARN | _OWN_ESTIMATORS)
FUNCTIONS = _table(_FUNCTIONS)
TYPES: dict[str, type] = {
    **{f"builtins.{t.__name__}": t for t in (bool, int, float, complex, str, bytes, object)},
    **{
        f"numpy.{t.__name__}": t
        for t in (
            *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
            *(np.float16, np.float32, np.float64, np.complex64, np.complex128, np.str_, np.bytes_, np.object_),
            *(np.datetime64, np.timedelta64, np.number, np.integer, np.floating, np.inexact),
        )
    },
}


@dataclass(frozen=True)
class Form:
    """Conversion of objects of a small class to a dictionary and back."""

    state: Callable[[Any], dict[str, Any]]
    restore: Callable[[type, dict[str, Any]], Any]


def _attributes(*names: str) -> Callable[[Any], dict[str, Any]]:
    return lambda obj: {name: getattr(obj, name) for name in names}


def _build(cls: type, state: dict[str, Any]) -> Any:
    return cls(**state)


def _own_restore(cls: type, state: dict[str, Any]) -> Any:
    obj: Any = object.__new__(cls)
    obj.__epi_restore__(state)
    return obj


_OWN = Form(lambda obj: dict(obj.__epi_state__()), _own_restore)
_DATACLASS = Form(lambda obj: {f.name: getattr(obj, f.name) for f in dataclasses.fields(obj) if f.init}, _build)

#: Small classes that are no estimators, and their forms.
_SMALL: dict[str, tuple[str, str, Form]] = {
    "epicycle.Certificate": ("epicycle.core._certificate", "Certificate", _DATACLASS),
    "epicycle.MultivariateNormal": ("epicycle.stats._multivariate_normal", "MultivariateNormal", _OWN),
    "epicycle.History": ("epicycle.core._history", "History", Form(dict, _build)),
    "epicycle.control.FittedQIteration": ("epicycle.control.continuous._fitted_q_iteration", "FittedQIteration", _OWN),
    "epicycle.control.FittedValueIteration": (
        "epicycle.control.continuous._fitted_value_iteration",
        "FittedValueIteration",
        _OWN,
    ),
    "epicycle.control.CartPole": ("epicycle.control.simulators._cart_pole", "CartPole", _OWN),
    "epicycle.control.InvertedPendulum": ("epicycle.control.simulators._inverted_pendulum", "InvertedPendulum", _OWN),
    "epicycle.control.MountainCar": ("epicycle.control.simulators._mountain_car", "MountainCar", _OWN),
    "epicycle.control.Quadrotor2D": ("epicycle.control.simulators._quadrotor_2d", "Quadrotor2D", _OWN),
    "epicycle.control.Bicycle": ("epicycle.control.simulators._bicycle", "Bicycle", _OWN),
    "epicycle.causal.Constant": ("epicycle.causal.effects._nuisance", "Constant", _DATACLASS),
    "epicycle.causal.CausalForest": ("epicycle.causal.effects._causal_forest", "CausalForest", _DATACLASS),
    "epicycle.causal.RowEffects": ("epicycle.causal.effects._meta_learners", "RowEffects", _DATACLASS),
    "epicycle.causal.AndersonRubin": ("epicycle.causal.designs._anderson_rubin", "AndersonRubin", _DATACLASS),
    "epicycle.causal.HypothesisTest": ("epicycle.causal.designs._hypothesis_test", "HypothesisTest", _DATACLASS),
    "epicycle.Summary": ("epicycle.stats._summary", "Summary", _DATACLASS),
    "epicycle.causal.LinearEffect": ("epicycle.causal.effects._regression", "LinearEffect", _DATACLASS),
    "epicycle.control.ModelBasedAgent": ("epicycle.control.agents._model_based_agent", "ModelBasedAgent", _OWN),
    "epicycle.search.CFR": ("epicycle.search.equilibrium._cfr", "CFR", _OWN),
    "epicycle.search.SelfPlay": ("epicycle.search.equilibrium._self_play", "SelfPlay", _OWN),
    "epicycle.search.AlphaGo": ("epicycle.search.alpha_zero._alpha_go", "AlphaGo", _OWN),
    "epicycle.StyleTransfer": ("epicycle.generative.style._style_transfer", "StyleTransfer", _OWN),
    "epicycle.search.AlphaZero": ("epicycle.search.alpha_zero._alpha_zero", "AlphaZero", _OWN),
    "epicycle.TableGenerator": ("epicycle.automl.synthesis._table_generator", "TableGenerator", _OWN),
    "epicycle.training.ColumnCode": ("epicycle.automl.synthesis._table_codes", "ColumnCode", _DATACLASS),
    "epicycle.training.LevelMeans": ("epicycle.automl.tables._level_means", "LevelMeans", _OWN),
    "epicycle.training.MultiOutputTableModel": (
        "epicycle.automl.multioutput._multi_output_table_model",
        "MultiOutputTableModel",
        _OWN,
    ),
    "epicycle.training.PairFactors": ("epicycle.automl.tables._pair_factors", "PairFactors", _DATACLASS),
    "epicycle.training.TextFeatures": ("epicycle.automl.tables._text_features", "TextFeatures", _DATACLASS),
    "epicycle.text.WordVectors": ("epicycle.text.words._word_vectors", "WordVectors", _OWN),
    "epicycle.bayes.Draws": ("epicycle.bayes.sampling._draws", "Draws", _OWN),
    "epicycle.kernel.gp.MeanFunction": ("epicycle.gp._mean_functions", "MeanFunction", _DATACLASS),
    "epicycle.tree.Tree": ("epicycle.tree.cart._tree", "Tree", _OWN),
    "scipy.interpolate.BSpline": (
        "scipy.interpolate",
        "BSpline",
        Form(_attributes("t", "c", "k", "extrapolate", "axis"), _build),
    ),
    "sklearn.compose.make_column_selector": (
        "sklearn.compose",
        "make_column_selector",
        Form(_attributes("pattern", "dtype_include", "dtype_exclude"), _build),
    ),
}

#: Agents and strategies, stored by their arguments and all that they have learnt; schedules of their arguments.
_AGENTS = {
    "tabular": "SARSA DoubleQLearning DynaQ ExpectedSARSA MonteCarloControl MonteCarloPrediction PrioritizedSweeping "
    "QLearning TDPrediction",
    "bandits": "Bandit LinUCB",
    "policy_search": "CrossEntropyMethod EvolutionStrategy Pegasus Reinforce",
    "deep": "ActorCritic DQN PPO SAC TD3",
    "linear": "FourierBasis LinearQLearning LinearSARSA TileCoding",
    "imitation": "BehaviorCloning DAgger",
    "inverse": "InverseRL",
}
_SCHEDULES = "EpsilonGreedy ExponentialDecay LinearDecay Softmax UCB VisitDecay"
_SMALL |= {
    f"epicycle.rl.{name}": (f"epicycle.rl.{module}", name, _OWN)
    for module, names in _AGENTS.items()
    for name in names.split()
}
_SMALL |= {f"epicycle.rl.{name}": ("epicycle.rl._schedules", name, _DATACLASS) for name in _SCHEDULES.split()}

#: The families and links of generalized linear models, stored by their parameters.
_GLM = {
    "families": "Binomial Exponential Gamma Gaussian InverseGaussian Multinomial NegativeBinomial Poisson Tweedie",
    "links": "CLogLog Identity Inverse InverseSquared Log Logit Power Probit Sqrt",
}
_SMALL |= {
    f"epicycle.{module}.{name}": (f"epicycle.stats.{module}", name, _OWN)
    for module, names in _GLM.items()
    for name in names.split()
}

#: Conjugate models, stored by their parameters.
_CONJUGATE = {
    "beta": "BetaBernoulli BetaBinomial",
    "dirichlet": "DirichletCategorical DirichletMultinomial",
    "gamma": "GammaExponential GammaPoisson",
    "normal_inverse_gamma": "NormalInverseGamma",
    "normal_inverse_wishart": "NormalInverseWishart",
    "normal_known_variance": "NormalKnownVariance",
}
_SMALL |= {
    f"epicycle.bayes.conjugate.{name}": (f"epicycle.bayes.conjugate._{module}", name, _DATACLASS)
    for module, names in _CONJUGATE.items()
    for name in names.split()
}

#: Kernels, stored by their parameters.
_KERNELS = {
    "compositions": "Constant Normalized Power Product Scaled Sum",
    "given": "FunctionKernel Precomputed",
    "histograms": "ChiSquare HistogramIntersection",
    "inner_products": "Linear Polynomial Sigmoid",
    "networks": "ArcCosine NNGP NeuralTangent",
    "stationary": "Gaussian Laplacian Matern Periodic RationalQuadratic",
    "scikit_learn": "ScikitLearnKernel",
    "strings": "Mismatch Spectrum Subsequence",
}
_SMALL |= {
    f"epicycle.kernel.{name}": (f"epicycle.kernels._{module}", name, _DATACLASS)
    for module, names in _KERNELS.items()
    for name in names.split()
}

#: Kernels of scikit-learn, stored by their parameters too.
_SCIKIT_LEARN_KERNELS = (
    *("ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern", "PairwiseKernel", "Product", "RBF"),
    *("RationalQuadratic", "Sum", "WhiteKernel"),
)
_PARAMETERS = Form(lambda obj: dict(obj.get_params(deep=False)), _build)
_SMALL |= {
    f"sklearn.gaussian_process.kernels.{name}": ("sklearn.gaussian_process.kernels", name, _PARAMETERS)
    for name in _SCIKIT_LEARN_KERNELS
}

_registered: dict[str, tuple[type, Form | None]] = {}
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


def register(
    cls: C,
    name: str,
    *,
    state: Callable[[Any], dict[str, Any]] | None = None,
    restore: Callable[[type, dict[str, Any]], Any] | None = None,
) -> C:
    """Allow model files to hold objects of `cls`, under `name`.

    Parameters
    ----------
    cls : type
        An estimator (it has ``get_params``), a dataclass, a class with ``__epi_state__() -> dict`` and
        ``__epi_restore__(state)``, or any class if `state` and `restore` are given.
    name : str
        What stands in the file: a dotted name that no other class has. The class has to be registered under the
        same name before such a file is loaded.
    state, restore : callable, optional
        ``state(obj)`` gives a dictionary of values that a file can hold; ``restore(cls, state)`` builds the object.

    Returns
    -------
    type
        `cls` itself.
    """
    if not isinstance(cls, type):
        raise ParameterTypeError(f"cls must be a class, got {cls!r:.80}")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ParameterError(f"name must be a dotted name such as 'package.Class', got {name!r:.80}")
    taken = _registered[name][0] if name in _registered else cls
    # A class that is defined again, as in a notebook, takes its own place.
    is_other = (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__)
    if name in _SMALL or name in _ESTIMATORS or name in _exports() or is_other:
        raise ParameterError(f"name is already that of another class: {name!r}")
    if (state is None) != (restore is None):
        raise ParameterError("state and restore have to be given together")
    form = Form(state, restore) if state is not None and restore is not None else _natural_form(cls)
    if form is None and not hasattr(cls, "get_params"):
        raise ParameterTypeError(
            f"cls must be an estimator, a dataclass or define __epi_state__ and __epi_restore__, got {cls.__name__}"
        )
    _registered[name] = (cls, form)
    return cls


def class_named(name: str) -> tuple[type, Form | None]:
    """The class that a file calls `name` and its form (None: an estimator, stored as parameters and fitted state)."""
    if name in _registered:
        return _registered[name]
    if name in _SMALL:
        module, attribute, form = _SMALL[name]
        return getattr(import_module(module), attribute), form
    if name in _ESTIMATORS:
        module, attribute = _ESTIMATORS[name]
        return getattr(import_module(module), attribute), None
    if name in _exports():
        module, attribute = _exports()[name]
        cls = getattr(import_module(module), attribute)
        if isinstance(cls, type) and hasattr(cls, "get_params"):
            return cls, _natural_form(cls)
    raise ModelFormatError(
        f"the file names {name[:120]!r}, which is not a class that a model file may hold; nothing was imported or run"
    )


def name_of_class(cls: type) -> str | None:
    """The name under which a file holds objects of exactly this class, or None."""
    for name, (registered, _) in _registered.items():
        if registered is cls:
            return name
    tables = [*((n, m, a) for n, (m, a, _) in _SMALL.items()), *((n, m, a) for n, (m, a) in _ESTIMATORS.items())]
    tables += [(n, m, a) for n, (m, a) in _exports().items()]
    for name, module, attribute in tables:
        # A module that is not loaded cannot have defined the class at hand.
        if attribute == cls.__name__ and getattr(sys.modules.get(module), attribute, None) is cls:
            return name
    return None


def function_named(name: str) -> Any:
    """The function that a file calls `name`."""
    if name not in FUNCTIONS:
        raise ModelFormatError(f"the file names {name[:120]!r}, which is not a function that a model file may hold")
    module, attribute = FUNCTIONS[name]
    return getattr(import_module(module), attribute)


def name_of_function(value: Any) -> str | None:
    """The name under which a file holds this very function, or None."""
    for name, (module, attribute) in FUNCTIONS.items():
        if getattr(sys.modules.get(module), attribute, None) is value:
            return name
    return None


def parameter_names(cls: type) -> set[str]:
    """Names of the arguments of an estimator's constructor."""
    parameters = inspect.signature(cls).parameters.values()
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def _natural_form(cls: type) -> Form | None:
    if hasattr(cls, "__epi_state__") and hasattr(cls, "__epi_restore__"):
        return _OWN
    if dataclasses.is_dataclass(cls) and not hasattr(cls, "get_params"):
        return _DATACLASS
    return None


def _exports() -> dict[str, tuple[str, str]]:
    exports: dict[str, str] = import_module("epicycle")._PUBLIC
    return {f"epicycle.{name}": (module, name) for name, module in exports.items()}
