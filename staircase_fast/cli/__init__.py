"""The command line `staircase-fast`: fit, apply, certify, report, demo.

`arguments.py` parses the arguments, runs a command, and prints its result or its error.  `commands.py` has fit, apply
and certify; `report.py` and `demo.py` have the commands of their names.  A command reads columns through `tables.py`,
which knows the file formats, and `columns.py`, which converts them to arrays.  fit, certify and report read all rows at
once; apply and `fit --streaming` read one batch after the other.  Errors of the library pass through `tables.located`,
which adds the file, the column and the row.

Tests: tests/cli.
"""
