"""Random batch fits, and calls that use their results."""

import math
from fractions import Fraction
from typing import Any

import api_inputs as inputs
import numpy as np
import reference
from api_calls import (
    FEW,
    FEWEST,
    Rows,
    as_interval,
    bounds_for,
    call,
    draw,
    has_steps,
    inputs_are_unchanged,
    is_certified,
    same_steps,
)
from api_inputs import EXPOSURES, EXTREME, MEANS, OTHERS, LossKind, chance, column, pick
from api_oracles import Problem, as_float, limits_of, steps_of
from api_script import Script
from numpy.random import Generator


@call("fit of means", 5)
def fit_means(s: Script, rng: Generator) -> None:
    kind = pick(rng, MEANS)
    rows = draw(s, rng, kind)
    rising = chance(rng, 0.7)
    bounds = bounds_for(rng, rows.y)
    threads = pick(rng, ["", ", n_threads=1", ", n_threads=2"])
    s.let("stairs", f"sf.fit({rows.given}, increasing={rising}, bounds={bounds!r}{threads})")
    has_steps(s, "stairs", reference.fitted_steps(rows.x, rows.y, rows.w, increasing=rising, bounds=bounds))
    is_certified(s, rows, bounds)
    inputs_are_unchanged(s, rows)


@call("fit of means in the better direction")
def fit_auto(s: Script, rng: Generator) -> None:
    rows = draw(s, rng, pick(rng, MEANS[:4]), extreme=False)
    s.let("stairs", f"sf.fit({rows.given}, increasing='auto')")
    s.let("both", f"[sf.fit({rows.given}, increasing=rising) for rising in (False, True)]")
    s.expect("stairs == both[stairs.increasing]", "not the fit of this direction")
    if "SquaredError" in rows.loss:
        w = rows.w or [1] * len(rows.x)
        costs = []
        for rising in (False, True):
            steps = reference.exact_steps(rows.x, rows.y, rows.w, increasing=rising)
            costs.append(
                sum(
                    Fraction(u) * (Fraction(y) - reference.step_value(steps, x)) ** 2
                    for x, y, u in zip(rows.x, rows.y, w, strict=True)
                )
            )
        chosen, other = costs[s["stairs"].increasing], costs[not s["stairs"].increasing]
        mean = sum(Fraction(u) * Fraction(y) for u, y in zip(w, rows.y, strict=True)) / sum(map(Fraction, w))
        least = sum(Fraction(u) * (Fraction(y) - mean) ** 2 for u, y in zip(w, rows.y, strict=True))
        # values are rounded before directions are compared
        rounding = sum(map(Fraction, w)) * Fraction(math.ulp(max(abs(float(y)) for y in rows.y))) ** 2
        if chosen > other + least / 10**9 and least > 10**12 * rounding:
            s.expect(f"stairs.increasing is {not s['stairs'].increasing}", "the other direction costs less")


@call("fit of other losses", 5)
def fit_others(s: Script, rng: Generator) -> None:
    kind = pick(rng, OTHERS)
    precise = chance(rng, 0.3)
    rows = draw(s, rng, kind, FEWEST if precise else 300, extreme=False)
    rising = chance(rng, 0.7)
    bounds = bounds_for(rng, rows.y)
    if kind.name == "Logistic":
        bounds = pick(rng, [(-30.0, 30.0), (-3.0, 2.0), (-0.5, 700.0)])
    s.let("stairs", f"sf.fit({rows.given}, increasing={rising}, bounds={bounds!r})")
    is_certified(s, rows, bounds)
    if precise:
        is_best(s, rows, rising, bounds)
    inputs_are_unchanged(s, rows)


@call("fit of other losses to extreme targets", 2)
def fit_extremes(s: Script, rng: Generator) -> None:
    rows = draw(s, rng, pick(rng, EXTREME), FEWEST, extreme=chance(rng, 0.3))
    rising = chance(rng, 0.7)
    s.allows(f"stairs = sf.fit({rows.given}, increasing={rising})")
    try:
        s["stairs"]
    except KeyError:
        return  # an error is allowed here
    is_certified(s, rows)
    if chance(rng, 0.3):
        is_best(s, rows, rising, None)


