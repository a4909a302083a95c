"""sample: seeds and threads, failures in the middle, Ctrl-C, errors by name, the result and its certificate."""

import _thread
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle import bayes
from epicycle.bayes.sampling._sampling_certificate import SamplingCertificate
from epicycle.exceptions import (
    ConvergenceError,
    ConvergenceWarning,
    EpicycleWarning,
    MissingDependencyError,
    ParameterError,
)

NORMAL = bayes.NormalModel([1.0, -1.0], [[1.0, 0.8], [0.8, 1.0]])
METHODS = ["nuts", "hmc", "metropolis", "slice", "gibbs"]


def quadratic(x):
    return -0.5 * np.sum(x**2)


def slope(x):
    return -x


def python_model(**changes):
    arguments = {"log_density": quadratic, "parameters": {"x": 2}, "gradient": slope}
    return bayes.Model(**(arguments | changes))


def quietly(*args, **kwargs):
    with warnings.catch_warnings(), ep.config(on_nonconvergence="ignore"):
        warnings.simplefilter("ignore", EpicycleWarning)
        return bayes.sample(*args, **kwargs)


# ------------------------------------------------------------------------------------------------- reproducibility


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_bits_for_any_number_of_threads(method):
    runs = [quietly(NORMAL, method, random_state=7, draws=50, warmup=200, n_jobs=n) for n in (1, 2, 4)]
    for other in runs[1:]:
        assert_array_equal(runs[0]["x"], other["x"])
        assert_array_equal(runs[0].statistics["energy"], other.statistics["energy"])
    different = quietly(NORMAL, method, random_state=8, draws=50, warmup=200)
    assert not np.array_equal(runs[0]["x"], different["x"])


def test_a_function_of_python_is_sampled_like_the_compiled_model():
    """The same density from the same streams: the same trajectories up to rounding."""
    P = np.linalg.inv([[1.0, 0.8], [0.8, 1.0]])
    model = bayes.Model(
        lambda x, m: (-0.5 * (x - m) @ P @ (x - m), -P @ (x - m)),
        {"x": 2},
        gradient=True,
        data={"m": np.array([1.0, -1.0])},
    )
    options = {"random_state": 3, "draws": 20, "warmup": 50, "chains": 2}
    assert_allclose(quietly(model, **options)["x"], quietly(NORMAL, **options)["x"], rtol=1e-6, atol=1e-8)


def test_chains_do_not_depend_on_their_number():
    few, many = (quietly(NORMAL, random_state=1, draws=30, warmup=100, chains=c) for c in (2, 4))
    assert_array_equal(few["x"], many["x"][:2])


def test_thin_keeps_every_kth_draw():
    every = quietly(NORMAL, random_state=1, draws=60, warmup=100, chains=1)
    third = quietly(NORMAL, random_state=1, draws=20, warmup=100, chains=1, thin=3)
    assert_array_equal(every["x"][:, 2::3], third["x"])


@pytest.mark.parametrize("random_state", [np.random.default_rng(0), np.random.RandomState(0)])
def test_generators_move_on(random_state):
    first, second = (quietly(NORMAL, random_state=random_state, draws=10, warmup=20) for _ in range(2))
    assert not np.array_equal(first["x"], second["x"])


# ------------------------------------------------------------------------------------------------- constraints


def test_constrained_parameters_and_their_shapes():
    def log_density(p, r, s, w):
        value = 2 * np.log(p[0]) - np.sum(s) - np.sum(w**2) / 2
        return value, {"p": np.array([2 / p[0], 0, 0]), "r": np.zeros((2, 2)), "s": -np.ones(2), "w": -w}

    parameters = {"p": bayes.Simplex(3), "r": bayes.Correlation(2), "s": bayes.Positive(2), "w": bayes.Ordered(2)}
    model = bayes.Model(log_density, parameters, gradient=True)
    draws = quietly(model, random_state=0, draws=500, warmup=250, chains=2)
    assert {name: x.shape for name, x in draws.items()} == {
        "p": (2, 500, 3),
        "r": (2, 500, 2, 2),
        "s": (2, 500, 2),
        "w": (2, 500, 2),
    }
    assert_allclose(draws["p"].sum(axis=-1), 1)
    assert (np.diff(draws["w"], axis=-1) > 0).all()
    # p ~ Dirichlet(3, 1, 1), s ~ exponential, r uniform in [-1, 1], w the order statistics of two normal numbers
    known = {"p": 3 / 5, "s": 1.0, "w": -1 / np.sqrt(np.pi)}
    for name, mean in known.items():
        x = draws[name][..., 0]
        assert abs(x.mean() - mean) < 4.5 * bayes.mcse(x)
    r = draws["r"][..., 1, 0]
    assert abs(r.std() - 1 / np.sqrt(3)) < 4.5 * bayes.mcse(r, "sd")
    assert np.isfinite(draws.certificate_.value)  # the diagonal of r, which is constant, does not count


