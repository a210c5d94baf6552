"""SQL expressions give the bits of `predict`, in DuckDB, in SQLite, and in PostgreSQL if a server is named.

DuckDB runs the standard dialect as well, and those of BigQuery and Snowflake once sqlglot has translated them.
tests/engines/test_spark.py has the tests of Spark.

STAIRCASE_FAST_POSTGRES holds what psycopg connects to, as "host=localhost user=postgres".
"""

import math
import os
import sqlite3

import duckdb
import numpy as np
import pytest
import sqlglot
from comparing import assert_same_bits
from exported import STAIRCASES, STEPS_ONLY, STEPS_ONLY_SLOPES, many, of_ends, queries

import staircase_fast as sf
from staircase_fast.staircase.sql_dialects import DIALECTS

pytestmark = pytest.mark.long

SERVER = os.environ.get("STAIRCASE_FAST_POSTGRES")


class Duck:
    dialect = "duckdb"

    def __init__(self):
        self.connection = duckdb.connect()

    def run(self, sql):
        return self.connection.execute(sql).fetchall()

    def fill(self, table, column, scores, kind):
        self.run(f"CREATE OR REPLACE TABLE {table} (id BIGINT, {column} {kind})")
        self.connection.execute(f"INSERT INTO {table} SELECT unnest($1), unnest($2)", [np.arange(len(scores)), scores])


class Standard(Duck):
    dialect = "standard"


class Snowflake(Duck):
    dialect = "snowflake"

    def run(self, sql):
        return super().run(self.translated(sql).sql("duckdb") if sql.startswith("SELECT") else sql)

    def translated(self, sql):
        return sqlglot.parse_one(sql, dialect=self.dialect)


class BigQuery(Snowflake):
    dialect = "bigquery"

    def translated(self, sql):
        """Its numbers with a point or an exponent are floats; those of DuckDB are decimals."""

        def is_float(node):
            return isinstance(node, sqlglot.exp.Literal) and not node.is_string and not node.name.isdigit()

        return (
            super().translated(sql).transform(lambda node: sqlglot.exp.cast(node, "double") if is_float(node) else node)
        )


class SQLite:
    dialect = "sqlite"

    def __init__(self):
        self.connection = sqlite3.connect(":memory:")

    def run(self, sql):
        return self.connection.execute(sql).fetchall()

    def fill(self, table, column, scores, kind):
        self.run(f"DROP TABLE IF EXISTS {table}")
        self.run(f"CREATE TABLE {table} (id INTEGER, {column} {kind})")
        rows = enumerate(scores.tolist() if isinstance(scores, np.ndarray) else scores)
        self.connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)


class Postgres:
    dialect = "postgres"

    def __init__(self):
        import psycopg

        self.connection = psycopg.connect(SERVER, autocommit=True)

    def run(self, sql):
        return self.connection.execute(sql.encode()).fetchall()

    def fill(self, table, column, scores, kind):
        self.connection.execute(
            f"DROP TABLE IF EXISTS {table}; CREATE TEMPORARY TABLE {table} (id int8, {column} {kind})"
        )
        rows = [[i, one] for i, one in enumerate(scores.tolist() if isinstance(scores, np.ndarray) else scores)]
        with self.connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s)", rows)


ENGINES = [Duck, Standard, SQLite, Snowflake, BigQuery]
WITHOUT_INFINITY = ["both infinities", "infinite at last", "infinite values"]


def skip_unsupported(engine, name):
    if isinstance(engine, Snowflake) and name.startswith("a table"):
        pytest.skip("sqlglot is slow on long expressions")
    if engine.dialect == "standard" and name in WITHOUT_INFINITY:
        pytest.skip("standard SQL has no infinite numbers")


@pytest.fixture(scope="module", params=[*ENGINES, Postgres] if SERVER else ENGINES)
def engine(request):
    made = request.param()
    yield made
    made.connection.close()


