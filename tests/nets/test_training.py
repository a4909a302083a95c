"""The training loop: the same bits however many threads, however often it is cut off; its rules, one by one."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

import epicycle as ep
from epicycle.core._monitor import Monitor
from epicycle.exceptions import ConvergenceError, ConvergenceWarning, ModelFormatError
from epicycle.nets.training._batches import ArrayRows, SequenceRows, StreamedRows
from epicycle.nets.training._gradients import Gradients
from epicycle.nets.training._loop import TrainingRun
from epicycle.nets.training._losses import loss_of_rows
from epicycle.nets.training._optimizers import make_optimizer, optimizer_state
from epicycle.nets.training._options import OPTIMIZERS, SCHEDULES, TrainingOptions
from epicycle.nets.training._randomness import Dropout, drawing_from, dropout
from epicycle.nets.training._schedules import learning_rate
from epicycle.nets.training._torch import one_thread_each, seeded
from epicycle.nets.training._weights import load_weights
from epicycle.optim import Logistic, Multinomial, Squared
from epicycle.optim._likelihoods import Poisson
from epicycle.optim._losses import Absolute, Huber, Quantile, SquaredEpsilonInsensitive

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def images():
    """192 small images of four kinds: a bright row of pixels at one of four heights."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 192)
    X = rng.normal(size=(192, 1, 8, 8)).astype(np.float32)
    X[np.arange(192), 0, 2 * y] += 1.5
    return X, y


def conv_net():
    """With what depends on the batch (batch normalisation) and on chance (dropout)."""
    with seeded(3):
        layers = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), Dropout(0.2), nn.Linear(144, 4)]
    return nn.Sequential(*layers)


def row_losses(module, batch):
    return loss_of_rows(Multinomial())(module(*batch.inputs), batch.target)


def run(rows, *, module=None, seed=1, monitor=None, resume=None, **options):
    module = conv_net() if module is None else module
    chosen = TrainingOptions(**{"batch_size": 64, "max_iter": 3, **options})
    with one_thread_each():
        return TrainingRun(
            module, row_losses, rows, chosen, seed=seed, monitor=monitor or Monitor(), resume=resume
        ).run()


def same_bits(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


# --------------------------------------------------------------------------------------------- the same bits


@pytest.mark.parametrize("options", [{}, {"parts": 4}, {"accumulate": 2}], ids=["whole", "parts", "accumulated"])
def test_the_same_bits_for_any_number_of_threads(images, options):
    found = []
    for n_jobs in (1, 2, 4):
        torch.set_num_threads(n_jobs)
        with ep.config(n_jobs=n_jobs):
            found.append(run(ArrayRows(images[:1], images[1]), clip_norm=1.0, average=0.9, **options).weights)
    torch.set_num_threads(2)
    assert same_bits(found[0], found[1])
    assert same_bits(found[0], found[2])


def test_parts_have_the_gradient_of_the_whole(images):
    """Without batch normalisation and dropout, in double precision: up to the order of addition."""
    X, y = images
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    with seeded(0):
        module = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 4)).double()
    batch = next(ArrayRows((X,), y, weight, dtype=np.float64).in_order(len(y)))
    found = []
    for options in (TrainingOptions(), TrainingOptions(parts=5), TrainingOptions(accumulate=3)):
        gradients = Gradients(module, row_losses, options, mean_weight=weight.mean(), seed=0, device=CPU)
        loss = gradients(batch, 0)
        found.append((float(loss), [p.grad.clone() for p in module.parameters()]))
    by_hand = (row_losses(module, batch) * torch.from_numpy(weight)).sum() / weight.sum()
    for loss, gradient in found:
        assert loss == pytest.approx(float(by_hand.detach()), rel=1e-12)
        for mine, theirs in zip(
            gradient, torch.autograd.grad(by_hand, module.parameters(), retain_graph=True), strict=True
        ):
            assert_allclose(mine, theirs, rtol=1e-10, atol=1e-14)


