"""Random streams, groups, columns and calibrators."""

from fractions import Fraction

import api_inputs as inputs
import numpy as np
import reference
from api_calls import FEW, call, draw, has_steps, same_steps
from api_inputs import HAS, MEANS, OTHERS, LossKind, chance, column, pick
from api_script import Script
from numpy.random import Generator

# Streams


@call("Online", 2)
def online(s: Script, rng: Generator) -> None:
    kind = pick(rng, [*MEANS[:4], OTHERS[1]])
    n = inputs.number_of_rows(rng, FEW)
    x, y = sorted(inputs.scores(rng, n)), kind.targets(rng, n)
    w = inputs.weights(rng, n, extreme=False) or [1] * n
    rising = chance(rng, 0.7)
    loss, _ = LossKind(kind.name, kind.parameters, kind.targets, per_sample=False).draw(rng, y)
    s.let("loss", loss)
    s.let("online", f"sf.Online(loss, increasing={rising})")
    done = 0
    while done < n:
        size = min(int(rng.integers(1, 8)), n - done)
        part = slice(done, done + size)
        done += size
        if chance(rng, 0.5):
            for row in zip(x[part], y[part], w[part], strict=True):
                s.run(f"online.append({', '.join(map(repr, row))})")
        else:
            s.run(f"online.extend({column(rng, x[part])}, {column(rng, y[part])}, {column(rng, w[part])})")
        if any(w[:done]) and chance(rng, 0.3):
            s.run("online.staircase()")
        if chance(rng, 0.1):
            s.let("online", pick(rng, ["pickle.loads(pickle.dumps(online))", "sf.Online.from_json(online.to_json())"]))
    s.let("stairs", "online.staircase()")
    s.let("batch", f"sf.fit({x!r}, {y!r}, sample_weight={w!r}, loss=loss, increasing={rising})")
    if kind.name == "Linex":
        s.expect(f"np.allclose(stairs.predict({x!r}), batch.predict({x!r}), rtol=1e-9, atol=1e-9)", "differs from fit")
    else:
        same_steps(s, "stairs", "batch", "online")
    s.expect(f"online.n_samples == {sum(u > 0 for u in w)}", "rows are miscounted")


@call("Accumulator", 2)
def accumulator(s: Script, rng: Generator) -> None:
    kind = pick(rng, [*MEANS[:4], *MEANS[:1] * 3, OTHERS[3]])
    n = inputs.number_of_rows(rng, FEW)
    x, y, w = inputs.scores(rng, n), [], []
    rising = chance(rng, 0.7)
    s.let("loss", f"sf.losses.{kind.name}()")
    for name in ("seen", "other"):
        s.let(name, f"sf.Accumulator(loss, increasing={rising})")
    while len(y) < n:
        size = min(int(rng.integers(0, 8)), n - len(y))
        some = x[len(y) : len(y) + size]
        more, weighted = (
            kind.targets(rng, size) if size else [],
            inputs.weights(rng, size, extreme=kind.name != "Quantile") if size else None,
        )
        weight_text = f", {column(rng, weighted)}" if weighted is not None and size else ""
        name = pick(rng, ["seen", "seen", "other"])
        if size:
            s.run(f"{name}.add({column(rng, some)}, {column(rng, more)}{weight_text})")
        else:
            s.run(f"{name}.add([], [])")
        y += more
        w += weighted or [1] * size
        if chance(rng, 0.2) and s[name].n_samples:
            s.run(f"{name}.staircase()")
        if chance(rng, 0.1):
            s.let(name, pick(rng, [f"pickle.loads(pickle.dumps({name}))", f"copy.copy({name})"]))
    s.run("seen.merge(other)")
    if chance(rng, 0.2):
        s.run(
            "with tempfile.TemporaryDirectory() as folder:\n    seen.save(folder + '/seen.npz')\n"
            "    seen = sf.Accumulator.load(folder + '/seen.npz')"
        )
    s.let("stairs", "seen.staircase()")
    if kind.name != "Quantile":
        has_steps(s, "stairs", reference.fitted_steps(x, y, w, increasing=rising))
    else:
        s.let("batch", f"sf.fit({x!r}, {y!r}, sample_weight={w!r}, loss=loss, increasing={rising})")
        same_steps(s, "stairs", "batch", "accumulator")
    s.expect(f"seen.n_samples == {sum(u > 0 for u in w)}", "rows are miscounted")


