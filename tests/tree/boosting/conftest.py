"""Tests of trees import their reference implementation."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