class CutOff(Monitor):
    """Keeps the state after an iteration and stops there, as a process that dies with a checkpoint on the disk."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    def __call__(self, iteration, x, *, objective, state=None, **columns):
        super().__call__(iteration, x, objective=objective, state=state, **columns)
        if iteration == self.at:
            self.state = state()
        return iteration == self.at


@pytest.mark.parametrize("solver", OPTIMIZERS)
def test_a_resumed_run_ends_in_the_same_bits(images, solver):
    rows = ArrayRows(images[:1], images[1])
    options = {"solver": solver, "max_iter": 5, "learning_rate": "cosine", "warmup": 2, "parts": 2, "average": 0.9}
    options |= {"steps_per_iteration": 2, "weight_decay": 0.01}  # three batches an epoch: cut in the middle of one
    whole = run(rows, **options)
    cut = CutOff(3)
    run(rows, monitor=cut, **options)
    with seeded(99):  # another start: the state has to bring everything
        other = conv_net()
        for p in other.parameters():
            nn.init.normal_(p)
    resumed = run(rows, module=other, resume=cut.state, **options)
    assert same_bits(resumed.weights, whole.weights)
    assert resumed.n_steps == whole.n_steps == 10
    assert resumed.objective == whole.objective


def test_the_order_of_an_epoch_follows_from_seed_and_number(images):
    rows = ArrayRows((np.arange(100.0)[:, None],))

    def order(seed, epoch):
        return torch.cat([b.inputs[0][:, 0] for b in rows.epoch(7, epoch, seed, shuffle=True)])

    assert torch.equal(order(0, 3), order(0, 3))
    assert not torch.equal(order(0, 3), order(0, 4))
    assert not torch.equal(order(0, 3), order(1, 3))
    assert torch.equal(order(0, 3).sort().values, torch.arange(100.0, dtype=torch.float64))


# --------------------------------------------------------------------------------------------- update rules and rates


def test_update_rules_are_those_of_numpy():
    """Three steps on F(w) = w'Aw / 2 against the published formulas."""
    A = np.diag([1.0, 3.0])
    start = np.array([1.0, -2.0])

    def by_hand(solver):
        w, m, v, u = start.copy(), np.zeros(2), np.zeros(2), np.zeros(2)
        for t in range(1, 4):
            g = A @ w
            if solver in ("adam", "adamw"):
                m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
                w = w - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
            elif solver == "adagrad":
                v = v + g**2
                w = w - 0.1 * g / (np.sqrt(v) + 1e-10)
            elif solver == "rmsprop":
                v = 0.99 * v + 0.01 * g**2
                w = w - 0.1 * g / (np.sqrt(v) + 1e-8)
            elif solver == "adadelta":
                v = 0.9 * v + 0.1 * g**2
                d = np.sqrt(u + 1e-6) / np.sqrt(v + 1e-6) * g
                u = 0.9 * u + 0.1 * d**2
                w = w - 0.1 * d
            else:
                m = (0.9 if solver == "momentum" else 0.0) * m + g
                w = w - 0.1 * m
        return w

    for solver in OPTIMIZERS:
        module = nn.Linear(2, 1, bias=False).double()
        with torch.no_grad():
            module.weight.copy_(torch.from_numpy(start)[None])
        options = TrainingOptions(solver=solver, learning_rate_init=0.1, momentum=0.0)
        optimizer = make_optimizer(module, options)
        for _ in range(3):
            module.weight.grad = module.weight.detach() @ torch.from_numpy(A)
            optimizer.step()
        assert_allclose(module.weight.detach().numpy()[0], by_hand(solver), rtol=1e-9, atol=1e-15, err_msg=solver)
        assert all(isinstance(value, np.ndarray) for value in optimizer_state(optimizer).values())


