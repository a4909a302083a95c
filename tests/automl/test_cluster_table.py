"""Clustering of tables: planted groups, tables without any, mixed columns, the words, the files, and plain errors."""

import json
import runpy

import numpy as np
import pyarrow as pa
import pytest

import epicycle as ep
from epicycle.automl.clustering._cluster_profiles import cluster_profiles
from epicycle.automl.clustering._methods import methods_for
from epicycle.automl.clustering._search import reference_table
from epicycle.metrics import adjusted_rand_score

QUICK = ["kmeans", "agglomerative", "hdbscan"]


def people(n=14, seed=0):
    """Three kinds of people: young and poor, old and rich, and those in between, most of whom live in Rome."""
    rng = np.random.default_rng(seed)
    kind = np.repeat([0, 1, 2], n)
    age = np.array([25.0, 70.0, 45.0])[kind] + rng.normal(scale=3, size=3 * n)
    fare = np.array([10.0, 90.0, 40.0])[kind] + rng.normal(scale=6, size=3 * n)
    city = np.where((kind == 2) & (rng.random(3 * n) < 0.95), "Rome", rng.choice(["Paris", "Oslo"], 3 * n))
    order = rng.permutation(3 * n)
    return pa.table(
        {
            "age": pa.array(age[order], mask=rng.random(3 * n) < 0.05),
            "fare": fare[order],
            "city": city[order].tolist(),
            "always": ["x"] * (3 * n),
            "kind": kind[order].astype(str).tolist(),
        }
    )


@pytest.fixture(scope="module")
def run():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("epicycle.automl.clustering._search._MOST_CLUSTERS", 4)
        return ep.cluster_table(people(10), labels="kind", models=QUICK, seed=0)


