"""Markov chain Monte Carlo: models, samplers, and what their draws are worth."""
