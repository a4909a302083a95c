"""TableEncoder: columns of a table as features, from numbers, levels of categories, parts of dates, and texts.

Medians, means, scales and levels come from the rows of `fit` alone, and never from a target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from epicycle.automl.tables._columns import (
    FEATURES,
    KINDS,
    MAX_TREE_LEVELS,
    as_numbers,
    as_text,
    base_kind,
    form_of,
    kind_of_column,
    sample_of,
)
from epicycle.automl.tables._dates import as_dates
from epicycle.automl.tables._number_texts import FORMS
from epicycle.automl.tables._tables import as_table
from epicycle.automl.tables._text_features import TextFeatures, fit_texts, letter_at, places_of
from epicycle.core._exceptions import DataError, NotFittedError, ParameterError, ParameterTypeError
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data._categories import codes_among, count_levels
from epicycle.data._target import as_weight

_MAX_LEVELS = {"trees": MAX_TREE_LEVELS, "linear": 40, "compact": 40}
_CHOICES = {"form": tuple(_MAX_LEVELS), "dtype": ("float64", "float32"), "absent": ("error", "skip"),
            "scale": ("each", "common")}  # fmt: skip
#: Levels of a category at most of which the means of the target are taken.
_MAX_WIDE = 100_000
#: Periods in days of what repeats: the mean Gregorian year, the week (a Thursday began 1970), the day.
_PERIODS = {"year": 365.2425, "week": 7.0, "day": 1.0}
#: The part of a date that varies where a wave of the period does.
_VARIES = {"year": "month", "week": "weekday", "day": "hour"}


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Encode the columns of a table as a matrix of numbers.

    For trees, numbers stay as they are, with NaN where they are missing, and a category becomes the number of its
    level. For linear models, a missing number becomes the median and has a column of its own that says so, numbers are
    scaled to mean 0 and deviation 1, and every level of a category has a column of zeros and ones. Dates become days,
    year, month, day, weekday and hour, as far as these vary, and for linear models waves of the year, week and day too.
    Texts become weights (tf-idf) of words and runs of characters for linear models, and their leading factors for
    others; sequences those of runs of letters, and the letter at each place where all are of one length. A level that
    the fit has not seen counts as missing.

    Parameters
    ----------
    columns : "auto" or dict of str, default="auto"
        Kind of each column: ``"number"`` (or, of texts, ``"number comma"`` with decimal commas, ``"number unit"`` with
        a unit, ``"number truth"`` of words for yes and no), ``"category"``, ``"date"`` (or ``"date %d/%m/%Y"`` with the
        format of a text, ``"date seconds"`` since 1970, ...), ``"calendar"``, a date of which month, weekday and hour
        count alone, ``"text"``, ``"sequence"``, or one of ``"drop"``, ``"target"``, ``"weight"``, ``"group"`` and
        ``"order"``, which are no features. Columns that are not named are left out. "auto" decides by types and values.
    form : {"trees", "linear", "compact"}, default="trees"
        "compact" is as "linear" with the factors of texts in the place of their terms.
    max_levels : int, optional
        Levels of a category at most, the most frequent; by default 254 for trees and 40 for linear models.
    sparse : bool, default=False
        A sparse matrix, for ``form="linear"`` with many levels; numbers are then scaled without being centred.
    dtype : {"float64", "float32"}, default="float64"
    absent : {"error", "skip"}, default="error"
        Whether a column of `columns` that the table of `fit` lacks is an error or is skipped.
    scale : {"each", "common"}, default="each"
        For linear models: "common" divides all numbers by one deviation, the root of their mean variance, which keeps
        what columns of one unit (pixels, shares, readings of one instrument) say by their size.

    Attributes
    ----------
    columns_ : dict of str
        The kinds in use.
    levels_ : dict of ndarray
        The levels of each category.
    types_ : dict of str
        The types that the columns had.
    categorical_ : list of int
        Indices of the categorical features, with ``form="trees"``.
    sources_ : list of str
        The column that each feature comes from.
    wide_levels_ : dict of ndarray
        All levels of the categories that have more than `max_levels`, with ``form="trees"``: the last features are
        their numbers, for means of the target.
    median_, mean_, scale_ : ndarray
        Of the features that are numbers.
    texts_ : TextFeatures
        The vocabularies and factors of texts.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from epicycle import TableEncoder
    >>> table = pa.table({"size": [1.0, None, 3.0, 5.0], "colour": ["red", "blue", "red", None]})
    >>> TableEncoder().fit_transform(table)
    array([[ 1.,  1.],
           [nan,  0.],
           [ 3.,  1.],
           [ 5., nan]])
    >>> TableEncoder(form="linear").fit(table).get_feature_names_out().tolist()
    ['size', 'size missing', 'colour=blue', 'colour=red']
    """

    columns_: dict[str, str]
    levels_: dict[str, np.ndarray]
    types_: dict[str, str]
    categorical_: list[int]
    sources_: list[str]
    median_: np.ndarray
    mean_: np.ndarray
    scale_: np.ndarray
    _numbers_: list[list[str]]
    _flags_: list[bool]
    _waves_: list[list[Any]]
    _places_: dict[str, int]
    wide_levels_: dict[str, np.ndarray]
    texts_: TextFeatures

    @stores_arguments
    def __init__(
        self,
        columns: Any = "auto",
        *,
        form: str = "trees",
        max_levels: int | None = None,
        sparse: bool = False,
        dtype: str = "float64",
        absent: str = "error",
        scale: str = "each",
    ) -> None: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    # ---------------------------------------------------------------------------------------------- fit

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TableEncoder:
        """Learn medians, scales and levels.

        Parameters
        ----------
        X : frame of pandas, polars or Arrow, or array
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 counts as two rows.

        Returns
        -------
        self
            The fitted encoder.
        """
        return self.fit_as(X, sample_weight)

    def fit_as(self, X: Any, sample_weight: Any = None, other: TableEncoder | None = None) -> TableEncoder:
        """Fit as `fit` does; the features of texts are those of `other`, if given, which was fitted to the same rows.

        Parameters
        ----------
        X, sample_weight : as for :meth:`fit`
        other : TableEncoder, optional

        Returns
        -------
        self
            The fitted encoder.
        """
        self._check_parameters()
        table = self._table(X, reset=True)
        weight = as_weight(sample_weight, table.num_rows)
        if weight is not None:
            table, weight = table.filter(pa.array(weight > 0)), weight[weight > 0]
        kinds = self._kinds(table)
        texts = {name: kind for name, kind in kinds.items() if kind in ("text", "sequence")}
        self.texts_, terms = (other.texts_, {}) if other is not None else fit_texts(table, texts)
        numbers: list[list[str]] = []
        levels: dict[str, np.ndarray] = {}
        places: dict[str, int] = {}
        statistics, flags = [], []
        plain = {name: kind for name, kind in kinds.items() if name not in texts}
        # Factors of texts are the last of the numbers: the form with terms in their place has all others before them.
        for name, kind in {**plain, **(texts if self.form != "linear" else {})}.items():
            if kind == "category":
                levels[name] = self._levels(table[name], weight)
                continue
            for part, values in self._parts(table, name, kind, terms).items():
                known = ~np.isnan(values)
                finite = values[known]
                if part and (len(finite) == 0 or finite.min() == finite.max()):
                    continue  # a part of a date that does not vary
                numbers.append([name, part])
                flags.append(len(finite) < len(values))
                statistics.append(_statistics(finite, None if weight is None else weight[known]))
        wide = self._wide_levels(table, levels, weight)
        for name in (name for name, kind in texts.items() if kind == "sequence"):
            places[name] = places_of(table[name])
            for place in range(places[name]):
                levels[f"{name} {place + 1}"] = self._levels(letter_at(table[name], place), weight)
        self.columns_ = dict(kinds)
        self.types_ = {name: str(table.schema.field(name).type) for name in kinds}
        self.levels_, self.wide_levels_ = levels, wide
        self._numbers_, self._flags_, self._places_ = numbers, flags, places
        self.median_, self.mean_, self.scale_ = np.array(statistics, dtype=np.float64).reshape(-1, 3).T.copy()
        if self.scale == "common" and len(self.scale_):
            self.scale_[:] = np.sqrt(np.mean(self.scale_**2))
        self._name_features()
        if not self.sources_:
            if table.num_rows == 1:
                raise DataError("X: one sample (n_samples=1), in which no column varies; expected at least 2")
            raise DataError("columns: none is left that a model can use; every one is constant, missing or left out")
        return self

    def _name_features(self) -> None:
        """The column of each feature, which of them are categories, and the waves of dates."""
        sources = [name for name, _ in self._numbers_]
        of_level = dict(zip(self.levels_, self._columns_of_levels(), strict=True))
        self._waves_ = []
        if self.form == "trees":
            self.categorical_ = list(range(len(self._numbers_), len(self._numbers_) + len(self.levels_)))
            self.sources_ = [*sources, *of_level.values(), *self.wide_levels_]
        else:
            self.categorical_ = []
            flagged = [name for (name, _), flag in zip(self._numbers_, self._flags_, strict=True) if flag]
            self._waves_ = [
                [j, period]
                for j, (name, part) in enumerate(self._numbers_)
                if part == "days"
                for period, varies in _VARIES.items()
                if [name, varies] in self._numbers_
            ]
            waves = [self._numbers_[j][0] for j, _ in self._waves_ for _ in "sc"]
            self.sources_ = [
                *sources,
                *flagged,
                *(of_level[n] for n, known in self.levels_.items() for _ in known),
                *waves,
            ]
            if self.form == "linear":
                self.sources_ += self.texts_.names()[0]

    @property
    def wide_(self) -> list[int]:
        """Indices of the features that are numbers of many levels."""
        return list(range(len(self.sources_) - len(self.wide_levels_), len(self.sources_)))

    def _columns_of_levels(self) -> list[str]:
        """The column of each entry of `levels_`: its own, or the sequence of which it is a place."""
        of_place = {f"{name} {k + 1}": name for name, length in self._places_.items() for k in range(length)}
        return [of_place.get(name, name) for name in self.levels_]

    def _check_parameters(self) -> None:
        for name, allowed in _CHOICES.items():
            if (given := getattr(self, name)) not in allowed:
                raise ParameterError(f"{name}={given!r}; expected {' or '.join(map(repr, allowed))}")
        if self.sparse and self.form == "trees":
            raise ParameterError("sparse=True: expected form='linear' or 'compact'")
        m = self.max_levels
        if m is not None and (not isinstance(m, int) or isinstance(m, bool) or not 1 <= m <= MAX_TREE_LEVELS):
            raise ParameterError(f"max_levels={m!r}; expected None or a number from 1 to 254")

    def _table(self, X: Any, *, reset: bool) -> pa.Table:
        """X as a table, and what scikit-learn wants to know of its features."""
        if (
            isinstance(X, np.ndarray | list)
            or sp.issparse(X)
            or (hasattr(X, "__array__") and not hasattr(X, "columns"))
        ):
            # Text of an array stays text; numbers are checked as scikit-learn does.
            kind = getattr(X, "dtype", None)
            plain = (
                None if isinstance(X, list) or (kind is not None and getattr(kind, "kind", "") in "OUS") else "numeric"
            )
            X = validate_data(self, X, reset=reset, dtype=plain, ensure_all_finite=False, ensure_min_samples=1)
            return as_table(X)
        table = as_table(X)
        if reset:
            validate_data(
                self,
                pa.table({name: pa.array([], pa.float64()) for name in table.column_names}),
                reset=True,
                skip_check_array=True,
            )
        if table.num_rows == 0:
            raise DataError(f"X: Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required")
        return table

    def _kinds(self, table: pa.Table) -> dict[str, str]:
        if isinstance(self.columns, str) and self.columns == "auto":
            some = sample_of(table, 50_000)
            found = {name: kind_of_column(some[name], name).kind for name in table.column_names}
            return {name: kind for name, kind in found.items() if is_feature(kind)}
        if not isinstance(self.columns, Mapping):
            raise ParameterTypeError(f"columns={self.columns!r:.60}; expected 'auto' or kinds by the names of columns")
        for name, kind in self.columns.items():
            known = isinstance(kind, str) and (kind in KINDS or base_kind(kind) in ("date", "calendar"))
            if not known and not (isinstance(kind, str) and base_kind(kind) == "number" and form_of(kind) in FORMS):
                raise ParameterError(f"columns[{name!r}]={kind!r:.40}; expected one of {', '.join(KINDS)}")
        wanted = {name: kind for name, kind in self.columns.items() if is_feature(kind)}
        there = set(table.column_names)
        if self.absent == "error" and (gone := [name for name in wanted if name not in there]):
            raise DataError(f"columns: the table has no column {', '.join(map(repr, gone[:5]))}")
        return {name: kind for name, kind in wanted.items() if name in there}

    def _levels(self, column: Any, weight: np.ndarray | None) -> np.ndarray:
        found = count_levels(as_text(column), weight)
        kept = found.most_frequent(self.max_levels or _MAX_LEVELS[self.form])
        return np.array(sorted(kept), dtype=str)

    def _wide_levels(
        self, table: pa.Table, levels: Mapping[str, np.ndarray], weight: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """All levels of the categories that have more than trees split as sets."""
        found: dict[str, np.ndarray] = {}
        for name in (name for name, known in levels.items() if len(known) == MAX_TREE_LEVELS):
            every = count_levels(as_text(table[name]), weight).most_frequent(_MAX_WIDE)
            if self.form == "trees" and len(every) > MAX_TREE_LEVELS:
                found[name] = np.array(sorted(every), dtype=str)
        return found

    # ---------------------------------------------------------------------------------------------- transform

    def transform(self, X: Any) -> Any:
        """The features of rows.

        Parameters
        ----------
        X : as for :meth:`fit`
            Columns are found by name; others are ignored.

        Returns
        -------
        ndarray or csr_array of shape (n_samples, n_features_out)
        """
        try:
            check_is_fitted(self, "columns_")
        except ValueError as error:
            raise NotFittedError(str(error)) from None
        table = self._table(X, reset=False)
        there = set(table.column_names)
        if gone := [name for name in self.columns_ if name not in there]:
            raise DataError(f"X: has no column {', '.join(map(repr, gone[:5]))}, which the fit had")
        if self.form == "trees":
            return self._for_trees(table)
        return self._for_linear(table)

    def of_coded(self, coded: Coded) -> Any:
        """The features of rows that are there in the form for trees, by an encoder of the same columns."""
        if self.form != "trees":
            return self._for_linear(coded)
        if self.sources_ == coded.trees.sources_ and self._numbers_ == coded.trees._numbers_:
            return coded.matrix[coded.rows]
        known = coded.trees
        at = [known._numbers_.index(number) for number in self._numbers_]
        at += [known.categorical_[list(known.levels_).index(name)] for name in self.levels_]
        at += [known.wide_[list(known.wide_levels_).index(name)] for name in self.wide_levels_]
        return coded.matrix[coded.rows][:, at]

    def terms(self, X: Any) -> sp.csr_array | None:
        """Weights of the terms of all texts; None where there are no texts.

        Parameters
        ----------
        X : as for :meth:`fit`

        Returns
        -------
        csr_array of shape (n_samples, n_terms), or None
        """
        return self.texts_.all_terms(as_table(X)) if self.texts_.vectorizers else None

    def _for_trees(self, table: pa.Table) -> np.ndarray:
        out = np.empty((table.num_rows, len(self.sources_)), self.dtype)
        for j, values in enumerate(self._number_columns(table)):
            out[:, j] = values
        for j, name in enumerate(self.levels_, start=len(self._numbers_)):
            codes = self._codes(table, name)
            out[:, j] = np.where(codes < 0, np.nan, codes)
        for j, (name, known) in zip(self.wide_, self.wide_levels_.items(), strict=True):
            codes = codes_among(as_text(table[name]), known)
            out[:, j] = np.where(codes < 0, np.nan, codes)
        return out

    def _for_linear(self, table: pa.Table | Coded) -> Any:
        plain = self._for_linear_sparse(table) if self.sparse else self._for_linear_dense(table)
        if self.form == "compact" or not self.texts_.vectorizers:
            return plain
        terms = table.terms[table.rows] if isinstance(table, Coded) else self.texts_.all_terms(table)
        return sp.csr_array(sp.hstack([sp.csr_array(plain), terms.astype(self.dtype)], format="csr"))

    def _for_linear_dense(self, table: pa.Table | Coded) -> np.ndarray:
        width = len(self._numbers_) + sum(self._flags_)
        n_terms = len(self.texts_.names()[0]) if self.form == "linear" else 0
        dense = np.empty((table.num_rows, len(self.sources_) - n_terms), self.dtype)
        flag = len(self._numbers_)
        for j, values in enumerate(self._number_columns(table)):
            unknown = np.isnan(values)
            dense[:, j] = (np.where(unknown, self.median_[j], values) - self.mean_[j]) / self.scale_[j]
            if self._flags_[j]:
                dense[:, flag] = unknown
                flag += 1
        dense[:, width:] = 0.0
        for name, levels in self.levels_.items():
            codes = self._codes(table, name)
            known = np.flatnonzero(codes >= 0)
            dense[known, width + codes[known]] = 1.0
            width += len(levels)
        for j, values in enumerate(self._wave_columns(table), start=width):
            dense[:, j] = values
        return dense

    def _wave_columns(self, table: pa.Table | Coded) -> Iterator[np.ndarray]:
        """Sine and cosine of the time of the year, week and day; 0 where a date is missing."""
        if not self._waves_:
            return
        days = {j: values for j, values in enumerate(self._number_columns(table)) if self._numbers_[j][1] == "days"}
        for j, period in self._waves_:
            angle = 2 * np.pi * np.mod(days[j] / _PERIODS[period], 1.0)
            yield np.nan_to_num(np.sin(angle))
            yield np.nan_to_num(np.cos(angle))

    def _for_linear_sparse(self, table: pa.Table | Coded) -> sp.csr_array:
        """The same without centring, put in its place column by column: nothing of its size is made beside it."""
        indptr = np.zeros(table.num_rows + 1, np.int64)
        for there, _, _ in self._entries(table):
            indptr[1:] += there
        np.cumsum(indptr, out=indptr)
        index = np.int32 if indptr[-1] < 2**31 else np.int64
        data, indices = np.empty(indptr[-1], self.dtype), np.empty(indptr[-1], index)
        at = indptr[:-1].copy()
        for there, columns, values in self._entries(table):
            places = at[there]
            data[places] = values[there]
            indices[places] = columns[there]
            at += there
        n_terms = len(self.texts_.names()[0]) if self.form == "linear" else 0
        shape = (table.num_rows, len(self.sources_) - n_terms)
        return sp.csr_array((data, indices, indptr.astype(index)), shape=shape)

    def _entries(self, table: pa.Table | Coded) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Of every column in turn: the rows that have an entry, its place in the row, and its value."""
        n, m = table.num_rows, len(self._numbers_)
        ones = np.broadcast_to(1.0, n)
        for j, values in enumerate(self._number_columns(table)):
            values = (np.where(np.isnan(values), self.median_[j], values) / self.scale_[j]).astype(self.dtype)
            yield values != 0, np.broadcast_to(j, n), values
        flagged = (values for values, flag in zip(self._number_columns(table), self._flags_, strict=True) if flag)
        for j, values in enumerate(flagged, start=m):
            yield np.isnan(values), np.broadcast_to(j, n), ones
        width = m + sum(self._flags_)
        for name, levels in self.levels_.items():
            codes = self._codes(table, name)
            yield codes >= 0, width + codes, ones
            width += len(levels)
        for j, values in enumerate(self._wave_columns(table), start=width):
            yield values != 0, np.broadcast_to(j, n), values

    def _number_columns(self, table: pa.Table | Coded) -> Iterator[np.ndarray]:
        """The features that are numbers, one after the other."""
        if isinstance(table, Coded):
            yield from map(table.column, range(len(self._numbers_)))
            return
        last, parts = None, {}
        for name, part in self._numbers_:
            if name != last:
                last, parts = name, self._parts(table, name, self.columns_[name])
            yield parts[part]

    def _parts(self, table: pa.Table, name: str, kind: str, terms: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A column as numbers: one for a number, several for a date or a text, whose terms may be there already."""
        try:
            if base_kind(kind) == "number":
                return {"": self._checked(as_numbers(table[name], form_of(kind)), table[name], name)}
            if name in self.texts_.vectorizers:
                known = (terms or {}).get(name)
                return self.texts_.factors_of(name, self.texts_.terms(name, table[name]) if known is None else known)
            dates = as_dates(table[name], form_of(kind))
        except (DataError, pa.ArrowException) as error:
            raise DataError(f"X: column {name!r}: {' '.join(str(error).split())[:160]}") from None
        found = {}
        parts = {"month": pc.month, "weekday": pc.day_of_week, "hour": pc.hour}
        if base_kind(kind) == "date":
            found["days"] = as_numbers(dates.cast(pa.int64())) / 86_400e6
            parts = {"year": pc.year, "month": pc.month, "day": pc.day, "weekday": pc.day_of_week, "hour": pc.hour}
        for part, function in parts.items():
            found[part] = as_numbers(function(dates))
        return found

    def _checked(self, values: np.ndarray, column: Any, name: str) -> np.ndarray:
        """The numbers of a column; text where the fit had numbers is an error, not a missing value."""
        known = getattr(self, "types_", {}).get(name, "string")
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if text and "string" not in known and "dictionary" not in known:
            odd = np.flatnonzero(np.isnan(values) & pc.is_valid(column).to_numpy(zero_copy_only=False))
            if len(odd):
                raise DataError(f"holds text such as {column[int(odd[0])].as_py()!r:.40}; expected numbers")
        return values

    def _codes(self, table: pa.Table | Coded, name: str) -> np.ndarray:
        """The number of the level of each row, -1 where it is missing or unknown."""
        if isinstance(table, Coded):
            return table.codes(name, self.levels_[name])
        try:
            sequence, _, place = name.rpartition(" ")
            of_place = sequence in self._places_ and name not in self.columns_
            column = letter_at(table[sequence], int(place) - 1) if of_place else as_text(table[name])
            return codes_among(column, self.levels_[name])
        except pa.ArrowException as error:
            raise DataError(f"X: column {name!r}: {' '.join(str(error).split())[:160]}") from None

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self, "columns_")
        names = [f"{name} {part}".strip() for name, part in self._numbers_]
        if self.form == "trees":
            names += [*self.levels_, *(f"{name} (all levels)" for name in self.wide_levels_)]
        else:
            names += [f"{n} missing" for n, flag in zip(list(names), self._flags_, strict=True) if flag]
            names += [f"{name}={level}" for name, levels in self.levels_.items() for level in levels]
            names += [
                f"{self._numbers_[j][0]} {wave} of the {p}" for j, p in self._waves_ for wave in ("sine", "cosine")
            ]
            if self.form == "linear":
                names += self.texts_.names()[1]
        return np.array(names, dtype=object)


