"""The optimal staircase in plain Python: slow, but obviously correct.

Only the tests use it.  The package has no pure-Python fallback, because two versions of the same code drift apart.  A
reference that only has to be correct can stay close to the paper.

The first half works on any numbers that add, multiply, divide and compare.  With `Fraction`, results are exact; with
float, they are rounded.  It covers the paper's direct method (section IV-A) and its update rules (IV-B), both round by
round, the stack, the max-min formula, and the conditions for optimality.  The second half is what `fit` guarantees for
raw rows: exact `Fraction` steps, their rounding, and their evaluation.  All inputs are sequences of Python numbers.
Every finite float converts exactly to a `Fraction`.
"""

import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, NamedTuple

Number = Any  # Fraction, int or float
Bounds = tuple[float | None, float | None]


class Grouping(NamedTuple):
    """Groups of consecutive samples, and the minimiser of each group."""

    groups: list[range]
    minimisers: list[Number]

    def fitted(self) -> list[Number]:
        """The value of every sample."""
        return [minimiser for group, minimiser in zip(self.groups, self.minimisers, strict=True) for _ in group]


def weighted_mean(targets: Sequence[Number], weights: Sequence[Number]) -> Number:
    """The minimiser of the weighted square error; also F, the paper's update rule for it."""
    return sum(w * y for w, y in zip(weights, targets, strict=True)) / sum(weights)


def total_weight(targets: Sequence[Number], weights: Sequence[Number]) -> Number:
    """G, the paper's update rule of the auxiliary variable for the weighted square error."""
    return sum(weights)


def violating_runs(values: Sequence[Number]) -> list[range]:
    """The maximal runs of consecutive values in which each value is >= the next."""
    starts = [i for i in range(len(values)) if i == 0 or values[i - 1] < values[i]]
    return [range(a, b) for a, b in zip(starts, [*starts[1:], len(values)], strict=True)]


def direct_rounds(targets: Sequence[Number], weights: Sequence[Number]) -> list[Grouping]:
    """Section IV-A: merge all violating neighbours, minimise again from the samples, repeat."""
    rounds = []
    groups = [range(n, n + 1) for n in range(len(targets))]
    while True:
        minimisers = [weighted_mean([targets[n] for n in group], [weights[n] for n in group]) for group in groups]
        rounds.append(Grouping(groups, minimisers))
        runs = violating_runs(minimisers)
        if len(runs) == len(groups):
            return rounds
        groups = [range(groups[run[0]].start, groups[run[-1]].stop) for run in runs]


def update_rounds(
    targets: Sequence[Number],
    weights: Sequence[Number],
    minimiser: Callable[..., Number] = weighted_mean,
    auxiliary: Callable[..., Number] = total_weight,
) -> list[list[tuple[Number, Number]]]:
    """Section IV-B: the same rounds, with only one pair (y, lambda) per group."""
    pairs = list(zip(targets, weights, strict=True))
    rounds = [pairs]
    while True:
        runs = violating_runs([y for y, _ in pairs])
        if len(runs) == len(pairs):
            return rounds
        pairs = [
            (minimiser(*zip(*members, strict=True)), auxiliary(*zip(*members, strict=True)))
            if len(members) > 1
            else members[0]
            for members in (pairs[run.start : run.stop] for run in runs)
        ]
        rounds.append(pairs)


def stack(targets: Sequence[Number], weights: Sequence[Number]) -> Grouping:
    """One pass over the samples: push each as a block, merge while the last two blocks violate."""
    blocks: list[tuple[range, Number, Number]] = []  # samples, sum of w * y, sum of w
    for n, (y, w) in enumerate(zip(targets, weights, strict=True)):
        samples, s, w_sum = range(n, n + 1), w * y, w
        while blocks and blocks[-1][1] / blocks[-1][2] >= s / w_sum:
            before, s_before, w_before = blocks.pop()
            samples, s, w_sum = range(before.start, n + 1), s_before + s, w_before + w_sum
        blocks.append((samples, s, w_sum))
    return Grouping([b[0] for b in blocks], [s / w_sum for _, s, w_sum in blocks])