@call("prefix_losses and unimodal_regression")
def prefixes(s: Script, rng: Generator) -> None:
    n = inputs.number_of_rows(rng, 12)
    y, w = inputs.reals(rng, n), inputs.weights(rng, n, extreme=False)
    s.let("y", column(rng, y))
    given = "y"
    if w is not None:
        s.let("w", column(rng, w))
        given = "y, w"
    rising = chance(rng, 0.7)
    sign = 1 if rising else -1
    s.let("losses", f"sf.prefix_losses({given}, increasing={rising})")
    weights = [Fraction(u) for u in w or [1] * n]
    targets = [Fraction(v) for v in y]
    kept = [k for k in range(n) if weights[k] > 0]
    costs = dict(
        zip(kept, reference.prefix_costs([sign * targets[k] for k in kept], [weights[k] for k in kept]), strict=True)
    )
    wanted, last = [], 0.0
    for k in range(n):
        last = float(costs.get(k, last))
        wanted.append(last)
    size = float(sum(u * v * v for u, v in zip(weights, targets, strict=True)))
    s.expect(f"np.allclose(losses, {wanted!r}, rtol=1e-9, atol={1e-14 * size!r})", "losses differ")
    s.let("result", f"sf.unimodal_regression({given})")
    best = min(
        reference.squared_cost([targets[k] for k in kept], [weights[k] for k in kept], fitted)
        for fitted in reference.unimodal_fits([targets[k] for k in kept], [weights[k] for k in kept])
    )
    own = sum(u * (v - Fraction(z)) ** 2 for u, v, z in zip(weights, targets, s["result"].x.tolist(), strict=True))
    most = best * (1 + Fraction(1, 10**9)) + Fraction(1e-14 * size)
    s.check(
        own <= most,
        f"np.sum({w or 1!r} * (np.asarray(y) - result.x) ** 2) <= {float(most)!r}",
        "another sequence costs less",
    )
    s.expect(
        "(np.diff(result.x[:result.peak + 1]) >= 0).all() and (np.diff(result.x[result.peak:]) <= 0).all()",
        "the sequence is not unimodal",
    )


# Groups and columns


@call("fit_groups", 2)
def groups(s: Script, rng: Generator) -> None:
    kind = pick(rng, [*MEANS, OTHERS[3], OTHERS[6]])
    rows = draw(s, rng, kind, extreme=False)
    n = len(rows.x)
    keys = pick(rng, [[0, 1, 2], [-5, 10**12], ["a", "b", ""], [True, False], [7]])
    labels = [pick(rng, keys) for _ in range(n)]
    if rows.w is not None:  # each group needs a row with a positive weight
        labels = [label if u > 0 else labels[int(np.argmax(rows.w))] for label, u in zip(labels, rows.w, strict=True)]
    s.let("groups", repr(labels) if chance(rng, 0.5) else f"np.array({labels!r})")
    rising = pick(rng, [True, True, False, "auto"])
    s.let(
        "found",
        f"sf.fit_groups({rows.given.replace('x, y', 'x, y, groups', 1)}, increasing={rising!r})",
    )
    s.expect(f"list(found) == {sorted(set(labels))!r}", "keys differ")
    for key in sorted(set(labels)):
        own = [k for k in range(n) if labels[k] == key]
        parts = [[column_[k] for k in own] for column_ in (rows.x, rows.y)]
        weights = None if rows.w is None else [rows.w[k] for k in own]
        s.let("chosen", repr(own))
        s.let("loss", rows.loss)
        s.let(
            "single",
            f"sf.fit({parts[0]!r}, {parts[1]!r}, sample_weight={weights!r}, "
            f"loss=loss.of_rows(np.array(chosen)) if loss.per_sample else loss, increasing={rising!r})",
        )
        s.let("group", f"found[{key!r}]")
        same_steps(s, "single", "group", f"group {key!r}")
        s.expect("single.increasing == group.increasing", "directions differ")
    s.let("predicted", "found.predict(x, groups)")
    s.expect(
        f"np.array_equal(predicted, [found[key].predict(score) for score, key in zip({rows.x!r}, {labels!r})])",
        "predictions of groups differ",
    )
    s.let("other", "pickle.loads(pickle.dumps(found))")
    s.expect("other == found", "the object changed in a round trip")
    s.run(
        "with tempfile.TemporaryDirectory() as folder:\n    found.save(folder + '/map.npz')\n"
        "    other = sf.StaircaseMap.load(folder + '/map.npz')"
    )
    s.expect("other == found", "the object changed when it was saved and loaded")


