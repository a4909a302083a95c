"""Normalizing flows: volumes against automatic differentiation, densities against integrals and known ones."""

import numpy as np
import pandas as pd
import pytest
import torch
from flow_samples import in_two_parts
from gradient_of_module import check_module
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, norm, t as student
from sklearn.datasets import load_digits, make_moons

import epicycle as ep
from epicycle.exceptions import DataError, ParameterError
from epicycle.generative import evaluate
from epicycle.generative.flows._module import FlowModule
from epicycle.generative.flows._spline import spline
from epicycle.nets.training._batches import MiniBatch

KINDS = ("spline", "affine", "autoregressive", "autoregressive_spline")
BASES = ("normal", "student_t", "mixture")


def flow(**options):
    return ep.NormalizingFlow(**{"n_layers": 3, "hidden_layer_sizes": (16,), "max_iter": 20, "learning_rate_init": 0.01,
                                 "random_state": 0, **options})  # fmt: skip


def stirred(p, kind, mixing="linear", n_classes=0, base="normal", **more):
    """A module with random weights, far from the identity."""
    rng = np.random.default_rng(0)
    architecture = {
        "shape": [p], "dtype": "float64", "n_classes": n_classes, "mean": rng.normal(size=p).tolist(),
        "deviation": rng.uniform(0.5, 3, p).tolist(), "quantised": None, "kind": kind, "n_layers": 3, "hidden": [16],
        "n_bins": 6, "bound": 3.0, "mixing": mixing, "base": base, "n_components": 3, **more,
    }  # fmt: skip
    torch.manual_seed(0)
    module = FlowModule(architecture)
    with torch.no_grad():
        for weight in module.parameters():
            weight += 0.15 * torch.randn_like(weight)
    return module


# ------------------------------------------------------------------------------------------- volumes and inverses


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mixing", "n_classes"), [("linear", 0), ("permutation", 3)])
def test_volumes_are_those_of_the_jacobian_in_ten_dimensions(kind, mixing, n_classes):
    module = stirred(10, kind, mixing, n_classes)
    x = 2 * torch.randn(4, 10, dtype=torch.float64)
    labels = torch.arange(4) % n_classes if n_classes else None
    z, log_volume = module.to_base(x, labels)
    for i in range(4):
        label = None if labels is None else labels[i : i + 1]
        jacobian = torch.autograd.functional.jacobian(lambda row: module.to_base(row[None], label)[0][0], x[i])  # noqa: B023
        assert abs(torch.linalg.slogdet(jacobian).logabsdet - log_volume[i]) < 1e-8
    assert_allclose(module.from_base(z, labels).detach(), x, atol=1e-8)
    assert abs(log_volume).min() > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_volumes_back_are_those_there_with_the_other_sign(kind):
    module = stirred(5, kind)
    u = torch.randn(20, 5, dtype=torch.float64)
    for layer in module.layers:
        v, log_volume = layer(u, None)
        back, log_back = layer.inverse(v, None)
        assert_allclose(back.detach(), u, atol=1e-9)
        assert_allclose(log_back.detach(), -log_volume.detach(), atol=1e-8)


@settings(deadline=None, max_examples=60)
@given(
    x=st.floats(-6, 6),
    theta=st.lists(st.floats(-4, 4), min_size=11, max_size=11),
    bound=st.floats(0.5, 5),
)
def test_splines_rise_and_come_back(x, theta, bound):
    theta = torch.tensor(theta, dtype=torch.float64)
    at = torch.tensor([x], dtype=torch.float64, requires_grad=True)
    y, log_slope = spline(at, theta[None], bound, inverse=False)
    back, log_back = spline(y, theta[None], bound, inverse=True)
    (slope,) = torch.autograd.grad(y.sum(), at)
    y, log_slope, back, log_back = (found.item() for found in (y, log_slope, back, log_back))
    assert back == pytest.approx(x, abs=1e-6)
    assert log_back == pytest.approx(-log_slope, abs=1e-4)
    assert np.log(slope.item()) == pytest.approx(log_slope, abs=1e-8)
    if abs(x) > bound:
        assert y == x


def test_a_spline_of_zeros_changes_nothing():
    x = torch.linspace(-4, 4, 81, dtype=torch.float64)
    y, log_slope = spline(x, torch.zeros(81, 23, dtype=torch.float64), 3.0, inverse=False)
    assert_allclose(y, x, atol=1e-14)
    assert_allclose(log_slope, 0, atol=1e-14)