def test_schedules():
    def rates(name, **options):
        chosen = TrainingOptions(learning_rate=name, learning_rate_init=2.0, **options)
        return [learning_rate(chosen, t, 100, t // 10, 1.0) for t in range(100)]

    assert rates("constant") == [2.0] * 100
    assert rates("constant", warmup=4)[:5] == [0.5, 1.0, 1.5, 2.0, 2.0]
    assert rates("constant", warmup=0.1)[:11] == pytest.approx([0.2 * (t + 1) for t in range(10)] + [2.0])
    assert rates("linear")[50] == pytest.approx(1.0)
    cosine = rates("cosine", warmup=20)
    assert cosine[20] == 2.0
    assert cosine[60] == pytest.approx(1.0)
    assert cosine[99] < 0.01
    assert rates("step", step_size=4, gamma=0.5)[::40] == [2.0, 1.0, 0.5]
    assert rates("invscaling")[8] == pytest.approx(2 / 3)
    assert set(SCHEDULES) == {"constant", "invscaling", "adaptive", "step", "linear", "cosine"}


def test_a_penalty_of_scikit_learn_and_decay_leave_biases_alone():
    """alpha / (2 n) |W|^2 on a batch of n rows; AdamW shrinks weights by 1 - rate * decay apart from the gradient."""
    X = np.zeros((8, 2))
    for solver, options, factor in (
        ("sgd", {"alpha": 4.0, "momentum": 0.0}, 1 - 0.1 * 4.0 / 8),
        ("adamw", {"weight_decay": 0.5}, 1 - 0.1 * 0.5),
    ):
        module = nn.Linear(2, 1).double()
        before = module.weight.detach().clone(), module.bias.detach().clone()
        rows = ArrayRows((X,), module.bias.detach().numpy().repeat(8)[:, None])
        losses = loss_of_rows(Squared())
        chosen = TrainingOptions(solver=solver, learning_rate_init=0.1, batch_size=8, max_iter=1, **options)
        TrainingRun(
            module, lambda m, b, losses=losses: losses(m(*b.inputs), b.target), rows, chosen, seed=0, monitor=Monitor()
        ).run()
        assert_allclose(module.weight.detach(), before[0] * factor, rtol=1e-12)
        assert_allclose(module.bias.detach(), before[1], rtol=1e-12)


# --------------------------------------------------------------------------------------------- losses


@pytest.mark.parametrize(
    "loss",
    [
        Squared(),
        Absolute(),
        Huber(0.7),
        Quantile(0.2),
        SquaredEpsilonInsensitive(0.3),
        Logistic(),
        Poisson(),
        Multinomial(),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_losses_are_those_of_optim(loss):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(20, 3)) * 3
    y = rng.integers(0, 3, 20) if isinstance(loss, Multinomial) else np.floor(rng.uniform(0, 2, (20, 3)))
    value, gradient = loss.value(z, y), loss.gradient(z, y)
    tensor = torch.from_numpy(z).requires_grad_()
    found = loss_of_rows(loss)(tensor, torch.from_numpy(y))
    assert_allclose(found.detach(), value if value.ndim == 1 else value.sum(axis=1), rtol=1e-12, atol=1e-14)
    (slope,) = torch.autograd.grad(found.sum(), tensor)
    assert_allclose(slope, gradient, rtol=1e-10, atol=1e-12)


def test_label_smoothing_is_the_mean_over_smoothed_targets():
    z = torch.tensor([[2.0, -1.0, 0.5]], dtype=torch.float64)
    each = -torch.log_softmax(z, 1)[0]
    found = loss_of_rows(Multinomial(), 0.3)(z, torch.tensor([1]))
    assert float(found) == pytest.approx(float(0.7 * each[1] + 0.1 * each.sum()))


# --------------------------------------------------------------------------------------------- rows


def test_files_give_the_batches_of_the_same_rows_in_memory(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 30)), rng.normal(size=5000)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(30)]).assign(y=y)
    for i in range(3):
        frame.iloc[i * 1700 : (i + 1) * 1700].to_parquet(tmp_path / f"part-{i}.parquet", row_group_size=333)
    scan = ep.scan(str(tmp_path / "part-*.parquet"), target="y")
    options = {"max_iter": 3, "shuffle": False, "tol": None, "random_state": 0}
    memory = ep.MLPRegressor(hidden_layer_sizes=4, **options).fit(X, y)
    files = ep.MLPRegressor(hidden_layer_sizes=4, **options).fit(scan)
    assert all(np.array_equal(a, b) for a, b in zip(memory.coefs_, files.coefs_, strict=True))
    assert_allclose(files.predict(scan), memory.predict(X), rtol=1e-12)
    shuffled = ep.MLPRegressor(hidden_layer_sizes=4, max_iter=3, tol=None, random_state=0).fit(scan)
    assert shuffled.loss_ == pytest.approx(memory.loss_, rel=0.3)
    rows = StreamedRows(memory._predict_data(X))
    seen = torch.cat([b.inputs[0][:, 0] for b in rows.epoch(64, 1, 0, shuffle=True)])
    assert torch.equal(seen.sort().values, torch.from_numpy(np.sort(X[:, 0])))


