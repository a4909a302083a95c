"""TableGenerator: tables like the one of the fit, by a generative network over the codes of their columns."""

from __future__ import annotations

import base64
import warnings
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from scipy.special import ndtr

from epicycle.automl.synthesis._table_codes import ColumnCode, code_of_column
from epicycle.automl.tables._columns import decoded
from epicycle.automl.tables._tables import as_table
from epicycle.core._checks import optional_import
from epicycle.core._exceptions import DataError, NotFittedError
from epicycle.core._parameters import Choice, Integer, NoneOr, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._saved import Saved

MODELS = ("flow", "vae")
_LEAST_ROWS = 40
#: Steps of a fit: few epochs of many rows, more of few.
_STEPS = {"flow": 4000, "vae": 2000}
#: Times that a flow sees each row of a small table, with so many different draws of the places within intervals.
_PASSES, _DRAWS = 96, 8
_BATCH = 128
#: Columns of zeros and ones for the levels of a category at most; the others share one.
_MOST_LEVELS = 30
#: Rows that are drawn to measure the distribution of each code, and the quantiles of it that are kept.
_MEASURED, _QUANTILES = 20_000, 1000


class TableGenerator(Saved):
    """A generator of tables: columns of numbers, categories, dates and missing entries that depend on each other as in a table.

    Each column is turned into standard normal codes by its distribution function (`TableCodes` of the page on
    ``epicycle generate``), a network learns how the codes depend on each other, and new codes are turned back. So the
    columns have their types, ranges, levels and shares of missing entries again.

    Parameters
    ----------
    model : {'flow', 'vae'}, default='flow'
        :class:`NormalizingFlow` over the codes of all columns, or :class:`VAE` over the codes of numbers and columns of
        zeros and ones for the levels of categories.
    max_iter : int, optional
        Epochs of the network; by default as many as make 4,000 steps of a flow, or show it each row of a small table 96
        times, and 2,000 of a VAE, which ends before that where a tenth of the rows, held out, gets no more probable.
    random_state : int, Generator, RandomState or None, default=None

    Attributes
    ----------
    columns_ : list of ColumnCode
        The distributions of the columns.
    left_out_ : dict of str
        Columns that cannot be drawn again, and why: texts of which most rows have one of their own.
    model_ : NormalizingFlow or VAE
        The fitted network.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from epicycle import TableGenerator
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(18, 80, 300)
    >>> table = pd.DataFrame({"age": age, "work": np.where(age < 65, "yes", "no")})
    >>> drawn = TableGenerator("vae", max_iter=20, random_state=0).fit(table).sample(5, random_state=0)
    >>> drawn.columns.tolist(), drawn["age"].dtype.kind, drawn.shape
    (['age', 'work'], 'i', (5, 2))
    """  # noqa: E501

    columns_: list[ColumnCode]
    left_out_: dict[str, str]
    model_: Any

    def __init__(self, model: str = "flow", *, max_iter: int | None = None, random_state: Seed = None) -> None:
        self.model = model
        self.max_iter = max_iter
        self.random_state = random_state

    def __repr__(self) -> str:
        return f"TableGenerator({self.model!r})"

    def fit(self, X: Any) -> TableGenerator:
        """Learn the distributions of the columns, and how they depend on each other.

        Parameters
        ----------
        X : frame of pandas, polars or Arrow

        Returns
        -------
        self
            The fitted generator.
        """
        name = type(self).__name__
        check_parameter(name, "model", self.model, Choice(*MODELS))
        check_parameter(name, "max_iter", self.max_iter, NoneOr(Integer(1)))
        optional_import("torch", name)
        table = as_table(X)
        if table.num_rows < _LEAST_ROWS:
            raise DataError(f"X: {table.num_rows:,} rows; expected at least {_LEAST_ROWS} to learn from")
        seed = seed_of(self.random_state)
        found = {column: code_of_column(table[column], column) for column in table.column_names}
        self.left_out_ = {column: code for column, code in found.items() if isinstance(code, str)}
        self.columns_ = [code for code in found.values() if isinstance(code, ColumnCode)]
        if not self.columns_:
            raise DataError(f"X: no column can be drawn again; {next(iter(self.left_out_.values()))}")
        self._frame_ = _frame_of(X)
        types = dict(X.dtypes.astype(str)) if self._frame_ == "pandas" else {}
        self._types_ = {str(column): kind for column, kind in types.items()}
        schema = pa.schema([table.schema.field(code.name) for code in self.columns_], table.schema.metadata)
        self._schema_ = base64.b64encode(schema.serialize().to_pybytes()).decode()
        self._spread_ = self._noise_ = np.zeros(0)
        passes = max(1, round(_STEPS[self.model] * _BATCH / table.num_rows))
        copies = 1
        if self.model == "flow":  # the places within intervals are noise, which one draw would make learn by heart
            passes = min(passes, _PASSES)
            copies = min(passes, _DRAWS)
        rng = stream(seed, "codes")
        codes = np.vstack([self._codes(table, rng) for _ in range(copies)])
        epochs = min(400, max(1, passes // copies)) if self.max_iter is None else self.max_iter
        self.model_ = _network(self.model, codes.shape[1], epochs, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of codes that say nothing: the columns may be independent
            self.model_.fit(codes)
        if self.model == "vae":
            module = self.model_.module_
            self._noise_ = np.asarray(module.log_noise.exp().detach() * module.scale.deviation, dtype=np.float64)
        drawn = self._drawn(_MEASURED, seed)
        self._spread_ = np.quantile(drawn, np.linspace(0, 1, _QUANTILES + 1), axis=0)
        return self

    def sample(self, n: int = 1, random_state: Seed = None) -> Any:
        """Draw rows, in the columns, the types and the kind of frame of the fit.

        Parameters
        ----------
        n : int, default=1
        random_state : int, Generator, RandomState or None, default=None
            The same seed gives the same rows, for any number of threads.

        Returns
        -------
        frame of n rows
        """
        if not hasattr(self, "model_"):
            raise NotFittedError(f"{type(self).__name__}: sample before fit; expected a call of fit first")
        check_parameter(f"{type(self).__name__}.sample", "n", n, Integer(1))
        seed = seed_of(random_state)
        table = self._table(self._drawn(int(n), seed), stream(seed, "levels"))
        if self._frame_ == "pyarrow":
            return table
        backend: Any = self._frame_
        frame = nw.from_arrow(table, backend=backend).to_native()
        if self._frame_ == "polars":
            return frame
        # Types of pandas that Arrow does not tell from each other: whole numbers with gaps, categories, units of times.
        kinds = {column: kind for column, kind in self._types_.items() if column in frame.columns}
        return frame.astype({column: kind for column, kind in kinds.items() if str(frame[column].dtype) != kind})

    # ------------------------------------------------------------------------------------------- codes

    def _widths(self) -> list[int]:
        """Columns of codes of each column: one, or of categories with a VAE one for each of the common levels."""
        if self.model == "flow":
            return [1] * len(self.columns_)
        return [len(_shown_levels(code)[1]) if code.kind == "category" else 1 for code in self.columns_]

    def _codes(self, table: pa.Table, rng: np.random.Generator) -> np.ndarray:
        parts = []
        for code, width in zip(self.columns_, self._widths(), strict=True):
            column = decoded(table[code.name])
            if self.model == "vae" and code.kind == "category":
                place = _shown_levels(code)[0][code.codes(column)]
                parts.append((place[:, None] == np.arange(width)).astype(np.float64))
            else:
                parts.append(code.encode(column, rng)[:, None])
        return np.hstack(parts).astype(np.float32)

    def _drawn(self, n: int, seed: int) -> np.ndarray:
        """Rows of codes from the network; of levels the probabilities."""
        if self.model == "flow":
            return np.asarray(self.model_.sample(n, random_state=seed), dtype=np.float64)
        rng = stream(seed, "rows")
        means = np.asarray(self.model_.decode(rng.normal(size=(n, self.model_.n_codes)).astype(np.float32)), np.float64)
        ends = np.cumsum(self._widths())
        numbers = [end - 1 for end, code in zip(ends, self.columns_, strict=True) if code.kind != "category"]
        means[:, numbers] += self._noise_[numbers] * rng.normal(size=(n, len(numbers)))
        return means

    def _table(self, drawn: np.ndarray, rng: np.random.Generator) -> pa.Table:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self._schema_)))
        columns, at = [], 0
        for code, width, field in zip(self.columns_, self._widths(), schema, strict=True):
            if self.model == "vae" and code.kind == "category":
                columns.append(code.of_levels(_levels(code, drawn[:, at : at + width], rng), field.type))
            else:
                columns.append(code.decode(self._place(drawn[:, at], at), field.type))
            at += width
        return pa.table(columns, schema=schema)

    def _place(self, z: np.ndarray, j: int) -> np.ndarray:
        """The distribution function of the network's own codes: uniform, although they are nearly normal only."""
        grid = self._spread_[:, j]
        if not grid[-1] > grid[0]:
            return np.asarray(ndtr(z))
        return np.asarray(np.interp(z, grid, np.linspace(0, 1, len(grid))))

    # ------------------------------------------------------------------------------------------- files

    def __epi_state__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def _frame_of(X: Any) -> str:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    known = isinstance(frame, nw.DataFrame) and frame.implementation.value in ("pandas", "polars")
    return str(frame.implementation.value) if known else "pyarrow"


