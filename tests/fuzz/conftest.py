"""The fuzz tests share the helpers of the tests of model files."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "files")]