def is_best(s: Script, rows: Rows, rising: bool, bounds: Any) -> None:
    """Compare the loss and the proven bounds with an optimum that was computed without the package."""
    stairs, w = s["stairs"], rows.w or [1] * len(rows.x)
    problem = Problem(stairs.loss, rows.x, rows.y, w)
    truth = problem.optimum(increasing=rising, bounds=as_interval(bounds))
    cost, most = problem.limit(steps_of(stairs), truth)
    best = [float(step.value) for step in truth.least]
    s.check(
        cost <= most,
        f"np.sum(np.array({w!r}) * stairs.loss.value(stairs.predict(x), y)) <= {as_float(most)!r}",
        f"values {best} from {[step.left for step in truth.least]} on cost less",
    )
    limits = limits_of(truth)
    s.check(limits.hold_for(stairs), limits.source, "lower and upper exclude the optimum")


@call("fit with exposures")
def fit_exposures(s: Script, rng: Generator) -> None:
    rows = draw(s, rng, EXPOSURES, extreme=False)
    s.let("stairs", f"sf.fit({rows.given})")
    is_certified(s, rows)
    n = len(rows.x)
    exposures = [Fraction(e) for e in (rows.parameter * n if len(rows.parameter) == 1 else rows.parameter)]
    w = [Fraction(u) for u in rows.w or [1] * n]
    rates = [Fraction(y) / e for y, e in zip(rows.y, exposures, strict=True)]
    exact = reference.exact_steps(rows.x, rates, [u * e for u, e in zip(w, exposures, strict=True)])
    for number, left in enumerate(s["stairs"].left.tolist()):
        value = reference.step_value(exact, left)
        ulp = 2 * Fraction(math.ulp(float(value)))  # two operations are rounded
        low, high = (Fraction(float(getattr(s["stairs"], end)[number])) for end in ("lower", "upper"))
        s.check(
            low - ulp <= value <= high + ulp,
            f"abs(stairs.values[{number}] - {float(value)!r}) <= {float(ulp)!r}",
            "lower and upper exclude the exact value",
        )


@call("isotonic_regression", 2)
def regress(s: Script, rng: Generator) -> None:
    kind = pick(rng, MEANS[:4])
    n = inputs.number_of_rows(rng, FEW)
    y, w = kind.targets(rng, n), inputs.weights(rng, n, extreme=True)
    s.let("y", column(rng, y))
    rising = chance(rng, 0.7)
    weights = ""
    if w is not None:
        s.let("w", column(rng, w))
        weights = ", weights=w"
    s.let("result", f"sf.isotonic_regression(y{weights}, increasing={rising}, loss=sf.losses.{kind.name}())")
    steps = reference.fitted_steps(list(range(n)), y, w, increasing=rising)
    starts = [0, *(int(step.left) for step in steps[1:]), n]
    s.expect(f"result.blocks.tolist() == {starts!r}", "blocks differ from exact arithmetic")
    s.expect(f"result.x[result.blocks[:-1]].tolist() == {[step.value for step in steps]!r}", "values differ")
    s.expect("np.array_equal(result.x, np.repeat(result.x[result.blocks[:-1]], np.diff(result.blocks)))", "x varies")
    s.expect(f"result.weights.tolist() == {[step.weight for step in steps]!r}", "weights differ")