# ------------------------------------------------------------------------------------------------- failures


def failing_after(n):
    calls = iter(range(10**9))

    def log_density(x):
        if next(calls) > n:
            raise ValueError("no such thing")
        return quadratic(x)

    return log_density


@pytest.mark.parametrize("method", ["nuts", "hmc", "metropolis", "slice"])
def test_a_density_that_raises_keeps_what_was_drawn(method):
    model = python_model(log_density=failing_after(4000))
    with ep.config(on_nonconvergence="ignore"), pytest.warns(EpicycleWarning, match="ValueError: no such thing"):
        draws = bayes.sample(model, method, random_state=0, draws=5000, warmup=50, chains=2)
    assert 20 < draws.n_draws < 5000
    assert np.isfinite(draws["x"]).all()
    assert not draws.certificate_.complete
    assert "no such thing" in draws.message
    assert "stopped early" in str(draws.certificate_)


def test_a_density_that_raises_at_once_raises():
    with pytest.raises(ValueError, match="no such thing"):
        bayes.sample(python_model(log_density=failing_after(-1)), draws=10)
    with pytest.raises(ValueError, match="no such thing"):  # in the warm-up: nothing was drawn
        bayes.sample(python_model(log_density=failing_after(60)), draws=10, warmup=500)


@pytest.mark.serial
def test_ctrl_c_gives_back_what_was_drawn():
    calls = iter(range(10**9))

    def log_density(x):
        if next(calls) == 3000:
            _thread.interrupt_main()
        return quadratic(x)

    draws = quietly(python_model(log_density=log_density), random_state=0, draws=200_000, warmup=100, chains=2)
    assert 0 < draws.n_draws < 200_000
    assert draws.message.startswith("interrupted")
    assert not draws.complete


@pytest.mark.serial
def test_ctrl_c_before_the_first_draw():
    def log_density(x):
        _thread.interrupt_main()
        return quadratic(x)

    with pytest.raises(KeyboardInterrupt):
        bayes.sample(python_model(log_density=log_density), "metropolis", draws=10, warmup=10**8, initial={"x": [0, 0]})


def test_nan_in_the_middle_counts_as_no_density():
    def log_density(x):
        return quadratic(x) if x[0] > 0 else np.nan

    with ep.config(on_nonconvergence="ignore"), pytest.warns(EpicycleWarning, match="log_density gave nan"):
        draws = bayes.sample(python_model(log_density=log_density), "metropolis", random_state=0, draws=300)
    assert (draws["x"][..., 0] > 0).all()


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"log_density": lambda x: np.nan}, {}, "log_density: nan at the last"),
        ({"log_density": lambda x: -np.inf}, {"method": "slice"}, "log_density: -inf at the last"),
        ({"log_density": lambda x: x}, {}, r"log_density: returned an array of shape \(2,\)"),
        ({"log_density": lambda x: "high"}, {}, "log_density: returned 'high'"),
        ({"gradient": lambda x: -x[:1]}, {}, r"gradient: shape \(1,\) for 'x'; expected \(2,\)"),
        ({"gradient": lambda x: (-x, -x)}, {}, "gradient: expected one part for each of"),
        ({"gradient": lambda x: {"y": -x}}, {}, "gradient: has parts"),
        ({"gradient": True}, {}, "log_density: with gradient=True it returns a pair"),
        ({"gradient": None}, {}, "method='nuts': the model has no gradient"),
        ({"gradient": None}, {"method": "hmc"}, "method='hmc': the model has no gradient"),
        ({}, {"method": "gibbs"}, "method='gibbs': the model has no conditionals"),
        ({}, {"initial": {"x": [0.0]}}, r"initial: shape \(1,\) for 'x'"),
        ({}, {"initial": {"y": [0.0, 0.0]}}, "initial: has"),
        ({}, {"initial": [{"x": [0.0, 0.0]}]}, "initial: expected a mapping by name, or 4"),
        ({"log_density": lambda x: np.nan}, {"initial": {"x": [0.0, 0.0]}}, "initial: log_density"),
        ({"parameters": {"x": bayes.Positive(2)}}, {"initial": {"x": [1.0, -1.0]}}, "initial: x=.* lies outside"),
        ({}, {"draws": 0}, "draws=0"),
        ({}, {"chains": 1.5}, "chains=1.5"),
        ({}, {"method": "nut"}, "method='nut'.*did you mean 'nuts'"),
        ({}, {"target_accept": 1.0}, "target_accept=1.0"),
        ({}, {"metric": "full"}, "metric='full'"),
        ({}, {"random_state": -1}, "random_state=-1"),
    ],
)
def test_errors_name_the_argument(changes, options, message):
    with pytest.raises(ParameterError, match=message):
        bayes.sample(python_model(**changes), **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"log_density": 3}, "log_density=3"),
        ({"gradient": "jax"}, "gradient='jax'"),
        ({"parameters": {}}, "parameters="),
        ({"parameters": {"2x": 1}}, "name '2x'"),
        ({"data": {"x": 1}}, "names of parameters too"),
        ({"derived": 1}, "derived=1"),
        ({"conditionals": {"y": quadratic}}, "conditionals: .*'y'"),
    ],
)
def test_errors_of_models_name_the_argument(changes, message):
    with pytest.raises(ValueError, match=message):
        python_model(**changes)


