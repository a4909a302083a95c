"""Synthetic tables: generators of rows, and what their rows are worth."""

from epicycle.automl.synthesis._generate_table import generate_table
from epicycle.automl.synthesis._generation_run import GenerationRun
from epicycle.automl.synthesis._table_generator import TableGenerator

__all__ = ["GenerationRun", "TableGenerator", "generate_table"]
