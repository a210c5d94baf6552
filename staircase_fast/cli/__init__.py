"""The command line `staircase-fast`: fit, apply, certify, report, export, merge, show, demo.

`parser.py` defines the arguments; `arguments.py` runs a command, and `printing.py` prints its result.  `commands.py`
has fit and certify; `models.py` export, merge and show; `apply.py`, `report.py`, with `page.py` and `pictures.py`, and
`demo.py` have the commands of their names.  A command reads columns through `tables.py`, which knows the file formats,
and `columns.py`, which converts them to arrays; `labels.py` is for labels that are not numbers.  fit, certify and
report read all rows at once; apply, and fit and certify of several or large files (`scanning.py`), read one batch after
the other.  Errors of the library pass through `tables.located`, which adds the file, the column and the row.

Tests: tests/cli, tests/docs/test_command_line.py.
"""
