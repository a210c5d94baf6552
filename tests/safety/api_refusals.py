"""Calls with invalid arguments: the error must be a ValueError or TypeError."""

import math

import api_inputs as inputs
from api_calls import call
from api_inputs import HAS, chance, pick
from api_script import Script
from numpy.random import Generator

STRANGE = (
    "type('Function', (), {'address': 12345})()", "max", "len", "print",
    "np.complex128(1 + 2j)", "np.zeros((2, 1))", "np.array([1.0])", "np.ma.masked", "np.array(2)", "np.str_('a')",
    "None", "nan", "inf", "-1", "0", "1.5", "10**400", "2**64", "-2**63", "'x'", "b'x'", "''", "[]", "[[]]", "[None]",
    "{}", "{1, 2}", "object()", "np.array(1.0)", "np.array([])", "np.zeros((2, 2))", "np.array(['a', 'b'])",
    "np.array([1j, 2])", "np.array([nan, 1])", "np.array(['2020-01-01'], dtype='M8[D]')", "lambda: 0", "True", "(1,)",
    "(None, None)", "(2, 1)", "(nan, 1)", "(inf, -inf)", "(1, 2, 3)", "range(3)", "iter([1, 2])",
    "(v for v in (1, 2))", "[1, 'a']", "[1, None]", "[True, 'x']", "[1, [2]]", "[10**400, 1]", "[2**64, 1]",
    "np.array([2**64 - 1, 1], dtype='u8')", "np.longdouble('1e4000')",
    "np.array(['1e4000', '1'], dtype=np.longdouble)", "np.ma.array([1.0, 2.0], mask=[True, False])",
    "np.zeros(2, dtype=[('a', 'f8')])", "memoryview(b'ab')", "sf", "float", "sf.losses.Huber",
    "sf.losses.Quantile(0.5)", "np.array([object(), 1])", "np.empty((0, 3))", "[-1.0, 2.0]", "[0.0, 0.0]",
    "[inf, 1.0]", "[1.0, -inf]", "[1.0, 2.0, 3.0]", "np.array([1, 2], dtype='m8[s]')", "'squared'", "'auto'", "-0.0",
    "5e-324", "1e308", "np.float32(1)", "np.int8(-1)", "np.True_", "Ellipsis", "complex(1, 2)", "bytearray(b'12')",
)  # fmt: skip
STRANGE_TABLES = (
    "pd.Series([1, None])", "pd.Series(['a', 'b'])", "pd.DataFrame({'a': [1, 2]})",
    "pd.Series([1, 2], dtype='category')", "pd.Series([pd.NA, 1], dtype='Int64')", "pa.array([1, None])",
    "pa.array(['a', 'b'])", "pa.table({'a': [1, 2]})", "pl.Series([1, None])", "pl.DataFrame({'a': [1, 2]})",
    "pd.Series([pd.Timestamp(0)])", "pa.array([[1], [2]])",
)  # fmt: skip
TEMPLATES = (
    "sf.fit({x}, {y}, sample_weight={w}, loss={loss}, increasing={bool}, bounds={bounds}, n_threads={count})",
    "sf.fit({x}, {y}, sample_weight={w}, loss={loss}, tol={number}, max_rounds={count}, max_seconds={number})",
    "sf.isotonic_regression({y}, weights={w}, increasing={bool}, loss={loss}, n_threads={count})",
    "sf.fit([1, 2], [1, 2]).predict({x}, interpolation={how}, out_of_bounds={outside}, out={out}, n_threads={count})",
    "sf.fit_groups({x}, {y}, {groups}, sample_weight={w}, loss={loss}, increasing={bool}, bounds={bounds})",
    "sf.fit_groups({x}, {y}, {groups}, n_threads={count})",
    "sf.fit_groups([1, 2], [1, 2], [0, 1]).predict({x}, {groups}, default={default}, out_of_bounds={outside})",
    "sf.fit_groups([1, 2], [1, 2], ['a', 'b']).predict({x}, {groups}, default={default}, interpolation={how})",
    "sf.fit_columns({table}, {table}, sample_weight={w}, loss={loss}, increasing={bool}, bounds={bounds})",
    "sf.certify({default}, {x}, {y}, sample_weight={w}, loss={loss}, bounds={bounds})",
    "sf.reliability({p}, {label}, sample_weight={w}, score={loss}, n_threads={count})",
    "sf.reliability({p}, {label}, bands={bands}, n_resamples={few}, level={level}, seed={seed})",
    "sf.VennAbers({number}).fit({x}, {label}, {w}).predict({x})",
    "sf.VennAbers().fit([1, 2], [0, 1]).merge({x}, rule={rule})",
    "sf.CrossVennAbers({number}).fit({x}, {label}, {groups}, {w}).merge({x}, rule={rule})",
    "sf.prefix_losses({y}, {w}, increasing={bool})",
    "sf.unimodal_regression({y}, {w})",
    "sf.Anytime({x}, {y}, sample_weight={w}, loss={loss}, bounds={bounds}, increasing={bool}).step()",
    "sf.Anytime({x}, {y}, loss={loss}).refine(tol={number}, max_rounds={few}, max_seconds={number})",
    "sf.Staircase({x}, {x}, {y}, {w}, {groups}, loss={loss}, increasing={bool}, lower={y}, upper={y})",
    "sf.StaircaseMap({groups}, {offsets}, {x}, {x}, {y}, {w}, {groups}, loss={loss})",
    "sf.Staircase.from_json({text})",
    "sf.Online.from_json({text})",
    "sf.VennAbers.from_json({text})",
    "sf.fit([1, 2], [1, 2]).to_sql({name}, dialect={dialect}, interpolation={how}, out_of_bounds={outside})",
    "sf.losses.Huber({number}).value({y}, {y})",
    "sf.losses.Quantile({level}, side={side})",
    "sf.losses.Power({number}).derivative({y}, {y})",
    "sf.losses.TweedieDeviance({number})",
    "sf.losses.Linex({number})",
    "sf.losses.PoissonDeviance({number}).value({y}, {y})",
    "sf.losses.Custom({loss}, {offsets}, {bounds})",
    "sf.losses.UpdateRule({loss}, {loss})",
    "sf.fit([1, 2], [2, 1], loss=sf.losses.Custom({function}, domain={bounds}))",
    "sf.fit([1, 2], [2, 1], loss=sf.losses.UpdateRule({function}))",
    "sf.set_num_threads({count}); sf.set_num_threads(None)",
)  # fmt: skip
VALID = {
    "x": ("[1.0, 2.0]", "np.array([3, 3])", "[-inf, inf]"),
    "y": ("[1.0, 2.0]", "np.array([3.0, 1.0])", "[0, 1]"),
    "w": ("None", "[1.0, 2.0]", "[1, 0]"),
    "loss": ("'squared'", "sf.losses.Huber(1.0)", "'log_cosh'", "sf.losses.Quantile([0.5, 0.2])", "'logistic'"),
    "bool": ("True", "False"),
    "bounds": ("None", "(0, 1)", "(None, 2)"),
    "number": ("1.0", "2.5", "1e-3"),
    "count": ("1", "2", "None"),
    "few": ("1", "5"),
    "how": ("'step'", "'linear'", "'centered'"),
    "outside": ("'clip'", "'nan'", "'raise'"),
    "out": ("None", "np.empty(2)"),
    "function": (
        "lambda z, y: z - y",
        "lambda a, b, c, d: (a + c, b + d)",
        "lambda z, y: None",
        "lambda z, y: z * nan",
    ),
    "groups": ("[0, 1]", "['a', 'b']", "[1, 1]"),
    "default": ("sf.fit([1, 2], [1, 2])", "sf.fit([1], [5], loss='huber')"),
    "table": ("[[1.0, 2.0], [2.0, 1.0]]", "np.eye(2)"),
    "p": ("[0.2, 0.7]", "[0.0, 1.0]"),
    "label": ("[0, 1]", "[True, False]", "[1.0, 1.0]"),
    "bands": ("None", "'confidence'", "'pointwise'", "'consistency'"),
    "level": ("0.9", "0.5"),
    "seed": ("0", "None"),
    "rule": ("'log'", "'brier'"),
    "offsets": ("[0, 1, 2]", "()"),
    "text": ("'{}'", "sf.fit([1, 2], [1, 2]).to_json()", "sf.Online().to_json()", "'[1'"),
    "name": ("'score'", "('t', 'score')"),
    "dialect": ("'duckdb'", "'postgres'"),
    "side": ("'lower'", "'upper'", "'middle'"),
}


