"""What needs a GPU: scripts with fixed seeds that write their figures, with the card, as JSON and pictures.

Each is run by itself, ``python -m benchmarks.gpu.networks --data FOLDER --out FOLDER``, and has ``--quick`` for a run
of seconds on any machine; ``python -m benchmarks.gpu FOLDER`` writes what they found into RESULTS.md.
"""
