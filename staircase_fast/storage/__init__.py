"""Storage: files that are written atomically and checked when they are read.

`files.py` writes a file under a temporary name and renames it.  `documents.py` reads and writes JSON with a format name
and a version, `archive.py` arrays with a JSON header in one .npz file.  Each class describes its own fields in its own
room; this room knows none of them.  Damaged or hostile files raise an error that names the file and the field.
Files of earlier versions still load: tests/storage/old_files has one of each kind.

Tests: tests/storage.
"""