def reproduced(script, folder, monkeypatch):
    """The model that a script makes where it is run."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["cluster.py"])
    runpy.run_path(str(script), run_name="__main__")
    return ep.load(folder / "reproduced.epi")


def test_planted_groups_are_found_with_their_number(run):
    assert (run.k, run.verdict) == (3, "stable")
    assert adjusted_rand_score(people(10)["kind"].to_pylist(), run.labels) > 0.9
    assert run.agreement["adjusted_rand"] > 0.9
    assert run.p_value == 0.05
    of_method = [c for c in run.candidates if c["method"] == run.method]
    assert max(of_method, key=lambda c: c["beyond_chance"])["name"] == run.chosen == "KMeans, 3 clusters"
    assert {c["method"] for c in run.candidates} == {"KMeans", "AgglomerativeClustering", "HDBSCAN"}
    assert {p.name: p.kind for p in run.profile} == {
        "age": "number",
        "fare": "number",
        "city": "category",
        "always": "drop",
        "kind": "drop",
    }
    assert any("3 clusters" in reason and "tables without clusters" in reason for reason in run.reasons)
    assert "3 clusters of 30 rows by KMeans" in str(run)


def test_clusters_are_told_in_words(run):
    told = " | ".join(c["summary"] for c in run.clusters)
    assert "high age" in told
    assert "low fare" in told
    assert "city Rome" in told or "city mostly Rome" in told
    for c in run.clusters:
        inside = run.labels == c["cluster"]
        assert c["rows"] == inside.sum()
        assert c["silhouette"] == pytest.approx(run.silhouettes[inside].mean())


def test_the_words_by_hand():
    table = pa.table({"age": [20.0, 20.0, 60.0, 60.0], "sex": ["f", "f", "m", "f"]})
    kinds = {"age": "number", "sex": "category"}
    older = cluster_profiles(table, kinds, np.array([0, 0, 1, 1]), None)[1]
    assert older["details"].startswith("age 60 against 40 overall")
    assert older["summary"].startswith("high age")
    assert older["traits"][0]["effect"] == 1.0


@pytest.mark.parametrize("seed", [0, 1])
def test_a_table_without_clusters_is_called_no_better_than_chance(seed, monkeypatch):
    monkeypatch.setattr("epicycle.automl.clustering._search._MOST_CLUSTERS", 4)
    rng = np.random.default_rng(seed)
    table = pa.table(
        {"a": rng.uniform(size=40), "b": rng.uniform(size=40), "c": rng.choice(["u", "v"], 40).tolist()}
        if seed
        else {"a": rng.uniform(size=40), "b": rng.uniform(size=40)}
    )
    found = ep.cluster_table(table, models=QUICK, seed=0)
    assert found.verdict == "no better than chance"
    assert found.p_value > 0.05
    assert any("no better than chance" in reason for reason in found.reasons)
    assert found.labels.shape == (40,)


@pytest.mark.slow
def test_the_search_as_a_whole_keeps_its_level(monkeypatch):
    """Of 10 uniform tables at most 2 may be called clustered, though several candidates are tried (P = 0.988)."""
    monkeypatch.setattr("epicycle.automl.clustering._search._MOST_CLUSTERS", 4)
    verdicts = [
        ep.cluster_table(
            pa.table({name: np.random.default_rng([seed, j]).uniform(size=40) for j, name in enumerate("ab")}),
            models="agglomerative",
            seed=seed,
        ).verdict
        for seed in range(10)
    ]
    assert sum(verdict != "no better than chance" for verdict in verdicts) <= 2


def test_more_clusters_than_the_sample_would_hold(monkeypatch):
    monkeypatch.setattr("epicycle.automl.clustering._search.RESAMPLED_ROWS", 30)
    found = ep.cluster_table(people(60), 25, models="agglomerative")
    assert found.k == 25


def test_reference_tables_keep_categories_and_break_what_joins_them():
    X = ep.TableEncoder({"age": "number", "city": "category"}, form="linear").fit(people(40))
    features = X.transform(people(40))
    drawn = reference_table(features, X.sources_, np.random.default_rng(0))
    city = [j for j, source in enumerate(X.sources_) if source == "city"]
    assert (drawn[:, city].sum(axis=0) == features[:, city].sum(axis=0)).all()
    assert (drawn[:, city].sum(axis=1) == 1).all()
    joined = [abs(np.corrcoef(t[:, 0], t[:, city[-1]])[0, 1]) for t in (features, drawn)]
    assert len(np.unique(drawn[:, 0])) > 100
    assert joined[1] < 0.3


def test_files_repeat_by_the_seed_and_the_script_reproduces_the_model(tmp_path, monkeypatch):
    path = tmp_path / "people.parquet"
    pa.parquet.write_table(people(), path)
    for name in ("first", "second"):
        ep.cluster_table(path, 3, labels="kind", models="kmeans", seed=4, out=tmp_path / name)
    names = sorted(p.name for p in (tmp_path / "first").iterdir())
    assert names == ["cluster.py", "clusters.csv", "clusters.json", "model.epi"]
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name
    lines = (tmp_path / "first" / "clusters.csv").read_text().splitlines()
    assert lines[0] == "row,cluster,silhouette"
    labels = [int(line.split(",")[1]) for line in lines[1:]]
    assert ep.load(tmp_path / "first" / "model.epi").predict(people()).tolist() == labels
    again = reproduced(tmp_path / "first" / "cluster.py", tmp_path, monkeypatch)
    assert again.predict(people()).tolist() == labels
    numbers = json.loads((tmp_path / "first" / "clusters.json").read_text())
    assert numbers["k"] == 3
    assert len(numbers["clusters"]) == 3


@pytest.mark.parametrize("models", ["agglomerative", "hdbscan"])
def test_methods_that_know_no_other_rows_hand_on_to_neighbours(models, tmp_path, monkeypatch):
    path = tmp_path / "people.parquet"
    pa.parquet.write_table(people(), path)
    k = 3 if models == "agglomerative" else "auto"
    found = ep.cluster_table(path, k, labels="kind", models=models, out=tmp_path / "run")
    assert found.k >= 2
    assert found.model_.predict(people()).tolist() == found.labels.tolist()
    assert ep.load(tmp_path / "run" / "model.epi").predict(people()).tolist() == found.labels.tolist()
    again = reproduced(tmp_path / "run" / "cluster.py", tmp_path, monkeypatch)
    assert again.predict(people()).tolist() == found.labels.tolist()
    outside = [c for c in found.clusters if c["cluster"] < 0]
    assert [c["silhouette"] for c in outside] == [None] * len(outside)


def test_a_short_time_leaves_candidates_out_and_names_them():
    found = ep.cluster_table(people(), time=1e-6)
    assert len(found.candidates) == 1
    assert found.skipped[0] == "KMeans, 3 clusters: the time was up"


def test_a_mixture_gives_probabilities_and_one_that_fails_is_named(monkeypatch):
    numbers = people().drop_columns(["city"])
    found = ep.cluster_table(numbers, 3, labels="kind", models="gaussian")
    assert found.method == "GaussianMixture"
    assert found.agreement["adjusted_rand"] > 0.8
    assert found.model_.predict_proba(numbers).shape == (42, 3)
    assert "GaussianMixture" in {m.name for m in methods_for(42, None, fixed_k=True, categories=False)}
    assert "GaussianMixture" not in {m.name for m in methods_for(42, None, fixed_k=True, categories=True)}

    def collapse(*_):
        raise ep.exceptions.ConvergenceError("component 2 collapsed")

    monkeypatch.setattr(ep.GaussianMixture, "fit", collapse)
    monkeypatch.setattr(ep.GaussianMixture, "fit_predict", collapse)
    with pytest.raises(ValueError, match="could be fitted: GaussianMixture, 3 clusters: component 2 collapsed"):
        ep.cluster_table(people(), 3, models="gaussian")
    found = ep.cluster_table(people(), 3, models=["gaussian", "agglomerative"])
    assert found.method == "AgglomerativeClustering"
    assert found.skipped == ["GaussianMixture, 3 clusters: component 2 collapsed"]


def test_many_rows_are_clustered_from_a_sample(monkeypatch):
    monkeypatch.setattr("epicycle.automl.clustering._search.RESAMPLED_ROWS", 60)
    monkeypatch.setattr("epicycle.automl.clustering._cluster_job._SILHOUETTE_ROWS", 60)
    monkeypatch.setattr("epicycle.automl.clustering._cluster_job._SILHOUETTE_SAMPLE", 50)
    found = ep.cluster_table(people(60), 3, labels="kind", models="kmeans")
    assert found.silhouettes is None
    assert found.silhouette["lower"] < found.silhouette["score"] < found.silhouette["upper"]
    assert found.agreement["adjusted_rand"] > 0.9
    assert found.record()["clustering"]["outlines"] == []


def test_dates_skewed_numbers_and_many_levels():
    rng = np.random.default_rng(0)
    n = 60
    table = pa.table(
        {
            "income": np.exp(2.5 * rng.normal(size=n)),
            "x": rng.normal(size=n),
            "day": pa.array(np.datetime64("2024-01-01") + rng.integers(0, 300, n).astype("timedelta64[D]")),
            "ticket": [f"t{i}" for i in rng.integers(0, 50, n)],
        }
    )
    found = ep.cluster_table(table, 2, models="kmeans")
    kinds = {p.name: (p.kind, p.treatment) for p in found.profile}
    assert kinds["day"] == ("drop", "left out: a date, of which every part would count as a column")
    assert any(issue.kind == "skewed" and issue.columns == ("income",) for issue in found.warnings)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ep.cluster_table("nowhere.csv"), "no such file"),
        (lambda: ep.cluster_table(people()[:1]), "1 row; expected at least 10"),
        (lambda: ep.cluster_table(pa.table({"a": [1.0] * 20, "b": ["x"] * 20})), "no column is left"),
        (lambda: ep.cluster_table(pa.table({"a": [1.0, 2.0] * 10})), "2 different rows; expected at least 3"),
        (lambda: ep.cluster_table(people(), 50), "k=50: the table has 42 rows"),
        (lambda: ep.cluster_table(people(), 40), "k=40: the table has 42 different rows"),
        (lambda: ep.cluster_table(people(), 1), "k=1; expected at least 2"),
        (lambda: ep.cluster_table(people(), 2.5), "k=2.5; expected 'auto' or a whole number"),
        (lambda: ep.cluster_table(people(), labels="sort"), "labels='sort': the table has no such column"),
        (lambda: ep.cluster_table(people(), drop=["sort"]), "drop='sort': the table has no such column"),
        (lambda: ep.cluster_table(people(), models="svm"), "models='svm': no such method; there are KMeans"),
        (lambda: ep.cluster_table(people(), time=0), "time=0; expected seconds"),
        (lambda: ep.cluster_table(people(), seed=-1), "seed=-1; expected a whole number"),
        (lambda: ep.cluster_table(people(), out="/nowhere/at/all"), "does not exist"),
    ],
)
def test_errors_come_in_plain_words_before_any_work(call, message, monkeypatch):
    monkeypatch.setattr("epicycle.automl.clustering._cluster_job.search", None)
    with pytest.raises((ValueError, OSError), match=message):
        call()
