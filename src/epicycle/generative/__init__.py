"""Models that draw new rows like those they were fitted to, tables and images alike (the extra `deep`)."""

from epicycle.generative import evaluate

__all__ = ["evaluate"]
