"""The short script that reproduces a model: what was found, without the search for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

__all__ = ["script_of"]

_TEXT = '''\
"""Reproduces {what}, bit for bit: python train.py [DATA]"""

import sys

import epicycle as ep

DATA = {data}

model = ep.TableModel(
    ep.{estimator},
    columns={{
{columns}    }},{options}
)


def read(data):
    """The rows to learn from and the rows to test on."""
    return ep.training.read_parts(
        data,
{arguments}    )


if __name__ == "__main__":
    parts = read(sys.argv[1] if len(sys.argv) > 1 else DATA)
    model.fit(parts.train, parts.y_train, sample_weight=parts.weight_train)
    print(f"score on {{len(parts.y_test)}} test rows: {{model.score(parts.test, parts.y_test):.4f}}")
    model.save("reproduced.epi")
'''


def script_of(
    data: Any, class_name: str, settings: Mapping[str, Any], kinds: Mapping[str, str], options: Mapping[str, Any],
    arguments: Mapping[str, Any],
) -> str:  # fmt: skip
    """The text of train.py.

    `settings` are the arguments of the estimator, `options` those of the table, `arguments` those of `read_parts`.
    """
    path = None
    if isinstance(data, str | os.PathLike) and os.fspath(data) != "-":
        path = os.path.abspath(data) if os.path.exists(data) else os.fspath(data)
    said = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    columns = "".join(f"        {name!r}: {kind!r},\n" for name, kind in kinds.items())
    more = "".join(f"\n    {name}={value!r}," for name, value in options.items())
    given = "".join(f"        {name}={value!r},\n" for name, value in arguments.items())
    return _TEXT.format(
        what=f"the {class_name} of this folder",
        data="None  # give the path of the table" if path is None else repr(path),
        estimator=f"{class_name}({said})", columns=columns, options=more, arguments=given,
    )  # fmt: skip
