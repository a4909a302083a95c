"""Files of a training run: a folder that is written as a whole or not at all, and the script that reproduces it."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from epicycle.automl._candidates import Family, type_name
from epicycle.automl.tables._databases import named_part
from epicycle.automl.tables._files import several_files
from epicycle.core._exceptions import DataFileError


def check_folder(directory: str | os.PathLike[str]) -> Path:
    """The absolute path of an output folder, checked to be writable."""
    target = Path(directory).expanduser().absolute()
    if target.exists() and not target.is_dir():
        raise DataFileError(f"out: {target} is a file; expected a directory, or a name for a new one")
    parent = target.parent
    if not parent.is_dir():
        raise DataFileError(f"out: the directory {parent} does not exist")
    place = target if target.exists() else parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise DataFileError(f"out: no permission to write in {place}")
    return target


#: Entries of docstrings that the commands on tables share.
TABLE_DOCS: Mapping[str, str] = {
    "data": "data : str, path, list of paths or frame\n    As for :func:`train`.",
    "test": "test : str, path or frame, optional\n    A separate test set.",
    "test_size": "test_size : float, default={default}\n"
    "    Share of the rows for the test set where `test` is not given.",
    "header": "header : bool, default={default}\n"
    "    Whether the first line of a CSV file names the columns; otherwise they are called x0, x1, ...",
    "drop": "drop : list of str, optional\n    Columns to leave out.",
    "seed": "seed : int, default={default}",
    "n_jobs": "n_jobs : int, optional\n    Number of threads; None chooses by the size of the work.",
    "progress": "progress : bool or callable, optional\n"
    "    Whether to print progress; a callable gets each line. By default on terminals.",
    "directory": "directory : str or path\n    Is created; its parent has to exist.",
    "more": "more : dict of callables, optional\n"
    "    Further files by name, each a function that writes to the path it is given.",
}


def write_folder(directory: str | os.PathLike[str], files: Mapping[str, Callable[[Path], None]]) -> Path:
    """Write all files into a temporary folder beside the target, then move them into place.

    Names may have a folder before them. A new folder appears with all of its files. In an existing folder each file is
    replaced atomically, and other files stay. An error before that leaves nothing behind.
    """
    target = check_folder(directory)
    # On the same file system as the target, so that the move is atomic.
    temporary = target.parent / f".epicycle-{secrets.token_hex(8)}.tmp"
    try:
        temporary.mkdir()
        for name, write in files.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            write(temporary / name)
        with uninterrupted():
            if target.exists():
                for name in files:
                    (target / name).parent.mkdir(parents=True, exist_ok=True)
                    os.replace(temporary / name, target / name)
                shutil.rmtree(temporary)
            else:
                os.rename(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            shutil.rmtree(temporary)
        if isinstance(error, OSError) and not isinstance(error, DataFileError):
            raise DataFileError(f"cannot write {target}: {error.strerror or error}") from error
        raise
    return target


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let an interrupt wait until the end of the block, so that no folder holds files of two runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(*came[-1])


_TEXT = '''\
"""Reproduces {what}, bit for bit: python train.py [DATA]"""

import sys

{imports}import epicycle as ep

DATA = {data}

{before}model = {model}


def read(data):
    """The training set and the test set."""
    return ep.training.read_parts(
        data,
{arguments}    )


if __name__ == "__main__":
    parts = read(sys.argv[1] if len(sys.argv) > 1 else DATA)
    model.fit(parts.train, parts.y_train, sample_weight=parts.weight_train)
    {said}
    model.save("reproduced.epi")
'''


@dataclass(frozen=True)
class Member:
    """A method of a script: its settings, the kinds of the columns, options of the table model, and its weight."""

    family: Family
    settings: Mapping[str, Any]
    kinds: Mapping[str, str]
    options: Mapping[str, Any]
    weight: float = 1.0

    @property
    def estimator(self) -> str:
        """The method as an expression."""
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        text = f"ep.{type_name(self.family)}({parameters})"
        if self.family.target == "log":
            return f"TransformedTargetRegressor({text}, func=np.log1p, inverse_func=np.expm1, check_inverse=False)"
        if self.family.target == "standard":
            return f"TransformedTargetRegressor({text}, transformer=StandardScaler(), check_inverse=False)"
        return text

    def model(self, columns: str, indent: str) -> str:
        """The table model as an expression over several lines."""
        more = "".join(f"\n{indent}    {name}={value!r}," for name, value in self.options.items())
        return f"ep.TableModel(\n{indent}    {self.estimator},\n{indent}    columns={columns},{more}\n{indent})"


def script_of(data: Any, members: Sequence[Member], arguments: Mapping[str, Any], quantile: float | None = None) -> str:
    """Text of train.py, which fits the chosen model, or ensemble of members, again without the search.

    `arguments` are those of `read_parts`. Of a quantile it prints the share of the test rows below, in the place of the
    score.
    """
    path: Any = None
    if (named := named_part(data)) is not None:
        # A query may hold what would be a pattern in the name of a file.
        path = "::".join([os.path.abspath(named[0]), *filter(None, [named[1]])])
    elif isinstance(data, str | os.PathLike) and os.fspath(data) != "-":
        known = os.path.exists(data) or several_files(data) is not None
        path = os.path.abspath(data) if known else os.fspath(data)
    elif (files := several_files(data)) is not None:
        path = [os.path.abspath(file) for file in files]
    given = "".join(f"        {name}={value!r},\n" for name, value in arguments.items())
    said = 'print(f"score on {len(parts.y_test)} test rows: {model.score(parts.test, parts.y_test):.4f}")'
    if quantile is not None:
        said = (
            "below = (parts.y_test <= model.predict(parts.test)).mean()\n"
            '    print(f"{below:.1%} of {len(parts.y_test)} test rows are at or below their predicted quantile")'
        )
    before, model = _model_of(members)
    return _TEXT.format(
        what=f"the {type_name(members[0].family) if len(members) == 1 else 'ensemble'} of this folder",
        data="None  # give the path of the table" if path is None else repr(path),
        imports=_imports(members),
        before=before,
        model=model,
        arguments=given,
        said=said,
    )


def _imports(members: Sequence[Member]) -> str:
    targets = {member.family.target for member in members}
    first = "import numpy as np\n" if "log" in targets else ""
    second = "from sklearn.compose import TransformedTargetRegressor\n" if targets & {"log", "standard"} else ""
    third = "from sklearn.preprocessing import StandardScaler\n" if "standard" in targets else ""
    return f"{first}{second}{third}\n" if second else ""


def _model_of(members: Sequence[Member]) -> tuple[str, str]:
    """Lines before the model, and the model as an expression; members share the kinds of the columns."""
    kinds = members[0].kinds
    if len(members) == 1:
        listed = "".join(f"        {name!r}: {kind!r},\n" for name, kind in kinds.items())
        return "", members[0].model(f"{{\n{listed}    }}", "")
    listed = "".join(f"    {name!r}: {kind!r},\n" for name, kind in kinds.items())
    models = []
    for member in members:
        other = {name: kind for name, kind in member.kinds.items() if kinds[name] != kind}
        own = "".join(f", {name!r}: {kind!r}" for name, kind in other.items())
        columns = f"{{**COLUMNS{own}}}" if other else "COLUMNS"
        models.append(f"        {member.model(columns, '        ')},\n")
    weights = [member.weight for member in members]
    text = f"ep.training.EnsembleTableModel(\n    [\n{''.join(models)}    ],\n    weights={weights!r},\n)"
    return f"COLUMNS = {{\n{listed}}}\n\n", text