@call("fit of many rows", 0.5)
def fit_many(s: Script, rng: Generator) -> None:
    """Thousands of rows: the survey, the bucket sort and the threads."""
    n = int(np.exp(rng.uniform(math.log(1000), math.log(300_000))))
    s.let("rng", f"np.random.default_rng({int(rng.integers(2**32))})")
    s.let(
        "x",
        pick(
            rng,
            [
                f"rng.random({n})",
                f"rng.integers(0, {n // 10}, {n})",
                f"np.sort(rng.normal(size={n}))",
                f"rng.normal(size={n}).astype('f4')",
                f"np.exp(9 * rng.normal(size={n}))",
            ],
        ),
    )
    s.let("trend", "np.argsort(np.argsort(x)) / len(x)")
    s.let(
        "y",
        pick(
            rng,
            [
                "rng.random(len(x)) < trend",
                "(rng.random(len(x)) < trend ** 2).astype(float)",
                "np.round(5 * trend + rng.normal(size=len(x)))",
                "np.round(100 * (trend + rng.normal(size=len(x)))) / 64",
                "np.round(1e6 * trend).astype(int)",
            ],
        ),
    )
    w = pick(rng, ["None", "None", "rng.integers(0, 5, len(x))", "rng.integers(1, 9, len(x)) / 4"])
    s.let("w", w)
    rising = chance(rng, 0.8)
    s.let("stairs", f"sf.fit(x, y, sample_weight=w, increasing={rising}, n_threads=1)")
    columns = [None if s[name] is None else s[name].tolist() for name in "xyw"]
    expected = reference.fitted_steps(*columns, increasing=rising)
    for field, attribute in (("left", "left"), ("count", "counts"), ("value", "values")):
        wanted = [getattr(step, field) for step in expected]
        same = getattr(s["stairs"], attribute).tolist() == wanted
        s.check(same, f"stairs.{attribute}.tolist() == {wanted!r}", f"{attribute} are not exact")
    s.run(f"threads.ROWS_EACH = {pick(rng, [500, 1000, 5000])}")
    try:
        s.let("other", f"sf.fit(x, y, sample_weight=w, increasing={rising}, n_threads={pick(rng, [2, 3, 5])})")
        same_steps(s, "stairs", "other", "threads")
        s.expect("np.array_equal(stairs.predict(x, n_threads=3), stairs.predict(x, n_threads=1))", "threads: predict")
    finally:
        s.run("threads.ROWS_EACH = 1 << 18")
    s.let("order", "rng.permutation(len(x))")
    s.let("other", f"sf.fit(x[order], y[order], sample_weight=None if w is None else w[order], increasing={rising})")
    same_steps(s, "stairs", "other", "row order")


@call("invariance", 2)
def invariance(s: Script, rng: Generator) -> None:
    mean = chance(rng, 0.6)
    kind = pick(rng, MEANS[:4]) if mean else pick(rng, OTHERS[1:])
    n = inputs.number_of_rows(rng, FEW)
    x, y, w = inputs.scores(rng, n), kind.targets(rng, n), inputs.weights(rng, n, extreme=False) or [1] * n
    loss, _ = LossKind(kind.name, kind.parameters, kind.targets, per_sample=False, more=kind.more).draw(rng, y)
    s.let("loss", loss)
    s.let("x", f"np.array({x!r})")
    s.let("y", f"np.array({y!r})")
    s.let("w", f"np.array({w!r}, dtype=float)")
    s.let("stairs", "sf.fit(x, y, sample_weight=w, loss=loss)")
    s.let("order", f"np.array({rng.permutation(n).tolist()!r})")
    s.let("other", "sf.fit(x[order], y[order], sample_weight=w[order], loss=loss)")
    same_steps(s, "stairs", "other", "row order")
    s.let("ranks", "np.unique(x, return_inverse=True)[1]")
    s.let("other", "sf.fit(ranks, y, sample_weight=w, loss=loss)")
    for attribute in ("values", "weights", "counts", "lower", "upper"):
        s.expect(f"np.array_equal(stairs.{attribute}, other.{attribute})", f"ranks: {attribute} differ")
    factor = 2.0 ** int(rng.integers(-20, 21))
    s.let("other", f"sf.fit(x, y, sample_weight={factor!r} * w, loss=loss)")
    s.expect("np.array_equal(stairs.values, other.values)", "weights times a power of two: values differ")
    if mean and all(float(u).is_integer() for u in w) and sum(w) < 300:
        s.let("copies", "np.repeat(np.arange(len(x)), w.astype(int))")
        s.let("other", "sf.fit(x[copies], y[copies], loss=loss)")
        for attribute in ("left", "right", "values", "weights"):
            s.expect(f"np.array_equal(stairs.{attribute}, other.{attribute})", f"copies: {attribute} differ")