def evaluated(engine, stairs, scores, *, column="score", written='"score"', kind="float8", **options):
    """The result of a query; NULL becomes NaN."""
    engine.fill("scored", written, scores, kind)
    sql = stairs.to_sql(column, dialect=engine.dialect, **options)
    found = engine.run(f"SELECT {sql} AS value FROM scored ORDER BY id")
    return np.array([np.nan if value is None else value for (value,) in found], dtype=np.float64)


@pytest.mark.parametrize("out_of_bounds", ["clip", "nan"])
@pytest.mark.parametrize("name", [*STAIRCASES, *STEPS_ONLY])
def test_steps_are_those_of_predict_bit_for_bit(engine, name, out_of_bounds):
    skip_unsupported(engine, name)
    stairs = {**STAIRCASES, **STEPS_ONLY}[name]
    scores = queries(stairs)
    expected = stairs.predict(scores, out_of_bounds=out_of_bounds)
    assert_same_bits(evaluated(engine, stairs, scores, out_of_bounds=out_of_bounds), expected)


@pytest.mark.parametrize("out_of_bounds", ["clip", "nan"])
@pytest.mark.parametrize("interpolation", ["linear", "centered"])
@pytest.mark.parametrize("name", STAIRCASES)
def test_lines_are_those_of_predict_bit_for_bit(engine, name, interpolation, out_of_bounds):
    skip_unsupported(engine, name)
    stairs, options = STAIRCASES[name], {"interpolation": interpolation, "out_of_bounds": out_of_bounds}
    scores = queries(stairs)
    if engine.dialect == "postgres" and name == "subnormal":
        pytest.skip("products that are too small for a float are errors there")
    assert_same_bits(evaluated(engine, stairs, scores, **options), stairs.predict(scores, **options))


@pytest.mark.parametrize("interpolation", ["step", "linear"])
def test_many_steps_are_looked_up_in_a_table_or_a_tree(engine, interpolation):
    stairs = many({"duckdb": 100_000, "postgres": 100_000, "sqlite": 2000}.get(engine.dialect, 300), 5)
    scores = np.random.default_rng(6).choice(queries(stairs), 20_000)
    found = evaluated(engine, stairs, scores, interpolation=interpolation)
    assert_same_bits(found, stairs.predict(scores, interpolation=interpolation))


@pytest.mark.parametrize("interpolation", ["step", "linear"])
@pytest.mark.parametrize("name", ["probabilities", "a table"])
def test_null_and_nan_have_no_value(engine, name, interpolation):
    skip_unsupported(engine, name)
    missing = None if engine.dialect == "standard" else float("nan")  # which has no NaN
    for out_of_bounds in ("clip", "nan"):
        options = {"interpolation": interpolation, "out_of_bounds": out_of_bounds}
        found = evaluated(engine, STAIRCASES[name], [0.5, None, missing], **options)
        assert np.isnan(found).tolist() == [False, True, True]
    sql = STAIRCASES[name].to_sql("score", dialect=engine.dialect, interpolation=interpolation)
    assert engine.run(f"SELECT count(*) FROM scored WHERE {sql} IS NULL") == [(2,)]


@pytest.mark.parametrize("interpolation", ["step", "linear"])
@pytest.mark.parametrize("n", [20, 200])
def test_columns_of_float32_are_compared_as_float64(engine, n, interpolation):
    edges = np.sort(np.random.default_rng(n).random(n).astype(np.float32)).astype(np.float64)
    stairs = of_ends(np.nextafter(edges, 2), np.nextafter(edges, 2), np.arange(n) / 7)  # just above each float32
    scores = np.concatenate([edges, np.nextafter(edges.astype(np.float32), np.float32(2))]).astype(np.float32)
    found = evaluated(engine, stairs, scores, kind="real", interpolation=interpolation)
    assert_same_bits(found, stairs.predict(scores, interpolation=interpolation))


