"""The `epicycle` command."""

from epicycle.cli.app import main

__all__ = ["main"]
