"""Self-play with a network for policy and value."""

from epicycle.search.alpha_zero._alpha_zero import AlphaZero

__all__ = ["AlphaZero"]
