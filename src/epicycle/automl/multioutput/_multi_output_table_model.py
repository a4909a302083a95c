"""MultiOutputTableModel: a model for each of several targets of the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import is_classifier

from epicycle.automl.tables._table_model import TableModel
from epicycle.automl.tables._tables import as_table
from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.core._saved import Saved


class MultiOutputTableModel(Saved):
    """A fitted :class:`TableModel` for each target, which predict together.

    Parameters
    ----------
    models : dict of TableModel
        By the name of the target.
    labels : str, optional
        Of targets that are the labels of one column, "name=label": the name.

    Examples
    --------
    >>> import epicycle as ep
    >>> table = ep.training.read_table("iris").drop_columns(["species"])
    >>> kinds = {**dict.fromkeys(table.column_names[:2], "number")}
    >>> models = {
    ...     name: ep.TableModel(ep.RidgeCV(), {**kinds, name: "target"}).fit(table) for name in table.column_names[2:]
    ... }
    >>> both = ep.training.MultiOutputTableModel(models)
    >>> both.predict(table).column_names
    ['petal length', 'petal width']
    """

    def __init__(self, models: Mapping[str, TableModel], labels: str | None = None) -> None:
        if not isinstance(models, Mapping) or not models:
            raise ParameterTypeError(f"models={models!r:.60}; expected fitted models by the name of their target")
        for name, model in models.items():
            if not isinstance(model, TableModel):
                raise ParameterTypeError(f"models[{name!r}]: {type(model).__name__}; expected a TableModel")
        if labels is not None and (odd := [name for name in models if not name.startswith(f"{labels}=")]):
            raise ParameterError(f"labels={labels!r}: target {odd[0]!r} does not begin with {labels}=")
        self.models, self.labels = dict(models), labels

    @property
    def targets(self) -> list[str]:
        """Names of the targets."""
        return list(self.models)

    @property
    def types_(self) -> dict[str, str]:
        """Names and types of the columns that the models read."""
        found: dict[str, str] = {}
        for model in self.models.values():
            found |= model.encoder_.types_
        return found

    def predict(self, X: Any) -> pa.Table:
        """Predict all targets of rows.

        Parameters
        ----------
        X : frame of pandas, polars or Arrow

        Returns
        -------
        pyarrow.Table
            A column for each target.
        """
        table = as_table(X)
        return pa.table({name: _array(model.predict(table)) for name, model in self.models.items()})

    def predict_proba(self, X: Any) -> dict[str, np.ndarray]:
        """Probabilities of the classes, by target, of the targets that are classes.

        Parameters
        ----------
        X : as for :meth:`predict`

        Returns
        -------
        dict of ndarray of shape (n_samples, n_classes)
        """
        table = as_table(X)
        return {name: model.predict_proba(table) for name, model in self.models.items() if is_classifier(model)}

    def label_sets(self, X: Any) -> list[list[str]]:
        """The labels of each row, of a model of the labels of one column.

        Parameters
        ----------
        X : as for :meth:`predict`

        Returns
        -------
        list of list of str
        """
        if self.labels is None:
            raise ParameterError("label_sets: the targets are no labels of one column; predict gives them")
        return sets_of(self.predict(X), self.labels)

    def __repr__(self) -> str:
        return f"MultiOutputTableModel({', '.join(self.models)})"

    def __epi_state__(self) -> dict[str, Any]:
        return {"models": self.models, "labels": self.labels}

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.models, self.labels = state["models"], state["labels"]


def sets_of(predictions: pa.Table, labels: str) -> list[list[str]]:
    """The labels that are true in each row of predictions."""
    names = [name.removeprefix(f"{labels}=") for name in predictions.column_names]
    rows = np.column_stack([np.asarray(column.to_pylist(), dtype=bool) for column in predictions.columns])
    return [[name for name, there in zip(names, row, strict=True) if there] for row in rows]


def _array(values: np.ndarray) -> pa.Array:
    return pa.array(values.tolist() if values.dtype.kind in "UO" else values)
