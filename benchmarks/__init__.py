"""epicycle against the best peers: one runner, one small file per task (see RESULTS.md)."""
