"""Checks of a training run: of the data, of training against test set, and of scores too good to be true."""