def strange(rng: Generator) -> str:
    tables = [text for text in STRANGE_TABLES if HAS[{"pd": "pandas", "pa": "pyarrow", "pl": "polars"}[text[:2]]]]
    return pick(rng, tables) if tables and chance(rng, 0.15) else pick(rng, STRANGE)


@call("strange arguments", 6)
def strange_arguments(s: Script, rng: Generator) -> None:
    """One or two strange arguments: the call works, or raises ValueError or TypeError."""
    template = pick(rng, TEMPLATES)
    fields = [name for name in VALID if f"{{{name}}}" in template]
    spoiled = {pick(rng, fields) for _ in range(int(rng.integers(1, 3)))}
    if "few" in spoiled:
        spoiled -= {"few"}  # large numbers of resamples or rounds would take too long
    chosen = {name: strange(rng) if name in spoiled else pick(rng, VALID[name]) for name in fields}
    s.allows(template.format(**chosen))


@call("strange rows of streams")
def strange_rows(s: Script, rng: Generator) -> None:
    """Invalid rows must not change a stream."""
    name = pick(rng, ["Online", "Accumulator"])
    s.let("stream", f"sf.{name}()")
    s.run("stream.extend([1, 2], [3, 1])" if name == "Online" else "stream.add([1, 2], [3, 1])")
    s.let("before", "stream.staircase()")
    method = pick(rng, ["append", "extend"]) if name == "Online" else "add"
    given = [strange(rng) if chance(rng, 0.5) else "[3.0, 4.0]" if method != "append" else "3.0" for _ in range(3)]
    s.let("refused", "False")
    s.run(f"try:\n    stream.{method}({', '.join(given)})\nexcept (ValueError, TypeError):\n    refused = True")
    s.expect("not refused or stream.staircase() == before", "invalid rows changed the stream")


