"""``python -m counterpoint.command_line`` is the command ``counterpoint``."""

import sys

from counterpoint.command_line import main

if __name__ == "__main__":
    sys.exit(main())
