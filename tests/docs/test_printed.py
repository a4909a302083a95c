"""The comparison on which the other tests of this folder rest."""

import pytest
from printed import agrees


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("holds", "holds\n"),
        ("gap 2.08e-19 (tolerance 1.00e-08): holds", "gap 7.31e-18 (tolerance 1.00e-08): holds"),
        ("[ 1.   -2.    0.01]", "[ 1.0002 -2.  0.01]"),
        ("seconds ...\nsize ... KiB", "seconds 0.01\nsize 2.1 KiB"),
        ("age 0.09441 0.2322 R2 0.396222", "age 0.09442 0.2322 R2 0.3962221"),
        ("('objective', 'step')", "('objective', 'step')"),
        ("x0 -1.5", "x0   -1.5"),
    ],
)
def test_the_same(want, got):
    assert agrees(want, got)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("holds", "does not hold"),
        ("8 iterations", "9 iterations"),
        ("0.9510", "0.9310"),
        ("1.5", "-1.5"),
        ("2.08e-19", "2.08e-3"),
        ("coefficient 0.5", "coefficient 0.5 and more"),
        ("x0", "x1"),
        ("R2 0.5", "R3 0.5"),
        ("", "something"),
    ],
)
def test_not_the_same(want, got):
    assert not agrees(want, got)
