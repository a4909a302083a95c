"""Images painted in the style of others (Gatys, Ecker and Bethge 2016)."""

from epicycle.generative.style._style_transfer import StyleTransfer

__all__ = ["StyleTransfer"]
