"""Certify random fits under every loss, with targets of every scale.

    python tests/safety/certify_scales.py [fits per cell] [seed]

Prints the number of certified fits, with one row per loss and one column per scale of the targets.  Each fit that fails
is printed as a script that repeats it.  The exit status is 1 if there is one.

Targets have offsets, ties and weights at random.  Parameters in the unit of the targets (`delta`, `scale`) are scaled
with the targets or not, at random.
"""

import math
import pathlib
import sys

import numpy as np
from numpy.random import Generator

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from problems import Problem, scores_of, weights_of

import staircase_fast as sf

L = sf.losses
SCALES = (1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e4, 1e5, 1e6, 1e9, 1e12)
SIZES = (2, 5, 20, 200)


def normal(rng: Generator, n: int) -> np.ndarray:
    y = rng.choice([0.0, 1.0]) * np.arange(n) / n + rng.choice([0.0, 1.0, 100.0]) + rng.normal(size=n)
    return np.round(y, 1) if rng.random() < 0.3 else y


def cauchy(rng: Generator, n: int) -> np.ndarray:
    return rng.standard_cauchy(n)


def positive(rng: Generator, n: int) -> np.ndarray:
    return np.exp(rng.choice([0.1, 3.0]) * rng.normal(size=n))


def shares(rng: Generator, n: int) -> np.ndarray:
    y = rng.random(n) if rng.random() < 0.5 else (rng.random(n) < 0.5).astype(float)
    return np.clip(y, 0.0, 1.0)


def either(rng: Generator, scale: float) -> float:
    """A parameter that is scaled with the targets, or not, at random."""
    return float(rng.choice([0.1, 1.0, 10.0])) * (scale if rng.random() < 0.5 else 1.0)


def one_sign(rng: Generator) -> float:
    return float(rng.choice([-1.0, 1.0]))


# Name: the loss for targets of a scale, the targets, and whether the targets are scaled.
CASES = {
    "squared": (lambda rng, n, s: L.SquaredError(), normal, True),
    "log": (lambda rng, n, s: L.LogLoss(), shares, False),
    "poisson": (lambda rng, n, s: L.PoissonDeviance(either(rng, s)), positive, True),
    "poisson, exposures": (lambda rng, n, s: L.PoissonDeviance(positive(rng, n) * s), positive, False),
    "gamma": (lambda rng, n, s: L.GammaDeviance(), positive, True),
    "tweedie 1.5": (lambda rng, n, s: L.TweedieDeviance(1.5), positive, True),
    "tweedie 3": (lambda rng, n, s: L.TweedieDeviance(3), positive, True),
    "logistic": (lambda rng, n, s: L.Logistic(s * rng.normal()), shares, False),
    "logistic, offsets": (lambda rng, n, s: L.Logistic(s * rng.normal(size=n)), shares, False),
    "linex": (lambda rng, n, s: L.Linex(rng.choice([-2.0, 0.1, 1.0]) / either(rng, s)), normal, True),
    "linex, shapes": (lambda rng, n, s: L.Linex(one_sign(rng) * positive(rng, n) / either(rng, s)), normal, True),
    "linex, both signs": (lambda rng, n, s: L.Linex(rng.choice([-1.0, 0.3, 2.0], n) / s), normal, True),
    "expectile": (lambda rng, n, s: L.Expectile(rng.choice([0.01, 0.5, 0.9])), normal, True),
    "expectile, levels": (lambda rng, n, s: L.Expectile(rng.uniform(0.01, 0.99, n)), cauchy, True),
    "quantile": (lambda rng, n, s: L.Quantile(rng.choice([0.1, 0.5, 0.7])), normal, True),
    "quantile middle": (lambda rng, n, s: L.Quantile(0.5, side="middle"), cauchy, True),
    "huber": (lambda rng, n, s: L.Huber(either(rng, s)), normal, True),
    "huber, wide": (lambda rng, n, s: L.Huber(either(rng, s)), cauchy, True),
    "huber, deltas": (lambda rng, n, s: L.Huber(positive(rng, n) * either(rng, s)), normal, True),
    "pseudo-huber": (lambda rng, n, s: L.PseudoHuber(either(rng, s)), normal, True),
    "pseudo-huber, wide": (lambda rng, n, s: L.PseudoHuber(either(rng, s)), cauchy, True),
    "pseudo-huber, deltas": (lambda rng, n, s: L.PseudoHuber(positive(rng, n) * either(rng, s)), normal, True),
    "log-cosh": (lambda rng, n, s: L.LogCosh(either(rng, s)), normal, True),
    "log-cosh, wide": (lambda rng, n, s: L.LogCosh(either(rng, s)), cauchy, True),
    "log-cosh, scales": (lambda rng, n, s: L.LogCosh(positive(rng, n) * either(rng, s)), normal, True),
    "power 1.1": (lambda rng, n, s: L.Power(1.1), normal, True),
    "power 1.5": (lambda rng, n, s: L.Power(1.5), cauchy, True),
    "power 3": (lambda rng, n, s: L.Power(3), normal, True),
    "power 8": (lambda rng, n, s: L.Power(8), cauchy, True),
    "power 50": (lambda rng, n, s: L.Power(50), normal, True),
    "power, exponents": (lambda rng, n, s: L.Power(rng.choice([1.2, 1.5, 2.0, 4.0], n)), normal, True),
}