def test_no_model_is_an_error():
    with pytest.raises(ParameterError, match="model="):
        bayes.sample(quadratic)


# ------------------------------------------------------------------------------------------------- mutations


@pytest.mark.parametrize(
    "wrong", [lambda x: x, lambda x: -1.01 * x, lambda x: np.array([-x[0], -x[0]]), lambda x: -x + 0.1]
)
def test_a_wrong_gradient_is_caught(wrong):
    with pytest.raises(ParameterError, match=r"gradient: .* but differences of log_density"):
        bayes.sample(python_model(gradient=wrong))


# ------------------------------------------------------------------------------------------------- gibbs


def test_gibbs_by_conditionals_of_the_user():
    """A bivariate normal with correlation 0.6, one coordinate after the other."""
    model = bayes.Model(
        lambda a, b: -(a**2 - 1.2 * a * b + b**2) / (2 * 0.64),
        {"a": (), "b": ()},
        conditionals={
            "a": lambda rng, a, b: 0.6 * b + 0.8 * rng.standard_normal(),
            "b": lambda rng, a, b: 0.6 * a + 0.8 * rng.standard_normal(),
        },
    )
    draws = bayes.sample(model, "gibbs", random_state=0, draws=2000, warmup=100)
    assert draws.certificate_.holds
    product = draws["a"] * draws["b"]
    assert abs(product.mean() - 0.6) < 4.5 * bayes.mcse(product)


@pytest.mark.parametrize(
    ("conditionals", "message"),
    [
        ({"a": lambda rng, a, b: 1.0}, r"conditionals leave out \['b'\]"),
        ({("a", "b"): lambda rng, a, b: (1.0,)}, "1 values for"),
        ({("a", "b"): lambda rng, a, b: (1.0, -1.0)}, "left its constraint"),
        ({("a", "b"): lambda rng, a, b: (1.0, [1.0, 2.0])}, "shape"),
    ],
)
def test_conditionals_are_checked(conditionals, message):
    model = bayes.Model(lambda a, b: 0.0, {"a": (), "b": bayes.Positive()}, conditionals=conditionals)
    with pytest.raises(ParameterError, match=message):
        bayes.sample(model, "gibbs", draws=10)


# ------------------------------------------------------------------------------------------------- the result


@pytest.fixture(scope="module")
def draws():
    return bayes.sample(NORMAL, random_state=0)


def test_certificate(draws):
    certificate = draws.certificate_
    assert certificate.holds
    assert isinstance(certificate, SamplingCertificate)
    assert str(certificate) == f"R-hat 1.00, ESS {certificate.ess:,.0f}: holds"
    both = [bayes.effective_sample_size(draws["x"], kind).min() for kind in ("bulk", "tail")]
    assert certificate.ess == min(both)
    assert certificate.value == bayes.r_hat(draws["x"]).max()


def test_chains_that_have_not_mixed_do_not_hold():
    """Two modes far apart: every chain stays in its own."""

    def log_density(x):
        a, b = -0.5 * (x - 30) ** 2, -0.5 * (x + 30) ** 2
        return max(a, b), 30 - x if a > b else -30 - x

    model = bayes.Model(log_density, {"x": ()}, gradient=True)
    options = {
        "random_state": 0,
        "draws": 150,
        "warmup": 150,
        "initial": [{"x": v} for v in (29.0, -29.0, 31.0, -31.0)],
    }
    with pytest.warns(ConvergenceWarning, match="does not hold; the chains differ"):
        draws = bayes.sample(model, **options)
    assert not draws.certificate_.holds
    assert draws.certificate_.value > 1.5
    with ep.config(on_nonconvergence="raise"), pytest.raises(ConvergenceError, match="does not hold"):
        bayes.sample(model, **options)