@call("fit_columns")
def columns(s: Script, rng: Generator) -> None:
    kind = pick(rng, [*MEANS[:4], OTHERS[3]])
    n, k = inputs.number_of_rows(rng, 20), int(rng.integers(1, 4))
    x, y = (
        [list(row) for row in zip(*(draw_one(rng, n) for _ in range(k)), strict=True)]
        for draw_one in (inputs.scores, kind.targets)
    )
    layout = pick(rng, ["", ", order='F'"])
    s.let("x", f"np.array({x!r}, dtype=float{layout})")
    s.let("y", f"np.array({y!r}, dtype=float{layout})")
    s.let("found", f"sf.fit_columns(x, y, loss=sf.losses.{kind.name}())")
    for j in range(k):
        s.let("group", f"found[{j}]")
        s.let("single", f"sf.fit(x[:, {j}], y[:, {j}], loss=sf.losses.{kind.name}())")
        same_steps(s, "single", "group", f"column {j}")
    s.expect(
        "np.array_equal(found.predict_columns(x), np.stack([found[j](x[:, j]) for j in range(x.shape[1])], axis=1))",
        "predictions of columns differ",
    )


# Calibration


@call("reliability")
def reliability(s: Script, rng: Generator) -> None:
    n = inputs.number_of_rows(rng, 30)
    x = np.round(rng.random(n), int(rng.integers(1, 4))).tolist()
    y, w = rng.integers(0, 2, n).tolist(), inputs.weights(rng, n, extreme=False)
    s.let("x", column(rng, x))
    s.let("y", column(rng, y))
    s.let("w", column(rng, w) if w is not None else "None")
    score = pick(rng, ["brier", "brier", "log"])
    if w is not None and max(w) > 2**50 * min(u for u in w if u > 0):
        score = "brier"  # a frequency may round to 0 or 1, whose log score is infinite: an error
    seed = int(rng.integers(2**32))
    whole = w is None or all(u == int(u) <= 2**53 for u in w)
    bands = pick(rng, [None, "consistency", *(["confidence", "pointwise"] if whole else [])])
    options = f"score={score!r}, bands={bands!r}, n_resamples={int(rng.integers(1, 30))}, seed={seed}"
    s.let("found", f"sf.reliability(x, y, sample_weight=w, {options})")
    s.expect("found.miscalibration >= 0 and found.discrimination >= 0", "a component is negative")
    s.expect(
        "np.isinf(found.mean_score) or np.isclose(found.mean_score, "
        "found.miscalibration - found.discrimination + found.uncertainty, rtol=1e-9, atol=1e-12)",
        "the components do not add up",
    )
    if score == "brier":
        parts = [float(part) for part in reference.squared_parts(x, y, w)]
        s.expect(
            f"np.allclose([found.mean_score, found.mcb, found.dsc, found.unc], {parts!r}, rtol=1e-9, atol=1e-12)",
            "the components differ from exact arithmetic",
        )
    if bands:
        s.expect("(found.bands.lower <= found.bands.upper).all()", "bands are crossed")
        s.let("again", f"sf.reliability(x, y, sample_weight=w, {options}, n_threads=2)")
        s.expect("again == found", "bands depend on the number of threads")
    s.expect("json.loads(json.dumps(found.to_dict()))['n_samples'] == found.n_samples", "the dictionary differs")