def max_min(targets: Sequence[Number], weights: Sequence[Number]) -> list[Number]:
    """The value of sample n: max over j <= n of min over k >= n of the mean of samples j..k."""
    size = len(targets)
    fitted = [None] * size
    for j in range(size):
        s, w_sum = 0 * targets[j], 0 * weights[j]
        means = []
        for k in range(j, size):
            s, w_sum = s + weights[k] * targets[k], w_sum + weights[k]
            means.append(s / w_sum)
        least = means[-1]
        for n in range(size - 1, j - 1, -1):
            least = min(least, means[n - j])
            fitted[n] = least if fitted[n] is None else max(fitted[n], least)
    return fitted


def is_optimal(
    targets: Sequence[Fraction],
    weights: Sequence[Fraction],
    fitted: Sequence[Fraction],
    errors: Sequence[Fraction] | None = None,
) -> bool:
    """Check the conditions for optimality of an increasing fit.

    With P_n = sum over m <= n of -l'_m(z_m) = w_m (y_m - z_m), up to a factor, z is optimal if and only if it is
    monotone, P_n >= 0 everywhere and P_n = 0 at the end of each step.  `errors` is the greatest rounding error of each
    z; P_n may violate the conditions by as much as these errors cause.
    """
    errors = [Fraction(0)] * len(targets) if errors is None else errors
    p = slack = Fraction(0)
    for n, (y, w, z) in enumerate(zip(targets, weights, fitted, strict=True)):
        p += w * (y - z)
        slack += w * errors[n]
        last = n == len(fitted) - 1
        if p < -slack or (not last and z > fitted[n + 1]):
            return False
        if (last or z < fitted[n + 1]) and p > slack:
            return False
    return True


class Step(NamedTuple):
    """One step of a staircase.  Value and weight are `Fraction` before rounding and float after it."""

    left: float
    right: float
    value: Number
    weight: Number
    count: int


def pooled(scores: Sequence[float], targets: Sequence[Number], weights: Sequence[Number] | None = None) -> list[Step]:
    """One step per distinct score.  Rows with weight 0 are ignored, and equal scores are pooled."""
    weights = [1] * len(scores) if weights is None else weights
    rows = [(score, Fraction(y), Fraction(w)) for score, y, w in zip(scores, targets, weights, strict=True) if w > 0]
    by_score: dict[float, list[tuple[Fraction, Fraction]]] = {}
    for score, y, w in rows:
        by_score.setdefault(score, []).append((y, w))
    return [
        Step(
            score,
            score,
            weighted_mean(*zip(*tied, strict=True)),
            sum(w for _, w in tied),
            len(tied),
        )
        for score, tied in sorted(by_score.items())
    ]


def exact_steps(
    scores: Sequence[float],
    targets: Sequence[Number],
    weights: Sequence[Number] | None = None,
    *,
    increasing: bool = True,
) -> list[Step]:
    """The staircase in exact rational arithmetic."""
    sign = 1 if increasing else -1
    points = pooled(scores, targets, weights)
    best = stack([sign * p.value for p in points], [p.weight for p in points])
    return [
        Step(
            points[group[0]].left,
            points[group[-1]].right,
            sign * value,
            sum(points[n].weight for n in group),
            sum(points[n].count for n in group),
        )
        for group, value in zip(best.groups, best.minimisers, strict=True)
    ]


def nearest_float(value: Fraction) -> float:
    """Round to nearest, ties to even, as the division of Python integers does; zero is +0.0."""
    return value.numerator / value.denominator + 0.0


def half_an_ulp(value: Fraction) -> Fraction:
    """The greatest distance of a value from an exact value that rounds to it."""
    return Fraction(math.ulp(value)) / 2


def joined(steps: Sequence[Step]) -> list[Step]:
    """Merge neighbouring steps with equal values."""
    result: list[Step] = []
    for step in steps:
        if result and result[-1].value == step.value:
            before = result[-1]
            result[-1] = before._replace(
                right=step.right,
                weight=before.weight + step.weight,
                count=before.count + step.count,
            )
        else:
            result.append(step)
    return result


def rounded_steps(steps: Sequence[Step], bounds: Bounds | None = None) -> list[Step]:
    """The steps that `fit` returns: float64 values within the bounds, strictly monotone."""
    lo, hi = bounds or (None, None)
    lo = -math.inf if lo is None else lo + 0.0
    hi = math.inf if hi is None else hi + 0.0
    clipped = [s._replace(value=min(max(nearest_float(s.value), lo), hi)) for s in steps]
    return [s._replace(weight=nearest_float(s.weight)) for s in joined(clipped)]


