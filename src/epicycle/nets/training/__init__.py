"""Training of networks: batches, losses, optimisers, schedules, and one loop that uses them.

Modules that import torch when they are loaded are themselves loaded by a fit or a prediction only: `epicycle` and the
list of its methods do without.
"""
