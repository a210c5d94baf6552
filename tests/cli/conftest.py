"""The folder in which tests of the command line run."""

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a problem in it."""
    from command_line import problem
    from pyarrow import csv, parquet  # here, so that tests without pyarrow can be collected

    monkeypatch.chdir(tmp_path)
    parquet.write_table(problem(), "data.parquet", row_group_size=200)
    csv.write_csv(problem(), "data.csv")
    return tmp_path