def fitted_steps(
    scores: Sequence[float],
    targets: Sequence[Number],
    weights: Sequence[Number] | None = None,
    *,
    increasing: bool = True,
    bounds: Bounds | None = None,
) -> list[Step]:
    """The steps that `fit` must return."""
    return rounded_steps(exact_steps(scores, targets, weights, increasing=increasing), bounds)


def step_value(steps: Sequence[Step], query: float) -> float:
    """The value of the last step whose left end is <= query; the first value below all steps."""
    reached = [step for step in steps if step.left <= query]
    return (reached or steps[:1])[-1].value


def linear_value(steps: Sequence[Step], query: float) -> Fraction:
    """Exact straight lines through both ends of each step; constant outside the observed scores."""
    reached = [step for step in steps if step.left <= query]
    ahead = steps[len(reached) :]
    if not reached or not ahead or query <= reached[-1].right:
        return Fraction(step_value(steps, query))
    a, b = reached[-1], ahead[0]
    low, high = Fraction(a.value), Fraction(b.value)
    match math.isinf(a.right), math.isinf(b.left):
        case True, True:
            return (low + high) / 2
        case True, False:
            return high
        case False, True:
            return low
    x, left, right = Fraction(query), Fraction(a.right), Fraction(b.left)
    return low + (high - low) * (x - left) / (right - left)


# Any convex loss: section VI of the paper, and a solver that uses only the signs of sums of derivatives.


class Bounded(NamedTuple):
    """A group of section VI: consecutive samples, the bounds on their value, and the last D."""

    samples: range
    A: Number  # the upper bound
    B: Number  # the lower bound
    D: Number = None


def anytime_rounds(
    derivatives: Sequence[Callable[[Number], Number]], A: Number, B: Number, n_rounds: int
) -> list[list[Bounded]]:
    """Section VI, Steps 1 to 5 as in the paper: the groups after each round.

    `derivatives` are the l'_n, one per sample.  With `Fraction` nothing is rounded.
    """
    groups = [Bounded(range(n, n + 1), A, B) for n in range(len(derivatives))]  # Step 1
    rounds = []
    for _ in range(n_rounds):
        # Step 2; groups whose bounds are equal are no longer evaluated, merged or changed
        cuts = [(g.A + g.B) / 2 for g in groups]
        slopes = [
            -sum(derivatives[n](c) for n in g.samples) if g.A != g.B else None
            for g, c in zip(groups, cuts, strict=True)
        ]
        groups = [g._replace(D=d) for g, d in zip(groups, slopes, strict=True)]
        while (i := _first_pair_to_join(groups)) is not None:  # Step 3
            one, two = groups[i], groups[i + 1]
            both = Bounded(range(one.samples.start, two.samples.stop), one.A, one.B, one.D + two.D)
            groups[i : i + 2] = [both]
        groups = [_halved(g) for g in groups]  # Step 4
        rounds.append(groups)
    return rounds


def _first_pair_to_join(groups: Sequence[Bounded]) -> int | None:
    for i, (one, two) in enumerate(pairwise(groups)):
        if one.D is None or two.D is None:
            continue
        if (one.A, one.B) == (two.A, two.B) and one.D >= 0 >= two.D:
            return i
    return None


def _halved(group: Bounded) -> Bounded:
    if group.D is None:
        return group._replace(D=0)
    C = (group.A + group.B) / 2
    return group._replace(B=C if group.D >= 0 else group.B, A=C if group.D <= 0 else group.A)


def rank_of(x: float) -> int:
    """The number of floats between 0 and x, with the sign of x; both zeros have rank 0."""
    bits = struct.unpack("<q", struct.pack("<d", x))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def float_of(rank: int) -> float:
    """The float with this rank."""
    return math.copysign(struct.unpack("<d", struct.pack("<q", abs(rank)))[0], rank)