def problem_of(rng: Generator, name: str, scale: float) -> Problem:
    loss_of, targets_of, scaled = CASES[name]
    n = int(rng.choice(SIZES))
    loss, targets = loss_of(rng, n, scale), targets_of(rng, n)
    options = {"sample_weight": weights_of(rng, n), "loss": loss, "increasing": bool(rng.random() < 0.5)}
    if name.startswith("logistic"):
        options["bounds"] = (-math.inf, math.inf)
    return Problem(scores_of(rng, n), targets * scale if scaled else targets, options)


def script_of(problem: Problem) -> str:
    """Python source that repeats a fit."""

    def text(value: object) -> str:
        if isinstance(value, np.ndarray):
            return repr(value.tolist())
        if isinstance(value, L.Loss):
            arguments = ", ".join(f"{name}={text(given)}" for name, given in value.arguments().items())
            return f"sf.losses.{type(value).__name__}({arguments})"
        return repr(value)

    options = "".join(f", {name}={text(value)}" for name, value in problem.options.items())
    return (
        "import staircase_fast as sf\nfrom numpy import inf\n"
        f"x, y = {text(np.asarray(problem.scores))}, {text(problem.targets)}\noptions = dict({options[2:]})\n"
        "stairs = sf.fit(x, y, **options)\n"
        "options.pop('increasing')\nprint(stairs, sf.certify(stairs, x, y, **options))\n"
    )


def certify_cell(name: str, scale: float, n_fits: int, seed: int) -> list[str]:
    """Scripts of the fits of one loss and scale that were not certified."""
    failures = []
    for index in range(n_fits):
        rng = np.random.default_rng([seed, index, list(CASES).index(name), SCALES.index(scale)])
        problem = problem_of(rng, name, scale)
        try:
            stairs = problem.fit()
            if not problem.certify(stairs).optimal or not np.all(
                (stairs.lower <= stairs.values) & (stairs.values <= stairs.upper)
            ):
                failures.append(script_of(problem))
        except Exception as error:
            failures.append(f"# {type(error).__name__}: {error}\n" + script_of(problem))
    return failures


def main(n_fits: int, seed: int) -> int:
    print(f"certified fits, of {n_fits} per loss and scale, seed {seed}")
    print(" " * 22 + "".join(f"{scale:>7.0e}" for scale in SCALES))
    found: list[str] = []
    for name in CASES:
        cells = [certify_cell(name, scale, n_fits, seed) for scale in SCALES]
        print(f"{name:22}" + "".join(f"{n_fits - len(failures):7}" for failures in cells), flush=True)
        found += [script for failures in cells for script in failures]
    n_all = n_fits * len(SCALES) * len(CASES)
    print(f"{n_all} fits, {n_all - len(found)} certified")
    for script in sorted(found, key=len)[:20]:
        print(f"\n# not certified\n{script}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*(int(given) for given in (sys.argv[1:] + ["100", "0"][len(sys.argv) - 1 :]))))
