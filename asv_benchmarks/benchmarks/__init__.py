"""What asv measures; `patterns.py` holds the data."""