def first_float(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least float in [low, high] for which a monotone condition holds; it must hold at `high`."""
    lo, hi = rank_of(low) - 1, rank_of(high)
    while hi - lo > 1:
        middle = (lo + hi) // 2
        lo, hi = (lo, middle) if holds(float_of(middle)) else (middle, hi)
    return float_of(hi)


class Sample(NamedTuple):
    """A row for the general solver.  Where the derivative of its loss jumps, `derivative` is the right one."""

    score: float
    weight: Number
    derivative: Callable[[float], Number]


def general_steps(
    samples: Sequence[Sample],
    low: float,
    high: float,
    *,
    increasing: bool = True,
    greatest: bool = False,
) -> list[Step]:
    """The staircase of any convex losses with minimisers in [low, high], each value rounded *up* to a float.

    The value of a block is the least float at which its summed derivative is >= 0, found by bisection over the floats.
    The sum uses the number type of the derivatives (use mpmath).  The true minimiser is that float, or lies between it
    and the float before it.  With `greatest`, the value is the least float at which the sum is > 0: if the minimisers
    form an interval, this is its end (up to one float) instead of its start.

    Rounding up is monotone.  So the merged blocks (left value >= right value, after rounding) are those of the exact
    optimum, and those whose exact values round to the same float.
    """
    by_score: dict[float, list[Sample]] = {}
    for sample in samples:
        if sample.weight > 0:
            by_score.setdefault(sample.score, []).append(sample)
    blocks: list[tuple[list[Sample], float]] = []

    def minimiser(members: list[Sample]) -> float:
        def risen(z: float) -> bool:
            total = sum(s.weight * s.derivative(z) for s in members)
            return total > 0 if greatest else total >= 0

        return first_float(risen, low, high)

    for _, members in sorted(by_score.items(), reverse=not increasing):
        value = minimiser(members)
        while blocks and blocks[-1][1] >= value:
            members = blocks.pop()[0] + members  # noqa: PLW2901
            value = minimiser(members)
        blocks.append((members, value))
    steps = [
        Step(
            min(s.score for s in members),
            max(s.score for s in members),
            value,
            sum(s.weight for s in members),
            len(members),
        )
        for members, value in blocks
    ]
    return steps if increasing else steps[::-1]


def middle_steps(least: Sequence[Step], greatest: Sequence[Step], scores: Sequence[float]) -> list[tuple[float, float]]:
    """(score, value) pairs of the mean of two staircases."""
    return [
        (score, float((Fraction(step_value(least, score)) + Fraction(step_value(greatest, score))) / 2))
        for score in sorted(set(scores))
    ]


def is_between(
    samples: Sequence[Sample], lower: Sequence[Number], upper: Sequence[Number], *, greatest: bool = False
) -> list[bool]:
    """Whether the optimal value of each sample, in score order, is in [lower, upper]; uses only sums of derivatives.

    With P_j = sum over n <= j of -l'_n(C), samples after the last argmin of P have values above C (at or above C,
    after the first argmin), and samples before it have values of at most C.  Samples with equal scores belong together.
    If the losses are not strictly convex, the least optimum is meant; with `greatest`, the greatest.
    """

    def above(c: Number) -> list[bool]:
        """For each sample, whether its value is above c."""
        total, best, last = 0, 0, 0
        for j, s in enumerate(samples):
            total += -s.weight * s.derivative(c)
            ends = j + 1 == len(samples) or samples[j + 1].score != s.score
            if ends and (total < best or (total == best and not greatest)):
                best, last = total, j + 1
        return [j >= last for j in range(len(samples))]

    known: dict[Number, list[bool]] = {}
    result = []
    for j, (lo, hi) in enumerate(zip(lower, upper, strict=True)):
        for c in (lo, hi):
            if c not in known:
                known[c] = above(c)
        result.append((known[lo][j] or lo == hi) and not known[hi][j])
    return result


# Losses of prefixes, and unimodal sequences.


def prefix_costs(targets: Sequence[Number], weights: Sequence[Number]) -> list[Number]:
    """The least weighted squared error of an increasing fit to each prefix; each prefix is fitted separately."""
    costs = []
    for n in range(1, len(targets) + 1):
        fitted = stack(targets[:n], weights[:n]).fitted()
        costs.append(squared_cost(targets[:n], weights[:n], fitted))
    return costs


def squared_cost(targets: Sequence[Number], weights: Sequence[Number], fitted: Sequence[Number]) -> Number:
    return sum(w * (y - z) ** 2 for y, w, z in zip(targets, weights, fitted, strict=True))


def unimodal_fits(targets: Sequence[Number], weights: Sequence[Number]) -> list[list[Number]]:
    """For each peak p, the best sequence that rises up to p and falls after it.

    The entries before the peak, and the reversed entries after it, are two branches that rise towards the peak.  Brute
    force: both branches are fitted separately and clipped to each candidate for the value of the peak.  Between two
    values of the branches, the cost is a parabola in the value of the peak.
    """
    return [_fit_around(targets, weights, peak) for peak in range(len(targets))]


def _fit_around(targets: Sequence[Number], weights: Sequence[Number], peak: int) -> list[Number]:
    left = stack(targets[:peak], weights[:peak]).fitted()
    right = stack(targets[peak + 1 :][::-1], weights[peak + 1 :][::-1]).fitted()[::-1]

    def clipped(top: Number) -> list[Number]:
        return [min(z, top) for z in left] + [top] + [min(z, top) for z in right]

    # candidates: the values of the branches, and the mean of the peak and all entries that a candidate clips
    bends = sorted({*left, *right})
    tops = {targets[peak], *bends}
    for bend in [*bends, None]:
        members = [
            n for n in range(len(targets)) if n == peak or (bend is not None and [*left, None, *right][n] >= bend)
        ]
        tops.add(weighted_mean([targets[n] for n in members], [weights[n] for n in members]))
    return min((clipped(top) for top in sorted(tops)), key=lambda z: squared_cost(targets, weights, z))


def squared_parts(
    forecasts: Sequence[float], targets: Sequence[Number], weights: Sequence[Number] | None = None
) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """The mean squared error of forecasts, and its miscalibration, discrimination and uncertainty."""
    steps = exact_steps(forecasts, targets, weights)
    rows = [
        (Fraction(x), Fraction(y), Fraction(w))
        for x, y, w in zip(forecasts, targets, weights or [1] * len(targets), strict=True)
        if w > 0
    ]
    total = sum(w for _, _, w in rows)
    mean = sum(w * y for _, y, w in rows) / total
    own = sum(w * (x - y) ** 2 for x, y, w in rows) / total
    recalibrated = sum(w * (step_value(steps, float(x)) - y) ** 2 for x, y, w in rows) / total
    constant = sum(w * (mean - y) ** 2 for _, y, w in rows) / total
    return own, own - recalibrated, constant - recalibrated, constant


def simulated_means(forecasts: Sequence[float], weights: Sequence[Number] | None = None) -> list[Fraction]:
    """The expected staircase at each forecast, if labels are 1 with the forecast probability."""
    sums = [Fraction(0)] * len(forecasts)
    for labels in product((0, 1), repeat=len(forecasts)):
        chance = math.prod(Fraction(x) if y else 1 - Fraction(x) for x, y in zip(forecasts, labels, strict=True))
        steps = exact_steps(forecasts, labels, weights)
        sums = [total + chance * step_value(steps, x) for total, x in zip(sums, forecasts, strict=True)]
    return sums


def steps_with_prior(steps: Sequence[Step], pseudo_count: Fraction) -> list[tuple[float, float, Fraction]]:
    """Exact left, right and posterior mean of increasing steps, pooled in rounds until they strictly increase.

    A round pools each maximal run that does not increase.
    """
    parts = [[step] for step in steps]

    def mean(part: Sequence[Step]) -> Fraction:
        weight = sum(Fraction(step.weight) for step in part)
        successes = sum(Fraction(step.value) * Fraction(step.weight) for step in part)
        return (successes + pseudo_count) / (weight + 2 * pseudo_count)

    while len(runs := violating_runs([mean(part) for part in parts])) < len(parts):
        parts = [[step for place in run for step in parts[place]] for run in runs]
    return [(part[0].left, part[-1].right, mean(part)) for part in parts]


# Venn-Abers by definition: one fit for each query and label.


def venn_abers(
    scores: Sequence[float],
    labels: Sequence[Number],
    weights: Sequence[Number] | None,
    query: float,
    query_weight: Number = 1,
) -> tuple[Fraction, Fraction]:
    """The values at the query of two exact fits of all rows and the query: with its label 0, and with 1."""
    weights = [1] * len(scores) if weights is None else weights
    p0, p1 = (
        step_value(exact_steps([*scores, query], [*labels, label], [*weights, query_weight]), query) for label in (0, 1)
    )
    return p0, p1


def merged_folds(pairs: Sequence[tuple[float, float]], rule: str) -> float:
    """One probability for the pairs (p0, p1) of all folds, as in the paper on Venn-Abers predictors."""
    if rule == "brier":
        return sum(p1 + p0**2 / 2 - p1**2 / 2 for p0, p1 in pairs) / len(pairs)
    one = math.prod(p1 for _, p1 in pairs) ** (1 / len(pairs))
    zero = math.prod(1 - p0 for p0, _ in pairs) ** (1 / len(pairs))
    return one / (zero + one)
