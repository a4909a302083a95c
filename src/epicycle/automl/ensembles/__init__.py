"""Ensembles of the candidates of a search: greedy selection of weights, and the model."""

from epicycle.automl.ensembles._ensemble_table_model import EnsembleTableModel

__all__ = ["EnsembleTableModel"]