@call("custom losses", 0.5)
def fit_custom(s: Script, rng: Generator) -> None:
    rows = draw(s, rng, LossKind("SquaredError", None, inputs.reals), 12, extreme=False)
    weights = ", sample_weight=w" if rows.w is not None else ""
    s.run("def slope(z, y):\n    return 2 * (z - y)")
    s.let("stairs", f"sf.fit(x, y{weights}, loss=sf.losses.Custom(slope))")
    exact = reference.exact_steps(rows.x, rows.y, rows.w)
    size = max(abs(float(y)) for y in rows.y)
    for number, left in enumerate(s["stairs"].left.tolist()):
        value = float(reference.step_value(exact, left))
        s.expect(f"abs(stairs.values[{number}] - {value!r}) <= {1e-9 * size!r}", "not the minimiser")
    s.run("def merge(y1, w1, y2, w2):\n    return (y1 * w1 + y2 * w2) / (w1 + w2), w1 + w2")
    s.let("ruled", f"sf.fit(x, y{weights}, loss=sf.losses.UpdateRule(merge))")
    s.expect(f"np.allclose(ruled.predict(x), sf.fit(x, y{weights}).predict(x), rtol=0, atol={1e-9 * size})", "rule")


@call("Anytime")
def anytime(s: Script, rng: Generator) -> None:
    kind = pick(rng, [one for one in OTHERS if one.name in ("Huber", "Expectile", "PseudoHuber", "Power", "Linex")])
    rows = draw(s, rng, kind, FEWEST, extreme=False)
    rising = chance(rng, 0.7)
    s.let("fit", f"sf.Anytime({rows.given}, increasing={rising})")
    for _ in range(int(rng.integers(1, 4))):
        s.run("fit.step()")
        s.expect("(fit.lower <= fit.upper).all()", "lower is above upper")
    s.run("fit.refine(max_rounds=5)")
    s.let("stairs", "fit.staircase()")
    if chance(rng, 0.3):
        problem = Problem(s["stairs"].loss, rows.x, rows.y, rows.w or [1] * len(rows.x))
        truth = problem.optimum(increasing=rising, bounds=(-math.inf, math.inf))
        limits = limits_of(truth)
        s.check(limits.hold_for(s["stairs"]), limits.source, "lower and upper exclude the optimum")


# Using a staircase


@call("predict", 3)
def predict(s: Script, rng: Generator) -> None:
    rows = draw(s, rng, pick(rng, MEANS[:2]), 20)
    rising = chance(rng, 0.7)
    s.let("stairs", f"sf.fit({rows.given}, increasing={rising})")
    n = inputs.number_of_rows(rng, 60)
    queries = [pick(rng, rows.x) if chance(rng, 0.5) else q for q in inputs.scores(rng, n)]
    s.let("queries", column(rng, [float(q) for q in queries]))
    how, outside_how = pick(rng, ["step", "linear", "centered"]), pick(rng, ["clip", "nan", "raise"])
    options = f"interpolation={how!r}, out_of_bounds={outside_how!r}, n_threads={pick(rng, [None, 1, 2])}"
    steps = steps_of(s["stairs"])
    away = [q < steps[0].left or q > steps[-1].right for q in queries]
    if outside_how == "raise" and any(away):
        s.refuses(f"stairs.predict(queries, {options})")
        return
    s.let("found", f"stairs.predict(queries, {options})")
    if how == "step":
        wanted = [reference.step_value(steps, q) for q in queries]
        wanted = [math.nan if off and outside_how == "nan" else v for v, off in zip(wanted, away, strict=True)]
        s.expect(f"np.array_equal(found, {wanted!r}, equal_nan=True)", "predictions differ from the definition")
    elif how == "linear":
        largest = max(abs(step.value) for step in steps)
        for place, (q, off) in enumerate(zip(queries, away, strict=True)):
            if off and outside_how == "nan":
                s.expect(f"np.isnan(found[{place}])", "a query outside is not NaN")
                continue
            exact, value = reference.linear_value(steps, q), Fraction(float(s["found"][place]))
            s.check(
                abs(value - exact) <= 4 * Fraction(math.ulp(largest)),
                f"abs(found[{place}] - {float(exact)!r}) <= {4 * math.ulp(largest)!r}",
                "a prediction is off the line",
            )
    else:
        order = "" if rising else "[::-1]"
        s.let("sorted_queries", "np.sort(np.asarray(queries, dtype=float))")
        s.expect(
            f"(lambda z: (z[1:] >= z[:-1]).all())(stairs.predict(sorted_queries, interpolation='centered'){order})",
            "not monotone",
        )
    s.let("out", pick(rng, [f"np.empty({n})", f"np.empty({3 * n})[::3]", f"np.empty({n}, dtype='f8')[::-1]"]))
    s.run(f"stairs.predict(queries, {options}, out=out)")
    s.expect("np.array_equal(found, out, equal_nan=True)", "`out` differs from the result")
    s.let("one", f"[stairs.predict(q, {options}) for q in np.asarray(queries)]")
    s.expect("np.array_equal(found, one, equal_nan=True)", "single queries differ from an array")