# ------------------------------------------------------------------------------------------- densities


def grid(low, high, n):
    centres = low + (np.arange(n) + 0.5) * (high - low) / n
    return np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2), ((high - low) / n) ** 2


@pytest.mark.parametrize(
    ("kind", "base"), [*((kind, "normal") for kind in KINDS), ("affine", "student_t"), ("spline", "mixture")]
)
def test_a_density_of_the_plane_integrates_to_one(kind, base):
    X = in_two_parts(300)[0][:, :2] * [1, 2] + [0, 3]
    model = flow(kind=kind, base=base, n_components=2, n_layers=2, max_iter=4).fit(X)
    # The tails of the t distribution are wide: what is outside is drawn.
    points, area = grid(-25, 25, 250)
    inside = np.mean(np.abs(model.sample(10_000, random_state=0)).max(axis=1) < 25)
    assert np.exp(model.score_samples(points)).sum() * area == pytest.approx(inside, abs=0.01)


@pytest.mark.parametrize(
    ("kind", "dtype"), [("spline", np.float32), ("affine", np.float64), ("autoregressive", np.float64)]
)
def test_a_normal_distribution_is_found(kind, dtype):
    rng = np.random.default_rng(0)
    A = np.array([[2.0, 0, 0], [1.5, 0.3, 0], [-1, 0.4, 10]])
    X = (rng.normal(size=(2500, 3)) @ A.T + [5, -3, 100]).astype(dtype)
    model = flow(kind=kind, hidden_layer_sizes=(8,), n_layers=1, max_iter=20).fit(X)
    assert model.module_.layers[1].bias.dtype == getattr(torch, np.dtype(dtype).name)
    exact = multivariate_normal([5, -3, 100], A @ A.T)
    new = exact.rvs(1000, random_state=1)
    found = model.score_samples(new.astype(dtype))
    assert found.dtype == np.float64
    assert found.mean() == pytest.approx(exact.logpdf(new).mean(), abs=0.03)
    assert np.median(np.abs(found - exact.logpdf(new))) < 0.12
    drawn = model.sample(4000, random_state=0)
    assert drawn.dtype == dtype
    assert_allclose(drawn.mean(axis=0), [5, -3, 100], atol=0.6)
    assert_allclose(drawn.std(axis=0) ** 2, np.diag(A @ A.T), rtol=0.12)
    assert_allclose(np.corrcoef(drawn.T), np.corrcoef(new.T), atol=0.08)


def test_one_column():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-2, 0.5, 800), rng.normal(3, 1, 800)])[:, None]
    at = np.linspace(-3, 5, 50)[:, None]
    density = (norm.pdf(at, -2, 0.5) + norm.pdf(at, 3, 1))[:, 0] / 2
    for kind in ("spline", "autoregressive_spline"):
        model = flow(kind=kind, n_layers=2, max_iter=15, learning_rate_init=0.03).fit(X)
        assert_allclose(np.exp(model.score_samples(at)), density, atol=0.07)
        assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-9)


def test_heavy_tails_of_the_base():
    X = np.random.default_rng(0).standard_t(2, size=(4000, 2))
    new = np.random.default_rng(1).standard_t(2, size=(4000, 2))
    exact = student(2).logpdf(new).sum(axis=1).mean()
    options = {"kind": "affine", "max_iter": 20, "n_layers": 1, "hidden_layer_sizes": (4,), "learning_rate_init": 0.03}
    heavy, normal = (flow(base=base, **options).fit(X) for base in ("student_t", "normal"))
    assert exact - 0.15 < heavy.score(new) < exact + 0.01
    assert heavy.score(new) > normal.score(new) + 0.1
    assert (1 + np.log1p(np.exp(heavy.module_.base.degrees.detach().numpy())) < 5).all()


# ------------------------------------------------------------------------------------------- what is learnt


def test_moons_are_learnt_as_well_as_by_a_mixture():
    X, new = (make_moons(1500, noise=0.06, random_state=seed)[0] for seed in (0, 1))
    model = flow(n_layers=4, hidden_layer_sizes=(32, 32), max_iter=25).fit(X)
    gaussian = multivariate_normal(X.mean(axis=0), np.cov(X.T)).logpdf(new).mean()
    mixtures = [ep.GaussianMixture(k, random_state=0).fit(X).score(new) for k in (2, 4, 8, 16)]
    assert model.score(new) > gaussian + 1.2
    assert model.score(new) > max(mixtures) - 0.1