@pytest.mark.parametrize("interpolation", ["step", "linear"])
@pytest.mark.parametrize("kind", ["smallint", "bigint", "numeric(6, 1)"])
@pytest.mark.parametrize("n", [20, 200])
def test_columns_of_integers_and_decimals_are_compared_as_float64(engine, n, kind, interpolation):
    edges = np.arange(n) + np.where(np.arange(n) % 2, 0.5, 0.1)
    stairs, scores = of_ends(edges, edges, np.arange(n) / 7), np.arange(-2, n + 2)
    found = evaluated(engine, stairs, scores, kind=kind, interpolation=interpolation)
    assert_same_bits(found, stairs.predict(scores, interpolation=interpolation))


NAMES = ["score", "start", "low", "starts", "lows", "steps", "query", "step", "found", "Score", "two words", "a.b"]
ODD_NAMES = [
    'say "hi"',
    "it's",
    'x" IS NULL THEN 1 END; DROP TABLE scored; --',
    "select",
    "%s",
    "{}",
    "$1",
    "\\",
    "Größe",
]


@pytest.mark.parametrize("name", ["probabilities", "a table"])
@pytest.mark.parametrize("column", [*NAMES, *ODD_NAMES, "分数", "🪜"])
def test_a_column_may_have_any_name(engine, column, name):
    skip_unsupported(engine, name)
    if engine.dialect == "bigquery" and column == "a.b":
        pytest.skip("names of columns have no points there")
    stairs, written = STAIRCASES[name], '"' + column.replace('"', '""') + '"'
    scores = [0.1, 0.5, 0.9]
    assert_same_bits(evaluated(engine, stairs, scores, column=column, written=written), stairs.predict(scores))
    found = evaluated(engine, stairs, scores, column=("scored", column), written=written)
    assert_same_bits(found, stairs.predict(scores))


@pytest.mark.parametrize("name", ["probabilities", "a table"])
def test_the_expression_can_be_used_anywhere(engine, name):
    skip_unsupported(engine, name)
    stairs, scores = STAIRCASES[name], np.repeat([0.1, 0.5, 0.9], 4)
    engine.fill("scored", "score", scores, "float8")
    sql = stairs.to_sql(("one", "score"), dialect=engine.dialect)
    other = stairs.to_sql("score", dialect=engine.dialect)
    found = engine.run(
        f"SELECT {sql} + 1, sum({sql}) FROM scored AS one WHERE {other} > -100 GROUP BY {sql} ORDER BY {sql}"
    )
    values, counts = np.unique(stairs.predict(scores), return_counts=True)
    assert np.allclose(found, np.column_stack([values + 1, values * counts]))


KEYS = {
    "strings": ["", "Zürich", "a", "a'b", 'a"b', "back\\\\slash", "\\\\' OR 1=1 --", "oslo", "{x,y}", "é", "分", "🪜"],
    "integers": [-(2**63), -1, 0, 1, 7, 2**63 - 1],
    "without sign": [0, 1, 2**63, 2**64 - 1],
    "bools": [False, True],
    "one": [3],
}
KINDS = {"strings": "text", "without sign": "numeric(20, 0)", "bools": "boolean"}


def map_of(keys, increasing=True):
    keys = sorted(keys)
    rng = np.random.default_rng(len(keys))
    groups = rng.integers(0, len(keys), 300)
    groups[: len(keys)] = np.arange(len(keys))
    targets = rng.random(300) + (groups % 2 * 2 - 1) * np.linspace(0, 2, 300)
    return sf.fit_groups(np.linspace(-1, 1, 300), targets, [keys[g] for g in groups], increasing=increasing)


def evaluated_groups(engine, found, scores, groups, kind, **options):
    engine.fill("scored", "score", scores, "float8")
    engine.fill("grouped", '"the group"', groups, kind)
    sql = found.to_sql(("scored", "score"), ("grouped", "the group"), dialect=engine.dialect, **options)
    rows = engine.run(f"SELECT {sql} FROM scored JOIN grouped USING (id) ORDER BY id")
    return np.array([np.nan if value is None else value for (value,) in rows], dtype=np.float64)