@dataclass(frozen=True)
class Coded:
    """Some rows of a table in the form for trees, which holds all that other forms are made of."""

    trees: TableEncoder
    matrix: np.ndarray
    rows: Any
    terms: Any = None

    @property
    def num_rows(self) -> int:
        return len(self.column(0))

    def column(self, j: int) -> np.ndarray:
        """A column of the matrix."""
        values: np.ndarray = self.matrix[self.rows, j]
        return values

    def codes(self, name: str, levels: np.ndarray) -> np.ndarray:
        """The place of each row's level among `levels`, -1 where it is none of them."""
        known = self.trees.levels_[name]
        place = np.searchsorted(levels, known)
        there = levels[np.minimum(place, len(levels) - 1)] == known if len(levels) else np.zeros(len(known), bool)
        code_of = np.append(np.where(there, place, -1), -1)  # the last is for rows without a level
        values = self.column(self.trees.categorical_[list(self.trees.levels_).index(name)])
        return code_of[np.where(np.isnan(values), len(known), values).astype(np.intp)]


def is_feature(kind: str) -> bool:
    """Whether columns of this kind become features."""
    return base_kind(kind) in FEATURES


def _statistics(values: np.ndarray, weight: np.ndarray | None) -> tuple[float, float, float]:
    """Median, mean and standard deviation; 1 where a column does not vary."""
    if len(values) == 0:
        return 0.0, 0.0, 1.0
    if weight is None:
        spread = float(values.std())
        return float(np.median(values)), float(values.mean()), spread if spread > 0 else 1.0
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    half = below[-1] / 2
    low, high = np.searchsorted(below, half, side="left"), np.searchsorted(below, half, side="right")
    median = (values[order[low]] + values[order[min(high, len(order) - 1)]]) / 2
    mean = float(weight @ values / weight.sum())
    spread = float(np.sqrt(weight @ (values - mean) ** 2 / weight.sum()))
    return float(median), mean, spread if spread > 0 else 1.0
