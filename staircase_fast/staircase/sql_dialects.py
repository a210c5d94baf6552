"""SQL dialects: how each one writes names, strings and numbers.

Numbers must be float64 without loss.  A plain 0.1 is a decimal number in DuckDB, PostgreSQL, Snowflake and Spark, so
these get a cast of a string.  It is a float in BigQuery, and in standard SQL with an exponent.  SQLite rounds some
literals wrongly (see `_sqlite_number`).

NaN is above all numbers in DuckDB, PostgreSQL, Snowflake and Spark.  In BigQuery all comparisons with it are false.  In
both cases `score <= infinity` excludes it.  SQLite stores it as NULL.  Standard SQL has neither NaN nor infinity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.options import check_choice


class SqlDialect(NamedTuple):
    """How a dialect is written."""

    number: Callable[[float], str]
    text: Callable[[str], str]
    name: Callable[[str], str]
    lookup: str = ""  # how tables of steps are searched: "asof join" or "arrays"; empty: only by CASE
    has_infinity: bool = True
    max_key: int = 2**64 - 1  # the largest integer that can be written
    least: str = "LEAST"
    greatest: str = "GREATEST"


def dialect_of(dialect: object) -> SqlDialect:
    """The dialect of this name."""
    return DIALECTS[check_choice("dialect", dialect, tuple(DIALECTS))]


def name_of(argument: str, given: Any, sql: SqlDialect) -> str:
    """A quoted column name, from a string or from a sequence of its parts."""
    parts = (given,) if isinstance(given, str) else given
    if not isinstance(parts, Sequence) or isinstance(parts, bytes) or not len(parts):
        requirement = "must be a name or a sequence of names such as ('t', 'score')"
        raise InvalidTypeError(argument, requirement, value=given)
    for place, part in enumerate(parts):
        index = None if isinstance(given, str) else place
        if not isinstance(part, str):
            raise InvalidTypeError(argument, "must consist of strings", value=part, index=index)
        if not part:
            raise InvalidInputError(argument, "must not be empty", value=part, index=index)
        check_text(argument, part, index)
    return ".".join(map(sql.name, parts))


def check_text(argument: str, text: str, index: int | None) -> None:
    """SQL text can contain neither NUL nor surrogates, which UTF-8 cannot encode."""
    if re.search("[\0\ud800-\udfff]", text):
        raise InvalidInputError(argument, "must not contain NUL or surrogate characters", value=text, index=index)


def plain(value: float) -> str:
    """A number without loss; all dialects with casts of strings read it as Python does."""
    return repr(value) if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _standard_number(value: float) -> str:
    """An approximate number, which has an exponent."""
    if not math.isfinite(value):
        found = f"this staircase has {value}"
        raise InvalidInputError("dialect", "'standard' has no infinite numbers", found=found, hint="Use another one.")
    text = repr(value).upper()
    return text if "E" in text else f"{text}E0"


def _bigquery_number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f"CAST('{value}' AS FLOAT64)"


def _sqlite_number(value: float) -> str:
    """A literal if every version of SQLite reads it correctly; otherwise an integer times powers of 2, which is exact.

    Depending on version and platform, SQLite computes digits * 10**exponent in doubles, in 80-bit numbers, or in pairs
    of doubles.  In doubles it is rounded once, and so correctly, if both factors are exact.  The others are correct
    unless the literal is almost as near to another float.
    """
    if not math.isfinite(value):
        return "9e999" if value > 0 else "-9e999"
    size = abs(value)
    decimal = Decimal(repr(size)).normalize()
    _, digits, exponent = decimal.as_tuple()
    error = abs(Fraction(decimal) - Fraction(size))
    few_digits = int("".join(map(str, digits))) < 2**53 and abs(int(exponent)) <= 22
    if not size or (few_digits and error * 100 < 49 * Fraction(size - math.nextafter(size, 0))):
        return repr(value)
    mantissa, power = math.frexp(value)
    integer, power = int(mantissa * 2**53), power - 53
    operator = "*" if power > 0 else "/"
    left = range(abs(power), 0, -62)  # integers have 64 bits
    return f"(1.0 * {integer}{''.join(f' {operator} {1 << min(62, bits)}' for bits in left)})"


def _doubled(quote: str) -> Callable[[str], str]:
    """Text in quotes; a quote inside is doubled."""
    return lambda text: quote + text.replace(quote, 2 * quote) + quote


def _escaped(quote: str) -> Callable[[str], str]:
    """Text in quotes with backslashes as in C."""
    replaced = str.maketrans({"\\": "\\\\", quote: "\\" + quote, "\n": "\\n", "\r": "\\r"})
    return lambda text: quote + text.translate(replaced) + quote


def _postgres_text(text: str) -> str:
    """A string that does not depend on how the server treats backslashes."""
    quoted = _doubled("'")(text)
    return "E" + quoted.replace("\\", "\\\\") if "\\" in text else quoted


def _cast(value: float) -> str:
    return f"'{plain(value)}'::float8"


DIALECTS = {
    "duckdb": SqlDialect(_cast, _postgres_text, _doubled('"'), "asof join"),
    "postgres": SqlDialect(_cast, _postgres_text, _doubled('"'), "arrays"),
    "standard": SqlDialect(_standard_number, _doubled("'"), _doubled('"'), has_infinity=False),
    "sqlite": SqlDialect(_sqlite_number, _doubled("'"), _doubled('"'), max_key=2**63 - 1, least="min", greatest="max"),
    "spark": SqlDialect(lambda value: f"double('{plain(value)}')", _escaped("'"), _doubled("`")),
    "bigquery": SqlDialect(_bigquery_number, _escaped("'"), _escaped("`"), max_key=2**63 - 1),
    "snowflake": SqlDialect(lambda value: f"'{value!r}'::FLOAT", _escaped("'"), _doubled('"')),
}