@pytest.mark.parametrize(
    "options", [{}, {"interpolation": "linear"}, {"interpolation": "centered"}, {"out_of_bounds": "nan"}]
)
@pytest.mark.parametrize("increasing", [True, "auto"])
@pytest.mark.parametrize("name", KEYS)
def test_each_group_gets_its_own_staircase(engine, name, increasing, options):
    if name == "without sign" and engine.dialect in ("sqlite", "bigquery"):
        pytest.skip("integers have 64 bits with a sign there")
    found = map_of(KEYS[name], increasing)
    scores = np.concatenate([queries(stairs) for stairs in found.values()])
    groups = [key for key, stairs in found.items() for _ in range(len(queries(stairs)))]
    seen = evaluated_groups(engine, found, scores, groups, KINDS.get(name, "int8"), **options)
    assert_same_bits(seen, found.predict(scores, groups, **options))


def test_groups_that_were_not_fitted_have_no_value(engine):
    for keys, kind, others in (
        (["b", "d"], "text", ["a", "b", "c", "B", "e", None]),
        ([2, 4], "int", [1, 2, 3, 9, None]),
        ([2, 4], "float8", [2.0, 1.5, 3.7, 1e30, math.inf, math.nan, None]),
        ([2, 4], "numeric(20, 0)", [2, 3, 2**64 - 1, None]),
        ([2, 4], "numeric(6, 1)", [2.0, 1.5, 4.5, None]),
        ([2, 2**64 - 1], "float8", [2.0, 1.5, 1e30, None]),
    ):
        if 2**64 - 1 in [*keys, *others] and engine.dialect in ("sqlite", "bigquery"):
            continue  # integers have 64 bits with a sign there
        seen = evaluated_groups(engine, map_of(keys), [0.5] * len(others), others, kind)
        assert np.isnan(seen).tolist() == [other not in keys for other in others]
        missing = None if engine.dialect == "standard" else float("nan")
        seen = evaluated_groups(engine, map_of(keys), [None, missing], [keys[0]] * 2, kind)
        assert np.isnan(seen).all()


def test_groups_that_cannot_be_sql_text_raise_an_error():
    for key, text in (
        ("a\0", r"`keys` must not contain NUL or surrogate characters; got 'a\\x00' at index 0"),
        ("\ud800", r"`keys` must not contain NUL or surrogate characters; got '\\ud800' at index 0"),
    ):
        with pytest.raises(ValueError, match=text):
            map_of([key]).to_sql("score", "city")
    with pytest.raises(ValueError, match="`group` must not be empty"):
        map_of(["a"]).to_sql("score", "")


def test_few_steps_are_a_readable_case():
    assert STAIRCASES["probabilities"].to_sql("score", dialect="postgres", out_of_bounds="nan").splitlines() == [
        "CASE",
        """  WHEN "score" < '0.1'::float8 THEN NULL""",
        """  WHEN "score" < '0.35'::float8 THEN '0.0'::float8""",
        """  WHEN "score" < '0.8'::float8 THEN '0.5'::float8""",
        """  WHEN "score" <= '0.8'::float8 THEN '1.0'::float8""",
        "END",
    ]


def test_groups_are_found_by_bisection_in_postgres():
    found = sf.fit_groups([1, 2, 1], [0, 1, 3], ["a", "a", "b"])
    _, value, table, *_ = found.to_sql("score", ("t", "city"), dialect="postgres").splitlines()
    assert value == "  SELECT lows[step]"
    assert table.startswith(
        """  FROM (VALUES ("score"::float8, "t"."city"::text COLLATE "C", ARRAY['a', 'b']::text[], """
    )
    assert "'{-Infinity, 2.0, -Infinity}'::float8[], '{0.0, 1.0, 3.0}'::float8[]" in table