def test_sequences_are_padded_and_keep_their_lengths():
    sequences = [np.arange(1, n + 1) for n in (3, 1, 5)]
    (batch,) = SequenceRows(sequences, [s % 2 for s in sequences]).in_order(3)
    table, lengths = batch.inputs
    assert lengths.tolist() == [3, 1, 5]
    assert table.tolist() == [[1, 2, 3, 0, 0], [1, 0, 0, 0, 0], [1, 2, 3, 4, 5]]
    assert batch.target.tolist() == [[1, 0, 1, -1, -1], [1, -1, -1, -1, -1], [1, 0, 1, 0, 1]]


def test_rows_of_weight_zero_are_as_good_as_not_there():
    X, y, weight = np.arange(12.0)[:, None], np.arange(12.0), np.array([1.0, 0, 2] * 4)
    rows = ArrayRows((X,), y, weight)
    seen = torch.cat([b.target for b in rows.epoch(3, 0, 0, shuffle=True)])
    assert sorted(seen.tolist()) == [i for i in range(12) if weight[i]]
    assert rows.mean_weight == 1.5
    assert rows.subset(np.array([0, 1])).targets().tolist() == [0.0, 2.0]


def test_augmentation_is_drawn_by_name_and_in_training_only(images):
    def shift(inputs, rng):
        return (inputs[0] + float(rng.normal()),)

    rows = ArrayRows(images[:1], images[1], augment=shift)
    first = [b.inputs[0] for b in rows.epoch(64, 2, 5, shuffle=True)]
    again = [b.inputs[0] for b in rows.epoch(64, 2, 5, shuffle=True)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    plain = ArrayRows(images[:1], images[1]).epoch(64, 2, 5, shuffle=True)
    added = [float((a - b.inputs[0]).mean()) for a, b in zip(first, plain, strict=True)]
    assert len(set(np.round(added, 6))) == 3
    assert torch.equal(next(rows.in_order(192)).inputs[0], torch.from_numpy(images[0]))


def test_dropout_keeps_the_mean_and_follows_from_its_name():
    x = torch.ones(200_000)
    with drawing_from(0, 7, 1, CPU):
        first = dropout(x, 0.3, True)
    with drawing_from(0, 7, 1, CPU):
        assert torch.equal(dropout(x, 0.3, True), first)
    with drawing_from(0, 7, 2, CPU):
        assert not torch.equal(dropout(x, 0.3, True), first)
    assert float(first.mean()) == pytest.approx(1.0, abs=0.01)
    assert float((first == 0).float().mean()) == pytest.approx(0.3, abs=0.01)
    assert dropout(x, 0.3, False) is x


# --------------------------------------------------------------------------------------------- the rules that end it


def linear_problem(scale=1.0, n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * scale
    return X, X @ [1.0, -2.0, 0.5] / scale + rng.normal(size=n)


def test_a_loss_that_is_no_number_is_named_and_the_last_good_weights_are_kept():
    X, y = linear_problem()
    with pytest.raises(ConvergenceError, match=r"first epoch.*learning_rate_init"):
        ep.MLPRegressor(solver="sgd", learning_rate_init=1e200, random_state=0).fit(X, y)

    class Spoil(nn.Module):
        """A linear map whose loss is NaN from the seventh batch on."""

        def __init__(self):
            super().__init__()
            self.linear, self.calls = nn.Linear(3, 1).double(), 0

        def forward(self, x):
            self.calls += 1
            return self.linear(x) * (np.nan if self.calls > 6 else 1.0)

    module, rows = Spoil(), ArrayRows((X,), y)
    losses = loss_of_rows(Squared())
    outcome = TrainingRun(
        module,
        lambda m, b: losses(m(*b.inputs), b.target),
        rows,
        TrainingOptions(batch_size=200, max_iter=10),
        seed=0,
        monitor=Monitor(),
    ).run()
    assert outcome.reason == "diverged"
    assert outcome.n_iter == 3
    assert np.isfinite(outcome.objective)
    assert all(bool(torch.isfinite(w).all()) for w in outcome.weights.values())


def test_early_stopping_keeps_the_best_epoch_and_bounds_the_error():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 10))
    y = (X[:, 0] + 0.5 * rng.normal(size=600) > 0).astype(int)
    model = ep.MLPClassifier(100, learning_rate_init=0.01, early_stopping=True, random_state=0).fit(X, y)
    scores = model.history_.validation_score
    assert model.best_validation_score_ == scores.max()
    assert model.n_iter_ < 200
    assert model.converged_
    assert {"validation_loss", "validation_score", "gradient_norm", "learning_rate"} <= set(model.history_.columns)
    assert "errors on 60 rows held out" in model.certificate_.meaning
    assert "no proof of optimality" in model.certificate_.meaning


