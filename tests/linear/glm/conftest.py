"""Shared by the tests of generalized linear models: reference code next to the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