def test_many_steps_are_joined_not_compared_one_by_one():
    for dialect, word in (("duckdb", "ASOF JOIN"), ("postgres", "width_bucket")):
        sql = many(65, 2).to_sql("score", dialect=dialect)
        assert word in sql
        assert "CASE" not in sql
        assert sql.count("VALUES") == 1


@pytest.mark.parametrize("name", STEPS_ONLY_SLOPES)
@pytest.mark.parametrize("interpolation", ["linear", "centered"])
def test_lines_without_a_finite_slope_raise_an_error(name, interpolation):
    with pytest.raises(ValueError, match=r"`interpolation` must be 'step'.* after step \d, from"):
        STEPS_ONLY[name].to_sql("score", interpolation=interpolation)


@pytest.mark.parametrize(
    ("error", "text", "column", "options"),
    [
        (
            ValueError,
            f"`dialect` must be one of {', '.join(map(repr, DIALECTS))}; got 'oracle'.",
            "x",
            {"dialect": "oracle"},
        ),
        (ValueError, "`out_of_bounds` must be one of 'clip', 'nan'; got 'raise'.", "x", {"out_of_bounds": "raise"}),
        (
            ValueError,
            "`interpolation` must be one of 'step', 'linear', 'centered'; got 'cubic'.",
            "x",
            {"interpolation": "cubic"},
        ),
        (ValueError, "`column` must not be empty; got ''.", "", {}),
        (ValueError, "`column` must not be empty; got '' at index 1.", ["t", ""], {}),
        (ValueError, "`column` must not contain NUL or surrogate characters; got 'a\\x00'.", "a\0", {}),
        (ValueError, "`column` must not contain NUL or surrogate characters; got '\\ud800'.", "\ud800", {}),
        (TypeError, "`column` must consist of strings; got 3 at index 1.", ["t", 3], {}),
        (TypeError, "`column` must be a name or a sequence of names such as ('t', 'score'); got [].", [], {}),
        (TypeError, "`column` must be a name or a sequence of names such as ('t', 'score'); got 7.", 7, {}),
        (TypeError, "`column` must be a name or a sequence of names such as ('t', 'score'); got b'x'.", b"x", {}),
    ],
)
def test_invalid_options_raise_an_error(error, text, column, options):
    with pytest.raises(error) as caught:
        sf.fit([1, 2], [1, 2]).to_sql(column, **options)
    assert str(caught.value) == text


def test_the_spark_dialect_quotes_names_and_numbers_in_its_own_way():
    found = sf.fit([1, 2], [0.5, 1e-300], increasing=False).to_sql(("t", "a `b`"), dialect="spark")
    assert found.splitlines()[1] == "  WHEN `t`.`a ``b``` < double('2.0') THEN double('0.5')"
    assert found.splitlines()[2] == "  WHEN `t`.`a ``b``` <= double('Infinity') THEN double('1e-300')"


def test_bigquery_has_float_literals_and_backslashes():
    found = of_ends([0.5, 1], [0.5, math.inf], [1e-300, 2])
    assert found.to_sql(("t", "a `b`\\\n"), dialect="bigquery").splitlines() == [
        "CASE",
        r"  WHEN `t`.`a \`b\`\\\n` < 1.0 THEN 1e-300",
        r"  WHEN `t`.`a \`b\`\\\n` <= CAST('inf' AS FLOAT64) THEN 2.0",
        "END",
    ]
    assert of_ends([math.inf], [math.inf], [1]).to_sql("x", dialect="bigquery", out_of_bounds="nan").splitlines() == [
        "CASE",
        "  WHEN `x` < CAST('inf' AS FLOAT64) THEN NULL",
        "  WHEN `x` <= CAST('inf' AS FLOAT64) THEN 1.0",
        "END",
    ]


def test_snowflake_casts_strings_to_floats():
    found = sf.fit([1, 2], [0.5, 1e-300], increasing=False).to_sql(("t", 'a "b"'), dialect="snowflake")
    assert found.splitlines() == [
        "CASE",
        '''  WHEN "t"."a ""b""" < '2.0'::FLOAT THEN '0.5'::FLOAT''',
        '''  WHEN "t"."a ""b""" <= 'inf'::FLOAT THEN '1e-300'::FLOAT''',
        "END",
    ]