@call("invalid arguments", 3)
def invalid(s: Script, rng: Generator) -> None:
    """One invalid entry among valid rows."""
    n = inputs.number_of_rows(rng, 30)
    x, y, w = inputs.scores(rng, n), inputs.reals(rng, n), [1.0] * n
    place = int(rng.integers(n))
    which = pick(rng, ["x", "y", "w", "length", "option"])
    option = ""
    if which == "x":
        x[place] = math.nan
    elif which == "y":
        y[place] = pick(rng, [math.nan, math.inf, -math.inf])
    elif which == "w":
        w[place] = pick(rng, [math.nan, math.inf, -1.0, -5e-324])
    elif which == "length":
        y = [*y, 1.0]
    else:
        option = pick(
            rng,
            [
                ", loss='no such loss'", ", loss=1", ", increasing='up'", ", increasing=2", ", bounds=(2, 1)",
                ", bounds=(nan, 1)", ", bounds=1", ", tol=-1", ", tol=nan", ", max_rounds=-1", ", max_rounds=1.5",
                ", max_seconds=-1", ", n_threads=0", ", n_threads=1.5", ", loss='power'", ", loss=sf.losses.Huber",
                f", loss=sf.losses.Huber([1.0] * {n + 2})",
            ],
        )  # fmt: skip
    for name, values in zip("xyw", (x, y, w), strict=True):
        s.let(name, f"np.array({values!r})")
    s.let("before", "[column.tobytes() for column in (x, y, w)]")
    loss = "" if "loss" in option else f", loss={pick(rng, ['squared', 'huber', 'log_cosh', 'quantile'])!r}"
    s.refuses(f"sf.fit(x, y, sample_weight=w{loss}{option})")
    if which not in ("option", "length"):
        s.refuses("sf.fit_groups(x, y, np.zeros(len(x), dtype=int), sample_weight=w)")
        s.refuses("sf.Accumulator().add(x, y, w)")
    if which in ("y", "w"):
        s.refuses("sf.isotonic_regression(y, weights=w)")
        s.refuses("sf.prefix_losses(y, w)")
        s.refuses("sf.unimodal_regression(y, w)")
    s.expect("before == [column.tobytes() for column in (x, y, w)]", "an input was changed")