def _network(model: str, width: int, epochs: int, seed: int) -> Any:
    """The network over codes of that many columns."""
    from epicycle.generative import VAE, NormalizingFlow

    shared: dict[str, Any] = {"max_iter": epochs, "batch_size": _BATCH, "random_state": seed}
    if model == "flow":
        # One layer of splines, each column given those before it: the intervals of levels stay along the axes.
        return NormalizingFlow(
            "autoregressive_spline",
            n_layers=1,
            n_bins=16,
            mixing="permutation",
            learning_rate_init=5e-3,
            **shared,
        )
    return VAE(
        int(np.clip(width, 2, 24)),
        hidden_layer_sizes=(128, 128),
        early_stopping=True,
        n_iter_no_change=15,
        learning_rate_init=2e-3,
        **shared,
    )


def _shown_levels(code: ColumnCode) -> tuple[np.ndarray, list[np.ndarray]]:
    """(place of every level, the levels of every place); the last level, -1, is that of missing entries.

    The most frequent levels have a place each; the rare ones share one.
    """
    shares = (
        np.append(np.diff(code.bounds) * (1 - code.missing), code.missing) if code.missing < 1 else np.array([0, 1.0])
    )
    order = np.argsort(-shares, kind="stable")
    order = order[shares[order] > 0]
    place = np.full(len(shares), min(len(order), _MOST_LEVELS) - 1)
    place[order[:_MOST_LEVELS]] = np.arange(len(order[:_MOST_LEVELS]))
    at = [np.flatnonzero((place == k) & (shares > 0)) for k in range(place.max() + 1)]
    return place, at


def _levels(code: ColumnCode, means: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Levels drawn by the probabilities of their places; the network's least squares means are these."""
    _, at = _shown_levels(code)
    p = np.clip(means, 1e-4 / len(at), None)
    ends = np.cumsum(p, axis=1)
    place = (rng.random(len(p))[:, None] * ends[:, -1:] > ends).sum(axis=1).clip(max=len(at) - 1)
    shares = np.append(np.diff(code.bounds) * (1 - code.missing), code.missing)
    pick, found = rng.random(len(p)), np.empty(len(p), dtype=np.int64)
    for k, levels in enumerate(at):
        rows = place == k
        within = np.cumsum(shares[levels]) / shares[levels].sum()
        found[rows] = levels[np.searchsorted(within[:-1], pick[rows], side="right")]
    return np.where(found == len(shares) - 1, -1, found)