@call("VennAbers", 2)
def venn_abers(s: Script, rng: Generator) -> None:
    n = inputs.number_of_rows(rng, 12)
    x, y, w = inputs.scores(rng, n), rng.integers(0, 2, n).tolist(), inputs.weights(rng, n, extreme=chance(rng, 0.2))
    query_weight = pick(rng, [1.0, 1.0, 0.5, 3.0])
    s.let(
        "venn",
        f"sf.VennAbers({query_weight}).fit({column(rng, x)}, {column(rng, y)}, {column(rng, w) if w else None})",
    )
    queries = [float(pick(rng, x)) if chance(rng, 0.5) else float(q) for q in inputs.scores(rng, 6)]
    s.let("pair", f"venn.predict({queries!r})")
    wanted = [reference.venn_abers(x, y, w, q, Fraction(query_weight)) for q in queries]
    for place, name in enumerate(("p0", "p1")):
        exact = [reference.nearest_float(one[place]) for one in wanted]
        s.expect(f"pair.{name}.tolist() == {exact!r}", f"{name} differs from the definition")
    s.let("merged", f"venn.merge({queries!r}, rule={pick(rng, ['log', 'brier'])!r})")
    s.expect("(pair.p0 <= merged).all() and (merged <= pair.p1).all()", "the merged value is outside the pair")
    for text in ("sf.VennAbers.from_json(venn.to_json())", "pickle.loads(pickle.dumps(venn))"):
        s.let("other", text)
        s.expect("other == venn", "the object changed in a round trip")
    folds = [k % 2 for k in range(n)]
    if n > 1 and (w is None or all(u > 0 for u in w)):
        s.let("cross", f"sf.CrossVennAbers().fit({x!r}, {y!r}, {folds!r}, {w!r})")
        s.expect("sf.CrossVennAbers.from_json(cross.to_json()) == cross", "the cross predictor changed in a round trip")
        s.expect(f"((cross.merge({queries!r}) >= 0) & (cross.merge({queries!r}) <= 1)).all()", "not a probability")


@call("scikit-learn estimators", 0.5)
def estimators(s: Script, rng: Generator) -> None:
    if not HAS["sklearn"]:
        return
    n = inputs.number_of_rows(rng, 30) + 3
    x = [float(v) for v in np.round(rng.normal(size=n), int(rng.integers(0, 3))).tolist()]
    y, w = inputs.reals(rng, n), inputs.weights(rng, n, extreme=False) or [1] * n
    s.let("x", f"np.array({x!r})")
    s.let("y", f"np.array({y!r})")
    s.let("w", f"np.array({w!r}, dtype=float)")
    s.let("model", f"skl.StaircaseRegressor(out_of_bounds='clip', interpolation={pick(rng, ['step', 'linear'])!r})")
    s.run("model.fit(x, y, sample_weight=w)")
    same_steps(s, "model.staircase_", "sf.fit(x, y, sample_weight=w)", "regressor")
    s.let("expected", "sf.fit(x, y, sample_weight=w).predict(x, interpolation=model.interpolation)")
    s.expect("np.array_equal(model.predict(x), expected)", "predictions differ")
    cut = int(rng.integers(1, n))
    s.let("batched", "skl.StaircaseRegressor()")
    if any(w[:cut]):
        s.run(f"batched.partial_fit(x[:{cut}], y[:{cut}], w[:{cut}]).partial_fit(x[{cut}:], y[{cut}:], w[{cut}:])")
        same_steps(s, "model.staircase_", "batched.staircase_", "partial_fit")
    labels = rng.integers(0, int(rng.integers(2, 4)), n).tolist()
    labels[:2] = [0, 1]
    s.let("labels", f"np.array({labels!r})")
    classes = len(set(labels))
    scores = "x" if classes == 2 else f"np.random.default_rng(0).random((len(x), {classes}))"
    s.let("scores", scores)
    s.let("calibrator", f"skl.StaircaseCalibrator(prior={pick(rng, ['none', 'laplace', 'jeffreys'])!r})")
    s.let("p", "calibrator.fit(scores, labels).predict_proba(scores)")
    s.expect("np.allclose(p.sum(axis=1), 1) and (p >= 0).all()", "probabilities do not sum to 1")
