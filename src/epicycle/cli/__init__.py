"""The `epicycle` command."""

from epicycle.cli._app import main

__all__ = ["main"]
