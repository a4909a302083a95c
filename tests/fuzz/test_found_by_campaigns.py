"""What campaigns of random fits have found as the smallest fit that showed it: an answer, or an error in words."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.model_selection import ShuffleSplit

import epicycle as ep
from epicycle import metrics
from epicycle.bayes._bayesian_logistic_regression import _half_of
from epicycle.bayes._logistic_posterior import inverse_half
from epicycle.exceptions import DataError, DataTypeError, MemoryBudgetError, ParameterError
from epicycle.linalg._dependencies import Dependencies
from epicycle.linear._storage import stored_type
from epicycle.linear.epicycles._newton import _steps
from epicycle.linear.lars._least_angle import LeastAngle
from epicycle.linear.least_squares._direct import _root_of_factor
from epicycle.linear.least_squares._objective import excess_certificate
from epicycle.linear.logistic._logistic_regression import _attributes
from epicycle.recommend import CollaborativeFiltering
from epicycle.recommend._alternating import _ratio


@pytest.fixture
def rng():
    return np.random.default_rng(0)


pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_ranking_needs_no_biases(rng):
    user, item = rng.integers(0, 20, 600), rng.integers(0, 12, 600)
    pairs = np.column_stack([user, item])[(user + item) % 2 == 0]  # even users like even items
    model = CollaborativeFiltering("bpr", n_factors=3, biases=False, max_iter=20, random_state=0).fit(pairs)
    assert np.isfinite(model.history_.objective).all()
    assert model.history_.objective[-1] < model.history_.objective[0]
    s = model.user_factors_ @ model.item_factors_.T
    _, scores = model.recommend(model.users_[0], 2, exclude_seen=False)
    assert_allclose(scores, np.sort(s[0])[::-1][:2])


def test_shares_of_weights_that_underflow_are_not_drawn(rng):
    A, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    weight = np.where(np.arange(12) < 4, 1e100, 1e-300)
    model = ep.BaggingClassifier(bootstrap=False, random_state=0).fit(A, y, sample_weight=weight)
    assert np.isfinite(model.predict_proba(A)).all()


def test_a_class_beside_huge_weights_has_a_finite_score(rng):
    A, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    model = ep.GradientBoostingClassifier(n_estimators=3).fit(A, y, sample_weight=np.where(y == 1, 1e30, 1.0))
    assert np.isfinite(model.decision_function(A)).all()


def test_columns_of_zeros_leave_no_coefficient_to_solve_for():
    model = ep.HuberRegressor(alpha=0.0, fit_intercept=False).fit(np.zeros((3, 1)), np.array([0, 1, 1]))
    assert model.coef_.tolist() == [0.0]


def test_degrees_beyond_all_memory_are_refused_before_work(rng):
    with pytest.raises(MemoryBudgetError, match="degree 4611686018427387904"):
        ep.PolynomialRegression(degree=2**62).fit(rng.normal(size=(3, 40)), np.arange(3.0))


def test_clusters_of_huge_products_are_refused_by_name(rng):
    with pytest.raises(DataError, match="C, sample_weight, X"):
        ep.MaxMarginClustering(C=1e300).fit(rng.normal(size=(6, 3)))


def test_scores_of_a_one_class_machine_may_be_beyond_float32(rng):
    A = rng.normal(size=(6, 3)).astype(np.float32)
    model = ep.OneClassSVM().fit(A, sample_weight=np.full(6, 1e140))
    assert np.isfinite(model.score_samples(A)).all()


def test_weights_that_leave_nothing_beside_the_validation_set(rng):
    A, y = rng.normal(size=(10, 2)), rng.normal(size=10)
    (_, held) = next(ShuffleSplit(1, test_size=0.1, random_state=0).split(A))
    weight = np.isin(np.arange(10), held).astype(float)
    model = ep.SGDRegressor(early_stopping=True, random_state=np.random.RandomState(0))
    with pytest.raises(DataError, match="beside the validation set"):
        model.fit(A, y, sample_weight=weight)


def test_an_unlimited_number_of_trials_ends(rng):
    A, y = rng.normal(size=(20, 1)), rng.normal(size=20)
    model = ep.RANSACRegressor(max_trials=np.inf, stop_probability=0.99, min_samples=18, random_state=0).fit(A, y)
    assert model.n_trials_ >= 2_000
    assert np.isfinite(model.predict(A)).all()
    with pytest.raises(DataError, match="could not find a valid consensus"):
        ep.RANSACRegressor(max_trials=np.inf, is_data_valid=lambda X, y: False).fit(A, y)


def test_noise_below_the_rounding_of_the_kernel_counts_as_that(rng):
    A, y = rng.normal(size=(8, 3)), rng.normal(size=8)
    model = ep.GaussianProcessRegressor(method="cg", noise=1e-300, noise_bounds=None).fit(A, y)
    mean, deviation = model.predict(A, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(deviation).all()


def test_circles_whose_derivatives_overflow_are_refused_by_name(rng):
    A = rng.normal(size=(60, 40))[:, :3] + 1e8
    with pytest.raises(DataError, match="overflow"):
        ep.EpicycleRegression(n_circles=8, fit_centre=False, tol=1e-300).fit(A, np.full(60, -1e150))


def test_noise_beyond_the_type_of_the_rows_is_refused_by_name(rng):
    A, y = rng.normal(size=(6, 2)).astype(np.float32), rng.normal(size=6)
    with pytest.raises(ParameterError, match=r"jitter=1e\+150"):
        ep.Lars(jitter=1e150).fit(A, y)


def test_rows_without_a_correlation_are_refused_by_name(rng):
    with pytest.raises(DataError, match="metric='correlation'"):
        ep.KNeighborsTransformer(metric="correlation").fit(rng.normal(size=(30, 1))).transform(rng.normal(size=(3, 1)))


def test_a_prior_below_the_rounding_of_the_likelihood_leaves_a_posterior():
    half = inverse_half(np.full((3, 3), 1e30) + np.eye(3))
    assert np.isfinite(half).all()
    assert (np.diagonal(half) > 0).all()
    assert_allclose(half, np.triu(half))
    # Along the sum of the columns the likelihood decides.
    assert_allclose(1 / np.sqrt(np.sum((half.T @ np.ones(3)) ** 2)), 1e15, rtol=1e-6)


def test_a_hessian_of_other_rows_is_not_kept(rng):
    # Squared hinges are quadratic in pieces: with the Hessian of an old piece steps shrink by a little each.
    A, y = rng.normal(size=(30, 8)).astype(np.float32), rng.integers(6, size=30)
    model = ep.LinearSVC(C=1e150, penalty="l1", max_iter=150).fit(A, y)
    assert model.n_iter_ < 60


def test_runs_that_only_rounding_moves_have_stalled():
    rng = np.random.default_rng(1)
    A, y = rng.normal(size=(60, 40)).round(2), rng.integers(5, size=60)
    weight = rng.uniform(size=60) * 1e100
    model = ep.LogisticRegression(max_iter=1000).fit(A, y, sample_weight=weight)
    assert model.n_iter_ < 100


def test_ties_of_many_columns_end():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A, y = rng.integers(0, 2, size=(12, 40)).astype(float), rng.normal(size=12)
        model = ep.Lars("lasso").fit(A, y)
        assert model.certificate_.holds
        assert model.n_iter_ < 200


@pytest.mark.parametrize("metric", ["dice", "rogerstanimoto", "jaccard", "yule", "braycurtis"])
def test_rows_of_zeros_are_their_own_neighbours(metric):
    A, y = np.zeros((4, 3)), np.arange(4.0)
    distances, _ = ep.NearestNeighbors(metric=metric).fit(A).kneighbors(A, 4)
    assert (distances == 0).all()
    assert_allclose(ep.RadiusNeighborsRegressor(metric=metric, radius=0.5).fit(A, y).predict(A), 1.5)


def test_a_single_feature_has_no_weights_to_normalise():
    model = ep.ComplementNB(norm=True).fit(np.array([[1.0], [2.0], [0.0]]), [0, 1, 0])
    assert np.isfinite(model.predict_proba([[3.0]])).all()


def test_many_classes_of_few_rows_need_no_inducing_rows(rng):
    # One factor of 33 times 34 rows costs more than 33 factors of 34 rows.
    A, y = rng.normal(size=(34, 2)), np.arange(34) % 33
    model = ep.GaussianProcessClassifier(optimizer=None).fit(A, y)
    assert model.method_ == "exact"


@pytest.mark.parametrize("emission", ["gaussian", "mixture", "poisson"])
def test_states_beyond_all_memory_are_refused_before_work(emission):
    with pytest.raises(MemoryBudgetError, match="1000000000 states"):
        ep.HiddenMarkovModel(n_states=10**9, emission=emission).fit(np.ones((6, 2)))


def test_precisions_that_overflow_are_not_tried(rng):
    A = rng.normal(size=(6, 8)) * np.array([1e100, 1e150, 1e-150, 1e5, 1e-300, 1e150, 1e150, 1e-300])
    model = ep.ARDRegression(lambda_1=1e-300, lambda_2=1e-3).fit(A, rng.normal(size=6))
    assert np.isfinite(model.predict(A)).all()


@pytest.mark.parametrize("metric", ["euclidean", "minkowski"])
def test_a_radius_beyond_all_numbers_holds_everything(rng, metric):
    A = rng.normal(size=(6, 2))
    assert (ep.DBSCAN(eps=1e300, min_samples=2, metric=metric, p=3).fit(A).labels_ == 0).all()
    near = ep.NearestNeighbors(radius=1e300, metric=metric, p=3).fit(A).radius_neighbors(A, return_distance=False)
    assert all(len(row) == 6 for row in near)


def test_coefficients_that_overflow_are_refused_by_name():
    A = np.array(
        [
            [-1.25e-151, -8.5e149, 9.7e-6],
            [-6.8e-151, -9.1e149, 4.4e-6],
            [-9.9e-151, 3.9e149, 4.3e-6],
            [1.7e-150, 2.2e150, -4.4e-6],
            [4.5e-153, -2.2e150, -6.8e-6],
            [-8.9e-151, -1.1e150, 5.8e-6],
        ]
    )
    y = np.array([-4.86e99, -5.92e99, -3.08e99, -9.9e99, -1.02e100, -2.36e99])
    with pytest.raises(DataError, match="coefficients overflow"):
        ep.LinearSpline(n_knots=10).fit(A, y)


def test_scores_of_a_linear_machine_that_overflow_are_refused_by_name():
    A, y = np.full((12, 1), 1e150), np.arange(12) % 2
    with pytest.raises(DataError, match="C, sample_weight, X"):
        ep.LinearSVC(multi_class="crammer_singer").fit(A, y, sample_weight=np.linspace(1e98, 1e99, 12))


def test_centers_are_drawn_from_shares_that_underflow():
    weight = np.where(np.arange(12) < 2, 1e100, 1e-300)
    model = ep.KMeans(4, init="random", random_state=0).fit(np.arange(12.0)[:, None], sample_weight=weight)
    assert len(np.unique(model.cluster_centers_)) == 4
    for init in ("random", "lab", "k-medoids++"):
        medoids = ep.KMedoids(4, init=init, random_state=0).fit(np.arange(12.0)[:, None], sample_weight=weight)
        assert len(np.unique(medoids.medoid_indices_)) == 4


def test_squares_of_sums_that_overflow_are_not_needed(rng):
    weight = np.where(np.arange(12) < 3, 1e100, 1.0)
    model = ep.KMeans(3, random_state=0).fit(1e60 * rng.normal(size=(12, 3)), sample_weight=weight)
    assert np.isfinite(model.inertia_)


def test_affinities_that_are_no_square_are_refused_by_name(rng):
    with pytest.raises(DataError, match="square"):
        ep.SpectralEmbedding(affinity="precomputed_nearest_neighbors").fit(
            rng.uniform(size=(12, 3)), sample_weight=np.arange(12) % 3
        )


def test_a_curvature_that_overflows_is_refused_by_name(rng):
    A, weight = 1e150 * rng.normal(size=(4, 2)), np.full(4, 1e20)
    with pytest.raises(DataError, match="X, sample_weight"):
        ep.BayesianLogisticRegression(method="variational").fit(A, [0, 1, 0, 1], sample_weight=weight)


def test_counts_of_large_weights_are_kept_in_float64(rng):
    A = rng.normal(size=(6, 2)).astype(np.float32)
    model = ep.BayesianGaussianMixture().fit(A, sample_weight=np.full(6, 1e100))
    assert np.isfinite(model.score_samples(A)).all()


def test_promax_of_fewer_factors_than_asked_for():
    # One direction in two columns: the second factor has no loadings, and its rotation no inverse.
    x = np.random.default_rng(0).normal(size=60)
    X = np.column_stack([x, 2 * x])
    for rotation in ("promax", "oblimin"):
        model = ep.FactorAnalysis(2, rotation=rotation).fit(X)
        assert np.isfinite(model.components_).all()


@pytest.mark.parametrize("n_bins", [10**9, 2**62])
def test_bins_without_number_are_one_for_every_value(rng, n_bins):
    A = rng.normal(size=(12, 2))
    assert [len(ends) for ends in ep.KModes(2, n_bins=n_bins).fit(A).bins_.values()] == [12, 12]


def test_singular_values_are_found_where_divide_and_conquer_gives_up(rng, monkeypatch):
    A, given = rng.normal(size=(9, 6)), scipy.linalg.svd

    def moody(*args, lapack_driver="gesdd", **options):
        if lapack_driver == "gesdd":
            raise np.linalg.LinAlgError("SVD did not converge")
        return given(*args, lapack_driver=lapack_driver, **options)

    expected = ep.PolynomialRegression(2, alpha=0.1).fit(A, A[:, 0])
    monkeypatch.setattr(scipy.linalg, "svd", moody)
    assert_allclose(ep.PolynomialRegression(2, alpha=0.1).fit(A, A[:, 0]).coef_, expected.coef_, rtol=1e-8)


def test_some_of_many_equal_eigenvalues_are_found():
    # Bisection for the largest seven of 30 eigenvalues of these five groups of equal rows ends with "Internal Error".
    A = [0, 0, 0, 0, 1, 0, 0, 1, 1, 0, -1, -1, 0, -1, -1, 0, 0, 1, 1, 0, 0, -1, 0, 0, -1, 0, -2, 2, 0, -1]
    model = ep.SpectralClustering(8, random_state=0).fit(np.array(A)[:, None])
    assert set(model.labels_) == set(range(8))


def test_a_kernel_of_zeros_predicts_zeros():
    model = ep.KernelRidge(alpha=1e-300, kernel="cosine").fit(np.zeros((3, 1)), np.arange(3.0), np.full(3, 1e99))
    assert_allclose(model.predict(np.ones((2, 1))), 0.0)
    with pytest.raises(DataError, match="raise alpha"):
        ep.KernelRidge(alpha=1e-300).fit(np.full((3, 1), 1e-150), np.arange(3.0), np.full(3, 1e99))


@pytest.mark.parametrize("table", [np.asarray, sp.csr_array])
def test_a_radius_beyond_all_numbers_of_tiny_rows_holds_everything(rng, table):
    A = table(1e-300 * rng.normal(size=(6, 8)))
    assert (ep.DBSCAN(eps=1e150, min_samples=2).fit(A).labels_ == 0).all()
    assert_allclose(ep.OPTICS(min_samples=2, max_eps=1e150).fit(A).ordering_, ep.OPTICS(min_samples=2).fit(A).ordering_)


def test_mixtures_in_single_precision_are_drawn_from_their_factors(rng):
    A = 100 * np.array([[-1, 1, 1, 1], [1, 1, -1, -1]], dtype=np.float32)  # its covariance is singular in float32
    drawn, _ = ep.GaussianMixture(random_state=0).fit(A).sample(2000)
    assert_allclose(np.cov(drawn.T), np.cov(A.T, bias=True), atol=1000)
    for kind in ("tied", "diag", "spherical"):
        B = rng.normal(size=(500, 2)) * [1.0, 2.0]
        model = ep.GaussianMixture(covariance_type=kind, random_state=0).fit(B)
        assert_allclose(model.sample(20_000)[0].var(axis=0), [1.0, 4.0] if kind != "spherical" else 2.5, rtol=0.15)


@pytest.mark.parametrize("given", [{"degrees_of_freedom_prior": 1e150}, {"reg_covar": 1e150}])
def test_covariances_beyond_the_type_of_the_rows_are_refused_by_name(rng, given):
    with pytest.raises(DataError, match="overflows in float32"):
        ep.BayesianGaussianMixture(**given).fit(rng.normal(size=(30, 3)).astype(np.float32))


@pytest.mark.parametrize("rotation", ["varimax", "quartimax", "promax", "oblimin"])
def test_rotations_have_no_unit(rng, rotation):
    A = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 8)) + 0.1 * rng.normal(size=(60, 8))
    small = ep.FactorAnalysis(2, rotation=rotation).fit(A)
    large = ep.FactorAnalysis(2, rotation=rotation).fit(2.0**340 * A)
    assert_allclose(np.ldexp(large.components_, -340), small.components_, rtol=1e-6, atol=1e-8)


def test_noise_of_tiny_columns_has_an_inverse(rng):
    A = rng.normal(size=(6, 4))
    assert np.isfinite(ep.FactorAnalysis(1).fit(1e-152 * A).get_precision()).all()
    # One noise for columns of all sizes: below the rounding of the sum of their variances it is none.
    model = ep.ProbabilisticPCA(2).fit(A * np.array([1e-150, 1e5, 1e-300, 1e100]))
    assert np.isfinite(model.score_samples(A)).all()
    assert np.isfinite(model.log_likelihood_)


def test_prototypes_are_drawn_from_shares_that_underflow():
    weight = np.where(np.arange(12) < 2, 1e100, 1e-300)
    for init in ("random", "k-medians++"):
        model = ep.KMedians(4, init=init, random_state=0).fit(np.arange(12.0)[:, None], sample_weight=weight)
        assert len(np.unique(model.labels_)) == 4


def test_dissimilarities_that_overflow_are_refused_by_name(rng):
    with pytest.raises(DataError, match="X, sample_weight"):
        ep.KPrototypes(3).fit(1e120 * rng.normal(size=(12, 3)), sample_weight=np.full(12, 1e99))


def test_counts_beyond_integers_are_not_drawn():
    A = np.array([[1e100, 3.0], [2e100, 1.0], [1e100, 2.0]])
    for model in (ep.MultinomialMixture(), ep.PoissonMixture(), ep.HiddenMarkovModel(1, emission="poisson")):
        with pytest.raises(DataError, match="integers of 64 bits"):
            model.fit(A).sample(3)


def test_coefficients_that_are_no_numbers_are_not_stored():
    with pytest.raises(DataError, match="coefficients overflow"):
        stored_type(np.dtype(np.float64), np.array([1e234]), np.array([np.nan]))


def test_a_column_that_underflows_has_no_standard_error(rng):
    R = np.triu(rng.normal(size=(4, 4))) * [1e-150, 1e100, 1.0, 0.0]
    found = Dependencies(np.array([0, 1, 2]), np.array([3]), np.zeros((3, 1)))
    white = R[:, :3] @ _root_of_factor(R, found)[:3]
    assert_allclose(white.T @ white, np.eye(3), atol=1e-12)
    assert _root_of_factor(R, Dependencies(np.array([0, 1, 3]), np.array([2]), np.zeros((3, 1)))) is None


def test_a_covariance_that_rounding_made_indefinite_has_a_half():
    C = np.array([[1.0, 1.0 + 1e-12], [1.0 + 1e-12, 1.0]])
    assert_allclose(_half_of(C) @ _half_of(C).T, C, rtol=1e-11)


def test_curvature_of_nothing_beside_large_products_gives_a_step():
    decrement, step_of = _steps(np.array([1.0, 1.0]), np.array([[0.0, 1e160], [1e160, 1e10]]))
    assert np.isfinite(decrement)
    assert np.isfinite(step_of(0.0)).all()


def test_precisions_without_bound_have_no_decrement():
    for seed in (1, 7, 9, 11):
        rng = np.random.default_rng(seed)
        A, y = rng.integers(-2, 3, size=(30, 3)), rng.normal(size=30)
        assert not np.isnan(ep.BayesianRidge(lambda_1=1e8, lambda_2=0.0).fit(A, y).certificate_.value)


def test_landmarks_whose_kernel_overflows_are_refused_by_name():
    with pytest.raises(DataError, match="not finite"):
        ep.Nystroem("poly").fit(np.full((1, 3), 2e100))


def test_certificates_of_squares_that_overflow_bound_nothing():
    found = excess_certificate(np.nan, 1e-10, 1e-8, mean=np.zeros(1), weight=1.0)
    assert found.value == np.inf


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_largest_number_stands_for_distances_beyond_it(rng, dtype):
    A = rng.normal(size=(12, 40)).astype(dtype)
    graph = ep.KNeighborsTransformer(p=0.001).fit(A).transform(A)
    assert graph.data.max() == np.finfo(dtype).max


def test_leaving_rows_out_of_a_kernel_of_zeros():
    model = ep.KernelRidge(alpha="loo").fit(np.zeros((30, 2)), np.arange(30.0))
    assert np.isfinite(model.loo_errors_).all()
    assert np.isfinite(model.certificate_.value)


# ------------------------------------------------------------------------------------------- criteria of clusters


def test_rows_beyond_counting_are_refused_by_name():
    with pytest.raises(DataError, match="sample_weight: they add up to"):
        metrics.adjusted_mutual_info_score([0, 0, 1, 1], [0, 1, 0, 1], sample_weight=np.full(4, 1e200))
    with pytest.raises(DataError, match="contingency"):
        metrics.expected_mutual_information(np.full((2, 2), 1e200))


def test_information_of_weights_of_any_size():
    first, second = [0, 0, 1, 1, 2], [0, 1, 1, 1, 0]
    expected = metrics.normalized_mutual_info_score(first, second)
    for unit in (1e-200, 1e200):
        found = metrics.normalized_mutual_info_score(first, second, sample_weight=np.full(5, unit))
        assert found == pytest.approx(expected, rel=1e-12)
    weight = np.array([1e100, 1e100, 1e100, 1e100, 1e-300])
    without = metrics.mutual_info_score(first[:4], second[:4])
    assert metrics.mutual_info_score(first, second, sample_weight=weight) == pytest.approx(without, rel=1e-12)


def test_a_measure_of_homogeneity_alone():
    first, second = [0, 1, 0, 1], [0, 0, 0, 0]
    assert metrics.homogeneity_completeness_v_measure(first, second, beta=0.0) == (0.0, 1.0, 0.0)
    assert metrics.v_measure_score(second, first, beta=0.0) == 0.0
    homogeneity, _, v = metrics.homogeneity_completeness_v_measure([0, 0, 1, 1], [0, 1, 2, 2], beta=0.0)
    assert v == homogeneity


@pytest.mark.parametrize("name", ["sum_of_squared_errors", "separation", "calinski_harabasz_score"])
def test_scatters_that_overflow_are_refused_by_name(rng, name):
    with pytest.raises(DataError, match="X, sample_weight"):
        getattr(metrics, name)(1e100 * rng.normal(size=(6, 2)), np.arange(6) % 2, sample_weight=np.full(6, 1e200))


def test_standardised_distances_of_constant_columns_and_sparse_rows(rng):
    A = np.column_stack([np.ones(6), rng.normal(size=6)])
    found = metrics.pairwise_distances(A, metric="seuclidean")
    assert_allclose(found, np.abs(A[:, 1:] - A[:, 1]) / A[:, 1].std(ddof=1), atol=1e-12)
    with pytest.raises(DataTypeError, match="sparse"):
        metrics.pairwise_distances(sp.csr_array(A), metric="seuclidean")


def test_coefficients_beyond_float32_are_kept_in_float64():
    kept = _attributes(
        np.array([[1e50, 1.0]]),
        np.zeros(1),
        classes=np.arange(2),
        constant=None,
        present=None,
        sparse=False,
        dtype=np.dtype(np.float32),
    )
    assert kept["coef_"].dtype == np.float64


def test_a_posterior_whose_squares_overflow_is_refused_by_name(rng):
    A, y = 1e150 * rng.normal(size=(30, 40)), rng.normal(size=30)
    with pytest.raises(DataError, match="X, y and the prior"):
        ep.BayesianLinearRegression(intercept_precision=1e300, noise_rate=1.5).fit(A, y)


def test_weighted_moments_that_overflow_are_refused_by_name(rng):
    A, y = np.round(100 * rng.normal(size=(6, 1))), 5e19 * rng.normal(size=6)
    with pytest.raises(DataError, match="X, y, sample_weight"):
        ep.BayesianLinearRegression().fit(A, y, np.linspace(1e148, 9e149, 6))


def test_rows_below_the_rounding_of_other_weights_are_in_a_fold(rng):
    A, y, t = rng.normal(size=(30, 2)), rng.normal(size=30), np.arange(30) % 2
    weight = np.where(np.arange(30) % 3 == 0, 1e-300, 1e100)
    assert np.isfinite(ep.TreatmentEffect().fit(A, y, t, sample_weight=weight).weights_).all()


def test_equal_rows_have_a_density():
    assert np.isfinite(ep.PCA().fit(np.ones((2, 1))).score_samples(np.ones((2, 1)))).all()
    # all the weight on one row, and the others far from it
    X = 1e20 * np.arange(1.0, 13.0)[:, None]
    model = ep.PCA().fit(X, sample_weight=np.where(np.arange(12) == 3, 1e100, 1e-300))
    assert np.isfinite(model.score_samples(X)).all()


def test_rows_of_next_to_no_weight_leave_the_certificate_of_a_gaussian_process_a_number():
    X, y = np.random.default_rng(0).normal(size=(30, 8)), 1e5 * np.arange(30.0)
    weight = np.where(np.arange(30) % 2, 1e100, 1e-300)
    model = ep.GaussianProcessRegressor(optimizer=None).fit(X, y, sample_weight=weight)
    assert np.isfinite(model.certificate_.value)


def test_gibbs_draws_end_or_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = ep.BayesianLogisticRegression(method="gibbs", n_draws=20, n_warmup=10, n_chains=1, random_state=0)
    with pytest.raises(DataError, match="repeats rows"):  # each repetition was drawn: years
        model.fit(X, X[:, 0] > 0, sample_weight=np.full(20, 1e15))
    with pytest.raises(DataError, match="overflow"):
        model.fit(1e200 * X, X[:, 0] > 0)


def test_two_rows_that_a_kernel_cannot_tell_apart_are_moved_to_their_bounds_at_once():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    model = ep.SVC(gamma=1e-300, tol=1e-300).fit(X, y, sample_weight=np.full(4, 1e99))
    assert np.sum(model.n_iter_) < 1000  # ten million steps of 2e12 each


def test_kernel_pca_of_equal_rows_by_arpack():
    model = ep.KernelPCA(1, eigen_solver="arpack").fit(np.ones((6, 2)))
    assert np.isfinite(model.transform(np.ones((6, 2)))).all()


def test_penalties_too_small_for_the_dual_point_leave_the_certificate_a_number():
    X, y = np.arange(12.0)[:, None] // 2, np.arange(12) % 2
    weight = np.where(np.arange(12) % 3, 1e100, 1e-300)
    model = ep.KernelLogisticRegression(C=1e150, kernel="rbf", tol=1e-12).fit(X, y, sample_weight=weight)
    assert not np.isnan(model.certificate_.value)
    assert np.isfinite(model.decision_function(X)).all()
    assert not model.certificate_.holds


def test_a_gradient_of_nothing_but_rounding_ends_the_steps_of_kernel_logistic_regression():
    X = np.array([1, -1, 1, 2, -1, -1, 0, 1, 2, -2, 1, 0, 0, -1, -1, 1, 1, -1, -1, -1, -1, 1.0])[:, None]
    y = np.array([1, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0])
    powers = [100, -300, 100, -300, -300, 0, 0, *4 * [-300], 0, 0, -300, -300, 100, 0, 100, 0, 100, 0, 100]
    model = ep.KernelLogisticRegression(tol=1e-12).fit(X, y, sample_weight=10.0 ** np.array(powers))
    assert np.isfinite(model.decision_function(X)).all()


def test_columns_that_nearly_depend_do_not_take_turns_for_ever(monkeypatch):
    entries = 0
    enter = LeastAngle._enter

    def counted(self, j, sign):
        nonlocal entries
        entries += 1
        return enter(self, j, sign)

    monkeypatch.setattr(LeastAngle, "_enter", counted)
    rng = np.random.default_rng(1)  # sparse and far from the origin: rounding of 1e8, three twins
    base = rng.normal(size=(60, 37))
    X = (1e8 + np.hstack([base, base[:, :3]]))[:, rng.permutation(40)]
    ep.LassoLarsCV(eps=2.2e-16, max_n_alphas=8).fit(sp.csc_array(X), rng.normal(size=60))
    assert entries < 10_000  # some 500,000 where the same sets came again and again


def test_trees_of_rows_and_weights_at_the_ends_of_the_range(rng):
    X, weight = rng.normal(size=(30, 4)), rng.choice([1e-300, 1.0, 1e100], 30)
    weight[:2] = 1e100
    tree = ep.AgglomerativeClustering(compute_distances=True).fit(X, sample_weight=weight)
    far = ep.AgglomerativeClustering(compute_distances=True).fit(sp.csc_array(1e150 * X), sample_weight=weight)
    assert (tree.labels_ == far.labels_).all()
    assert far.certificate_.holds
    assert_allclose(tree.distances_[-1] * 1e150, far.distances_[-1], rtol=1e-10)
    D = np.abs(np.subtract.outer(X[:, 0], X[:, 0])) * 1e200
    with pytest.raises(ValueError, match="overflow"):
        ep.AgglomerativeClustering(metric="precomputed").fit(D)


def test_distances_that_are_not_square_are_refused_with_weights_too(rng):
    with pytest.raises(DataError, match="square"):
        ep.AgglomerativeClustering(metric="precomputed", linkage="average").fit(
            np.abs(rng.normal(size=(5, 3))), sample_weight=[1, 1, 0, 1, 1]
        )


def test_sums_of_kernel_values_that_overflow_are_refused(rng):
    X, y = rng.uniform(0.1, 0.5, size=(12, 2)), np.arange(12) % 2
    model = ep.SVC(kernel="poly", degree=1e3, gamma=1.0, coef0=0.0).fit(X, y)
    with pytest.raises(DataError, match="not finite for some rows"):
        model.decision_function(1e3 * X)


def test_products_of_a_process_by_conjugate_gradients_that_overflow_are_refused(rng):
    X, y = rng.normal(size=(6, 1)), 1e100 * rng.normal(size=6)
    model = ep.GaussianProcessRegressor(mean="constant", method="cg")
    with pytest.raises(DataError, match="overflow"):
        model.fit(X, y, sample_weight=[1e-300, 1e-300, 1e-300, 0, 1, 1e-300])


def test_a_hard_margin_of_no_tolerance_ends():
    A = np.array([[0.0, 0.0], [1.0, 0.3], [0.2, 1.0]])
    model = ep.SVC(C=np.inf, tol=1e-300).fit(A, [0, 1, 1])  # the nearest points are exact, the scaled gap is rounding
    assert model.certificate_.value < 1e-14
    assert (model.predict(A) == [0, 1, 1]).all()


def test_gradients_whose_norms_overflow_prove_nothing():
    assert _ratio(np.inf, np.inf) == np.inf
    assert _ratio(1.0, np.inf) == _ratio(np.nan, 1.0) == np.inf
    assert _ratio(1.0, 2.0) == 0.5
    assert _ratio(0.0, 0.0) == 0.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_whose_share_underflows_have_an_intercept_to_begin_with(rng, n_classes):
    A, y = rng.normal(size=(30, 4)), np.arange(30) % n_classes
    model = ep.LogisticRegression(l1_ratio=1e-12).fit(A, y, sample_weight=np.where(y == 0, 1e-300, 1e100))
    assert np.isfinite(model.predict_proba(A)).all()