def test_a_chain_that_never_moves_does_not_hold():
    with ep.config(on_nonconvergence="ignore"):
        stuck = bayes.sample(python_model(), "metropolis", draws=50, warmup=0, step_size=1e9, initial={"x": [0.0, 0.0]})
    assert not stuck.certificate_.holds


def test_divergences_are_told():
    """The centred funnel has a neck that no step size fits."""

    def log_density(v, x):
        return -(v**2) / 18 - 2 * v - np.exp(-v) * (x @ x) / 2, (
            -v / 9 - 2 + np.exp(-v) * (x @ x) / 2,
            -np.exp(-v) * x,
        )

    with pytest.warns(ConvergenceWarning, match="divergent.*non-centred"):
        draws = bayes.sample(bayes.Model(log_density, {"v": (), "x": 4}, gradient=True), random_state=1, draws=400)
    assert draws.statistics["divergent"].sum() == draws.certificate_.n_divergent > 0


def test_summary(draws):
    table = draws.summary()
    assert table.rows == ("x[0]", "x[1]")
    assert list(table.columns) == ["mean", "sd", "mcse", "5%", "50%", "95%", "ess_bulk", "ess_tail", "r_hat"]
    flat = draws.stacked("x")
    assert_allclose(table["mean"], flat.mean(axis=0))
    assert_allclose(table["95%"], np.quantile(flat, 0.95, axis=0))
    assert_allclose(table["mcse"], bayes.mcse(draws["x"]))
    assert list(draws.summary(0.5).columns)[3] == "25%"
    assert "holds" in str(table)


def test_statistics(draws):
    s = draws.statistics
    assert set(s) == {"log_density", "acceptance", "step_size", "tree_depth", "n_steps", "divergent", "energy"}
    assert all(x.shape == (4, 1000) for x in s.values())
    assert (s["n_steps"] <= 2 ** s["tree_depth"] * 2 - 1).all()
    assert (s["energy"] >= -s["log_density"]).all()  # kinetic energy is not negative
    d = draws["x"] - [1.0, -1.0]
    expected = -0.5 * np.einsum("...i,ij,...j", d, np.linalg.inv([[1.0, 0.8], [0.8, 1.0]]), d)
    assert_allclose(s["log_density"], expected, rtol=1e-9, atol=1e-12)
    assert 0.7 < s["acceptance"].mean() < 0.95
    assert draws.step_sizes.shape == (4,)
    assert_allclose(draws.metrics, np.ones((4, 2)), rtol=0.4)


def test_dense_metric_is_the_covariance():
    draws = bayes.sample(NORMAL, random_state=0, metric="dense")
    assert_allclose(draws.metrics.mean(axis=0), [[1.0, 0.8], [0.8, 1.0]], atol=0.15)


def test_save_and_load(draws, tmp_path):
    draws.save(tmp_path / "draws.epi")
    again = ep.load(tmp_path / "draws.epi")
    assert_array_equal(again["x"], draws["x"])
    assert again.certificate_ == draws.certificate_
    assert str(again.summary()) == str(draws.summary())


@pytest.mark.parametrize("version", ["0.23.4", "1.1.0"])
def test_arviz_is_given_the_draws_by_group(draws, monkeypatch, version):
    """A double in the place of ArviZ, whose `from_dict` changed its arguments with 1.0."""
    import sys
    from types import SimpleNamespace

    def before(**groups):
        return groups

    def since(groups):
        return groups

    double = SimpleNamespace(__version__=version, from_dict=before if version.startswith("0.") else since)
    monkeypatch.setitem(sys.modules, "arviz", double)
    groups = draws.to_arviz()
    assert_array_equal(groups["posterior"]["x"], draws["x"])
    assert groups["sample_stats"]["diverging"].dtype == bool
    assert_array_equal(groups["sample_stats"]["energy"], draws.statistics["energy"])


def test_arviz_is_asked_for_by_name(draws, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(MissingDependencyError, match=r"Draws\.to_arviz needs arviz"):
        draws.to_arviz()


def test_progress_line_appears(monkeypatch, capsys):
    from epicycle.core.estimator import _progress

    monkeypatch.setattr(_progress, "PATIENCE_SECONDS", 0.0)
    quietly(python_model(), random_state=0, draws=1500, verbose=1)
    assert "sample (nuts)" in capsys.readouterr().err
