"""Every scikit-learn object that a model file may hold, fitted on a small real table."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from mean_regressor import MeanRegressor
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
from sklearn.datasets import load_iris
from sklearn.feature_selection import (
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    chi2,
    f_regression,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    LabelBinarizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    MultiLabelBinarizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

NUMBERS = ["sepal_length", "sepal_width", "petal_length", "petal_width"]


@dataclass(frozen=True)
class Case:
    """A fitted object, and a call whose result it has to repeat after a round trip."""

    name: str
    model: Any
    method: str
    X: Any


def iris() -> tuple[pd.DataFrame, np.ndarray]:
    """Every fifth row of iris: four numbers, the species as text, a column with gaps; and the petal width as target."""
    bunch = load_iris()
    rows = slice(None, None, 5)
    table = pd.DataFrame(bunch.data[rows], columns=NUMBERS)
    table["species"] = np.asarray(bunch.target_names, dtype=object)[bunch.target[rows]]
    table["gaps"] = table["sepal_width"].where(np.arange(len(table)) % 4 != 0)
    return table, bunch.data[rows, 3]


def cases() -> list[Case]:
    """All cases, fitted."""
    table, y = iris()
    numbers, text, gaps = table[NUMBERS], table[["species"]], table[["sepal_length", "gaps"]]
    labels = table["species"].to_numpy(dtype=object)
    tags = [("a", "b"), ("c",), ()]

    found = []

    def add(name: str, model: Any, X: Any, y: Any = None, method: str = "transform", on: Any = None) -> None:
        model.fit(X) if y is None else model.fit(X, y)
        found.append(Case(name, model, method, X if on is None else on))

    add("standard_scaler", StandardScaler(), numbers)
    add("standard_scaler_float32", StandardScaler(), numbers.to_numpy(dtype=np.float32))
    add("min_max_scaler", MinMaxScaler(feature_range=(-1, 1)), numbers)
    add("max_abs_scaler", MaxAbsScaler(), numbers)
    add("robust_scaler", RobustScaler(quantile_range=(10.0, 90.0)), numbers)
    add("normalizer", Normalizer("l1"), numbers)
    add("binarizer", Binarizer(threshold=2.0), numbers)
    add("power_transformer", PowerTransformer(), numbers)
    add("quantile_transformer", QuantileTransformer(n_quantiles=10, random_state=0), numbers)
    add("polynomial_features", PolynomialFeatures(2, interaction_only=True), numbers)
    add("spline_transformer", SplineTransformer(n_knots=4), numbers)
    add("k_bins_discretizer", KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), numbers)
    add("function_transformer", FunctionTransformer(np.log1p, np.expm1), numbers)
    add("identity_function", FunctionTransformer(), numbers)
    add("one_hot_encoder", OneHotEncoder(handle_unknown="ignore"), text)
    add("one_hot_infrequent", OneHotEncoder(min_frequency=11, handle_unknown="infrequent_if_exist"), text)
    add("one_hot_drop", OneHotEncoder(drop="first", dtype=np.float32, sparse_output=False), text)
    add("ordinal_encoder", OrdinalEncoder(), text)
    add("label_encoder", LabelEncoder(), labels)
    add("label_binarizer", LabelBinarizer(), labels)
    add("multi_label_binarizer", MultiLabelBinarizer(), tags)
    add("target_encoder", TargetEncoder(random_state=0), text, y)
    add("target_encoder_classes", TargetEncoder(random_state=0), table[["gaps"]].fillna(0).round(), labels)
    add("simple_imputer", SimpleImputer(add_indicator=True), gaps)
    add("simple_imputer_text", SimpleImputer(strategy="most_frequent"), text.to_numpy(dtype=object))
    add("knn_imputer", KNNImputer(n_neighbors=2), gaps)
    add("missing_indicator", MissingIndicator(), gaps)
    add("variance_threshold", VarianceThreshold(0.2), numbers)
    add("select_k_best", SelectKBest(f_regression, k=2), numbers, y)
    add("select_percentile", SelectPercentile(chi2, percentile=50), numbers, labels)
    add("select_fdr", SelectFdr(f_regression), numbers, y)
    add("select_fpr", SelectFpr(f_regression), numbers, y)
    add("select_fwe", SelectFwe(f_regression), numbers, y)
    add("select_generic", GenericUnivariateSelect(f_regression, mode="k_best", param=1), numbers, y)
    add("frozen", FrozenEstimator(StandardScaler().fit(numbers)), numbers, y)
    add("union", make_union(StandardScaler(), MinMaxScaler()), numbers)
    add(
        "weighted_union",
        FeatureUnion([("a", StandardScaler()), ("b", "passthrough")], transformer_weights={"a": 2.0}),
        numbers,
    )
    add("pipeline", make_pipeline(SimpleImputer(), StandardScaler(), PolynomialFeatures(2)), gaps)
    add("columns_by_name", _columns(), table)
    add("columns_as_frame", _columns().set_output(transform="pandas"), table)
    add("columns_by_mask", _columns_by_position(), numbers.to_numpy())
    add("columns_by_dtype", _columns_by_dtype(), numbers)
    add("target_transformer", _target_regressor(), numbers, y, method="predict")
    return found


def _columns() -> ColumnTransformer:
    numeric = Pipeline([("fill", SimpleImputer(strategy="median")), ("scale", StandardScaler())])
    return ColumnTransformer(
        [
            ("numbers", numeric, ["sepal_length", "gaps"]),
            ("text", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["species"]),
            ("nothing", "drop", ["petal_width"]),
        ],
        remainder=MaxAbsScaler(),
    )


def _columns_by_position() -> ColumnTransformer:
    return make_column_transformer(
        (StandardScaler(), [True, False, False, True]), (MinMaxScaler(), slice(1, 2)), remainder="passthrough"
    )


def _columns_by_dtype() -> ColumnTransformer:
    return make_column_transformer((StandardScaler(), make_column_selector("petal", dtype_include=np.number)))


def _target_regressor() -> TransformedTargetRegressor:
    return TransformedTargetRegressor(MeanRegressor(), func=np.log1p, inverse_func=np.expm1)
