"""Causal learning: graphs, identification, structural models, effects of treatments."""
