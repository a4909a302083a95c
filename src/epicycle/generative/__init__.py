"""Models that draw new rows like those they were fitted to, tables and images alike (the extra `deep`)."""

__all__: list[str] = []
