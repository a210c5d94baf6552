"""SQL expressions give the bits of `predict`, in DuckDB, and in PostgreSQL if a server is named.

STAIRCASE_FAST_POSTGRES holds what psycopg connects to, as "host=localhost user=postgres".
"""

import math
import os

import duckdb
import numpy as np
import pytest
from comparing import assert_same_bits
from exported import STAIRCASES, STEPS_ONLY, STEPS_ONLY_SLOPES, many, of_ends, queries

import staircase_fast as sf

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


@pytest.fixture(scope="module", params=[Duck, Postgres] if SERVER else [Duck])
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
    stairs = {**STAIRCASES, **STEPS_ONLY}[name]
    scores = queries(stairs)
    expected = stairs.predict(scores, out_of_bounds=out_of_bounds)
    assert_same_bits(evaluated(engine, stairs, scores, out_of_bounds=out_of_bounds), expected)


@pytest.mark.parametrize("out_of_bounds", ["clip", "nan"])
@pytest.mark.parametrize("interpolation", ["linear", "centered"])
@pytest.mark.parametrize("name", STAIRCASES)
def test_lines_are_those_of_predict_bit_for_bit(engine, name, interpolation, out_of_bounds):
    stairs, options = STAIRCASES[name], {"interpolation": interpolation, "out_of_bounds": out_of_bounds}
    scores = queries(stairs)
    if engine.dialect == "postgres" and name == "subnormal":
        pytest.skip("products that are too small for a float are errors there")
    assert_same_bits(evaluated(engine, stairs, scores, **options), stairs.predict(scores, **options))


@pytest.mark.parametrize("interpolation", ["step", "linear"])
def test_a_hundred_thousand_steps_are_looked_up_in_a_table(engine, interpolation):
    stairs = many(100_000, 5)
    scores = np.random.default_rng(6).choice(queries(stairs), 20_000)
    found = evaluated(engine, stairs, scores, interpolation=interpolation)
    assert_same_bits(found, stairs.predict(scores, interpolation=interpolation))


@pytest.mark.parametrize("interpolation", ["step", "linear"])
@pytest.mark.parametrize("name", ["probabilities", "a table"])
def test_null_and_nan_have_no_value(engine, name, interpolation):
    for out_of_bounds in ("clip", "nan"):
        options = {"interpolation": interpolation, "out_of_bounds": out_of_bounds}
        found = evaluated(engine, STAIRCASES[name], [0.5, None, float("nan")], **options)
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
    stairs, written = STAIRCASES[name], '"' + column.replace('"', '""') + '"'
    scores = [0.1, 0.5, 0.9]
    assert_same_bits(evaluated(engine, stairs, scores, column=column, written=written), stairs.predict(scores))
    found = evaluated(engine, stairs, scores, column=("scored", column), written=written)
    assert_same_bits(found, stairs.predict(scores))


@pytest.mark.parametrize("name", ["probabilities", "a table"])
def test_the_expression_can_be_used_anywhere(engine, name):
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
        seen = evaluated_groups(engine, map_of(keys), [0.5] * len(others), others, kind)
        assert np.isnan(seen).tolist() == [other not in keys for other in others]
        seen = evaluated_groups(engine, map_of(keys), [None, float("nan")], [keys[0]] * 2, kind)
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
            "`dialect` must be one of 'duckdb', 'postgres', 'spark'; got 'oracle'.",
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


def test_the_spark_dialect_has_no_tables():
    stairs = sf.fit(np.arange(65), np.arange(65))
    text = "`dialect` 'spark' supports at most 64 steps; this staircase has 65. Use `staircase_fast.spark.predict`."
    with pytest.raises(sf.InvalidInputError) as caught:
        stairs.to_sql("x", dialect="spark")
    assert str(caught.value) == text
    with pytest.raises(sf.InvalidInputError, match="`dialect` must be one of 'duckdb', 'postgres'; got 'spark'"):
        sf.fit_groups([1, 2], [1, 2], [0, 1]).to_sql("x", "g", dialect="spark")
