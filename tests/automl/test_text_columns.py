"""Columns of texts and of sequences: their terms, their factors, and models that use them."""

import gzip
import json
import lzma

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from real_tables import DATA, needs
from sklearn.feature_extraction.text import TfidfVectorizer

import epicycle as ep
from epicycle.automl.tables._columns import kind_of_column
from epicycle.automl.tables._table_encoder import Coded

KINDS = {"x": "number", "text": "text", "gene": "sequence", "colour": "category"}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    words = "good bad fine awful great poor the a film plot actor scene story end start".split()  # noqa: SIM905
    n = 320
    texts = [" ".join(rng.choice(words, rng.integers(4, 12))) for _ in range(n)]
    gene = ["".join(rng.choice(list("ACGT"), 24)) for _ in range(n)]
    return pa.table(
        {
            "x": rng.normal(size=n),
            "text": pa.array([None if i == 3 else text for i, text in enumerate(texts)]),
            "gene": gene,
            "colour": rng.choice(["red", "blue"], n),
            "y": ["up" if "good" in text or "great" in text else "down" for text in texts],
        }
    )


def test_kinds_of_texts(table):
    assert kind_of_column(table["text"], "text").kind == "text"
    assert kind_of_column(table["gene"], "gene").kind == "sequence"
    rng = np.random.default_rng(1)
    chinese = ["".join(rng.choice(list("我你他好很大小的在有人中国学习工作"), 14)) for _ in range(60)]
    assert kind_of_column(pa.array(chinese), "评论").kind == "text"
    protein = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), rng.integers(30, 90))) for _ in range(60)]
    assert kind_of_column(pa.array(protein), "protein").kind == "sequence"
    hexadecimal = [f"{value:032x}" for value in rng.integers(1 << 62, size=60)]
    assert kind_of_column(pa.array(hexadecimal), "hash").kind == "drop"
    names = ["Anna Smith", "Bob Jones", "Carol White"] * 20
    assert kind_of_column(pa.array(names), "owner").kind == "category"


def test_terms_are_those_of_scikit_learn(table):
    encoder = ep.TableEncoder({"text": "text"}, form="linear").fit(table)
    texts = [text or "" for text in table["text"].to_pylist()]
    words = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", ngram_range=(1, 2), sublinear_tf=True)
    runs = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=2, sublinear_tf=True)
    expected = sp.hstack([words.fit_transform(texts), runs.fit_transform(texts)])
    found = encoder.transform(table)
    assert sp.issparse(found)
    assert_allclose(found.toarray(), expected.toarray(), atol=1e-12)
    names = encoder.get_feature_names_out()
    assert len(names) == len(encoder.sources_) == found.shape[1]
    assert "text: good" in names
    new = pa.table({"text": ["a good plot of nothing", None, ""]})
    again = sp.hstack([v.transform(["a good plot of nothing", "", ""]) for v in (words, runs)])
    assert_allclose(encoder.transform(new).toarray(), again.toarray(), atol=1e-12)


def test_factors_are_leading_singular_vectors(table):
    terms = ep.TableEncoder({"text": "text"}, form="linear").fit(table).transform(table).toarray()
    trees = ep.TableEncoder({"text": "text"}).fit(table)
    F = trees.transform(table)
    assert set(trees.sources_) == {"text"}
    left, sizes, _ = np.linalg.svd(terms, full_matrices=False)
    k = F.shape[1]
    assert k == 32
    # The same subspace for the directions that stand apart, and hardly less of the whole than the best of so many.
    assert_allclose(np.abs(np.sum(left[:, :1] * sizes[0] * F[:, :1])) / sizes[0] ** 2, 1, rtol=1e-3)
    assert np.sum(F**2) > 0.97 * np.sum(sizes[:k] ** 2)


@pytest.mark.parametrize("form", ["linear", "compact"])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_in_the_form_for_trees_give_every_form(table, form, sparse):
    trees = ep.TableEncoder(KINDS).fit(table)
    other = ep.TableEncoder(KINDS, form=form, sparse=sparse)
    other.fit_as(table, None, trees)
    rows = np.random.default_rng(0).permutation(table.num_rows)[:40]
    made = other.of_coded(Coded(trees, trees.transform(table), rows, trees.terms(table)))
    expected = other.transform(table.take(pa.array(rows)))
    assert type(made) is type(expected)
    assert made.shape[1] == len(other.sources_) == len(other.get_feature_names_out())
    dense = [m.toarray() if sp.issparse(m) else m for m in (made, expected)]
    assert_allclose(*dense, atol=1e-10)
    alone = ep.TableEncoder(KINDS, form=form, sparse=sparse).fit(table)
    assert_allclose(
        alone.transform(table)[:5].toarray() if sparse or form == "linear" else alone.transform(table)[:5],
        other.transform(table)[:5].toarray() if sparse or form == "linear" else other.transform(table)[:5],
        atol=1e-12,
    )


