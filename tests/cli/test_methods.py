"""``epicycle methods`` says what the code says."""

import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import asdict

import pytest

import epicycle as ep
from epicycle.cli import main
from epicycle.core.estimator._catalogue import plain_text


def test_json_is_the_list_of_methods(capsys):
    assert main(["methods", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed == json.loads(json.dumps([asdict(m) for m in ep.methods(functions=True)]))
    assert {"LinearRegression", "Ridge", "LogisticRegression"} <= {m["name"] for m in listed}
    assert all(m["summary"] and m["engines"] and m["certificate"] for m in listed)


def test_piped_it_is_one_tab_separated_line_each(capsys):
    assert main(["methods"]) == 0
    header, *lines = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert header == ["name", "family", "summary", "solvers", "engines", "certificate"]
    assert [dict(zip(header, line, strict=True))["name"] for line in lines] == [
        m.name for m in ep.methods(functions=True)
    ]


def test_family_selects(capsys):
    assert main(["methods", "--family", "linear", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [m["name"] for m in listed] == [m.name for m in ep.methods(functions=True) if m.family == "linear"]


def test_unknown_family_names_those_that_exist(capsys):
    assert main(["methods", "--family", "liner"]) == 2
    captured = capsys.readouterr()
    families = ", ".join(sorted({method.family for method in ep.methods(functions=True)}))
    assert captured.err == f"epicycle: --family liner: expected one of {families}\n"
    assert captured.out == ""


def test_on_a_terminal_it_is_a_table():
    terminal, child = pty.openpty()
    code = "import sys; from epicycle.cli import main; sys.exit(main(['methods']))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=child, env={**os.environ, "COLUMNS": "200", "TERM": "xterm"}
    ) as process:
        os.close(child)
        shown = b""
        try:
            while piece := os.read(terminal, 65536):
                shown += piece
        except OSError:  # Linux's way of saying that the other side has closed the terminal
            pass
        os.close(terminal)
    text = shown.decode()
    assert process.returncode == 0
    assert "\t" not in text
    assert "summary" in text
    assert all(m.name in text and m.summary[:20] in text for m in ep.methods(functions=True))


def test_summaries_have_no_markup():
    for m in ep.methods(functions=True):
        assert re.search(r"`|:\w+:|\\[a-z]|[\^_]\{|\*\*", m.summary) is None, f"{m.name}: {m.summary}"


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("Fine-tuning a :class:`BERT`, see :func:`~epicycle.optim.solve`.", "Fine-tuning a BERT, see solve."),
        ("A :class:`kernel <epicycle.kernel.RBF>` with ``metric=1`` and `start`.", "A kernel with metric=1 and start."),
        (r"Values, :math:`V(b) = \max_k \alpha_k' b`.", "Values, V(b) = max_k α_k' b."),
        (r":math:`P(|\hat\phi - \phi| > \gamma) \le 2 e^{-2 \gamma^2 m}`", "P(|φ\u0302 - φ| > γ) <= 2 e^(-2 γ^2 m)"),
        (r":math:`2 \sum_{i<d} \binom{n-1}{i}`", "2 sum_(i<d) binom(n-1, i)"),
    ],
)
def test_markup_becomes_plain_text(line, plain):
    assert plain_text(line) == plain


def test_every_row_of_the_catalogue_is_listed():
    last = {"A": 16, "B": 8, "C": 6, "D": 6, "E": 18, "F": 9, "G": 14, "H": 4, "I": 5, "J": 7}
    rows = {f"{letter}{i}" for letter, most in last.items() for i in range(1, most + 1)}
    listed = ep.methods(functions=True)
    assert {row for m in listed for row in m.catalogue} == rows
    assert {"MultivariateNormal", "shrink_means", "em.ExpectationMaximization", "em.run_em", "bayes.r_hat"} <= {
        m.name for m in listed
    }
