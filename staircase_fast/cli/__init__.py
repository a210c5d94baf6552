"""The command line `staircase-fast`: fit, apply, certify, report, demo.

`arguments.py` parses the arguments and prints results and errors; `commands.py` does the work of each command,
`report.py` and `report_page.py` that of `report`.  Files are read and written in batches by `tables.py`.

Tests: tests/cli.
"""