def test_standard_sql_has_numbers_with_exponents_and_no_infinity():
    assert sf.fit([1, 2], [0.5, 1e22]).to_sql("x", dialect="standard").splitlines() == [
        "CASE",
        """  WHEN "x" < 2.0E0 THEN 0.5E0""",
        """  WHEN "x" IS NOT NULL THEN 1E+22""",
        "END",
    ]
    for name, number in zip(WITHOUT_INFINITY, (math.inf, math.inf, -math.inf), strict=True):
        with pytest.raises(sf.InvalidInputError) as caught:
            {**STAIRCASES, **STEPS_ONLY}[name].to_sql("x", dialect="standard")
        text = f"`dialect` 'standard' has no infinite numbers; this staircase has {number}. Use another one."
        assert str(caught.value) == text


def test_sqlite_numbers_are_exact():
    engine = SQLite()
    rng = np.random.default_rng(0)
    numbers = np.concatenate(
        [
            rng.random(2000),
            np.round(rng.random(500), 3),
            rng.integers(-(2**62), 2**62, 2000).view(np.float64),
            2.0 ** np.arange(-1074, 1024, 7),
        ]
    )
    numbers = [*numbers[np.isfinite(numbers)].tolist(), 0.0, -0.0, 5e-324, -math.inf, math.inf]
    written = [DIALECTS["sqlite"].number(one) for one in numbers]
    for start in range(0, len(numbers), 500):
        (found,) = engine.run(f"SELECT {', '.join(written[start : start + 500])}")
        assert_same_bits(np.array(found), np.array(numbers[start : start + 500]))
    assert [DIALECTS["sqlite"].number(one) for one in (0.35, -12.5, 0.1 + 0.2, 2.0**-40)] == [
        "0.35",
        "-12.5",
        "(1.0 * 5404319552844596 / 18014398509481984)",
        "(1.0 * 4503599627370496 / 4611686018427387904 / 1073741824)",
    ]


@pytest.mark.parametrize("dialect", ["sqlite", "bigquery"])
def test_integer_keys_must_fit_the_dialect(dialect):
    text = f"`keys` must be at most 9223372036854775807 for dialect '{dialect}'; got 9223372036854775808 at index 1."
    with pytest.raises(sf.InvalidInputError) as caught:
        map_of([1, 2**63]).to_sql("x", "g", dialect=dialect)
    assert str(caught.value) == text


def test_groups_are_compared_one_by_one_in_dialects_without_tables():
    found = sf.fit_groups([1, 2, 1], [0, 1, 3], ["a", "a", "it's"])
    assert found.to_sql("x", ("t", "g"), dialect="sqlite").splitlines() == [
        'CASE "t"."g"',
        "  WHEN 'a' THEN CASE",
        '    WHEN "x" < 2.0 THEN 0.0',
        '    WHEN "x" <= 9e999 THEN 1.0',
        "  END",
        "  WHEN 'it''s' THEN CASE",
        '    WHEN "x" <= 9e999 THEN 3.0',
        "  END",
        "END",
    ]
    assert "WHEN 'it\\'s' THEN" in found.to_sql("x", "g", dialect="bigquery")


@pytest.mark.parametrize("dialect", ["standard", "sqlite", "spark", "bigquery", "snowflake"])
@pytest.mark.parametrize("n", [65, 256, 257, 5000])
def test_many_steps_become_a_shallow_tree(dialect, n):
    sql = many(n, 2).to_sql("score", dialect=dialect)
    depth = max(len(line) - len(line.lstrip()) for line in sql.splitlines()) // 2
    assert depth == (2 if n <= 256 else 3 if n <= 4096 else 4)
    assert sql.count(" < ") == n - 1
    assert sql.count(" THEN CASE") + sql.count("ELSE CASE") < n / 8
