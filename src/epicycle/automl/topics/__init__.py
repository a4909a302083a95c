"""Topics of the texts in a table: :func:`topic_table` and what it returns."""

from epicycle.automl.topics._topic_run import TopicRun
from epicycle.automl.topics._topic_table import topic_table

__all__ = ["TopicRun", "topic_table"]