def test_a_time_limit_ends_a_fit_and_says_so():
    X, y = linear_problem()
    model = ep.MLPRegressor(max_iter=10**6, tol=None, random_state=0).set_callbacks(ep.TimeLimit(0.2))
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model.fit(X, y)
    assert model.n_iter_ > 1
    assert not model.certificate_.holds


def test_clipping_bounds_the_step(images):
    start = conv_net().state_dict()
    outcome = run(
        ArrayRows(images[:1], images[1]),
        solver="sgd",
        momentum=0.0,
        learning_rate_init=1.0,
        clip_norm=1e-3,
        batch_size=192,
        max_iter=1,
    )
    moved = [outcome.weights[n] - start[n] for n in start if "running" not in n and "num" not in n]
    assert float(torch.sqrt(sum(m.square().sum() for m in moved))) == pytest.approx(1e-3, rel=1e-3)


def test_averages_of_the_weights_are_what_is_given_back(images):
    rows = ArrayRows(images[:1], images[1])
    last, averaged = run(rows), run(rows, average=0.9)
    assert not same_bits(last.weights, averaged.weights)
    assert same_bits(
        {n: torch.from_numpy(v) for n, v in averaged.state["weights"].items()}, last.weights
    )  # training itself is the same


def test_bfloat16_learns_as_well(images):
    rows = ArrayRows(images[:1], images[1])
    full, short = run(rows, max_iter=8), run(rows, max_iter=8, precision="bfloat16")
    assert not same_bits(full.weights, short.weights)
    assert short.objective == pytest.approx(full.objective, rel=0.1)
    assert short.objective < 1.0  # of log 4 = 1.39 at the start


def test_weights_of_another_architecture_are_refused():
    with pytest.raises(ModelFormatError, match="another architecture"):
        load_weights(nn.Linear(3, 2), nn.Linear(3, 1).state_dict())


# --------------------------------------------------------------------------------------------- without torch


def test_torch_is_loaded_by_a_fit_alone_and_its_absence_is_explained():
    code = """
        import sys
        import epicycle as ep
        assert "MLPClassifier" in [m.name for m in ep.methods()]
        ep.Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
        model = ep.MLPRegressor()
        assert "torch" not in sys.modules
        class Blocked:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] == "torch":
                    raise ModuleNotFoundError("No module named 'torch'", name="torch")
        sys.meta_path.insert(0, Blocked())
        try:
            model.fit([[0.0], [1.0]], [0.0, 1.0])
        except ImportError as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "MissingDependencyError MLPRegressor needs torch: pip install 'epicycle[deep]'", (
        done.stderr
    )