def rings(n, rng):
    angle, part = rng.uniform(0, 2 * np.pi, n), rng.integers(0, 2, n)
    radius = np.where(part, 2.0, 0.8) + 0.08 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), part


def eight(n, rng):
    part = rng.integers(0, 8, n)
    centres = 2 * np.column_stack([np.cos(part * np.pi / 4), np.sin(part * np.pi / 4)])
    return centres + 0.15 * rng.normal(size=(n, 2)), part


def moons(n, rng):
    return make_moons(n, noise=0.06, random_state=int(rng.integers(1000)))


@pytest.mark.parametrize("shape", [moons, rings, eight])
def test_all_modes_are_drawn(shape):
    X, part = shape(1500, np.random.default_rng(0))
    model = flow(n_layers=4, hidden_layer_sizes=(32,), max_iter=20).fit(X)
    drawn = model.sample(1500, random_state=0)
    found = evaluate.mode_collapse(X, drawn, labels=part, random_state=0)
    assert not found.collapsed, found.verdict
    assert evaluate.coverage(X, drawn) > 0.75


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("base", BASES)
def test_gradients_are_those_of_differences(kind, base):
    module = stirred(3, kind, base=base, n_classes=2)
    batch = MiniBatch((torch.randn(5, 3).double(),), torch.arange(5) % 2, torch.ones(5).double())
    assert check_module(module, ep.NormalizingFlow()._row_losses(), [batch], n_coordinates=30).holds


@pytest.mark.parametrize("base", ["normal", "mixture"])
def test_labels(base):
    X, y = make_moons(600, noise=0.1, random_state=0)
    y = np.array(["upper", "lower"])[y]
    model = flow(conditional=True, base=base).fit(X, y)
    given = np.array([model.score_samples(X, c) for c in model.classes_])
    assert_allclose(model.score_samples(X), np.logaddexp(*(given + np.log(model.class_prior_)[:, None])))
    assert np.mean(model.classes_[given.argmax(axis=0)] == y) > 0.97  # Bayes' rule
    judge = ep.KNeighborsClassifier().fit(X, y)
    assert np.mean(judge.predict(model.sample(300, random_state=0, y="lower")) == "lower") > 0.95
    assert_allclose(model.inverse_transform(model.transform(X, y), y), X, atol=1e-8)
    with pytest.raises(DataError, match="conditional"):
        model.transform(X)


def test_codes_have_the_distribution_of_the_base():
    X = in_two_parts(1500)[0]
    Z = flow(max_iter=30, hidden_layer_sizes=(32,), n_layers=4).fit(X).transform(X)
    assert_allclose(Z.mean(axis=0), 0, atol=0.1)
    assert_allclose(np.cov(Z.T), np.eye(3), atol=0.15)


# ------------------------------------------------------------------------------------------- forms of rows


def test_whole_numbers_stand_for_intervals():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.poisson(4, 1500), rng.integers(0, 2, 1500)])
    model = flow(dequantize=True, max_iter=30).fit(X)
    every = np.array([[a, b] for a in range(20) for b in (0, 1)])
    bound = np.exp(model.score_samples(every))
    assert 0.8 < bound.sum() < 1.02  # a bound for each: less than all
    counts = np.array([np.mean((row == X).all(axis=1)) for row in every])
    assert_allclose(bound, counts, atol=0.04)
    drawn = model.sample(2000, random_state=0)
    assert drawn.dtype == X.dtype
    assert np.mean(drawn[:, 0]) == pytest.approx(4, abs=0.3)
    assert_array_equal(model.inverse_transform(model.transform(X)), X)
    for broken in (X + 0.5, X - 0.25):
        with pytest.raises(DataError, match="expects whole numbers"):
            flow(dequantize=True).fit(broken)
        with pytest.raises(DataError, match="expects whole numbers"):
            model.score_samples(broken)


