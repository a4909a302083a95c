"""Figures of the scripts for a GPU: those of several runs together, as one section each."""

import json

from benchmarks.gpu.__main__ import read, section


def test_parts_of_a_script_have_one_section(tmp_path):
    for folder, figures in (
        ("a", {"mnist_test_error": 0.0042}),
        ("b", {"gpt": {"nats": [1.5, 1.47]}, "sample": "a|b"}),
    ):
        (tmp_path / folder).mkdir()
        made = {"command": f"python -m benchmarks.gpu.networks {folder}", "card": "a card", "seconds_in_all": 10.0}
        (tmp_path / folder / "networks.json").write_text(json.dumps({**made, **figures}))
        (tmp_path / folder / "something_else.json").write_text("[]")
    found = read([tmp_path / "a", tmp_path / "b"])
    assert list(found) == ["networks"]
    text = section("networks", found["networks"])
    assert text.startswith("## gpu_networks: Networks on a GPU")
    for line in ("| mnist test error |", "0.0042", "gpt: nats", "1.5, 1.47", r"a\|b"):
        assert line in text
    assert "`python -m benchmarks.gpu.networks a`, then `python -m benchmarks.gpu.networks b` on a card, 20 s" in text
