"""``python -m epicycle`` is the command ``epicycle``."""

import sys

from epicycle.cli import main

if __name__ == "__main__":
    sys.exit(main())