def test_images():
    digits, _ = load_digits(return_X_y=True)
    X = (digits.reshape(-1, 8, 8) * 15).astype(np.uint8)[:600, 1:7, 1:7]
    model = flow(kind="affine", n_layers=4, hidden_layer_sizes=(64,), dequantize=True, max_iter=8).fit(X)
    drawn = model.sample(10, random_state=0)
    assert drawn.shape == (10, 6, 6)
    assert drawn.dtype == np.uint8
    assert_array_equal(model.inverse_transform(model.transform(X[:20])), X[:20])
    per_pixel = -model.score(X) / 36 / np.log(2)
    assert per_pixel < 7.0  # bits; 8 where nothing is known
    assert (model.score_samples(X) < 0).all()  # logarithms of probabilities
    assert model.plot_samples(9, X=X).axes
    assert model.latent_traversal([0], n_steps=3).shape == (1, 3, 6, 6)
    colours = np.stack([X, 255 - X, X], axis=3)[:100] / np.float32(255)
    model = flow(kind="affine", max_iter=2).fit(colours)
    assert model.sample(2, random_state=0).shape == (2, 6, 6, 3)
    assert model.transform(colours).shape == (100, 108)


def test_in_a_pipeline_and_in_data_frames():
    X = pd.DataFrame(in_two_parts(200)[0], columns=list("abc"))
    model = flow(max_iter=3).fit(X)
    assert list(model.get_feature_names_out()) == [f"normalizingflow{j}" for j in range(3)]
    back = model.inverse_transform(model.transform(X))
    assert list(back.columns) == list("abc")
    assert_allclose(back, X, atol=1e-8)
    assert_allclose(flow(max_iter=3).fit_transform(X), model.transform(X))
    assert model.inversion_error_ < 1e-9
    assert "come back from their codes within" in model.certificate_.meaning
    assert model.interpolate(np.zeros(3), np.ones(3), n_steps=4).shape == (4, 3)


def test_units_of_columns_are_in_the_density():
    X = in_two_parts(200)[0]
    one, other = flow(max_iter=3).fit(X), flow(max_iter=3).fit(1000 * X + 7)
    assert_allclose(one.score_samples(X), other.score_samples(1000 * X + 7) + 3 * np.log(1000), atol=1e-6)


class StopAt:
    """Asks to stop after so many iterations."""

    def __init__(self, n):
        self.n = n

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        return fitted_estimator is not None and np.max(fitted_estimator.n_iter_) >= self.n

    def teardown(self, estimator, context):
        pass


def test_a_resumed_fit_and_a_file_are_the_same_bits(tmp_path):
    X = in_two_parts(200)[0]
    whole = flow(base="mixture", max_iter=6).fit(X)
    flow(base="mixture", max_iter=6).set_callbacks(StopAt(2), ep.Checkpoint(tmp_path / "run.epi")).fit(X)
    resumed = ep.Checkpoint.resume(tmp_path / "run.epi").fit(X)
    assert resumed.n_iter_ == whole.n_iter_ == 6
    assert_array_equal(resumed.score_samples(X), whole.score_samples(X))
    whole.save(tmp_path / "flow.epi")
    loaded = ep.load(tmp_path / "flow.epi")
    assert_array_equal(loaded.score_samples(X), whole.score_samples(X))
    assert_array_equal(loaded.sample(50, random_state=3), whole.sample(50, random_state=3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "glow"}, "kind='glow'"),
        ({"n_layers": 0}, "n_layers=0"),
        ({"n_bins": 1}, "n_bins=1"),
        ({"bound": 0.0}, r"bound=0\.0"),
        ({"bound": 1e300}, r"bound=1e\+300"),
        ({"mixing": "none"}, "mixing='none'"),
        ({"base": "uniform"}, "base='uniform'"),
        ({"n_components": 0}, "n_components=0"),
        ({"hidden_layer_sizes": (4, 0)}, "hidden_layer_sizes"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        flow(**options).fit(in_two_parts(30)[0])


def test_codes_that_are_refused():
    X = in_two_parts(30)[0]
    model = flow(max_iter=1).fit(X)
    with pytest.raises(DataError, match=r"Z: expected an array of shape \(n, 3\)"):
        model.inverse_transform(np.zeros((2, 4)))
    with pytest.raises(DataError, match="fitted without labels"):
        model.transform(X, "a")
    with pytest.raises(DataError, match="NaN"):
        flow().fit(np.where(X > 4, np.nan, X))
