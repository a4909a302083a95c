"""Networks among the candidates of a search: where they are tried, and that they win where nothing is linear."""

import numpy as np
import pyarrow as pa

import epicycle as ep
from epicycle.automl import _net_candidates
from epicycle.automl._candidates import Candidate, families_for
from epicycle.automl._evaluation import Facts
from epicycle.automl._net_candidates import net_families

NETS = {"MLP", "ResidualMLP"}


def names(n, task="classification", asked=None, seconds=60.0, **facts):
    return {family.name for family in families_for(Facts(task, n, 5, **facts), asked, seconds)}


def test_networks_are_tried_on_many_rows_with_time_and_without_texts(monkeypatch):
    for task in ("classification", "regression"):
        assert names(5_000, task) >= NETS
        assert not names(5_000, task, seconds=10.0) & NETS
        assert not names(500, task) & NETS
        assert not names(5_000, task, texts=True) & NETS
        assert names(500, task, asked="ResidualMLP", seconds=1.0) == {"ResidualMLP"}
        assert names(500, task, asked=["mlp"], seconds=1.0) == {"MLP"}
    assert "MLP for texts" in names(5_000, texts=True)
    assert "MLP for texts" not in names(5_000, "regression", texts=True)
    assert "MLP for texts" not in names(80_000, texts=True)
    assert "ConvNet" in names(300, image=(8, 8, 1), seconds=30.0)
    assert "ConvNet" not in names(300, image=(8, 8, 1), seconds=10.0)
    assert names(300, image=(8, 8, 1), asked="convnet", seconds=10.0) == {"ConvNet"}
    monkeypatch.setattr(_net_candidates, "find_spec", lambda name: None)
    assert not names(5_000) & NETS


def test_settings_of_every_family_make_an_estimator_and_are_not_readable():
    rng = np.random.default_rng(0)
    for family in net_families(Facts("regression", 9_000, 5), 60.0, None):
        assert not Candidate(family, family.starts[0]).is_readable
        drawn = {**family.starts[0], **{name: axis.draw(rng) for name, axis in family.space.items()}}
        estimator = Candidate(family, drawn).build(3)
        inner = getattr(estimator, "regressor", estimator)
        assert inner.random_state == 3
        assert inner.get_params()["max_iter"] == drawn["max_iter"]


def test_a_network_wins_where_a_category_turns_the_sign(tmp_path):
    rng = np.random.default_rng(0)
    city = rng.integers(0, 6, 1500)
    x = rng.normal(size=(1500, 3))
    answer = np.where(x[:, 0] * np.where(city % 2, 1, -1) + 0.2 * rng.normal(size=1500) > 0, "yes", "no")
    columns = {f"x{j}": x[:, j] for j in range(3)} | {"city": np.array(list("abcdef"))[city], "answer": answer}
    run = ep.train(pa.table(columns), "answer", time=8, models=["MLP", "logistic"], progress=False)
    assert run.test.score > 0.85
    assert "MLP" in run.leaderboard[0]["name"]
    run.save(tmp_path / "run")
    assert "MLPClassifier" in run.script