@call("round trips", 2)
def round_trips(s: Script, rng: Generator) -> None:
    rows = draw(s, rng, pick(rng, MEANS + OTHERS[1:]), 20, extreme=False)
    s.let("stairs", f"sf.fit({rows.given}, increasing={chance(rng, 0.7)})")
    for text in (
        "sf.Staircase.from_json(stairs.to_json())",
        "pickle.loads(pickle.dumps(stairs))",
        "copy.deepcopy(stairs)",
    ):
        s.let("other", text)
        s.expect("other == stairs", "the staircase changed in a round trip")
        same_steps(s, "stairs", "other", "round trip")
    s.run(
        "with tempfile.TemporaryDirectory() as folder:\n    stairs.save(folder + '/stairs.json')\n"
        "    other = sf.Staircase.load(folder + '/stairs.json')"
    )
    s.expect("other == stairs", "the staircase changed when it was saved and loaded")
    s.expect("isinstance(stairs.to_sql('score'), str) and isinstance(repr(stairs), str)", "no text")


@call("certify", 2)
def certify(s: Script, rng: Generator) -> None:
    """A staircase that is not optimal: its gap must be at least the true excess loss."""
    rows = draw(s, rng, LossKind("SquaredError", None, inputs.reals), 12, extreme=False)
    s.let("stairs", f"sf.fit({rows.given})")
    steps = reference.exact_steps(rows.x, rows.y, rows.w)
    size = max(abs(float(y)) for y in rows.y) or 1.0
    change = pick(rng, [1e-12, 1e-9, 1e-3, 1.0]) * size
    values = sorted({float(v) + change * float(rng.normal()) for v in s["stairs"].values})
    s.let("left", f"stairs.left[:{len(values)}]")
    s.let(
        "other",
        f"sf.Staircase(left, stairs.right[:{len(values)}], {values!r}, "
        f"stairs.weights[:{len(values)}], stairs.counts[:{len(values)}])",
    )
    s.let("certificate", f"sf.certify(other, {rows.given})")
    w = [Fraction(u) for u in rows.w or [1] * len(rows.x)]
    own = [reference.Step(left, left, v, 1.0, 1) for left, v in zip(s["left"].tolist(), values, strict=True)]

    def cost(found: list[reference.Step]) -> Fraction:
        return sum(
            u * (Fraction(y) - Fraction(reference.step_value(found, x))) ** 2
            for x, y, u in zip(rows.x, rows.y, w, strict=True)
        )

    excess = cost(own) - cost(steps)
    s.expect("certificate.gap >= 0", "the gap is negative")
    s.expect(f"certificate.gap >= {float(excess) * (1 - 1e-9)!r}", "the gap is below the true excess")
    if excess > cost(steps) / 10**6 and excess > 10**6 * sum(w) * Fraction(math.ulp(size)) * Fraction(size):
        s.expect("not certificate.optimal", "a bad staircase is certified")
