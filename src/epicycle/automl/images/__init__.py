"""Folders of images as tables of pixels, and the network for them."""
