"""Models inside scikit-learn's pipelines, searches, wrappers and displays."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn import datasets, inspection, metrics, model_selection as ms, preprocessing as prep
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SelectKBest, SequentialFeatureSelector, f_classif
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.multiclass import OneVsOneClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier
from user_guide import CANCER, DIABETES, IRIS, MOONS, WINE, halves, snippet


@snippet(0.02)
def columns_of_numbers_and_categories(m):
    import pandas as pd

    rng = np.random.RandomState(0)
    table = pd.DataFrame(
        {
            "age": np.where(rng.rand(300) < 0.1, np.nan, rng.uniform(1, 70, 300)),
            "fare": rng.exponential(30, 300),
            "port": rng.choice(["C", "Q", "S"], 300),
        }
    )
    y = (table["fare"] + 20 * (table["port"] == "C") + rng.normal(0, 10, 300) > 30).astype(int)
    numbers = make_pipeline(SimpleImputer(strategy="median"), prep.StandardScaler())
    prepare = ColumnTransformer([("number", numbers, ["age", "fare"]), ("port", prep.OneHotEncoder(), ["port"])])
    model = make_pipeline(prepare, m.LogisticRegression())
    return ms.cross_validate(model, table, y, cv=4, scoring=["accuracy", "roc_auc"])["test_roc_auc"].mean()


@snippet(0.05)
def frames_that_stay_frames(m):
    import pandas as pd

    X, y = datasets.load_wine(return_X_y=True, as_frame=True)
    scaler = prep.StandardScaler().set_output(transform="pandas")
    model = make_pipeline(scaler, SelectFromModel(m.RandomForestClassifier(30, random_state=0)), m.Ridge())
    model[:-1].set_output(transform="pandas")
    model.fit(X, y)
    assert isinstance(model[:-1].transform(X), pd.DataFrame)
    assert list(model[-1].feature_names_in_) == list(model[:-1].get_feature_names_out())
    return model.score(X, y)


@snippet(0.02)
def calibration_of_a_margin(m):
    X, y = datasets.make_classification(600, 10, n_informative=3, random_state=0)
    X_train, X_test, y_train, y_test = halves(X, y)
    model = CalibratedClassifierCV(m.LinearSVC(random_state=0), cv=3, method="sigmoid").fit(X_train, y_train)
    P = model.predict_proba(X_test)[:, 1]
    fraction, _ = calibration_curve(y_test, P, n_bins=3)
    return metrics.brier_score_loss(y_test, P), fraction


@snippet(0.03)
def learning_and_validation_curves(m):
    sizes, train, test = ms.learning_curve(
        m.SVC(gamma=0.01), *IRIS, cv=3, train_sizes=[0.5, 1.0], shuffle=True, random_state=0
    )
    _, valid = ms.validation_curve(m.SVC(), *IRIS, param_name="gamma", param_range=[1e-3, 1e-1], cv=3)
    return sizes, train.mean(axis=1), test.mean(axis=1), valid.mean(axis=1)


@snippet(1e-3)
def predictions_by_cross_validation(m):
    predicted = ms.cross_val_predict(m.LinearRegression(), *DIABETES, cv=10)
    scores = ms.cross_val_predict(m.LogisticRegression(max_iter=5000), *IRIS, cv=5, method="predict_proba")
    return metrics.r2_score(DIABETES[1], predicted), metrics.log_loss(IRIS[1], scores)


@snippet(0.02)
def curves_and_confusion_displayed(m):
    X_train, X_test, y_train, y_test = halves(*CANCER)
    model = make_pipeline(prep.StandardScaler(), m.SVC(random_state=0)).fit(X_train, y_train)
    roc = metrics.RocCurveDisplay.from_estimator(model, X_test, y_test)
    confusion = metrics.ConfusionMatrixDisplay.from_estimator(model, X_test, y_test)
    recall = metrics.PrecisionRecallDisplay.from_estimator(model, X_test, y_test)
    inspection.DecisionBoundaryDisplay.from_estimator(m.SVC().fit(*MOONS), MOONS[0], response_method="predict")
    return roc.roc_auc, np.trace(confusion.confusion_matrix) / len(y_test), recall.average_precision


@snippet(0.02)
def feature_selection_of_four_kinds(m):
    X, y = prep.scale(WINE[0]), WINE[1]
    ridge = m.LogisticRegression()
    chosen = [
        RFE(ridge, n_features_to_select=4).fit(X, y).transform(X),
        SequentialFeatureSelector(ridge, n_features_to_select=3, cv=3).fit(X, y).transform(X),
        RFECV(ridge, cv=3, min_features_to_select=3, step=3).fit(X, y).transform(X),
        make_pipeline(SelectKBest(f_classif, k=4)).fit(X, y).transform(X),
    ]
    return [clone(ridge).fit(Z, y).score(Z, y) for Z in chosen]


@snippet(0.03)
def several_targets_by_wrappers(m):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(150, 4))
    Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 2] - X[:, 0]]) + 0.1 * rng.normal(size=(150, 2))
    regressors = MultiOutputRegressor(m.SVR(C=10)), RegressorChain(m.Ridge(), order=[1, 0])
    classifiers = MultiOutputClassifier(m.LogisticRegression()), ClassifierChain(m.LogisticRegression())
    return [r.fit(X, Y).score(X, Y) for r in regressors] + [c.fit(X, Y > 0).score(X, Y > 0) for c in classifiers]


@snippet(0.03)
def several_classes_by_wrappers(m):
    pairs = OneVsOneClassifier(m.LinearSVC(random_state=0)).fit(*IRIS)
    codes = OutputCodeClassifier(m.LogisticRegression(max_iter=1000), code_size=4, random_state=0).fit(*IRIS)
    return pairs.score(*IRIS), codes.score(*IRIS)


@snippet(0.03)
def missing_values_and_few_labels(m):
    rng = np.random.RandomState(0)
    X, y = IRIS
    holes = np.where(rng.rand(*X.shape) < 0.1, np.nan, X)
    filled = IterativeImputer(m.Ridge(), random_state=0, max_iter=30, tol=1e-2).fit_transform(holes)
    few = np.where(rng.rand(len(y)) < 0.7, -1, y)
    model = SelfTrainingClassifier(m.SVC(probability=True, gamma="auto", random_state=0)).fit(filled, few)
    return np.abs(filled - X).mean(), model.score(filled, y)


@snippet(0.03)
def union_of_components_and_columns(m):
    union = FeatureUnion([("pca", PCA(2)), ("best", SelectKBest(k=1))])
    grid = {"union__pca__n_components": [1, 2], "svc__C": [0.1, 1, 10]}
    search = ms.GridSearchCV(Pipeline([("union", union), ("svc", m.SVC(kernel="linear"))]), grid, cv=3)
    columns = make_column_transformer((prep.StandardScaler(), [0, 1]), (prep.MinMaxScaler(), slice(2, 4)))
    plain = make_pipeline(columns, m.KNeighborsClassifier()).fit(*IRIS)
    return search.fit(*IRIS).best_score_, plain.score(*IRIS)


@snippet(1e-3)
def sparse_input_in_three_formats(m):
    X = sp.random(200, 50, density=0.1, random_state=0)
    y = np.asarray(X @ np.arange(50.0)).ravel() / 10 + 0.1
    return [
        m.Ridge(alpha=0.1).fit(made(X), y).score(made(X), y) for made in (sp.csr_matrix, sp.csc_matrix, sp.coo_array)
    ]


@snippet(0.02)
def successive_halving(m):
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401

    grid = {"C": [0.1, 1, 10, 100], "gamma": [0.1, 1.0]}
    search = ms.HalvingGridSearchCV(m.SVC(), grid, cv=3, factor=2, random_state=0).fit(*MOONS)
    return search.best_score_
