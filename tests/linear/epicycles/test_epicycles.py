"""EpicycleRegression finds planted circles, and each method minimises what it says."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import epicycle as ep
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError

UNEVEN = np.sort(np.random.default_rng(7).uniform(100, 130, size=400))
EVEN = np.linspace(0, 40, 500)


def orbit(t, frequencies, radii, centre=0.0, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    z = centre + sum(r * np.exp(1j * w * t) for w, r in zip(frequencies, radii, strict=True))
    return z + noise * (rng.normal(size=len(t)) + 1j * rng.normal(size=len(t))) / np.sqrt(2)


def by_frequency(model):
    order = np.argsort(model.frequencies_)
    return model.frequencies_[order], model.radii_[order]


# ------------------------------------------------------------------- planted circles


@pytest.mark.parametrize("t", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_planted_circles_are_found_exactly(t):
    w, r = np.array([-2.5, 0.613, 4.2]), np.array([1.5j, 3.0, 0.4 - 0.3j])
    model = ep.EpicycleRegression(3).fit(t[:, None], orbit(t, w, r, 5 - 2j))
    found, radii = by_frequency(model)
    assert_allclose(found, w, rtol=1e-10)
    assert_allclose(radii, r, atol=1e-7)
    assert model.centre_ == pytest.approx(5 - 2j, abs=1e-8)
    assert model.certificate_.holds
    assert np.all(np.diff(model.amplitudes_) <= 0)
    assert_allclose(model.periods_, 2 * np.pi / np.abs(model.frequencies_))
    assert_allclose(model.phases_, np.angle(model.radii_))


@pytest.mark.parametrize("t", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_noisy_circles_are_found_to_the_accuracy_of_the_data(t):
    """The standard error of a frequency is sqrt(12) sigma / (sqrt(2) |r| sqrt(n) T), about."""
    w, r = np.array([-1.9, 0.8]), np.array([1.0, 2.0 + 1.0j])
    model = ep.EpicycleRegression(2).fit(t[:, None], orbit(t, w, r, noise=0.5))
    found, radii = by_frequency(model)
    error = np.sqrt(6) * 0.5 / (np.abs(r) * np.sqrt(len(t)) * np.ptp(t))
    assert np.all(np.abs(found - w) < 4 * error)
    assert_allclose(np.abs(radii), np.abs(r), atol=0.12)


@pytest.mark.parametrize("closeness", [0.8, 0.5])
@pytest.mark.parametrize("t", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_two_frequencies_closer_than_the_resolution(t, closeness):
    apart = closeness * 2 * np.pi / np.ptp(t)
    w = np.array([2.0, 2.0 + apart])
    model = ep.EpicycleRegression(2).fit(t[:, None], orbit(t, w, [1.0, 0.8j], noise=0.01))
    found, _ = by_frequency(model)
    assert_allclose(found, w, atol=0.03 * apart)
    assert model.certificate_.holds


def test_gaps_and_repeated_times_on_a_lattice():
    rng = np.random.default_rng(0)
    t = np.sort(rng.choice(np.arange(0, 50, 0.25), size=120))  # gaps and repetitions
    model = ep.EpicycleRegression(1).fit(t[:, None], orbit(t, [3.3], [2.0]))
    assert model.frequencies_[0] == pytest.approx(3.3, rel=1e-10)


def test_far_times_such_as_julian_dates():
    t = 2_451_545.0 + np.linspace(0, 700, 400)
    w = 2 * np.pi / 87.969
    model = ep.EpicycleRegression(1).fit(t[:, None], orbit(t - 2_451_545.0, [w], [0.4]))
    assert model.frequencies_[0] == pytest.approx(w, rel=1e-9)
    assert model.score(t[:, None], orbit(t - 2_451_545.0, [w], [0.4])) > 1 - 1e-12


@pytest.mark.parametrize("t", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_one_coordinate(t):
    y = 7 + 2 * np.cos(1.7 * t + 0.4) + 0.5 * np.cos(5 * t - 1)
    model = ep.EpicycleRegression(2).fit(t[:, None], y)
    assert_allclose(model.frequencies_, [1.7, 5.0], rtol=1e-9)
    assert_allclose(model.radii_, [2 * np.exp(0.4j), 0.5 * np.exp(-1j)], atol=1e-6)
    assert model.predict(t[:, None]).shape == t.shape
    assert_allclose(model.predict(t[:, None]), y, atol=1e-9)


def test_forms_of_the_target():
    z = orbit(EVEN, [1.0, -2.2], [2.0, 1.0], noise=0.1)
    T = EVEN[:, None]
    a, b = ep.EpicycleRegression(2).fit(T, z), ep.EpicycleRegression(2).fit(T, np.column_stack([z.real, z.imag]))
    assert np.array_equal(a.frequencies_, b.frequencies_)
    assert np.iscomplexobj(a.predict(T))
    assert b.predict(T).shape == (500, 2)
    assert_allclose(a.predict(T), b.predict(T) @ [1, 1j])
    assert a.score(T, z) == pytest.approx(b.score(T, np.column_stack([z.real, z.imag])))
    assert a.score(T, z) > 0.99


def test_two_columns_of_time():
    rng = np.random.default_rng(0)
    T = rng.uniform(0, 20, size=(600, 2))
    z = 2 * np.exp(1.1j * T[:, 0]) + np.exp(-3j * T[:, 1])
    model = ep.EpicycleRegression(2).fit(T, z)
    assert_allclose(model.frequencies_, [1.1, -3.0], rtol=1e-9)
    assert model.columns_.tolist() == [0, 1]


# ------------------------------------------------------------------- what each method minimises


def test_one_circle_is_the_best_of_a_dense_grid():
    """Against brute force: least squares at many frequencies, and a general minimiser from the best."""
    z = orbit(UNEVEN, [1.3, -0.7], [1.0, 0.6], noise=0.4)
    t = UNEVEN - UNEVEN.mean()

    def squares(w):
        E = np.column_stack([np.exp(1j * w * t), np.ones_like(t)])
        return float(np.sum(np.abs(z - E @ np.linalg.lstsq(E, z, rcond=None)[0]) ** 2))

    grid = np.linspace(-20, 20, 4001)
    best = min(grid, key=squares)
    found = minimize(lambda w: squares(w[0]), [best], method="Nelder-Mead", options={"xatol": 1e-12, "fatol": 1e-12})
    model = ep.EpicycleRegression(1).fit(UNEVEN[:, None], z)
    assert model.frequencies_[0] == pytest.approx(found.x[0], abs=1e-6)
    assert 2 * model.history_.objective[-1] == pytest.approx(found.fun, rel=1e-9)


def test_the_refined_orbit_is_stationary():
    """The gradient in all parameters by central differences vanishes, and the curvature is positive."""
    w, r = [1.0, 1.25, -2.0], [1.0, 0.7j, 0.5]
    z = orbit(UNEVEN, w, r, noise=0.3)
    model = ep.EpicycleRegression(3).fit(UNEVEN[:, None], z)
    t = UNEVEN - model.origin_[0]

    def squares(x):
        radii = x[3:6] + 1j * x[6:9]
        return np.sum(np.abs(z - complex(x[9], x[10]) - np.exp(1j * np.outer(t, x[:3])) @ radii) ** 2)

    at = np.concatenate(
        [
            model.frequencies_,
            model._radii_at_origin_.real,
            model._radii_at_origin_.imag,
            [model.centre_.real, model.centre_.imag],
        ]
    )
    for i in range(len(at)):
        step = np.zeros(len(at))
        step[i] = 1e-4
        up, here, down = squares(at + step), squares(at), squares(at - step)
        assert abs(up - down) / 2e-4 < 1e-3 * squares(at)
        assert up + down - 2 * here > 0


def test_refit_and_refine_can_be_left_out():
    z = orbit(UNEVEN, [1.0, 1.6, -2.0], [1.0, 0.7j, 0.5], noise=0.2)
    T = UNEVEN[:, None]
    greedy = ep.EpicycleRegression(3, refit=False, refine=False).fit(T, z)
    orthogonal = ep.EpicycleRegression(3, refine=False).fit(T, z)
    refined = ep.EpicycleRegression(3).fit(T, z)
    assert greedy.history_.objective[-1] >= orthogonal.history_.objective[-1] >= refined.history_.objective[-1]
    assert greedy.certificate_.kind == "none"
    assert orthogonal.certificate_.kind == "newton decrement"
    E = np.column_stack([np.exp(1j * np.outer(UNEVEN, orthogonal.frequencies_)), np.ones(400)])
    assert_allclose(orthogonal.predict(T), E @ np.linalg.lstsq(E, z, rcond=None)[0], atol=1e-9)
    for model in (greedy, orthogonal, refined):
        assert np.all(np.diff(model.history_.objective) <= 0)
        residual = np.sum(np.abs(z - model.predict(T)) ** 2) / 2
        assert model.history_.objective[-1] == pytest.approx(residual, rel=1e-9)


@pytest.mark.parametrize("plane", [True, False])
@pytest.mark.parametrize("alpha", [0.02, 0.2])
def test_lasso_satisfies_its_optimality_conditions(plane, alpha):
    z = orbit(UNEVEN, [1.0, -2.0], [1.0, 0.5j], 1 + 1j, noise=0.3)
    y = z if plane else z.real
    grid = np.arange(-40, 41) * 0.1 if plane else np.arange(1, 60) * 0.1
    grid = grid[grid != 0]
    model = ep.EpicycleRegression(method="lasso", frequencies=grid, alpha=alpha, tol=1e-12).fit(UNEVEN[:, None], y)
    e = y - model.predict(UNEVEN[:, None])
    assert abs(e.mean()) < 1e-10
    S = np.exp(-1j * np.outer(grid, UNEVEN)) @ e / len(y)
    at = np.searchsorted(grid, model.frequencies_)
    assert_allclose(S[at], alpha * model.radii_ / np.abs(model.radii_), atol=1e-6)
    assert np.all(np.abs(S) <= alpha * (1 + 1e-5))
    assert model.certificate_.kind == "duality gap"
    assert model.certificate_.holds
    assert 0 < len(model.radii_) < len(grid)


def test_lasso_finds_the_planted_frequencies_on_its_grid():
    spacing = 2 * np.pi / (500 * (EVEN[1] - EVEN[0]))
    w = spacing * np.array([4, -9])
    model = ep.EpicycleRegression(method="lasso", alpha=0.2).fit(EVEN[:, None], orbit(EVEN, w, [2.0, 1.0], noise=0.2))
    assert_allclose(model.frequencies_[:2], w, rtol=1e-3)
    assert_allclose(model.amplitudes_[:2], [1.8, 0.8], atol=0.1)  # each shrinks by alpha
    big = ep.EpicycleRegression(method="lasso", alpha=100.0).fit(EVEN[:, None], orbit(EVEN, w, [2.0, 1.0]))
    assert len(big.radii_) == 0
    assert_allclose(big.predict(EVEN[:, None]), big.centre_)


@pytest.mark.parametrize("plane", [True, False])
@pytest.mark.parametrize("power", [0.0, 1.0])
def test_ridge_solves_its_normal_equations(plane, power):
    z = orbit(UNEVEN, [1.0, -2.0], [1.0, 0.5j], 1 + 1j, noise=0.3)
    y, n = (z if plane else z.real), len(z)
    grid = np.array([-2.0, -0.7, 0.4, 1.0, 3.3]) if plane else np.array([0.4, 1.0, 2.0, 3.3])
    alpha = 0.3
    model = ep.EpicycleRegression(method="ridge", frequencies=grid, alpha=alpha, frequency_power=power)
    model.fit(UNEVEN[:, None], y)
    order = np.argsort(model.frequencies_)
    e = y - model.predict(UNEVEN[:, None])
    assert abs(e.mean()) < 1e-10
    S = np.exp(-1j * np.outer(grid, UNEVEN)) @ e / n
    assert_allclose(S, alpha * np.abs(grid) ** power * model.radii_[order], atol=1e-9)
    assert model.certificate_.holds


# ------------------------------------------------------------------- properties


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), method=st.sampled_from(["boosting", "lasso", "ridge"]), plane=st.booleans())
def test_weights_are_repetitions_and_turning_the_data_turns_the_orbit(seed, method, plane):
    rng = np.random.default_rng(seed)
    t, w = rng.uniform(0, 12, size=(40, 1)), rng.integers(0, 3, size=40)
    w[:10] += 1
    z = orbit(t[:, 0], [1.4], [2.0], noise=0.3, seed=seed)
    y = np.column_stack([z.real, z.imag]) if plane else z.real
    model = ep.EpicycleRegression(1, method=method).fit(t, y, w)
    again = ep.EpicycleRegression(1, method=method).fit(np.repeat(t, w, axis=0), np.repeat(y, w, axis=0))
    assert_allclose(model.predict(t), again.predict(t), rtol=1e-5, atol=1e-6)
    if plane and method == "boosting":
        turned = ep.EpicycleRegression(1).fit(t, z * 5j, w)
        assert_allclose(turned.frequencies_, model.frequencies_, rtol=1e-8)
        assert_allclose(turned.radii_, 5j * model.radii_, rtol=1e-6)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), circles=st.integers(1, 4), even=st.booleans())
def test_any_data(seed, n, circles, even):
    """Whatever the data: finite, no worse than the mean, and a certificate that tells the truth."""
    rng = np.random.default_rng(seed)
    t = np.arange(n) * 0.5 if even else rng.normal(size=n)
    z = rng.normal(size=(n, 2))
    with ep.config(on_nonconvergence="ignore"):
        model = ep.EpicycleRegression(circles).fit(t[:, None], z)
    predicted = model.predict(t[:, None])
    assert np.isfinite(predicted).all()
    assert np.sum((z - predicted) ** 2) <= np.sum((z - z.mean(axis=0)) ** 2) * (1 + 1e-9)
    assert model.converged_ == model.certificate_.holds


def test_a_slow_arc_and_a_given_zero():
    t = np.linspace(0, 1, 50)
    model = ep.EpicycleRegression(1).fit(t[:, None], orbit(t, [0.3], [5.0]))  # less than a twentieth of a turn
    assert model.certificate_.holds
    assert abs(model.frequencies_[0]) >= 2 * np.pi / 8 * (1 - 1e-12)
    still = ep.EpicycleRegression(1, frequencies=[0.0], fit_centre=False, refine=False).fit(t[:, None], np.full(50, 2j))
    assert still.radii_[0] == pytest.approx(2j)


def test_constant_times_and_constant_positions():
    model = ep.EpicycleRegression().fit(np.ones((5, 1)), np.arange(5.0))
    assert len(model.radii_) == 0
    assert model.predict([[3.0]])[0] == 2.0
    still = ep.EpicycleRegression().fit(np.arange(10.0)[:, None], np.full(10, 3.0))
    assert_allclose(still.predict(np.arange(10.0)[:, None]), 3.0)
    assert still.certificate_.holds


def test_one_refinement_step_is_not_enough_and_says_so():
    w, apart = 2.0, 0.4 * 2 * np.pi / 30
    with pytest.warns(ConvergenceWarning, match="stationarity"):
        model = ep.EpicycleRegression(2, max_iter=1).fit(UNEVEN[:, None], orbit(UNEVEN, [w, w + apart], [1, 1j]))
    assert not model.certificate_.holds


# ------------------------------------------------------------------- engines, files, float32


@pytest.mark.parametrize("method", ["boosting", "lasso", "ridge"])
def test_memory_files_and_dask(method, tmp_path):
    import dask.array as da
    import pandas as pd

    z = orbit(UNEVEN, [1.0, -2.0], [1.0, 0.5j], noise=0.1)
    frame = pd.DataFrame({"t": UNEVEN, "x": z.real, "y": z.imag})
    frame.to_parquet(tmp_path / "orbit.parquet")
    options = {"method": method, "frequencies": None if method == "boosting" else np.arange(1, 30) * 0.2}
    expected = ep.EpicycleRegression(2, **options).fit(frame[["t"]], frame[["x", "y"]])
    scan = ep.EpicycleRegression(2, **options).fit(ep.scan(tmp_path / "orbit.parquet", target=["x", "y"]))
    T, Y = (
        da.from_array(UNEVEN[:, None], chunks=(90, 1)),
        da.from_array(np.column_stack([z.real, z.imag]), chunks=(90, 2)),
    )
    on_dask = ep.EpicycleRegression(2, **options).fit(T, Y)
    for other in (scan, on_dask):
        assert_allclose(other.frequencies_, expected.frequencies_, rtol=1e-9)
        assert_allclose(other.radii_, expected.radii_, rtol=1e-6, atol=1e-8)
    assert_allclose(on_dask.predict(T).compute(), expected.predict(frame[["t"]]), rtol=1e-6, atol=1e-8)


def test_even_times_give_the_same_by_fast_transform_and_by_sums():
    from epicycle.data import as_data
    from epicycle.linear.epicycles._spectrum import default_grid, spectrum_statistic, times_of, weight_spectrum

    rng = np.random.default_rng(0)
    data = as_data(EVEN[:, None], None, rng.random(500))
    grid = default_grid(times_of(data, 0, None), 0, oversampling=4, max_frequencies=1 << 20, plane=True)
    assert grid.step == pytest.approx(EVEN[1] - EVEN[0])
    origin = np.array([3.0])
    for factor in (1, 2):
        (expected,) = spectrum_statistic(data.rows(0, 500), grid, origin, None, True, factor)
        direct = np.exp(-1j * factor * np.outer(grid.frequencies, EVEN - 3.0)) @ data.weight
        assert_allclose(expected, direct, atol=1e-9)
        assert_allclose(weight_spectrum(data, grid, origin, factor, None), direct, atol=1e-9)


def test_float32_and_files(tmp_path):
    z = orbit(EVEN, [1.0], [2.0])
    Y = np.column_stack([z.real, z.imag])
    model = ep.EpicycleRegression(1).fit(EVEN[:, None].astype(np.float32), Y)
    assert model.predict(EVEN[:, None].astype(np.float32)).dtype == np.float32
    exact = ep.EpicycleRegression(1).fit(EVEN[:, None], z)
    exact.save(tmp_path / "m.epi")
    assert np.array_equal(ep.load(tmp_path / "m.epi").predict(EVEN[:, None]), exact.predict(EVEN[:, None]))


@pytest.mark.parametrize("method", ["boosting", "lasso"])
def test_a_checkpoint_resumes(method, tmp_path):
    class Stop:
        def setup(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            return fitted_estimator is not None and len(fitted_estimator.predict(UNEVEN[:, None])) > 0

    z = orbit(UNEVEN, [1.0, -2.0, 3.0], [1.0, 0.5j, 0.3], noise=0.1)
    make = lambda: ep.EpicycleRegression(3, method=method, alpha=0.01)  # noqa: E731
    whole = make().fit(UNEVEN[:, None], z)
    with ep.config(on_nonconvergence="ignore"):
        half = make().set_callbacks(Stop(), ep.Checkpoint(tmp_path / "run.epi")).fit(UNEVEN[:, None], z)
    assert half.n_iter_ == 1
    assert not half.converged_
    resumed = ep.Checkpoint.resume(tmp_path / "run.epi").fit(UNEVEN[:, None], z)
    assert resumed.converged_
    assert_allclose(resumed.predict(UNEVEN[:, None]), whole.predict(UNEVEN[:, None]), atol=1e-5)
    assert resumed.n_iter_ == resumed.history_.n_iter


# ------------------------------------------------------------------- refusals and drawings


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_circles": 0}, "n_circles=0"),
        ({"method": "bosting"}, "did you mean 'boosting'"),
        ({"frequencies": [1.0, 1.0]}, "distinct"),
        ({"frequencies": [np.inf]}, "finite"),
        ({"frequencies": [["a"]]}, "frequencies"),
        ({"alpha": -1.0}, "alpha=-1"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(ParameterError, match=words):
        ep.EpicycleRegression(**parameters).fit(EVEN[:, None], orbit(EVEN, [1.0], [1.0]))


def test_bad_targets():
    with pytest.raises(DataError, match="one or two coordinates"):
        ep.EpicycleRegression().fit(EVEN[:, None], np.zeros((500, 3)))
    with pytest.raises(DataError, match="complex positions"):
        ep.EpicycleRegression().fit(EVEN[:, None], np.zeros((500, 2), complex))
    with pytest.raises(DataError, match="NaN"):
        ep.EpicycleRegression().fit(EVEN[:, None], np.full(500, np.nan, complex))


def test_drawings():
    import matplotlib.pyplot as plt

    z = orbit(EVEN, [1.0, -2.5], [2.0, 1.0])
    model = ep.EpicycleRegression(2).fit(EVEN[:, None], z)
    axes = model.plot(EVEN[:, None], z)
    # data, orbit, two rims, arm, joints, centre, body
    assert len(axes.lines) == 8
    arm = axes.lines[4]
    tip = np.array([arm.get_xdata()[-1], arm.get_ydata()[-1]])
    end = model.predict([[40.0]])[0]
    assert_allclose(tip, [end.real, end.imag])
    rim = axes.lines[2].get_xdata() + 1j * axes.lines[2].get_ydata()
    assert_allclose(np.abs(rim - model.centre_), 2.0, rtol=1e-6)
    assert len(model.plot(at=1.0).lines) == 7
    flat = ep.EpicycleRegression(1).fit(EVEN[:, None], z.real)
    assert len(flat.plot(EVEN, z.real, at=3.0).lines) == 3
    film = model.animate(EVEN[:, None], z, frames=3)
    film._func(2)
    film._draw_was_started = True  # nobody plays it here
    plt.close("all")
