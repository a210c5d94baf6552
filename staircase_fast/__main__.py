"""`python -m staircase_fast` is the command `staircase-fast`."""

import sys

from staircase_fast.cli.arguments import run

sys.exit(run())
