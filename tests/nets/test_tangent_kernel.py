"""Empirical tangent kernels against explicit Jacobians, and against the kernel of infinite width."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from torch import nn

import epicycle as ep
from epicycle import nets
from epicycle.exceptions import DataError, ParameterError
from epicycle.kernel import NNGP, NeuralTangent
from epicycle.nets import _tangent_kernel, tangent_kernel
from epicycle.nets.examples import wide_network


def explicit(module, X):
    """Jacobians by one backward pass for each row and output, of shape (n, K, weights)."""
    weights = [p for p in module.parameters() if p.requires_grad]
    found = []
    for row in X:
        outputs = module(row[None]).reshape(-1)
        found.append(
            torch.stack(
                [
                    torch.cat([g.reshape(-1) for g in torch.autograd.grad(out, weights, retain_graph=True)])
                    for out in outputs
                ]
            )
        )
    return torch.stack(found).numpy()


@pytest.fixture(scope="module")
def conv_module():
    torch.manual_seed(0)
    layers = [nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.GELU(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(27, 4)]
    module = nn.Sequential(*layers).double()
    module(torch.randn(8, 2, 5, 5, dtype=torch.float64))  # running means
    module[0].bias.requires_grad_(False)
    return module.eval()


def test_explicit_jacobians(conv_module, monkeypatch):
    rng = np.random.default_rng(0)
    X, Z = (torch.from_numpy(rng.normal(size=(n, 2, 5, 5))) for n in (7, 4))
    J, L = explicit(conv_module, X), explicit(conv_module, Z)
    every, mean = np.einsum("akp,blp->abkl", J, L), np.einsum("akp,bkp->ab", J, L) / 4
    own = np.einsum("akp,bkp->ab", J, J) / 4
    for block in (1 << 27, 20_000):  # whole, and in blocks of a few rows
        monkeypatch.setattr(_tangent_kernel, "_BLOCK_BYTES", block)
        assert_allclose(tangent_kernel(conv_module, X, Z, outputs="all"), every, rtol=1e-10)
        assert_allclose(tangent_kernel(conv_module, X.numpy(), Z), mean, rtol=1e-10)
        assert_allclose(tangent_kernel(conv_module, X), own, rtol=1e-10)
        symmetric = tangent_kernel(conv_module, X, outputs="all")
        assert_allclose(symmetric, symmetric.transpose(1, 0, 3, 2), rtol=1e-12)
    assert all(p.grad is None for p in conv_module.parameters())


@pytest.mark.parametrize(("depth", "bias_variance"), [(1, 0.0), (2, 0.3)])
def test_the_limit_of_width(depth, bias_variance):
    """The distance from the kernel of infinite width falls with the root of the width."""
    X = np.random.default_rng(0).normal(size=(8, 3))
    limit = NeuralTangent(depth=depth, bias_variance=bias_variance)(X)

    def distance(width):
        found = [
            tangent_kernel(wide_network(3, width, depth=depth, bias_variance=bias_variance, random_state=seed), X)
            for seed in range(8)
        ]
        return np.sqrt(np.mean([np.linalg.norm(k - limit) ** 2 for k in found])) / np.linalg.norm(limit)

    narrow, wide = distance(16), distance(256)
    assert wide < 0.15
    assert 2.5 < narrow / wide < 6.5  # 4 = sqrt(256 / 16)


def test_outputs_are_those_of_the_gaussian_process():
    X = np.random.default_rng(1).normal(size=(5, 3))
    f = np.array([wide_network(3, 64, random_state=s)(torch.from_numpy(X)).detach().numpy()[:, 0] for s in range(3000)])
    limit = NNGP()(X)
    assert np.linalg.norm(f.T @ f / len(f) - limit) < 0.08 * np.linalg.norm(limit)


def test_a_wide_network_trains_as_kernel_regression():
    """Gradient descent on a wide network and kernel regression with its kernel at the start agree on new rows."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(10, 2)), rng.normal(size=(6, 2))
    y = np.sin(X[:, 0])
    module = wide_network(2, 3000, random_state=0)
    inputs, targets, new = (torch.from_numpy(a) for a in (X, y, Z))
    K, k = tangent_kernel(module, X), tangent_kernel(module, Z, X)
    with torch.no_grad():
        start, start_new = (module(a)[:, 0].numpy() for a in (inputs, new))
    rate = 1.0 / np.linalg.eigvalsh(K).max()
    optimizer = torch.optim.SGD(module.parameters(), lr=rate)
    steps = 400
    for _ in range(steps):
        optimizer.zero_grad()
        (0.5 * (module(inputs)[:, 0] - targets).square().sum()).backward()
        optimizer.step()
    w, V = np.linalg.eigh(K)
    learnt = V @ np.diag((1 - (1 - rate * w) ** steps) / w) @ V.T @ (y - start)
    with torch.no_grad():
        found = module(new)[:, 0].numpy()
    moved = np.linalg.norm(found - start_new)
    assert np.linalg.norm(found - (start_new + k @ learnt)) < 0.1 * moved


def test_fitted_networks_and_gram_matrices():
    X, y = load_digits(n_class=3, return_X_y=True)
    mlp = ep.MLPClassifier(8, max_iter=5, tol=None, random_state=0).fit(X[:60], y[:60])
    found = tangent_kernel(mlp, X[:9], X[:5])
    J = explicit(mlp.module_.double(), torch.from_numpy(X[:9]))
    assert_allclose(found, np.einsum("akp,bkp->ab", J, J[:5]) / 3, rtol=1e-6)
    images = X.reshape(-1, 8, 8)
    conv = ep.ConvNetClassifier([["conv", 2, 3], "relu"], max_iter=1, random_state=0).fit(images[:60], y[:60])
    gram = tangent_kernel(conv, images[:6])
    assert gram.shape == (6, 6)
    assert np.linalg.eigvalsh(gram).min() > -1e-8 * gram.max()
    machine = ep.KernelRidge(kernel="precomputed", alpha=1.0).fit(gram, y[:6])
    assert np.isfinite(machine.predict(gram)).all()


def test_bad_input_is_named():
    module = nn.Linear(2, 1)
    with pytest.raises(ParameterError, match="outputs='sum'"):
        tangent_kernel(module, np.ones((2, 2)), outputs="sum")
    with pytest.raises(ParameterError, match="got Ridge"):
        tangent_kernel(ep.Ridge(), np.ones((2, 2)))
    with pytest.raises(DataError, match="X: expected rows"):
        tangent_kernel(module, np.ones((0, 2)))
    with pytest.raises(DataError, match="no weights that are trained"):
        tangent_kernel(module.requires_grad_(False), np.ones((2, 2)))
    with pytest.raises(DataError, match=r"output of shape \(1, 2, 3\)"):
        tangent_kernel(nn.Linear(3, 3), np.ones((4, 2, 3)))
    assert "tangent_kernel" in nets.__all__