def test_sequences_of_one_length_have_letters_at_places(table):
    trees = ep.TableEncoder({"gene": "sequence"}).fit(table)
    names, X = trees.get_feature_names_out().tolist(), trees.transform(table)
    place = names.index("gene 7")
    assert place in trees.categorical_
    letters = [gene[6] for gene in table["gene"].to_pylist()]
    assert X[:, place].tolist() == [["A", "C", "G", "T"].index(letter) for letter in letters]
    linear = ep.TableEncoder({"gene": "sequence"}, form="linear").fit(table)
    column = linear.get_feature_names_out().tolist().index("gene 7=G")
    assert linear.transform(table).toarray()[:, column].tolist() == [float(letter == "G") for letter in letters]
    assert set(linear.sources_) == {"gene"}
    longer = pa.table({"gene": [gene[: 20 + i % 5] for i, gene in enumerate(table["gene"].to_pylist())]})
    assert not ep.TableEncoder({"gene": "sequence"}).fit(longer).categorical_


@pytest.mark.parametrize("models", ["SGD", "gradient", "kernel"])
def test_a_table_with_texts_trains_and_is_saved(table, models, tmp_path):
    run = ep.train(table, target="y", time=5, models=[models], seed=1)
    assert run.test.score > (0.8 if models != "kernel" else 0.7)
    run.model_.save(tmp_path / "m.epi")
    again = ep.load(tmp_path / "m.epi")
    assert np.array_equal(again.predict_proba(table), run.model_.predict_proba(table))
    assert {row["name"] for row in run.importances} <= set(table.column_names)
    if run.importances:
        assert run.importances[0]["name"] == "text"


def test_the_script_reproduces_a_model_of_texts(table, tmp_path):
    pa.csv.write_csv(table, tmp_path / "t.csv")
    run = ep.train(tmp_path / "t.csv", target="y", time=4, models=["DecisionTree"], seed=1)
    scope = {"__name__": "script"}
    exec(run.script, scope)
    parts = scope["read"](scope["DATA"])
    scope["model"].fit(parts.train, parts.y_train)
    assert np.array_equal(scope["model"].predict_proba(parts.test), run.model_.predict_proba(parts.test))


def lines(name):
    opener = lzma.open if name.endswith(".xz") else gzip.open
    with opener(DATA / name, "rt", encoding="utf-8") as stream:
        return stream.read().split("\n")[:-1]


@pytest.mark.slow
@needs("sms_spam.tsv.gz")
def test_messages_alone():
    rows = [line.split("\t", 1) for line in lines("sms_spam.tsv.gz")]
    table = pa.table({"label": [row[0] for row in rows], "message": [row[1] for row in rows]})
    run = ep.train(table, target="label", metric="accuracy", time=25, models=["LogisticRegression for texts", "SGD"])
    assert run.test.score >= 0.985


@pytest.mark.slow
@needs("20newsgroups_bydate.jsonl.xz")
def test_newsgroups_by_date():
    rows = [json.loads(line) for line in lines("20newsgroups_bydate.jsonl.xz")]
    parts = {
        part: pa.table({key: [row[key] for row in rows if row["split"] == part] for key in ("text", "group")})
        for part in ("train", "test")
    }
    run = ep.train(parts["train"], target="group", test=parts["test"], metric="accuracy", time=45, models=["SGD"])
    assert run.test.n == 7532
    assert run.test.score >= 0.85


@pytest.mark.slow
@needs("dna_splice.csv.gz")
def test_splice_junctions():
    run = ep.train(
        DATA / "dna_splice.csv.gz",
        target="class",
        drop=["name"],
        metric="accuracy",
        time=20,
        models=["LogisticRegression", "GradientBoosting"],
    )
    assert run.test.score >= 0.94


@pytest.mark.slow
@needs("dna_promoters.csv.gz")
def test_promoters_by_folds():
    run = ep.train(DATA / "dna_promoters.csv.gz", target="class", drop=["name"], metric="accuracy", time=8)
    scored = [row for row in run.leaderboard if row["score_mean"] is not None and row["n_folds"] >= 5]
    assert max(row["score_mean"] for row in scored) >= 0.85  # ID3: 0.82, nearest neighbour 0.88
