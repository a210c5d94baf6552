"""Fit many random problems and certify each fit.

python tests/safety/certify_many.py [problems] [seed]
"""

import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from problems import LOSSES, problem_of


def main(n_problems: int, seed: int) -> None:
    failed: Counter[str] = Counter()
    began = time.monotonic()
    for index in range(n_problems):
        rng = np.random.default_rng([seed, index])
        name = list(LOSSES)[index % len(LOSSES)]
        problem = problem_of(rng, name, int(np.exp(rng.uniform(0, np.log(3000)))))
        stairs = problem.fit()
        certificate = problem.certify(stairs)
        if not certificate.optimal or not certificate.gap >= 0:
            failed[name] += 1
            if failed[name] <= 5:
                print(f"problem {index}, {name}, {len(problem.scores)} rows: {certificate}")
    print(
        f"{n_problems} problems, {sum(failed.values())} not certified, {time.monotonic() - began:.0f} s; {dict(failed)}"
    )


if __name__ == "__main__":
    main(*(int(given) for given in (sys.argv[1:] + ["10000", "0"][len(sys.argv) - 1 :])))
